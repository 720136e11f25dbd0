# SPDX-License-Identifier: BSD-2-Clause
"""uftrace.py FOLDED REPORT: we made the stacks of FOLDED from a folder of uftrace. They have the times of `uftrace report -f
total,self` for each function, in total and itself, and no others."""
import re
import sys

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9}


def ours(path):
    total, self_ns = {}, {}
    for line in open(path):
        stack, ns = line.rstrip("\n").rsplit(" ", 1)
        names = stack.split(";")
        for name in set(names):
            total[name] = total.get(name, 0) + float(ns)
        self_ns[names[-1]] = self_ns.get(names[-1], 0) + float(ns)
    return {name: (ns, self_ns.get(name, 0)) for name, ns in total.items()}


def theirs(path):
    rows = {}
    for line in open(path):
        m = re.match(r"\s*([\d.]+) +(\w+) +([\d.]+) +(\w+) +(\S.*)$", line)
        if m:
            rows[m[5].strip()] = ((m[1], m[2]), (m[3], m[4]))
    return rows


def main():
    got, want = ours(sys.argv[1]), theirs(sys.argv[2])
    assert want and set(got) == set(want), sorted(set(got) ^ set(want)) or "an empty report"
    for name, times in want.items():
        for what, ns, (value, unit) in zip(("total", "self"), got[name], times):
            # Three decimals are printed, of which the last is cut.
            print(name, what, "ours", ns, "theirs", value, unit)
            assert abs(ns / UNITS[unit] - float(value)) < 0.0011, (name, what)


main()
