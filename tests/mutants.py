#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""mutants.py [-n N] [--seed S] [--units] [--room FOLDER]: small defects in src, chosen by chance: are they found?

A mutant is one comparison turned, one constant plus 1, or one statement dropped. They are spread evenly over the folders of src.
The seed is printed; it gives the same mutants again of the same tree. Each is built in a copy (build-mutants).

build-mutants/map.json says which unit and fuzz tests reach which line: `tests/coverage.py --map` writes it, if it is not there.
Only tests that reach the line are built and run, quick ones first, until one fails. If none does, the tests of the default run
follow that E2E names for the folder. --units leaves these out. A mutant that does not compile or makes the same object does not
count. Ends with the survivors, and exit status 1 if there are more than 15 in 100."""
import argparse
import bisect
import hashlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "style"), str(HERE / "plant")]
import check  # noqa: E402
import run as plant  # noqa: E402

ROOT = HERE.parent
WORK = ROOT / "build-mutants"
TREE, BUILD, MAP = WORK / "tree", WORK / "build", WORK / "map.json"
TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPARISON = re.compile(r" (<=|>=|==|!=|<|>) ")
CONSTANT = re.compile(r"(?<![\w.\"'])([0-9]+)(?=[u;,) \]])")
STATEMENT = re.compile(r"^\t+(?!return|goto|break|continue|case|default)[a-z_][\w.>\[\]-]*(?: [|&^+-]?= .*|\(.*\));$")
SURVIVORS = 0.15  # at most
BATCHES = (3, 8, 200)  # of tests that are built at once
LIMIT = 60  # seconds for a unit test; a mutant may hang it

# Tests of the default run for what unit tests do not find, by folder: the longest beginning counts.
E2E = {
    "src": "cli export_golden choice run arithmetic recorded",
    "src/arch": "hostile complete_tcg truth_bpf",
    "src/backend": "ls run conformance",
    "src/backend/core": "core",
    "src/backend/gdb": "conformance complete_tcg",
    "src/backend/kvm": "kvm_bpf exits accounting kvm kvm_stream truth_bpf",
    "src/backend/proc": "proc promises_proc",
    "src/backend/replay": "recorded arithmetic core",
    "src/backend/stream": "inside",
    "src/base": "cli export_golden serve",
    "src/cli": "cli run export_golden choice",
    "src/compat": "compat ftrace mirage_viewer",
    "src/format": "export_golden exchange roundtrip arithmetic cli",
    "src/format/ftrace": "ftrace exchange",
    "src/format/mirage": "mirage_viewer ocaml",
    "src/format/svg": "svg_browser export_golden",
    "src/format/uktrace": "syscalls exchange",
    "src/guest": "threads",
    "src/mem": "hostile complete_tcg",
    "src/obj": "symbols places images complete_tcg",
    "src/page": "page_browser export_golden cli",
    "src/profile": "arithmetic export_golden cli",
    "src/promise": "promises promises_proc",
    "src/recording": "recorded cli crash several",
    "src/sampling": "sampler truth_bpf several complete_tcg",
    "src/serve": "serve live",
    "src/syscalls": "syscalls",
    "src/top": "top",
    "src/trace": "trace_oracle trace trace_options",
    "src/tracing": "trace_options trace",
    "src/unwind": "complete_tcg hostile guesses",
}


def blanked(text):
    """The text without comments and string contents; each character stays in its place."""
    def blank(m):
        s = m.group(0)
        return s[0] + " " * (len(s) - 2) + s[0] if s[0] in "\"'" else re.sub(r"[^\n]", " ", s)

    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def sites_of(path):
    """(line, kind, the line as it is, the line as a mutant) of a file."""
    text = path.read_text()
    lines, plain = text.splitlines(), blanked(text).splitlines()
    for n, bare in enumerate(plain):
        if not bare.startswith("\t"):
            continue  # declarations, tables, the preprocessor
        for m in COMPARISON.finditer(bare):
            yield n, "comparison", lines[n][:m.start(1)] + TURNED[m.group(1)] + lines[n][m.end(1):]
        for m in CONSTANT.finditer(bare):
            yield n, "constant", lines[n][:m.start(1)] + str(int(m.group(1)) + 1) + lines[n][m.end(1):]
        if STATEMENT.match(bare):
            yield n, "statement", "\t;"


def all_sites(room):
    """{folder: [(path, line, kind, mutant)]}"""
    ret = {}
    for path in check.tracked(str(ROOT), "src/*.c"):
        name = str(path.relative_to(ROOT).parent)
        if room is None or name == room:
            ret.setdefault(name, []).extend((str(path.relative_to(ROOT)), *site) for site in sites_of(path))
    return ret


def chosen(seed, room):
    """Sites without end, one folder after the other (in the seed's order), one kind after the other."""
    rng = random.Random(seed)
    rooms = all_sites(room)
    for sites in rooms.values():
        rng.shuffle(sites)
    order = sorted(rooms)
    rng.shuffle(order)
    kinds = ("comparison", "constant", "statement")
    for n in range(sum(map(len, rooms.values()))):
        sites = rooms[order[n % len(order)]]
        at = next((i for i, s in enumerate(sites) if s[2] == kinds[(n + n // len(order)) % 3]), None)
        if at is not None:
            yield sites.pop(at)


def ninja(*targets):
    return subprocess.run(["ninja", "-C", BUILD, *targets], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode


class Judge:
    def __init__(self, units):
        plant.WORK, plant.TREE, plant.BUILD = str(WORK), str(TREE), str(BUILD)
        plant.set_up()
        ninja("build.ninja")
        if not MAP.exists() and subprocess.run([sys.executable, HERE / "coverage.py", "--map", MAP],
                                               check=False).returncode:
            sys.exit("mutants.py: no map")
        self.units = units
        self.judges = set()  # tests with guests that pass without a mutant
        self.known = plant.tests_of(str(BUILD))
        self.map = json.loads(MAP.read_text())
        self.objects = {}
        for entry in json.loads((BUILD / "compile_commands.json").read_text()):
            path = pathlib.Path(os.path.normpath(os.path.join(entry["directory"], entry["file"])))
            if path.is_relative_to(TREE):
                self.objects.setdefault(str(path.relative_to(TREE)), []).append(entry["output"])

    def code_of(self, outputs):
        """The content of the objects without debug data."""
        stripped, ret = BUILD / "stripped", hashlib.sha256()
        for output in outputs:
            subprocess.run(["objcopy", "--strip-debug", "--remove-section=.note.gnu.build-id", BUILD / output, stripped],
                           check=True)
            ret.update(stripped.read_bytes())
        return ret.hexdigest()

    def reaching(self, path, n):
        """The unit and fuzz tests that reach this line (from 1), or the one with code before it."""
        lines = self.map["lines"].get(path, [])
        at = bisect.bisect_right(lines, n) - 1
        if at < 0:
            return []
        tests = self.map["tests"]
        found = [name for name in tests if lines[at] in tests[name]["lines"].get(path, ()) and name in self.known]
        return sorted(found, key=lambda name: (name.startswith("fuzz"), tests[name]["seconds"]))

    def is_red(self, name):
        t = self.known[name]
        try:
            return subprocess.run(t["cmd"], cwd=BUILD, env=dict(os.environ, **t["env"]), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=LIMIT, check=False).returncode not in (0, 77)
        except subprocess.TimeoutExpired:
            return True

    def unit_red(self, path, n):
        left = self.reaching(path, n)
        for size in BATCHES:
            now, left = left[:size], left[size:]
            if now and ninja(*{t for name in now for t in plant.targets_of(name, self.known)}):
                return "the build"
            for name in now:
                if self.is_red(name):
                    return name
        return None

    def e2e_red(self, path):
        folder = max((f for f in E2E if path.startswith(f + "/")), key=len)
        for name in E2E[folder].split():
            name = "e2e/" + name
            if name not in self.known:
                print("  not built: %s" % name, flush=True)
                continue
            if plant.build(plant.targets_of(name, self.known)):
                return "the build"
            if plant.run_test(name)[0] in plant.RED:
                return name
        return None

    def judge(self, site):
        """'broken', 'same', the name of the test that found it, or None."""
        path, n, _, mutant = site
        full = TREE / path
        text = full.read_text()
        lines = text.splitlines()
        lines[n] = mutant
        outputs = self.objects.get(path)
        if outputs is None:
            return "same"  # no part of this build
        if ninja(*outputs):
            sys.exit("mutants.py: %s does not build" % path)
        before = self.code_of(outputs)
        full.write_text("\n".join(lines) + "\n")
        try:
            if ninja(*outputs):
                return "broken"
            if self.code_of(outputs) == before:
                return "same"
            found = self.unit_red(path, n + 1) or (None if self.units else self.e2e_red(path))
        finally:
            full.write_text(text)
        if found and found.startswith("e2e/") and found not in self.judges:
            plant.build(plant.targets_of(found, self.known))
            if plant.run_test(found)[0] != "OK":
                sys.exit("mutants.py: %s is no judge: it fails without a mutant" % found)
            self.judges.add(found)
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--units", action="store_true")
    parser.add_argument("--room")
    args = parser.parse_args()
    print("seed %d" % args.seed, flush=True)
    judge, judged, survived = Judge(args.units), 0, []
    for site in chosen(args.seed, args.room):
        if judged == args.n:
            break
        begin, found = time.monotonic(), judge.judge(site)
        if found in ("broken", "same"):
            continue
        judged += 1
        path, n, kind, mutant = site
        said = "%s:%d: %s: %s" % (path, n + 1, kind, mutant.strip())
        print("%3d %-24s %4.0f s  %s" % (judged, found or "SURVIVED", time.monotonic() - begin, said), flush=True)
        if found is None:
            survived.append(said)
    print("\n".join(["", "survivors:"] + survived))
    print("seed %d: %d of %d found" % (args.seed, judged - len(survived), judged))
    return 1 if len(survived) > SURVIVORS * judged else 0


if __name__ == "__main__":
    sys.exit(main())
