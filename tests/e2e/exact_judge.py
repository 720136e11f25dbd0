#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Judges exact counts by what others count.

exact_judge.py known REPORT CONSOLE        what lab/apps/exact.c says that it does
exact_judge.py callgrind REPORT CALLGRIND  valgrind, of the same functions in a Linux process
REPORT is `uniscope report --json`, CALLGRIND callgrind's file.
"""
import json
import re
import sys


def self_of(report):
    with open(report) as f:
        data = json.load(f)
    assert data['unit'] == 'instructions', data['unit']
    return {f['name']: int(f['self']) for f in data['functions']}


def same(what, have, want):
    if have == want:
        return 0
    print(f'{what}: counted {have}, it is {want}')
    return 1


def known(report, console):
    own = self_of(report)
    text = open(console, errors='replace').read()
    bad = 'exact: done' not in text
    # Instructions that the assembler code has; a tail call of b by a and the other way round.
    for name, insns in {'exact_touch': 2000, 'exact_device': 30001, 'exact_tail_a': 1500,
                        'exact_tail_b': 1500, 'exact_throw': 400, 'exact_catch': 1900,
                        'exact_page_fault': 22000}.items():
        bad += same(name, own.get(name), insns)
    return bad


def callgrind_self(path):
    """Self cost by function: lines of cost behind fn=, but for the one behind calls=."""
    own, names, fn, skip = {}, {}, None, False
    for line in open(path):
        m = re.match(r'(c?fn)=\((\d+)\)(?: (.*))?$', line.rstrip())
        if m:
            if m[3]:
                names[m[2]] = m[3]
            if m[1] == 'fn':
                fn = names[m[2]]
        elif line.startswith('calls='):
            skip = True
        elif re.match(r'[+\-*\d]', line) and fn:
            if not skip:
                name = fn.split("'")[0] # recursion has names of its own
                own[name] = own.get(name, 0) + int(line.split()[1])
            skip = False
    return own


def callgrind(report, path):
    own, theirs = self_of(report), callgrind_self(path)
    names = [n for n in theirs if n.startswith('exact_')]
    if len(names) < 11:
        print('callgrind saw only', names)
        return 1
    return sum(same(n, own.get(n), theirs[n]) for n in names)


if __name__ == '__main__':
    sys.exit(1 if {'known': known, 'callgrind': callgrind}[sys.argv[1]](*sys.argv[2:]) else 0)
