#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
r"""mutants.py [-n N] [--seed S] [--room FOLDER] [--lines REGEX] [--e2e NAME...]: small defects in src, chosen by chance: are they found?
  -j N                 so many mutants at once; a test never runs beside itself
  --through COMMAND    a command in front of each build and test, such as one that waits for an idle CPU
  --budget SECONDS     of a CPU for the end-to-end tests of one mutant; one that no test found by then counts as a survivor

A mutant is one comparison turned, one constant plus 1, or one statement dropped. They are spread evenly over the folders of src.
The seed is printed; it gives the same mutants again of the same tree. --lines takes only lines like '_MAX\b': are limits tested?

All mutants are built at once into a copy (build-mutants); the environment says which one is on, if any. Each test of the default
run runs once without any, and its programs note which mutants they reach. A test that fails then is no judge. Each mutant is then
on in the tests that reach it, quick ones first, until one fails. Unit and fuzz tests come before end-to-end tests. --e2e names the
end-to-end tests that are to judge (none: unit and fuzz tests alone). A mutant that does not compile, or makes the same
object, does not count. Ends with the survivors, and exit status 1 if there are more than 15 in 100."""
import argparse
import concurrent.futures
import functools
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "style"), str(HERE / "plant")]
import check  # noqa: E402
import run as plant  # noqa: E402

ROOT = HERE.parent
TREE = ROOT / "build-mutants"
BUILD = TREE / "build"
TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPARISON = re.compile(r" (<=|>=|==|!=|<|>) ")
CONSTANT = re.compile(r"(?<![\w.\"'])([0-9]+)(u?)(?=[;,) \]])")
STATEMENT = re.compile(r"^\t+((?!return|goto|break|continue|case|default)[a-z_][\w.>\[\]-]*(?: [|&^+-]?= .*|\(.*\));)$", re.M)
OPERAND_ENDS = re.compile(r"&&|\|\||[?:,;{}]| [&|^] | [&|^+*/%-]?= |\breturn\b|\bcase\b| (?:==|!=|<=|>=|<|>) ")
SURVIVORS = 0.15  # at most
SPARE = 1.5  # chosen for each mutant that is wanted: some do not compile
NR_MAX = 4000
LIMITS = {"unit": 60, "fuzz": 60, "e2e": 300}  # seconds, or 20 times its CPU time without a mutant: it may hang a test

# In front of a file with mutants, in its first line; and behind its last.
FRONT = "extern int uni_mutant_on; extern unsigned char *uni_mutant_map; static inline int uni_mutant(int nr)" \
    " { if (uni_mutant_map) uni_mutant_map[nr] = 1; return uni_mutant_on == nr; } "
