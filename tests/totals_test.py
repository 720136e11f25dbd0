#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does totals.py count right, and say what failed?"""
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import totals  # noqa: E402

SUM = "0 passed, 1 failed, 0 skipped"


def said(*tests, which="names", have=None):
    """Exit status and lines for a build with these tests: (name, result, stdout[, stderr]). have: the
    names that Meson knows, with their suite."""
    with tempfile.TemporaryDirectory() as build:
        for folder in ("meson-logs", "meson-info"):
            pathlib.Path(build, folder).mkdir()
        keys = ("name", "result", "stdout", "stderr")
        pathlib.Path(build, "meson-logs", "log.json").write_text(
            "".join(json.dumps(dict(zip(keys, ("uniscope:unit / " + t[0], *t[1:])))) + "\n" for t in tests))
        pathlib.Path(build, "meson-info", "intro-tests.json").write_text(json.dumps(
            [{"name": n, "suite": ["uniscope:" + s for s in suites]}
             for n, suites in (have or {}).items()]))
        out = io.StringIO()
        status = totals.main(["sum", which, build + "/log"], out)
        return status, [l.replace(build, "B") for l in out.getvalue().splitlines()]


def checked(names, have):
    """Exit status and lines of check, where tests/names has these."""
    with tempfile.TemporaryDirectory() as build:
        listed, totals.NAMES = totals.NAMES, pathlib.Path(build, "names")
        try:
            totals.NAMES.write_text("# a remark\n" + "".join(n + "\n" for n in names))
            pathlib.Path(build, "meson-info").mkdir()
            pathlib.Path(build, "meson-info", "intro-tests.json").write_text(
                json.dumps([{"name": n, "suite": ["uniscope:unit"]} for n in have]))
            out = io.StringIO()
            return totals.main(["check", build], out), out.getvalue().splitlines()
        finally:
            totals.NAMES = listed


