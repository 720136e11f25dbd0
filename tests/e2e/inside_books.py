#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prepares a guest's own samples for judge.py.

usage: inside_books.py FOLDER

FOLDER/in.uniscope is from inside, out.uniscope was recorded from outside at the same time, and has the guest's books. Writes
books.json, the session with these books.
"""
import json
import sys

folder = sys.argv[1]
inside, outside = (json.load(open(folder + '/%s.uniscope/session.json' % s)) for s in ('in', 'out'))
inside['guests'][0]['watches'] = outside['guests'][0]['watches']
with open(folder + '/books.json', 'w') as books:
    json.dump(inside, books)
