#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints the end of test.sh, from Meson's logs. CI shows only the end of what is printed.

    totals.py check BUILD [NAME...]     are the built tests those in tests/names (or: these)?
    totals.py names BUILD               tests/names, as it has to be for what was built
    totals.py targets BUILD             what ninja has to build by default, but for what only tests in suite all depend on
    totals.py targets BUILD -SUITE... [SUITE...]  what it has to build for all tests but those in the former that are in none of
                                        the latter
    totals.py targets BUILD SUITE...    what it has to build for the tests in these suites; suite objects: for the warnings of each file
    totals.py sum WHICH BUILD/LOG...    adds up: WHICH is all, default or names
    totals.py cpu TIMES SECONDS         the cost of it all, from a file with the output of the shell's `times`
"""
import json
import pathlib
import platform
import re
import sys

NAMES = pathlib.Path(__file__).with_name("names")
LINES = 40  # of what a failed check says; the last ones, where the verdict is
CHECKS = 10  # of a test that failed
SLOWEST = 10
SLOW_CHECKS = 3  # of each of these
SUITES = {"unit", "fuzz"}  # that run in a build without guests


def last(lines):
    cut = len(lines) - LINES
    return lines if cut <= 0 else ["... %d lines before" % cut] + lines[cut:]


def not_ok(lines):
    """The lines `not ok`, each with the diagnostics behind it."""
    checks, inside = [], False
    for line in lines:
        if line.startswith("not ok"):
            checks.append([line])
            inside = True
        elif inside and line.startswith("#"):
            checks[-1].append(line)
        else:
            inside = False
    return checks


def what_failed(t):
    """The reason, in lines. If no check failed (the test crashed), the last lines. If the test took too long, both: they tell how
    far it came."""
    lines = t.get("stdout", "").splitlines()
    checks = not_ok(lines)
    ret = []
    for check in checks[:CHECKS]:
        ret += check[:1] + last(check[1:])
    if len(checks) > CHECKS:
        ret.append("... and %d more not ok" % (len(checks) - CHECKS))
    if not checks or t["result"] == "TIMEOUT":
        ret += last(lines) + last(t.get("stderr", "").splitlines())
    return ret


def skips(t):
    """The skipped checks of a test, with reasons, a line each; None for a test that gives no
    reason."""
    lines = t.get("stdout", "").splitlines()
    ret = []
    for line in lines:
        m = re.match(r"(?:not )?ok\b(.*)#\s*skip\S*(.*)|1\.\.0\s*#\s*skip\S*(.*)", line, re.I)
        if m:
            why = (m.group(3) if m.group(1) is None else m.group(2)).strip()
            ret.append(line if why else None)
    if ret or t["result"] != "SKIP":
        return ret
    # A test without TAP says it in words, and ends with 77.
    said = [line for line in lines if re.match(r"skip\w*:\s*\S", line, re.I)]
    return [said[0] if said else None]


def is_cut(t):
    """Whether the test speaks TAP and does not say how many checks there are. Meson takes that as a pass."""
    out = t.get("stdout", "")
    return bool(re.search(r"^(?:not )?ok \d", out, re.M)) and not re.search(r"^1\.\.\d|^Bail out!", out, re.M)


def cpu_seconds(t):
    """The test's cost by tests/lane.py, or None."""
    found = re.findall(r"^# cpu ([0-9.]+) s$", t.get("stdout", ""), re.M)
    return float(found[-1]) if found else None


def slow_checks(t):
    """The checks that took longest, by the remarks of tests/lane.py, with their seconds."""
    ret, check = [], None
    for line in t.get("stdout", "").splitlines():
        took = re.match(r"# took ([0-9.]+) s$", line)
        if took and check:
            ret.append((float(took.group(1)), check))
        check = line.partition(" - ")[2] if re.match(r"(?:not )?ok ", line) else None
    return sorted(ret, key=lambda c: -c[0])[:SLOW_CHECKS]


class Totals:
    """All runs together."""

    def __init__(self, out):
        self.out = out
        self.passed = self.failed = self.skipped = 0
        self.took = []

    def say(self, line):
        print(line, file=self.out)

    def fail(self, line):
        self.failed += 1
        self.say("failed: " + line)

    def count(self, build, t):
        name = "%s %s" % (build, t["name"])
        if "duration" in t:
            self.took.append((t["duration"], cpu_seconds(t), name, slow_checks(t)))
        for line in t.get("stdout", "").splitlines():
            if line.startswith("# retry:"):
                self.say("retried: %s: %s" % (name, line[len("# retry:"):].strip()))
        for why in skips(t):
            if why is None:
                self.fail("%s: skipped, no reason given" % name)
                continue
            self.skipped += 1
            self.say("skipped: %s: %s" % (name, why))
        if t["result"] == "OK" and is_cut(t):
            self.fail("%s: it ended before its plan, so checks may be lost" % name)
        elif t["result"] == "OK":
            self.passed += 1
        elif t["result"] != "SKIP":
            self.fail("%s (%s)" % (name, t["result"]))
            for said in what_failed(t):
                self.say("    " + said)

    def slowest(self):
        if not self.took:
            return
        self.say("the slowest, in seconds by the clock and of a CPU:")
        for wall, cpu, name, checks in sorted(self.took, key=lambda t: -t[0])[:SLOWEST]:
            self.say("%7.1f %7s  %s" % (wall, "-" if cpu is None else "%.1f" % cpu, name))
            for seconds, check in checks:
                self.say("%24.1f  %s" % (seconds, check))


    def by_suite(self):
        """The cost of the tests, the dearest suite first; building them comes on top."""
        cost = {}
        for _, cpu, name, _ in self.took:
            suite = name.partition("/")[0]
            cost[suite] = cost.get(suite, 0) + (cpu or 0)
        if cost:
            self.say("CPU seconds of the tests: " + ", ".join(
                "%s %.0f" % (suite, cost[suite]) for suite in sorted(cost, key=cost.get, reverse=True)))


