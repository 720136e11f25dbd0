#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf_leaves.py PERF_DATA STACKS.json IMAGE: do perf's samples of a guest and ours agree on the shares of leaf functions, within 4
standard errors of their difference? perf's samples are the addresses that hit the guest (`perf report -D`), named by the image's
symbols. Ours are a recording exported as json, without states."""
import bisect
import json
import math
import re
import subprocess
import sys

SAMPLE = re.compile(r'PERF_RECORD_SAMPLE\(IP, 0x([0-9a-f]+)\): \d+/\d+: 0x([0-9a-f]+) ')
GUEST_KERNEL, GUEST_USER, CPU_MODE = 4, 5, 7


def symbols(image):
    lines = subprocess.run(['nm', '-n', image], check=True, capture_output=True, text=True).stdout.splitlines()
    words = [line.split() for line in lines]
    found = [(int(w[0], 16), w[2]) for w in words if len(w) == 3 and w[1] in 'tT']
    return [a for a, _ in found], [n for _, n in found]


def of_perf(path, image):
    starts, names = symbols(image)
    dump = subprocess.run(['perf', 'report', '-D', '-i', path], capture_output=True, text=True, check=False).stdout
    seen = {}
    for mode, address in SAMPLE.findall(dump):
        if int(mode, 16) & CPU_MODE in (GUEST_KERNEL, GUEST_USER):
            at = bisect.bisect(starts, int(address, 16)) - 1
            name = names[at] if at >= 0 else '?'
            seen[name] = seen.get(name, 0) + 1
    return seen


def of_ours(path):
    with open(path, encoding='utf-8') as f:
        doc = json.load(f)
    seen = {}
    for stack in doc['stacks']:
        name = doc['functions'][stack['frames'][-1]]['name']
        if not name.startswith('['):
            seen[name] = seen.get(name, 0) + int(stack['value'])
    return seen


def main():
    perf, ours = of_perf(sys.argv[1], sys.argv[3]), of_ours(sys.argv[2])
    nr_perf, nr_ours = sum(perf.values()), sum(ours.values())
    print('perf: %d samples of the guest; ours: %d' % (nr_perf, nr_ours))
    good = min(nr_perf, nr_ours) >= 1000
    for name in sorted(set(perf) | set(ours), key=lambda n: -ours.get(n, 0)):
        a, b = perf.get(name, 0), ours.get(name, 0)
        # Both are estimates of one share.
        share = (a + b) / max(nr_perf + nr_ours, 1)
        error = math.sqrt(share * (1 - share) * (1 / max(nr_perf, 1) + 1 / max(nr_ours, 1)))
        fits = abs(a / max(nr_perf, 1) - b / max(nr_ours, 1)) <= 4 * error
        good = good and fits
        print('%-20s perf %6.2f %%, ours %6.2f %%, +- %.2f %s' % (
            name, 100 * a / max(nr_perf, 1), 100 * b / max(nr_ours, 1), 400 * error, 'ok' if fits else 'BAD'))
    sys.exit(not good)


main()