class Can(unittest.TestCase):
    """tests/support/can.py: without a part, a test skips, but not on a host that has it."""

    def asked(self, must):
        """Exit status and reason for a browser, where no program is found."""
        done = subprocess.run([sys.executable, pathlib.Path(__file__).parent / "support/can.py", "browser"],
                              env={"PATH": "/nonexistent", "UNISCOPE_MUST": must}, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def test_skips(self):
        self.assertEqual(self.asked(""), (77, "no chromium on this machine\n"))
        self.assertEqual(self.asked("kvm bpf"), (77, "no chromium on this machine\n"))

    def test_must_not_skip(self):
        self.assertEqual(self.asked("kvm browser"), (1, "no chromium on this machine\n"))


class Totals(unittest.TestCase):
    def test_all_well(self):
        self.assertEqual(said(("a", "OK", "ok 1 - x\n1..1"), ("b", "SKIP", "1..0 # SKIP no dog")),
                         (0, ["skipped: B unit/b: 1..0 # SKIP no dog", "1 passed, 0 failed, 1 skipped"]))

    def test_each_skip_counts(self):
        tap = "ok 1 - x\nok 2 - y # SKIP no cat\nok 3 # skip no dog\n# skip of it\n1..3"
        self.assertEqual(said(("a", "OK", tap), ("b", "SKIP", "skip: no fish\n")), (0, [
            "skipped: B unit/a: ok 2 - y # SKIP no cat", "skipped: B unit/a: ok 3 # skip no dog",
            "skipped: B unit/b: skip: no fish", "1 passed, 0 failed, 3 skipped"]))

    def test_a_skip_without_a_reason_fails(self):
        for result, stdout in (("SKIP", ""), ("SKIP", "we skip\n"), ("SKIP", "1..0 # SKIP\n"),
                               ("OK", "ok 1 - x # SKIP\n1..1\n")):
            status, lines = said(("a", result, stdout))
            self.assertEqual(status, 1, stdout)
            self.assertEqual(lines[0], "failed: B unit/a: skipped, no reason given")

    def test_what_was_expected_to_fail_has_not_passed(self):
        for result in ("EXPECTEDFAIL", "UNEXPECTEDPASS", "ERROR", "INTERRUPT"):
            self.assertEqual(said(("a", result, "")), (1, ["failed: B unit/a (%s)" % result, SUM]))

    def test_one_that_ends_before_its_plan_has_not_passed(self):
        lost = "B unit/a: it ended before its plan, so checks may be lost"
        self.assertEqual(said(("a", "OK", "ok 1 - x\nok 2 - y\n")), (1, ["failed: " + lost, SUM]))
        for whole in "1..1\nok 1 - x\n", "ok 1 - x\n# said\n1..1\n", "[       OK ] x\n", "":
            self.assertEqual(said(("a", "OK", whole))[1], ["1 passed, 0 failed, 0 skipped"])

    def test_no_test_at_all_is_no_success(self):
        self.assertEqual(said(), (1, ["0 passed, 0 failed, 0 skipped"]))

    def test_retries_are_told(self):
        self.assertEqual(said(("a", "OK", "ok 1\n# retry: 12 samples, want 20\n1..1\n"))[1][0],
                         "retried: B unit/a: 12 samples, want 20")

    def test_a_test_that_did_not_run(self):
        have = {"a": ["unit"], "b": ["unit"], "c": ["unit", "all"]}
        self.assertEqual(said(("a", "OK", ""), which="all", have=have)[1][:2], [
            "failed: B unit/b: did not run", "failed: B unit/c: did not run"])
        status, lines = said(("a", "OK", ""), ("b", "OK", ""), which="default", have=have)
        self.assertEqual(status, 0)
        self.assertIn("left out (sh test.sh all runs them): unit/c;", lines[0])

    def test_suites_that_a_build_runs(self):
        have = {"a": ["unit"], "f": ["fuzz"], "x": ["lint"]}
        self.assertIn("failed: B fuzz/f: did not run", said(("a", "OK", ""), which="all", have=have)[1])
        del have["f"]
        self.assertEqual(said(("a", "OK", ""), which="all", have=have)[0], 0)

    def test_unit_and_fuzz_tests_run_under_asan(self):
        have = {"u": ["unit"], "f": ["fuzz"], "g": ["unit", "gcc"], "a": ["unit", "all", "gcc"], "lab_boot": ["e2e"]}

        def missed(which):
            return [l.split()[2] for l in said(("x", "OK", ""), which=which, have=have)[1] if "did not run" in l]

        self.assertEqual(missed("all"), ["e2e/lab_boot:", "unit/a:", "unit/g:"])
        self.assertEqual(missed("default"), ["e2e/lab_boot:", "fuzz/f:", "unit/g:", "unit/u:"])

    def test_slowest(self):
        out = io.StringIO()
        t = totals.Totals(out)
        for i in range(20):
            tap = "ok 1 - a\n# took 1.5 s\nok 2 - b\n# took 7.0 s\nok 3 - c\n1..3\n" if i == 19 else ""
            t.count("B", {"name": "t%d" % i, "result": "OK", "duration": i, "stdout": tap + "# cpu 0.50 s\n"})
        t.slowest()
        lines = [line.split() for line in out.getvalue().splitlines()]
        self.assertEqual(len(lines), 13)
        self.assertEqual(lines[1:5], [["19.0", "0.5", "B", "t19"], ["7.0", "b"], ["1.5", "a"],
                                      ["18.0", "0.5", "B", "t18"]])

    def test_by_suite(self):
        out = io.StringIO()
        t = totals.Totals(out)
        for suite, stdout in (("unit", "# cpu 1.40 s\n"), ("e2e", "# cpu 5.00 s\n"), ("unit", "# cpu 1.20 s\n"),
                              ("e2e", "")):
            t.count("B", {"name": suite + "/x", "result": "OK", "duration": 9, "stdout": stdout})
        t.by_suite()
        self.assertEqual(out.getvalue(), "CPU seconds of the tests: B e2e 5, B unit 3\n")

    def test_targets(self):
        """The whole build for tests of the default run, or just what the tests of a suite want."""
        with tempfile.TemporaryDirectory() as build:
            info = pathlib.Path(build, "meson-info")
            info.mkdir()
            (info / "intro-targets.json").write_text(json.dumps(
                [{"id": n, "filename": ["%s/%s" % (build, n)], "build_by_default": n in ("tool", "graph", "speed"),
                  "defined_in": "/x/%s/meson.build" % ("bench" if n == "speed" else "tests")}
                 for n in ("tool", "test-a", "guest", "graph", "speed")]))
            (info / "intro-tests.json").write_text(json.dumps(
                [{"name": n, "suite": ["uniscope:" + s for s in suites], "depends": [n] + more}
                 for n, suites, more in (("test-a", ["unit"], []), ("guest", ["e2e", "all"], ["graph"]))]))
            pathlib.Path(build, "compile_commands.json").write_text('[{"output": "a.o"}, {"output": "b.o"}]')
            for suites, want in (([], "tool\ntest-a\n"), (["unit"], "test-a\n"), (["fuzz", "all"], "guest\ngraph\n"),
                                 (["-unit"], "tool\nguest\ngraph\nspeed\n"), (["-unit", "-e2e"], "tool\nspeed\n"),
                                 (["-unit", "-e2e", "all"], "tool\nguest\ngraph\nspeed\n"), (["unit", "objects"], "test-a\na.o\nb.o\n")):
                out = io.StringIO()
                self.assertEqual(totals.main(["targets", build, *suites], out), 0)
                self.assertEqual(out.getvalue(), want)

    def test_names(self):
        self.assertEqual(checked(["unit/a", "unit/b"], ["a", "b"]), (0, []))
        status, lines = checked(["unit/a"], ["a", "b"])
        self.assertEqual((status, len(lines)), (1, 1))
        self.assertIn("new: unit/b is not in tests/names; add it there", lines[0])
        # Other machines have fewer tests.
        machine = totals.platform.machine
        self.addCleanup(setattr, totals.platform, "machine", machine)
        for name, status in (("x86_64", 1), ("aarch64", 0)):
            totals.platform.machine = lambda name=name: name
            self.assertEqual(checked(["unit/a", "unit/b"], ["a"]),
                             (status, ["lost: unit/b is in tests/names, but was not built"]))

    def test_cpu(self):
        with tempfile.NamedTemporaryFile("w+") as f:
            f.write("0m1.0s 0m2.0s\n1m3.0s 2m4.0s\n")
            f.flush()
            out = io.StringIO()
            self.assertEqual(totals.main(["cpu", f.name, "99"], out), 0)
            self.assertEqual(out.getvalue(), "190 CPU seconds in 99 s\n")

    def test_failed_checks_with_their_remarks(self):
        tap = "ok 1 - x\n# of x\nnot ok 2 - y\n# why\n# why else\nok 3 - z\n# of z\nnot ok 4 - w\n1..4"
        self.assertEqual(said(("a", "FAIL", tap), ("b", "OK", "")), (1, [
            "failed: B unit/a (FAIL)", "    not ok 2 - y", "    # why", "    # why else",
            "    not ok 4 - w", "1 passed, 1 failed, 0 skipped"]))

    def test_the_end_of_long_remarks(self):
        tap = "not ok 1 - y\n" + "".join("# %d\n" % i for i in range(100))
        status, lines = said(("a", "FAIL", tap))
        self.assertEqual(lines[1:4], ["    not ok 1 - y", "    ... 60 lines before", "    # 60"])
        self.assertEqual(lines[-2:], ["    # 99", SUM])
        self.assertEqual(status, 1)

    def test_many_failed_checks(self):
        tap = "".join("not ok %d - y\n" % i for i in range(1, 31))
        lines = said(("a", "FAIL", tap))[1]
        self.assertEqual(lines[10:], ["    not ok 10 - y", "    ... and 20 more not ok", SUM])

    def test_no_check_failed(self):
        tap = "".join("ok %d - y\n" % i for i in range(1, 51))
        lines = said(("a", "TIMEOUT", tap, "Killed\n"))[1]
        self.assertEqual(lines[:3], ["failed: B unit/a (TIMEOUT)", "    ... 10 lines before",
                                     "    ok 11 - y"])
        self.assertEqual(lines[-3:], ["    ok 50 - y", "    Killed", SUM])

    def test_too_long(self):
        """The checks that failed before, and how far the test came."""
        lines = said(("a", "TIMEOUT", "ok 1 - x\nnot ok 2 - y\nok 3 - z\n"))[1]
        self.assertEqual(lines[:5], ["failed: B unit/a (TIMEOUT)", "    not ok 2 - y", "    ok 1 - x",
                                     "    not ok 2 - y", "    ok 3 - z"])

    def test_no_run(self):
        out = io.StringIO()
        self.assertEqual(totals.main(["sum", "names", "/nonexistent/log"], out), 1)
        self.assertEqual(out.getvalue().splitlines()[-1], SUM)


if __name__ == "__main__":
    unittest.main()
