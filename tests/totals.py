#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""totals.py BUILD_DIR...: adds up Meson's logs, says why each skipped test skipped, and ends with
one line for all runs."""
import json
import pathlib
import sys

passed = failed = skipped = 0
for build in sys.argv[1:]:
    log = pathlib.Path(build, "meson-logs/testlog.json")
    if not log.exists():
        print(f"{build}: no test ran")
        failed += 1
        continue
    for line in log.read_text().splitlines():
        t = json.loads(line)
        if t["result"] in ("OK", "EXPECTEDFAIL"):
            passed += 1
        elif t["result"] == "SKIP":
            skipped += 1
            why = [l for l in t.get("stdout", "").splitlines() if "skip" in l.lower()]
            print(f"skipped: {build} {t['name']}: {why[0] if why else 'no reason given'}")
        else:
            failed += 1
            print(f"failed: {build} {t['name']} ({t['result']})")
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed else 0)
