#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""totals.py BUILD_DIR...: adds up Meson's logs, says why each skipped test skipped and what was wrong
in each failed one, and ends with one line for all runs. CI shows only the end of what is printed."""
import json
import pathlib
import sys

LINES = 40  # of what a failed check says; the last ones, where the verdict is
CHECKS = 10  # of a test that failed


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
    """Why, in lines; of a test that has no failed check (it crashed, took too long) its last ones."""
    lines = t.get("stdout", "").splitlines()
    checks = not_ok(lines)
    if not checks:
        return last(lines) + last(t.get("stderr", "").splitlines())
    ret = []
    for check in checks[:CHECKS]:
        ret += check[:1] + last(check[1:])
    if len(checks) > CHECKS:
        ret.append("... and %d more not ok" % (len(checks) - CHECKS))
    return ret


def main(builds, out=sys.stdout):
    passed = failed = skipped = 0
    for build in builds:
        log = pathlib.Path(build, "meson-logs/testlog.json")
        if not log.exists():
            print(f"{build}: no test ran", file=out)
            failed += 1
            continue
        for line in log.read_text().splitlines():
            t = json.loads(line)
            if t["result"] in ("OK", "EXPECTEDFAIL"):
                passed += 1
            elif t["result"] == "SKIP":
                skipped += 1
                why = [l for l in t.get("stdout", "").splitlines() if "skip" in l.lower()]
                print(f"skipped: {build} {t['name']}: {why[0] if why else 'no reason given'}",
                      file=out)
            else:
                failed += 1
                print(f"failed: {build} {t['name']} ({t['result']})", file=out)
                for said in what_failed(t):
                    print("    " + said, file=out)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", file=out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
