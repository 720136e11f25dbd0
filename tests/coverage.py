#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""coverage.py [--e2e [NAME...]] [--lines ROOM] [--files ROOM] [--functions ROOM]: which lines of src the tests reach, by room.

Builds with clang in build-coverage and runs the unit and fuzz tests there. It removes the counts of earlier runs first.
--e2e also runs the end-to-end tests of the default run, or those that are named; with UNISCOPE_ALL=1 in the environment, all of
them. --lines prints what nothing reached in one room, such as src/obj. --files prints a line for each file of it. --functions
prints the functions that no test calls.

Each program maps the file of its counts when it starts. So a program that gives up its rights, or is killed, is counted too.
A program that runs as a user who may not write in build-coverage is not."""
import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-coverage"
COUNTS = BUILD / "counts"
SUITES = ("unit", "fuzz")


def command(*words, quiet=True):
    out = subprocess.DEVNULL if quiet else None
    return subprocess.run([str(w) for w in words], stdout=out, stderr=out, check=False).returncode


def build():
    """All of it: end-to-end tests want the lab's guests."""
    COUNTS.mkdir(parents=True, exist_ok=True)
    COUNTS.chmod(0o1777)
    # %c: counts are in a mapped file from the start. %m: one file for each program.
    os.environ["LLVM_PROFILE_FILE"] = "%s/%%m%%c.profraw" % COUNTS
    if not (BUILD / "build.ninja").exists():
        os.environ["CC"] = "clang"
        flags = "-fprofile-instr-generate=%s -fcoverage-mapping -mllvm -runtime-counter-relocation" % \
            os.environ["LLVM_PROFILE_FILE"]
        if command("meson", "setup", BUILD, ROOT, "-Doptimization=1", "-Dc_args=" + flags,
                   "-Dc_link_args=-fprofile-instr-generate"):
            sys.exit("coverage.py: meson cannot set up %s" % BUILD)
    if command("ninja", "-C", BUILD):
        sys.exit("coverage.py: %s does not build" % BUILD)


def programs():
    """Files that have counters and lines of their own."""
    ret = []
    for path in sorted(BUILD.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.suffix in ("", ".so") and os.access(path, os.X_OK) and \
                b"__llvm_covmap" in path.read_bytes():
            ret.append(path)
    return ret


def export():
    """Records as lcov has them, of all programs that hold src: (file below the root, kind, value)."""
    merged = BUILD / "counts.profdata"
    subprocess.run(["llvm-profdata-14", "merge", *COUNTS.glob("*.profraw"), "-o", merged], check=True)
    objects = [word for path in programs() for word in ("-object", path)][1:]
    lcov = subprocess.run(["llvm-cov-14", "export", "-format=lcov", "-instr-profile", merged, *objects],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    file = None
    for line in lcov.splitlines():
        kind, _, value = line.partition(":")
        if kind == "SF":
            path = pathlib.Path(value).resolve()
            file = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT / "src") else None
        elif file is not None:
            yield file, kind, value


def counts():
    """{file: {line: hits}}, {file: {function: calls}}"""
    lines, functions = {}, {}
    for file, kind, value in export():
        if kind == "DA":
            number, hits = value.split(",")[:2]
            of = lines.setdefault(file, {})
            of[int(number)] = of.get(int(number), 0) + int(hits)
        elif kind == "FNDA":
            hits, name = value.split(",", 1)
            of, name = functions.setdefault(file, {}), name.rpartition(":")[2]
            of[name] = of.get(name, 0) + int(hits)
    return lines, functions


def by_room(path):
    return "/".join(path.split("/")[:2])


def sums(found, name_of):
    """{room or file: (lines, reached)}"""
    ret = {}
    for path, lines in found.items():
        all_lines, reached = ret.get(name_of(path), (0, 0))
        ret[name_of(path)] = all_lines + len(lines), reached + sum(n > 0 for n in lines.values())
    return ret


def tests(*chosen):
    lanes = BUILD / "lanes"
    lanes.mkdir(exist_ok=True)
    command("meson", "test", "-C", BUILD, "--no-rebuild", "--timeout-multiplier", "10", "--wrapper",
            "%s %s" % (ROOT / "tests/lane.py", lanes), *chosen, quiet=False)


def show(stages, name_of=by_room, room="src"):
    stages = [(name, sums({p: f for p, f in found.items() if p.startswith(room)}, name_of)) for name, found in stages]
    print("| | lines |%s" % "".join(" %s |" % name for name, _ in stages))
    print("|---|---:|%s" % ("---:|" * len(stages)))
    last = stages[-1][1]
    for name in sorted(last):
        print("| %s | %d |%s" % (name, last[name][0], "".join(
            " %.1f %% |" % (100 * s.get(name, (0, 0))[1] / last[name][0]) for _, s in stages)))
    total = max(sum(n for n, _ in last.values()), 1)
    print("| all | %d |%s" % (total, "".join(" %.1f %% |" % (100 * sum(r for _, r in s.values()) / total) for _, s in stages)))


def show_lines(found, room):
    for path in sorted(p for p in found if p.startswith(room)):
        text = (ROOT / path).read_text().splitlines()
        for n in sorted(n for n, hits in found[path].items() if hits == 0):
            print("%s:%d: %s" % (path, n, text[n - 1].strip()))


def show_functions(functions, room):
    for path in sorted(p for p in functions if p.startswith(room)):
        names = sorted(name for name, hits in functions[path].items() if hits == 0)
        if names:
            print("%s: %s" % (path, " ".join(names)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--e2e", nargs="*", metavar="NAME")
    parser.add_argument("--lines", metavar="ROOM")
    parser.add_argument("--files", metavar="ROOM")
    parser.add_argument("--functions", metavar="ROOM")
    args = parser.parse_args()
    build()
    for path in COUNTS.glob("*.profraw"):
        path.unlink()
    os.umask(0)
    tests(*(word for suite in SUITES for word in ("--suite", suite)))
    found, functions = counts()
    stages = [("unit, fuzz", found)]
    if args.e2e is not None:
        tests(*(args.e2e or ["--suite", "e2e", *([] if os.environ.get("UNISCOPE_ALL") else ["--no-suite", "all"])]))
        found, functions = counts()
        stages.append(("and e2e", found))
    show(stages)
    if args.files:
        show(stages, str, args.files)
    if args.lines:
        show_lines(found, args.lines)
    if args.functions:
        show_functions(functions, args.functions)


if __name__ == "__main__":
    sys.exit(main())
