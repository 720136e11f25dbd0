#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""soak.py [-n ROUNDS] [-k LOOPS] [--suite SUITE] [NAME...]: tests again and again on a busy host.

Runs tests of build-test (sh test.sh makes it): those that are named, or a suite (e2e). They run
ROUNDS times (10) beside LOOPS loops (6) that take all the CPU time they get. Ends with a table:
each check that failed, how often, and what it said the last time; tests that recorded again for
lack of samples."""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import totals  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-test"


def one_round(args):
    """The tests of Meson's log."""
    log = BUILD / "meson-logs/soak-lane.py.json"
    log.unlink(missing_ok=True)
    (BUILD / "lanes").mkdir(exist_ok=True)
    chosen = args.names or ["--suite", args.suite]
    subprocess.run(["meson", "test", "-C", BUILD, "--no-rebuild", "--logbase", "soak", "--timeout-multiplier",
                    "20", "--wrapper", "%s %s" % (ROOT / "tests/lane.py", BUILD / "lanes"), *chosen],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if not log.exists():
        sys.exit("soak.py: no test ran: is build-test built, is there a test of that name?")
    return [json.loads(line) for line in log.read_text().splitlines()]


class Table:
    """Failures and retries of all rounds."""

    def __init__(self):
        self.ran = 0
        self.failed = collections.Counter()
        self.retried = collections.Counter()
        self.said = {}

    def fail(self, what, said):
        self.failed[what] += 1
        self.said[what] = said

    def add(self, t):
        name = totals.full_name(t["name"])
        self.ran += 1
        self.retried[name] += sum(l.startswith("# retry:") for l in t["stdout"].splitlines())
        if t["result"] in ("OK", "SKIP"):
            return
        checks = totals.not_ok(t["stdout"].splitlines())
        for check in checks:
            self.fail("%s: %s" % (name, check[0]), check[1:])
        if not checks:
            self.fail("%s: %s" % (name, t["result"]), totals.what_failed(t))

    def show(self, rounds, loops):
        print("%d tests in %d rounds beside %d busy loops" % (self.ran, rounds, loops))
        for what, times in self.failed.most_common():
            print("| %3d | %s |" % (times, what))
            for line in self.said[what][-totals.LINES:]:
                print("        " + line)
        for name, times in self.retried.most_common():
            if times:
                print("recorded again for lack of samples: %s, %d times" % (name, times))
        print("%d failures" % sum(self.failed.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=10, dest="rounds")
    parser.add_argument("-k", type=int, default=6, dest="loops")
    parser.add_argument("--suite", default="e2e")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    os.environ["UNISCOPE_ALL"] = "1"
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.loops)]
    table = Table()
    try:
        for done in range(args.rounds):
            for t in one_round(args):
                table.add(t)
            print("round %d: %d failures so far" % (done + 1, sum(table.failed.values())), flush=True)
    finally:
        for loop in busy:
            loop.kill()
    table.show(args.rounds, args.loops)
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
