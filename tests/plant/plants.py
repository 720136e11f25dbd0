# SPDX-License-Identifier: BSD-2-Clause
"""Reads planted defects (*.plant) and puts them into a tree.

A plant is a block of lines, blocks are separated by empty lines:
    plant     its name
    promise   what would be untrue with it
    in        the function that is changed (C, shell, Python or TypeScript)
    old       text in that function, spaces and line ends as they come; more lines with "  " before
    new       what stands there instead; may be empty
    tests     SUITE/NAME ...: one of these must fail, quick ones first
No path and no line: a plant survives that code moves, as long as the function and the text are there.
"""
import os
import re
import subprocess

KEYS = ("plant", "promise", "in", "old", "new", "tests")
ENDINGS = (".c", ".h", ".sh", ".py", ".ts", ".S", ".ml")
PLACES = ("src", "guest", "include", "plugin", "fuzz", "lab", "viewer/src", "tests/style", "tests/support", "tests/totals.py")
SHELL_NAMES = ("fuzz/run", "lab/boot")


class Bad(Exception):
    pass


class Plant:
    def __init__(self, block, where):
        self.where = where
        for key in KEYS:
            setattr(self, "function" if key == "in" else key, block.pop(key, None))
        if block:
            raise Bad("%s: unknown key %s" % (where, ", ".join(block)))
        for key in ("plant", "promise", "function", "old", "tests"):
            if not getattr(self, key):
                raise Bad("%s: no line \"%s\"" % (where, "in" if key == "function" else key))
        self.new = self.new or ""
        self.tests = self.tests.split()

    def pattern(self):
        return re.compile(r"\s+".join(re.escape(w) for w in self.old.split()))


def read_file(path):
    """The plants of one file."""
    block, key, first = {}, None, 0
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n") + [""]
    for nr, line in enumerate(lines, 1):
        where = "%s:%d" % (os.path.basename(path), first)
        if line.startswith("#"):
            continue
        if not line.strip():
            if block:
                yield Plant(block, where)
            block, key = {}, None
        elif line.startswith("  ") and key:
            block[key] += "\n" + line[2:]
        else:
            key, _, value = line.partition(" ")
            first = first if block else nr
            if key in block or key not in KEYS:
                raise Bad("%s:%d: %s" % (os.path.basename(path), nr, key))
            block[key] = value.strip()


def read_all(folder):
    plants = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".plant"):
            plants += read_file(os.path.join(folder, name))
    names = [p.plant for p in plants]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise Bad("two plants of one name: %s" % ", ".join(sorted(twice)))
    return plants


def sources(root):
    """{path: text} of all files in which a defect can be planted."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", *PLACES],
                            capture_output=True, text=True, check=True).stdout.splitlines()
    texts = {}
    for path in listed:
        full = os.path.join(root, path)
        if (path.endswith(ENDINGS) or path in SHELL_NAMES) and os.path.isfile(full):
            with open(full, encoding="utf-8", errors="surrogateescape") as f:
                texts[path] = f.read()
    return texts


def bodies(text, name):
    """(from, to) of each definition of the function: its line at the margin, to a brace there."""
    word = re.escape(name)
    if name == "-":  # a script without functions
        yield 0, len(text)
        return
    # A head holds no semicolon and ends in a brace of its own line (C) or at its end (others).
    head = re.compile(r"^(?![ \t#/*}])[^\n;={]*\b%s\s*\((?:[^;{}]*\n\{|[^;\n]*\{[ \t]*(?:#[^\n]*)?)\n" % word, re.M)
    for m in head.finditer(text):
        end = re.compile(r"^\}", re.M).search(text, m.end())
        yield m.start(), end.end() if end else len(text)
    for m in re.finditer(r"^%s\(\) *\{[^\n]*\}[ \t]*(?:#[^\n]*)?$" % word, text, re.M):  # of one line
        yield m.start(), m.end()
    for m in re.finditer(r"^( *)(?:def %s\(|(?:let|let rec|and) %s )" % (word, word), text, re.M):  # Python, OCaml
        end = re.compile(r"^ {0,%d}\S" % len(m.group(1)), re.M).search(text, m.end())
        yield m.start(), end.start() if end else len(text)


def place_of(plant, texts):
    """(path, from, to) of the text to be replaced; Bad unless there is exactly one."""
    found, functions = [], 0
    for path, text in texts.items():
        if plant.function not in text and plant.function != "-":
            continue
        for begin, end in bodies(text, plant.function):
            functions += 1
            for m in plant.pattern().finditer(text, begin, end):
                found.append((path, m.start(), m.end()))
    if not functions:
        raise Bad("%s: %s: there is no function %s" % (plant.where, plant.plant, plant.function))
    if len(found) != 1:
        raise Bad("%s: %s: %s has the old text %d times, not once" % (
            plant.where, plant.plant, plant.function, len(found)))
    return found[0]


def planted(plant, texts):
    """(path, its text with the defect)"""
    path, begin, end = place_of(plant, texts)
    text = texts[path]
    return path, text[:begin] + plant.new + text[end:]
