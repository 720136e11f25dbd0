#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Questions of the shell tests to a session and its exports. Exit status 0: yes.

ask.py beats SESSION               did the guest's heartbeat (watch lab_truth) rise?
ask.py stops SESSION WORD...       did the chains that were cut short end for these reasons only,
                                   for each at least once?  WORD? may be missing, root always may
ask.py only SESSION WORD...        the same, but none of them must be there
ask.py number SESSION MEMBER MIN [MAX]   is that statistic in the range?
ask.py below JSON ROOT FUNCTION [not]    is (is not) the function in stacks of that outermost frame?
ask.py leaf JSON FUNCTION SHARE    do so many (0 to 1) of the samples end in it, whatever the vCPU
                                   did there? FUNCTION may be f;[idle]: in f, with the vCPU idle
ask.py near FOLDED FOLDED N        do the two differ by at most N samples?
"""
import json
import os
import struct
import sys

STATES = ('[idle]', '[kvm]', '[vmm]', '[stolen]')
HEARTBEAT = 48  # struct lab_truth, lab/include/lab_truth.h


def session(path):
    with open(os.path.join(path, 'session.json'), encoding='utf-8') as f:
        return json.load(f)


def beats(path):
    watch = session(path)['guests'][0]['watches'][0]
    first, last = (struct.unpack_from('<Q', bytes.fromhex(watch[k]['bytes']), HEARTBEAT)[0]
                   for k in ('first', 'last'))
    print('heartbeat from %d to %d' % (first, last))
    return last > first


def stops(path, *words):
    seen = {k for k, v in session(path)['statistics']['stop'].items() if v}
    must = {w for w in words if not w.endswith('?')}
    may = {w.rstrip('?') for w in words} | {'root'}
    print('ended by %s' % ', '.join('%s: %d' % kv for kv in
                                    session(path)['statistics']['stop'].items() if kv[1]))
    return must <= seen <= may


def only(path, *words):
    return stops(path, *(w.rstrip('?') + '?' for w in words))


def number(path, member, low, high='inf'):
    value = session(path)['statistics'][member]
    print('%s is %s' % (member, value))
    return float(low) <= value <= float(high)


def stacks(path):
    with open(path, encoding='utf-8') as f:
        doc = json.load(f)
    names = [f['name'] for f in doc['functions']]
    return [([names[i] for i in s['frames']], s['value']) for s in doc['stacks']]


def below(path, root, function, no=None):
    nr = sum(v for s, v in stacks(path) if s[0] == root and function in s)
    print('%s is below %s in %d samples' % (function, root, nr))
    return (nr == 0) == bool(no)


def leaf(path, function, share):
    every = stacks(path)
    end = function.split(';')
    if not function.endswith(']'):
        every = [(s[:-1] if s and s[-1] in STATES else s, v) for s, v in every]
    nr, of = sum(v for s, v in every if s[-len(end):] == end), sum(v for s, v in every)
    print('%d of %d end in %s' % (nr, of, function))
    return of > 0 and nr >= float(share) * of


def folded(path):
    with open(path, encoding='utf-8') as f:
        pairs = (line.rpartition(' ') for line in f)
        return {stack: int(count) for stack, _, count in pairs}


def near(a, b, allowed):
    a, b = folded(a), folded(b)
    differ = sum(abs(a.get(s, 0) - b.get(s, 0)) for s in set(a) | set(b))
    print('%d and %d samples, %d differ' % (sum(a.values()), sum(b.values()), differ))
    return sum(a.values()) > 0 and differ <= int(allowed)


if __name__ == '__main__':
    QUESTIONS = {f.__name__: f for f in (beats, stops, only, number, below, leaf, near)}
    sys.exit(0 if QUESTIONS[sys.argv[1]](*sys.argv[2:]) else 1)
