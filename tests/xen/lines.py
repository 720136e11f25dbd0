#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Is the time of functions that each print one line a call in proportion to their numbers of calls?

usage: lines.py SESSION FUNCTION=PERCENT...
The guest itself counts the calls between the first and the last copy of its books. They are to be
PERCENT of all within one point; samples as in judge.py.
"""
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'e2e'))
import judge  # noqa: E402 (it lies in another folder)


def calls(first, last, name):
    fn = last.names.index(name)
    return sum(c.fns[fn][0] for c in last.cpus) - sum(c.fns[fn][0] for c in first.cpus)


def main(session, *specs):
    first, last, _ = judge.read_session(session, 'lab_truth')
    stacks = judge.read_stacks(session + '.json', 0)
    wanted = {name: int(percent) / 100 for name, percent in (s.split('=') for s in specs)}
    lines = {name: calls(first, last, name) for name in wanted}
    seen = {name: sum(n for chain, n in stacks.items() if name in map(judge.plain, chain))
            for name in wanted}
    total, nr, good = sum(lines.values()), sum(seen.values()), True
    for name, share in wanted.items():
        truth, part = lines[name] / total, seen[name] / nr
        allowed = max(4 * math.sqrt(truth * (1 - truth) / nr), 0.01)
        ok = abs(truth - share) <= 0.01 and abs(truth - part) <= allowed
        good = good and ok
        print(f'{name}: {lines[name]} lines, {truth:.2%}; {part:.2%} of {nr} samples '
              f'+/- {allowed:.2%}: {"ok" if ok else "BAD"}')
    return good and nr >= 1000


if __name__ == '__main__':
    sys.exit(0 if main(*sys.argv[1:]) else 1)
