#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""whole_judge.py UNISCOPE SESSION: do all outputs of one session show the same self shares, of the guest's time on a CPU? Does each
output with a heading say what 100 % is?"""
import collections
import gzip
import html
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

US, SESSION = sys.argv[1:]
NOT_THE_GUEST = ('[idle]', '[kvm]', '[vmm]', '[stolen]', '[ready]', '[blocked]', '[sleeping]',
                 '[waiting]')
SAID = "100 % is the guest's time on a CPU"


def run(*args):
    return subprocess.run([US, *args], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def export(form, *args):
    return run('export', '-f', form, '-o', '-', *args, SESSION)


def clean(sums):
    return {k: v for k, v in sums.items() if v}


def report(text):
    assert SAID in text
    rows = re.findall(r'^ *([\d,]+) +[\d.]+% +[\d,]+ +[\d.]+%  (.*)$', text.split('FUNCTION', 1)[1], re.M)
    return {name: int(n.replace(',', '')) for n, name in rows}


def folded(text):
    sums = collections.Counter()
    for line in text.splitlines():
        stack, n = line.rsplit(' ', 1)
        sums[stack.split(';')[-1]] += int(n)
    return sums


def tree(text):
    doc, sums = json.loads(text), collections.Counter()
    for s in doc['stacks']:
        sums[doc['functions'][s['frames'][-1]]['name']] += s['value']
    return sums


def svg(text):
    """A rectangle's self is what those right above it leave of it."""
    assert SAID in html.unescape(text)
    root, boxes = xml.fromstring(text), []
    space = root.tag[:-len('svg')]
    for g in root.iter(space + 'g'):
        title, rect = g.find(space + 'title'), g.find(space + 'rect')
        found = title is not None and re.match(r'(.*) \(([\d,]+) samples', title.text)
        if found:
            boxes.append((float(rect.get('y')), *(float(rect.get(k).rstrip('%')) for k in ('x', 'width')),
                          found[1], int(found[2].replace(',', ''))))
    sums = collections.Counter()
    rows = sorted({b[0] for b in boxes})
    by_row = {y: sorted(b for b in boxes if b[0] == y) for y in rows}
    for y, x, width, name, n in boxes:
        above = by_row.get(rows[rows.index(y) - 1], []) if rows.index(y) else []
        sums[name] += n - sum(b[4] for b in above if x - 0.01 <= b[1] and b[1] + b[2] <= x + width + 0.01)
    return {k: v for k, v in sums.items() if k not in ('all', '')}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        size = 0
        if key & 7 == 2:
            size, at = varint(data, at)
            yield key >> 3, data[at:at + size]
            at += size
        else:
            value, at = varint(data, at)
            yield key >> 3, value


def numbers(value):
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        n, at = varint(value, at)
        out.append(n)
    return out


def pprof(data):
    """Leaf first; the values are samples and nanoseconds. For inlined functions the first line counts."""
    message = collections.defaultdict(list)
    for k, v in fields(gzip.decompress(data)):
        message[k].append(v)
    text = [s.decode() for s in message[6]]
    assert SAID in [text[i] for i in message[13]], 'no comment'
    types = [text[dict(fields(t))[1]] for t in message[1]]
    assert types == ['samples', 'cpu'], types
    function = {dict(fields(f))[1]: text[dict(fields(f))[2]] for f in message[5]}
    location = {dict(fields(x))[1]: function[dict(fields(next(v for k, v in fields(x) if k == 4)))[1]] for x in message[4]}
    sums, period = collections.Counter(), message[12][0]
    for s in message[2]:
        parts = collections.defaultdict(list)
        for k, v in fields(s):
            if k in (1, 2):
                parts[k] += numbers(v)
        sums[location[parts[1][0]]] += parts[2][0]
        assert abs(parts[2][1] - parts[2][0] * period) <= parts[2][0], 'cpu is not samples * period'
    return sums


def main():
    every = folded(export('folded', '--all-time').decode())
    whole = sum(every.values()) - sum(every[s] for s in NOT_THE_GUEST)
    got = {
        'report': report(run('report', '-n', '0', SESSION).decode()),
        'folded': folded(export('folded').decode()),
        'json': tree(export('json')),
        'svg': svg(export('svg', '-O', 'minwidth=0').decode()),
        'pprof': pprof(export('pprof')),
    }
    print(whole, sum(every.values()), {k: sum(v.values()) for k, v in got.items()})
    assert whole > 0 and all(every[s] > 0 for s in NOT_THE_GUEST)
    want = clean(got['json'])
    assert sum(want.values()) == whole
    for name, sums in got.items():
        sums = clean(sums)
        different = {k: (want.get(k), sums.get(k)) for k in want.keys() | sums.keys() if want.get(k) != sums.get(k)}
        assert not different, (name, different)
    assert '100 % is all time' in run('report', '--all-time', SESSION).decode()


main()
