#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prepares a guest's own samples for judge.py.

usage: babeltrace2 FOLDER/in.uniscope | inside_books.py FOLDER

FOLDER/in.uniscope is from inside, in.json its stacks, out.uniscope was recorded from outside at the same time, and has the guest's
books. Writes books.json, the session with these books; changes in.json to as many samples as its own count for. A sample also
stands for the ticks that did not come. On a busy host some samples weigh a hundred times as much as others. Together they count as
(sum of weights)^2 / (sum of their squares) equal samples.
"""
import json
import re
import sys

folder = sys.argv[1]
weights = [int(w) for w in re.findall(r' sample: .* weight = (\d+),', sys.stdin.read())]
inside, outside = (json.load(open(folder + '/%s.uniscope/session.json' % s)) for s in ('in', 'out'))
inside['guests'][0]['watches'] = outside['guests'][0]['watches']
with open(folder + '/books.json', 'w') as books:
    json.dump(inside, books)
with open(folder + '/in.json') as stacks:
    profile = json.load(stacks)
profile['recording']['guests'][0]['samples'] = sum(weights) ** 2 / sum(w * w for w in weights)
with open(folder + '/in.json', 'w') as stacks:
    json.dump(profile, stacks)
