#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""coverage.py [--e2e [NAME...]] [--lines ROOM]: which lines of src the tests reach, by room.

Builds with gcc and gcov in build-coverage and runs the unit and fuzz tests there. It removes the counts of earlier runs first.
--lines prints what nothing reached in one room, such as src/obj. A program that is killed leaves no counts. Nothing is optimised
there, for which the guest's tracer is not made: guesttrace* fail."""
import argparse
import collections
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-coverage"


def command(*words, quiet=True):
    out = subprocess.DEVNULL if quiet else None
    return subprocess.run([str(w) for w in words], stdout=out, stderr=out, check=False).returncode


def build(targets):
    """All of it, or what the tests of these suites want."""
    if not (BUILD / "build.ninja").exists():
        os.environ["CC"] = "gcc"
        # Counts of several threads are right only if they are atomic, those of lines if none was moved.
        if command("meson", "setup", BUILD, ROOT, "-Db_coverage=true", "-Doptimization=0",
                   "-Dc_args=-fprofile-update=atomic"):
            sys.exit("coverage.py: meson cannot set up %s" % BUILD)
    wanted = []
    if targets:
        wanted = subprocess.run([sys.executable, ROOT / "tests/totals.py", "targets", BUILD, *targets],
                                stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    if command("ninja", "-C", BUILD, *wanted):
        sys.exit("coverage.py: %s does not build" % BUILD)


def counts():
    """{file below the root: {line: hits}} of src, of all objects that hold it."""
    ret = collections.defaultdict(dict)
    data = sorted(BUILD.rglob("*.gcda"))
    with tempfile.TemporaryDirectory() as folder:
        for i in range(0, len(data), 50):
            command("sh", "-c", 'cd "$0" && exec gcov --json-format "$@"', folder, *data[i:i + 50])
            for path in pathlib.Path(folder).glob("*.gcov.json.gz"):
                add(ret, json.loads(gzip.decompress(path.read_bytes())))
                path.unlink()
    return ret


def add(ret, doc):
    for f in doc["files"]:
        path = pathlib.Path(doc["current_working_directory"], f["file"]).resolve()
        if not path.is_relative_to(ROOT / "src"):
            continue
        lines = ret[str(path.relative_to(ROOT))]
        for line in f["lines"]:
            n = line["line_number"]
            lines[n] = lines.get(n, 0) + line["count"]


def rooms(found):
    """{room: (lines, reached)}"""
    ret = {}
    for path, lines in found.items():
        room = "/".join(path.split("/")[:2])
        all_lines, reached = ret.get(room, (0, 0))
        ret[room] = all_lines + len(lines), reached + sum(n > 0 for n in lines.values())
    return ret


def tests(*suites):
    command("meson", "test", "-C", BUILD, "--no-rebuild", "--timeout-multiplier", "10", *suites, quiet=False)


def clear():
    for path in BUILD.rglob("*.gcda"):
        path.unlink()


def show(stages):
    print("| room | lines |%s" % "".join(" %s |" % name for name, _ in stages))
    print("|---|---:|%s" % ("---:|" * len(stages)))
    last = rooms(stages[-1][1])
    total = (sum(n for n, _ in last.values()), [])
    for room in sorted(last):
        cells = [rooms(found).get(room, (0, 0))[1] for _, found in stages]
        print("| %s | %d |%s" % (room, last[room][0], "".join(" %.1f %% |" % (100 * c / last[room][0]) for c in cells)))
    for _, found in stages:
        total[1].append(sum(r for _, r in rooms(found).values()))
    print("| all | %d |%s" % (total[0], "".join(" %.1f %% |" % (100 * c / max(total[0], 1)) for c in total[1])))


def show_lines(found, room):
    for path in sorted(p for p in found if p.startswith(room)):
        text = (ROOT / path).read_text().splitlines()
        for n in sorted(n for n, hits in found[path].items() if hits == 0):
            print("%s:%d: %s" % (path, n, text[n - 1].strip()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--e2e", nargs="*", metavar="NAME")
    parser.add_argument("--lines", metavar="ROOM")
    args = parser.parse_args()
    build([] if args.e2e is not None else ["unit", "fuzz"])
    clear()
    tests("--suite", "unit", "--suite", "fuzz")
    stages = [("unit, fuzz", counts())]
    if args.e2e is not None:
        tests(*(args.e2e or ["--suite", "e2e"]))
        stages.append(("and e2e", counts()))
    show(stages)
    if args.lines:
        show_lines(stages[-1][1], args.lines)


if __name__ == "__main__":
    sys.exit(main())
