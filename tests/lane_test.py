#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does lane.py know what a test cost, also of one that Meson ends, and of what it left running?"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LANE = pathlib.Path(__file__).with_name("lane.py")
BURN = "import os, signal, subprocess, sys, time\nwhile time.process_time() < 0.3: pass\n"
# Runs argv[1] in a session of its own.
START = ("import os, signal, subprocess, sys, time\n"
         "child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)\n")


def lane(*code):
    return subprocess.Popen([sys.executable, "-IS", str(LANE), "-", sys.executable, "-c", *code],
                            stdout=subprocess.PIPE, text=True)


class Lane(unittest.TestCase):
    def ends(self, test, want):
        """It costs no less than BURN does."""
        try:
            said = test.communicate(timeout=120)[0]
        finally:
            test.kill()
        self.assertEqual(test.returncode, want)
        self.assertGreaterEqual(float(re.findall(r"^# cpu ([0-9.]+) s$", said, re.M)[-1]), 0.3)

    def test_status_and_cost(self):
        for code, want in (("", 0), ("raise SystemExit(77)", 77), ("os.kill(os.getpid(), 9)", 137)):
            self.ends(lane(BURN + code), want)

    def test_one_that_ignores_its_end(self):
        """It, and what it started, are ended and counted."""
        with tempfile.TemporaryDirectory() as folder:
            there = pathlib.Path(folder, "pid")
            test = lane(START + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(20)",
                        BURN + "open(%r, 'w').write(str(os.getpid()))\ntime.sleep(20)" % str(there))
            while not there.exists() or not there.read_text():
                time.sleep(0.01)
            test.send_signal(signal.SIGTERM)
            self.ends(test, 137)
            with self.assertRaises(ProcessLookupError):
                os.kill(int(there.read_text()), 0)

    def test_time_of_checks(self):
        test = lane("import time\nprint('ok 1 - x', flush=True)\ntime.sleep(1.2)\nprint('not ok 2 - y\\n# why')")
        out = test.communicate(timeout=120)[0]
        # On a busy host, the first one may take as long: then it has a time, too.
        self.assertTrue(all(float(t) >= 1 for t in re.findall("took ([0-9.]+) s", out)), out)
        said = re.sub("[0-9]+[.][0-9]+", "N", out).splitlines()
        if said[1] == "# took N s":
            del said[1]
        self.assertEqual(said, ["ok 1 - x", "not ok 2 - y", "# took N s", "# why", "# cpu N s"])

    def test_session_is_as_nice(self):
        """Else the unit tests would slow down the guests beside them."""
        if not os.path.exists("/proc/self/autogroup"):
            return
        test = subprocess.run([sys.executable, "-IS", str(LANE), "-", "cat", "/proc/self/autogroup"], start_new_session=True,
                              preexec_fn=lambda: os.nice(7), stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn(" nice %d\n" % min(19, os.getpriority(os.PRIO_PROCESS, 0) + 7), test.stdout)

    def test_what_nobody_waited_for(self):
        self.ends(lane(START + "os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)\nos._exit(0)", BURN), 0)


if __name__ == "__main__":
    unittest.main()
