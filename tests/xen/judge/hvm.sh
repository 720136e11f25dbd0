#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The session and the trace of cases/hvm.sh against the guest's source.
. "$SRC/tests/xen/judge.sh"
# Each round calls each of the four once.
rounds() {
	"$BUILD/src/cli/uniscope" trace report -n 0 --json "$OUT/traced.uniscope" | python3 -c 'import json, sys
r = json.load(sys.stdin)
calls = {f["function"]: f["calls"] for f in r["functions"]}
print(calls, r["lost"], "lost")
sys.exit(r["lost"] != 0 or sorted(calls) != ["burn_a", "burn_b", "burn_c", "burn_d"] or min(calls.values()) < 20 or
         max(calls.values()) - min(calls.values()) > 1)'
}
images='' # the disk's image is no Xen guest's
judge shares shares --min-samples 1000
verdict 'the calls of each round' rounds
echo "1..$n"
