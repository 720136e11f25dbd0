#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""mutants.py [-n N] [--seed S] [--units] [--room ROOM]: small defects in src, chosen by chance: are they found?

A mutant is one comparison turned, one constant plus 1, or one statement dropped. They are spread evenly over the rooms of src; the
seed is printed, and gives the same ones again of the same tree. Each is built in a copy (build-mutants). The default run's tests
get it, unit and fuzz tests first, until one fails; --units stops behind these. A mutant that does not compile or makes the same
program does not count. Ends with the survivors, and exit status 1 if there are more than 15 in 100."""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "style"))
import check  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build-mutants"
TREE, BUILD = WORK / "tree", WORK / "build"
TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPARISON = re.compile(r" (<=|>=|==|!=|<|>) ")
CONSTANT = re.compile(r"(?<![\w.\"'])([0-9]+)(?=[u;,) \]])")
STATEMENT = re.compile(r"^\t+(?!return|goto|break|continue|case|default)[a-z_][\w.>\[\]-]*(?: [|&^+-]?= .*|\(.*\));$")
SURVIVORS = 0.15  # at most


def sites_of(path):
    """(line, kind, the line as it is, the line as a mutant) of a file."""
    text = path.read_text()
    lines, plain = text.splitlines(), check.code(text).splitlines()
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
    """{room: [(path, line, kind, mutant)]}"""
    ret = {}
    for path in check.tracked(str(ROOT), "src/*.c"):
        name = path.relative_to(ROOT).parts[1]
        if room is None or name == room:
            ret.setdefault(name, []).extend((path.relative_to(ROOT), *site) for site in sites_of(path))
    return ret


def chosen(seed, room):
    """Sites without end, one room after the other, one kind after the other."""
    rng = random.Random(seed)
    rooms = all_sites(room)
    for sites in rooms.values():
        rng.shuffle(sites)
    kinds = ("comparison", "constant", "statement")
    for n in range(sum(map(len, rooms.values()))):
        sites = rooms[sorted(rooms)[n % len(rooms)]]
        at = next((i for i, s in enumerate(sites) if s[2] == kinds[n // len(rooms) % 3]), None)
        if at is not None:
            yield sites.pop(at)


def quiet(*words):
    return subprocess.run([str(w) for w in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode


def set_up():
    shutil.rmtree(TREE, ignore_errors=True)
    for path in check.tracked(str(ROOT)):
        to = TREE / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, to)
    if not (BUILD / "build.ninja").exists() and quiet("meson", "setup", BUILD, TREE):
        sys.exit("mutants.py: meson cannot set up build-mutants")
    if quiet("ninja", "-C", BUILD):
        sys.exit("mutants.py: the tree does not build")


def program():
    """The compiled program without debug data."""
    stripped = BUILD / "stripped"
    quiet("objcopy", "--strip-debug", "--remove-section=.note.gnu.build-id", BUILD / "src/cli/uniscope", stripped)
    return hashlib.sha256(stripped.read_bytes()).hexdigest()


def first_failure(*suites):
    """The name of the first test that fails; None."""
    log = BUILD / "meson-logs/testlog.json"
    log.unlink(missing_ok=True)
    quiet("meson", "test", "-C", BUILD, "--no-rebuild", "--maxfail", "1", "--no-suite", "all",
          "--timeout-multiplier", "2", *suites)
    for line in log.read_text().splitlines() if log.exists() else ():
        t = json.loads(line)
        if t["result"] not in ("OK", "SKIP", "INTERRUPT"):
            return t["name"].split(" / ")[-1]
    return None


def judge(site, whole, units):
    """'broken', 'same', the name of the test that found it, or None."""
    path, n, _, mutant = site
    full = TREE / path
    text = full.read_text()
    lines = text.splitlines()
    lines[n] = mutant
    full.write_text("\n".join(lines) + "\n")
    try:
        if quiet("ninja", "-C", BUILD):
            return "broken"
        if program() == whole:
            return "same"
        return first_failure("--suite", "unit", "--suite", "fuzz") or (
            None if units else first_failure("--suite", "e2e"))
    finally:
        full.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--units", action="store_true")
    parser.add_argument("--room")
    args = parser.parse_args()
    print("seed %d" % args.seed, flush=True)
    set_up()
    whole, judged, survived = program(), 0, []
    for site in chosen(args.seed, args.room):
        if judged == args.n:
            break
        begin, found = time.monotonic(), judge(site, whole, args.units)
        if found in ("broken", "same"):
            continue
        judged += 1
        path, n, kind, mutant = site
        said = "%s:%d: %s: %s" % (path, n + 1, kind, mutant.strip())
        print("%3d %-24s %4.0f s  %s" % (judged, found or "SURVIVED", time.monotonic() - begin, said), flush=True)
        if found is None:
            survived.append(said)
    quiet("ninja", "-C", BUILD)
    print("\n".join(["", "survivors:"] + survived))
    print("seed %d: %d of %d found" % (args.seed, judged - len(survived), judged))
    return 1 if len(survived) > SURVIVORS * judged else 0


if __name__ == "__main__":
    sys.exit(main())