BEHIND = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((weak)) int uni_mutant_on = -1;
__attribute__((weak)) unsigned char *uni_mutant_map;
void uni_mutant_begin(void);
__attribute__((weak, constructor)) void uni_mutant_begin(void)
{
	const char *nr = getenv("UNI_MUTANT"), *path = getenv("UNI_MUTANT_MAP");
	int fd = path != (void *)0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map = fd >= 0 ? mmap((void *)0, %d, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (nr != (void *)0)
		uni_mutant_on = atoi(nr);
	if (map != MAP_FAILED)
		uni_mutant_map = map;
	if (fd >= 0)
		(void)close(fd);
}
""" % NR_MAX

def blanked(text):
    """The text without comments and string contents; each character stays in its place."""
    def blank(m):
        s = m.group(0)
        return s[0] + " " * (len(s) - 2) + s[0] if s[0] in "\"'" else re.sub(r"[^\n]", " ", s)

    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def operand_begin(plain, at):
    """The begin of the left operand of the comparison at `at`."""
    depth = 0
    for i in range(at - 1, -1, -1):
        if plain[i] in ")]":
            depth += 1
        elif plain[i] in "([":
            if depth == 0:
                return i + 1
            depth -= 1
        elif depth == 0:
            m = OPERAND_ENDS.match(plain, i)
            if m:
                return m.end()
    return 0


def operand_end(plain, at):
    depth = 0
    for i in range(at, len(plain)):
        if plain[i] in "([":
            depth += 1
        elif plain[i] in ")]":
            if depth == 0:
                return i
            depth -= 1
        elif depth == 0 and OPERAND_ENDS.match(plain, i):
            return i
    return len(plain)


class Site:
    """A mutant of a file: text[begin:end] becomes `new`, with %d for its number."""

    def __init__(self, path, kind, begin, end, new, line, said):
        self.path, self.kind, self.begin, self.end, self.new, self.line = path, kind, begin, end, new, line
        self.said = "%s:%d: %s: %s" % (path, line, kind, said)

    def mutated(self, text):
        """The file as this mutant alone, for a comparison of objects."""
        return text[:self.begin] + self.new.replace("uni_mutant(%d)", "1") % () + text[self.end:]


@functools.lru_cache(maxsize=None)
def text_of(name):
    """As it was first read: the tree may change while the tests run."""
    return (ROOT / name).read_text()


def sites_of(name):
    text = text_of(name)
    plain, starts = blanked(text), [0]
    starts += [m.end() for m in re.finditer("\n", text)]

    def line_of(at):
        n = text.count("\n", 0, at)
        return n, text[starts[n]:].split("\n", 1)[0], starts[n]

    def site(kind, begin, end, new, at, old, turned):
        n, line, start = line_of(at)
        said = line[:at - start] + turned + line[at - start + len(old):] if turned else "no " + old
        return Site(name, kind, begin, end, new, n + 1, said.strip())

    for m in COMPARISON.finditer(plain):
        if line_of(m.start())[1].startswith("\t"):  # not declarations, tables, the preprocessor
            op, turned = m.group(1), TURNED[m.group(1)]
            begin, end = operand_begin(plain, m.start()), operand_end(plain, m.end())
            left, right = text[begin:m.start()].lstrip(), text[m.end():end].rstrip()
            begin = m.start() - len(left)
            new = "(uni_mutant(%%d) ? (%s %s %s) : (%s %s %s))" % (*(s.replace("%", "%%") for s in (left, turned, right)),
                                                                *(s.replace("%", "%%") for s in (left, op, right)))
            yield site("comparison", begin, m.end() + len(right), new, m.start(1), op, turned)
    for m in CONSTANT.finditer(plain):
        if line_of(m.start())[1].startswith("\t"):
            more = "%d%s" % (int(m.group(1)) + 1, m.group(2))
            yield site("constant", m.start(), m.end(), "(uni_mutant(%%d) ? %s : %s)" % (more, m.group(0)),
                       m.start(), m.group(0), more)
    for m in STATEMENT.finditer(plain):
        old = text[m.start(1):m.end(1)]
        yield site("statement", m.start(1), m.end(1), "{ if (!uni_mutant(%%d)) { %s } }" % old.replace("%", "%%"),
                   m.start(1), old, "")


def all_sites(room, lines):
    """{folder: [Site]}, of lines that match."""
    ret = {}
    for path in check.tracked(str(ROOT), "src/*.c"):
        name = str(path.relative_to(ROOT).parent)
        text = text_of(str(path.relative_to(ROOT))).split("\n")
        if room is None or name == room:
            some = [s for s in sites_of(str(path.relative_to(ROOT))) if re.search(lines, text[s.line - 1])]
            ret.update({name: ret.get(name, []) + some} if some else {})
    return ret


def chosen(seed, room, lines):
    """Sites without end, one folder after the other (in the seed's order), one kind after the other."""
    rng = random.Random(seed)
    rooms = all_sites(room, lines)
    for sites in rooms.values():
        rng.shuffle(sites)
    order = sorted(rooms)
    rng.shuffle(order)
    kinds = ("comparison", "constant", "statement")
    for n in range(sum(map(len, rooms.values()))):
        sites = rooms[order[n % len(order)]]
        at = next((i for i, s in enumerate(sites) if s.kind == kinds[(n + n // len(order)) % 3]), None)
        if at is not None:
            yield sites.pop(at)


class Judge:
    def __init__(self, args):
        self.through, self.budget = shlex.split(args.through), args.budget
        plant.WORK, plant.TREE, plant.BUILD = str(TREE), str(TREE), str(BUILD)
        plant.configure("--werror")
        self.ninja("build.ninja")
        self.tests = {}
        for name, t in plant.tests_of(str(BUILD)).items():
            suite, test = name.split("/")
            if len(t["suite"]) == 1 and (suite in ("unit", "fuzz") or
                                         (suite == "e2e" and (args.e2e is None or test in args.e2e))):
                self.tests[name] = t
        self.objects, self.on, self.reached, self.seconds = {}, {}, {}, {}
        self.builds, self.alone = threading.Lock(), {name: threading.Lock() for name in self.tests}
        for entry in json.loads((BUILD / "compile_commands.json").read_text()):
            path = pathlib.Path(os.path.normpath(os.path.join(entry["directory"], entry["file"])))
            if path.is_relative_to(TREE):
                self.objects.setdefault(str(path.relative_to(TREE)), []).append(entry["output"])

    def ninja(self, *targets):
        words = ["ninja", "-C", BUILD, *targets]
        idle = subprocess.run([*words, "-n"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
        if idle.endswith("no work to do.\n"):
            return 0
        return subprocess.run([*self.through, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode

    def code_of(self, path, text):
        """The content of the objects without debug data."""
        (TREE / path).write_text(text)
        if self.ninja(*self.objects[path]):
            return None
        stripped, ret = BUILD / "stripped", hashlib.sha256()
        for output in self.objects[path]:
            subprocess.run(["objcopy", "--strip-debug", "--remove-section=.note.gnu.build-id", BUILD / output, stripped],
                           check=True)
            ret.update(stripped.read_bytes())
        return ret.hexdigest()

    def is_same(self, site):
        """Whether the mutant makes the same object as the file; leaves the file as it is in the tree."""
        text = text_of(site.path)
        with self.builds:
            mutant, plain = self.code_of(site.path, site.mutated(text)), self.code_of(site.path, text)
        return mutant == plain

    def write(self, path, sites):
        text = text_of(path)
        for nr, s in sorted(sites.items(), key=lambda item: -item[1].begin):
            text = text[:s.begin] + s.new % nr + text[s.end:]
        (TREE / path).write_text(FRONT + text + BEHIND if sites else text)

    def put_in(self, path, sites):
        """One after the other, and keeps those that compile."""
        kept = {}
        for nr, site in sites.items():
            self.write(path, {**kept, nr: site})
            if self.ninja(*self.objects[path]) == 0:
                kept[nr] = site
        self.write(path, kept)
        return kept

    def build(self, sites):
        """Builds the first of them that compile: {number: site}."""
        by_path = {}
        for nr, site in enumerate(sites):
            beside = by_path.setdefault(site.path, {})
            if site.path in self.objects and not any(s.begin < site.end and site.begin < s.end for s in beside.values()):
                beside[nr] = site
        for path, some in by_path.items():
            self.write(path, some)
        self.ninja("-k", "0", *(f for path in by_path for f in self.objects.get(path, ())))
        for path, some in by_path.items():
            self.on.update(some if not some or self.ninja(*self.objects[path]) == 0 else self.put_in(path, some))
        if self.ninja():  # all of it: tests with guests find these by name
            sys.exit("mutants.py: the tree with the mutants does not build")

    def run(self, name, more):
        """OK, SKIP or FAIL; and the CPU seconds."""
        limit = max(LIMITS[name.split("/")[0]], 20 * self.seconds[name]) if name in self.seconds else None
        with self.alone[name]:
            result, _, seconds = plant.run_one(self.tests[name], more, limit, self.through)
        return result, seconds

    def see_reached(self, name):
        """Runs the test without a mutant; one that fails, skips or reaches none is no judge."""
        path = BUILD / ("reached-" + name.replace("/", "-"))
        path.write_bytes(bytes(NR_MAX))
        path.chmod(0o666)
        how, seconds = self.run(name, {"UNI_MUTANT_MAP": str(path)})
        if how != "OK":
            print("no judge: %s: %s" % (name, how), flush=True)
            return
        self.seconds[name] = seconds
        self.reached[name] = {nr for nr, byte in enumerate(path.read_bytes()) if byte}

    def judges_of(self, nr, suites):
        return sorted((name for name in self.reached if name.split("/")[0] in suites and nr in self.reached[name]),
                      key=self.seconds.get)

    def judge(self, nr, suites):
        """The name of the test that found it, or None; and the number of tests that were asked."""
        left, asked = self.budget, 0
        for name in self.judges_of(nr, suites):
            if "e2e" in suites and (left := left - self.seconds[name]) < 0:
                break
            asked += 1
            if self.run(name, {"UNI_MUTANT": str(nr)})[0] == "FAIL":
                return name, asked
        return None, asked


class Round:
    """The mutants that are to be judged, and the verdicts so far."""

    def __init__(self, judge, pool, wanted):
        self.judge, self.pool, self.wanted = judge, pool, wanted
        self.spare, self.found, self.left, self.begin = sorted(judge.on), {}, [], time.monotonic()

    def ask(self, numbers, suites):
        """Those of the mutants that no test in these suites finds."""
        list(self.pool.map(self.judge.see_reached, [n for n in sorted(self.judge.tests) if n.split("/")[0] in suites]))
        return self.ask_only(numbers, suites)

    def ask_only(self, numbers, suites):
        def one(nr):
            name, asked = self.judge.judge(nr, suites)
            if name:
                self.found[nr] = name
            print("%5.0f s  %-24s %s" % (time.monotonic() - self.begin, name or "not by %d of %d" % (
                asked, len(self.judge.judges_of(nr, suites))), self.judge.on[nr].said), flush=True)
            return name is None

        return [nr for nr, stays in zip(numbers, list(self.pool.map(one, numbers))) if stays]

    def take(self):
        """As many as are wanted of those that make another object."""
        ask = self.ask
        while len(self.found) + len(self.left) < self.wanted and self.spare:
            n = self.wanted - len(self.found) - len(self.left)
            some, self.spare = self.spare[:n], self.spare[n:]
            self.left += [nr for nr in ask(some, ("unit", "fuzz")) if not self.judge.is_same(self.judge.on[nr])]
            ask = self.ask_only
        print("by unit and fuzz tests: %d of %d" % (len(self.found), len(self.found) + len(self.left)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=100)
    parser.add_argument("-j", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--room")
    parser.add_argument("--lines", default="", metavar="REGEX")
    parser.add_argument("--e2e", nargs="*", metavar="NAME")
    parser.add_argument("--through", default="")
    parser.add_argument("--budget", type=float, default=float("inf"))
    args = parser.parse_args()
    print("seed %d" % args.seed, flush=True)
    judge = Judge(args)
    judge.build(itertools.islice(chosen(args.seed, args.room, args.lines), int(args.n * SPARE)))
    print("%d mutants built" % len(judge.on), flush=True)
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        judged = Round(judge, pool, args.n)
        judged.take()
        survived = judged.ask(judged.left, ("e2e",))
    print("\nsurvivors:")
    for nr in survived:
        print("%s (%d tests reach it)" % (judge.on[nr].said, len(judge.judges_of(nr, ("unit", "fuzz", "e2e")))))
    total = len(judged.found) + len(survived)
    print("seed %d: %d of %d found" % (args.seed, len(judged.found), total))
    return 1 if len(survived) > SURVIVORS * total else 0


if __name__ == "__main__":
    sys.exit(main())
