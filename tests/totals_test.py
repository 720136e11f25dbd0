#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does totals.py count right, and say what failed?"""
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import totals  # noqa: E402


def said(*tests):
    """Exit status and lines for a build with these tests: (name, result, stdout[, stderr])."""
    with tempfile.TemporaryDirectory() as build:
        logs = pathlib.Path(build, "meson-logs")
        logs.mkdir()
        keys = ("name", "result", "stdout", "stderr")
        (logs / "testlog.json").write_text("".join(json.dumps(dict(zip(keys, t))) + "\n" for t in tests))
        out = io.StringIO()
        status = totals.main([build], out)
        return status, [l.replace(build, "B") for l in out.getvalue().splitlines()]


class Totals(unittest.TestCase):
    def test_all_well(self):
        self.assertEqual(said(("a", "OK", "ok 1 - x"), ("b", "SKIP", "1..0 # SKIP no dog")),
                         (0, ["skipped: B b: 1..0 # SKIP no dog", "1 passed, 0 failed, 1 skipped"]))

    def test_failed_checks_with_their_remarks(self):
        tap = "ok 1 - x\n# of x\nnot ok 2 - y\n# why\n# why else\nok 3 - z\n# of z\nnot ok 4 - w\n1..4"
        self.assertEqual(said(("a", "FAIL", tap), ("b", "OK", "")), (1, [
            "failed: B a (FAIL)", "    not ok 2 - y", "    # why", "    # why else",
            "    not ok 4 - w", "1 passed, 1 failed, 0 skipped"]))

    def test_the_end_of_long_remarks(self):
        tap = "not ok 1 - y\n" + "".join("# %d\n" % i for i in range(100))
        status, lines = said(("a", "FAIL", tap))
        self.assertEqual(lines[1:4], ["    not ok 1 - y", "    ... 60 lines before", "    # 60"])
        self.assertEqual(lines[-2:], ["    # 99", "0 passed, 1 failed, 0 skipped"])
        self.assertEqual(status, 1)

    def test_many_failed_checks(self):
        tap = "".join("not ok %d - y\n" % i for i in range(1, 31))
        lines = said(("a", "FAIL", tap))[1]
        self.assertEqual(lines[10:], ["    not ok 10 - y", "    ... and 20 more not ok",
                                      "0 passed, 1 failed, 0 skipped"])

    def test_no_check_failed(self):
        tap = "".join("ok %d - y\n" % i for i in range(1, 51))
        lines = said(("a", "TIMEOUT", tap, "Killed\n"))[1]
        self.assertEqual(lines[:3], ["failed: B a (TIMEOUT)", "    ... 10 lines before",
                                     "    ok 11 - y"])
        self.assertEqual(lines[-3:], ["    ok 50 - y", "    Killed", "0 passed, 1 failed, 0 skipped"])

    def test_no_run(self):
        out = io.StringIO()
        self.assertEqual(totals.main(["/nonexistent"], out), 1)
        self.assertEqual(out.getvalue().splitlines()[-1], "0 passed, 1 failed, 0 skipped")


if __name__ == "__main__":
    unittest.main()
