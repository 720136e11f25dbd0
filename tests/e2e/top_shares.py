#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""top_shares.py FILE: does `top --batch --json` show the shares of the lab guest `shares`? They must be within 4 standard errors,
and 1 point for the rest of its work."""
import json
import math
import sys

WANT = {'burn_a': 0.5, 'burn_b': 0.25, 'burn_c': 0.15, 'burn_d': 0.1}


def main():
    got = dict.fromkeys(WANT, 0)
    with open(sys.argv[1], encoding='utf-8') as f:
        shots = [json.loads(line) for line in f]
    for shot in shots:
        for function in shot['functions']:
            if function['name'] in got:
                got[function['name']] += function['self']
    nr = sum(got.values())
    good = nr >= 700 and [s['snapshot'] for s in shots] == list(range(1, len(shots) + 1))
    print('%d samples in %d snapshots' % (nr, len(shots)))
    for name, share in WANT.items():
        seen = got[name] / nr if nr else 0
        allowed = max(4 * math.sqrt(share * (1 - share) / max(nr, 1)), 0.01)
        good = good and abs(seen - share) <= allowed
        print('%s %.2f %% of %.0f +- %.2f' % (name, 100 * seen, 100 * share, 100 * allowed))
    for shot in shots:
        good = good and shot['quality']['complete'] > 0.99 and shot['quality']['pause'] is None
    sys.exit(not good)


main()