def built(build):
    """{SUITE/NAME: suites} of the tests that Meson knows."""
    path = pathlib.Path(build, "meson-info/intro-tests.json")
    ret = {}
    for t in json.loads(path.read_text()) if path.exists() else ():
        suites = [s.split(":")[-1] for s in t["suite"]]
        ret[suites[0] + "/" + t["name"]] = set(suites)
    return ret


def full_name(logged):
    """SUITE/NAME from Meson's log, which has PROJECT:SUITE+SUITE / NAME."""
    suites, _, name = logged.rpartition(" / ")
    return suites.split(":")[-1].split("+")[0] + "/" + name


def listed():
    """The names of all tests that there should be."""
    return {line for line in NAMES.read_text().splitlines() if line and line[0] != "#"}


def check(build, names, out=sys.stdout):
    """1 if a test is not there: a test that a missing part leaves out unseen protects nothing."""
    have = built(build)
    if names:
        known = {n.split("/")[1] for n in have}
        unknown = [n for n in names if n not in known]
        for name in unknown:
            print("there is no test %s (meson test -C %s --list names them)" % (name, build), file=out)
        return 1 if unknown else 0
    lost, new = sorted(listed() - have.keys()), sorted(have.keys() - listed())
    for name in lost:
        print("lost: %s is in tests/names, but was not built" % name, file=out)
    for name in new:
        print("new: %s is not in tests/names; add it there (totals.py names %s)" % (name, build), file=out)
    # The list is of x86_64 with all packages of deps.sh.
    return 1 if new or (lost and platform.machine() == "x86_64") else 0


def names_of(build, out=sys.stdout):
    remarks = [line for line in NAMES.read_text().splitlines() if line.startswith("#")]
    print("\n".join(remarks + sorted(built(build))), file=out)
    return 0


def targets(build, suites, out=sys.stdout):
    """Meson's own `all` has what any test wants: the images of those that are left out, too."""
    info = pathlib.Path(build, "meson-info")
    known = json.loads((info / "intro-targets.json").read_text())
    without = {s[1:] for s in suites if s.startswith("-")}
    suites = set(suites) - {"-" + s for s in without}
    wanted, unwanted, only_all = set(), set(), set()
    if not suites and not without:  # no test has the programs that measure speed
        only_all.update(t["id"] for t in known if "/bench/" in t["defined_in"])
    for t in json.loads((info / "intro-tests.json").read_text()):
        its = {s.split(":")[-1] for s in t["suite"]}
        if not its & suites and its & without:
            unwanted.update(t["depends"])
        elif its & suites or without or not suites and "all" not in its:
            wanted.update(t["depends"])
        elif not suites:
            only_all.update(t["depends"])
    root = pathlib.Path(build).resolve()
    for t in known:
        if t["id"] in wanted or (t["build_by_default"] and (without or not suites) and t["id"] not in unwanted | only_all):
            for name in t["filename"]:
                print(pathlib.Path(name).resolve().relative_to(root), file=out)
    if "objects" in suites:
        for step in json.loads((root / "compile_commands.json").read_text()):
            print(step["output"], file=out)
    return 0


def add_up(which, logs, out=sys.stdout):
    totals, ran, left = Totals(out), {}, []
    for log in logs:
        build = str(pathlib.Path(log).parent)
        path = pathlib.Path(build, "meson-logs", pathlib.Path(log).name + ".json")
        if not path.exists():
            totals.fail("%s: no test ran" % log)
            continue
        for line in path.read_text().splitlines():
            t = json.loads(line)
            t["name"] = full_name(t["name"])
            ran.setdefault(build, set()).add(t["name"])
            totals.count(build, t)
    for build, names in ran.items():
        have = {} if which == "names" else built(build)
        if "e2e/lab_boot" not in have:
            have = {n: suites for n, suites in have.items() if suites & SUITES}
        elif which == "all":  # the build by clang runs these
            have = {n: suites for n, suites in have.items() if not suites & SUITES or "gcc" in suites}
        left += sorted(n for n, suites in have.items() if which == "default" and "all" in suites)
        for name in sorted(have.keys() - names - set(left)):
            totals.fail("%s %s: did not run" % (build, name))
    totals.slowest()
    totals.by_suite()
    if which == "default":
        totals.say("left out (sh test.sh all runs them): %s; clang with ASan and UBSan; clang-tidy and cppcheck of "
                   "what is as in the branch's base" % (", ".join(left) or "no test"))
    totals.say(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped")
    return 1 if totals.failed or not totals.passed else 0


def cpu(times, wall, out=sys.stdout):
    found = re.findall(r"(\d+)m([0-9.]+)s", pathlib.Path(times).read_text())
    print("%.0f CPU seconds in %s s" % (sum(60 * int(m) + float(s) for m, s in found), wall), file=out)
    return 0


def main(argv, out=sys.stdout):
    if len(argv) >= 2 and argv[0] == "check":
        return check(argv[1], argv[2:], out)
    if len(argv) == 2 and argv[0] == "names":
        return names_of(argv[1], out)
    if len(argv) >= 2 and argv[0] == "targets":
        return targets(argv[1], argv[2:], out)
    if len(argv) >= 3 and argv[0] == "sum":
        return add_up(argv[1], argv[2:], out)
    if len(argv) == 3 and argv[0] == "cpu":
        return cpu(argv[1], argv[2], out)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
