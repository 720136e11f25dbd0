#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""golden_judge.py json|svg|text FOLDED EXPORT: is what was exported what the folded stacks say? Reads
the input and the export by itself: our expected files are our own output."""
import collections
import html
import json
import re
import sys

ANNOTATION = re.compile(r"_\[[a-z]\]$")


def folded(path):
    """[(frames, (value, ...))]"""
    rows = []
    for line in open(path, encoding="utf-8"):
        words = line.split()
        nr = 2 if len(words) > 2 and re.fullmatch(r"[\d.]+", words[-2]) and "diff" in path else 1
        stack = line.strip()
        for _ in range(nr):
            stack = stack.rpartition(" ")[0]
        rows.append((tuple(stack.split(";")), tuple(map(float, words[-nr:]))))
    return rows


def sums(rows, column):
    """{function: (self, total)}"""
    own, total = collections.Counter(), collections.Counter()
    for frames, values in rows:
        own[frames[-1]] += values[column]
        for name in set(frames):
            total[name] += values[column]
    return {name: (own[name], total[name]) for name in total}


def plain(name):
    return ANNOTATION.sub("", name)


def json_(rows, text):
    doc = json.loads(text)
    names = [f["name"] for f in doc["functions"]]
    for column, tail in enumerate(["", "2"][:len(rows[0][1])]):
        want = collections.Counter()
        for frames, values in rows:
            want[tuple(map(plain, frames))] += values[column]
        got = collections.Counter()
        for s in doc["stacks"]:
            got[tuple(plain(names[i]) for i in s["frames"])] += s["value" + tail]
        assert got == want, (got - want, want - got)
        assert abs(doc["total" + tail] - sum(v[column] for _, v in rows)) < 1e-6
        by_name = {plain(n): v for n, v in sums(rows, column).items()}
        for f in doc["functions"]:
            assert (f["self" + tail], f["total" + tail]) == by_name[plain(f["name"])], f


def svg(rows, text):
    total = sum(v[0] for _, v in rows)
    want = collections.Counter()
    for frames, values in rows:
        for depth in range(len(frames) + 1):
            want[tuple(map(plain, frames[:depth]))] += values[0]
    boxes = re.findall(r'<title>(.*?) \(([\d,]+) samples, ([\d.]+)%\)</title><rect x="([\d.]+)%" y="(\d+)" '
                       r'width="([\d.]+)%"[^>]* fg:w="([\d.]+)"', text)
    got = collections.Counter()
    for name, samples, percent, _, _, width, value in boxes:
        value = float(value)
        got[plain(html.unescape(name)), value] += 1
        assert abs(float(samples.replace(",", "")) - value) <= 0.5, name
        assert abs(float(percent) - 100 * value / total) <= 0.006, name
        assert abs(float(width) - 100 * value / total) <= 0.001, name
    assert got == collections.Counter((path[-1] if path else "all", v) for path, v in want.items()), got
    # No box lies beside the one below it.
    rects = [(int(y), float(x), float(x) + float(w)) for _, _, _, x, y, w, _ in boxes]
    height = 16
    for y, left, right in rects:
        below = [r for r in rects if r[0] == y + height]
        assert not below or any(b[1] - 0.001 <= left and right <= b[2] + 0.001 for b in below), (y, left, right)


def text_(rows, text):
    total = sum(v[0] for _, v in rows)
    want = {n: v for n, v in sums(rows, 0).items() if not n.startswith("[")}
    got = {}
    for line in text.split("\n\n")[0].splitlines()[1:]:
        m = re.fullmatch(r" *(\d+) +([\d.]+)% +(\d+) +([\d.]+)%  (.*)", line)
        own, own_percent, all_, all_percent = map(float, m.groups()[:4])
        got[m[5]] = own, all_
        for value, exact, percent in ((own, want[m[5]][0], own_percent), (all_, want[m[5]][1], all_percent)):
            assert abs(value - exact) <= 0.5 and abs(percent - 100 * exact / total) <= 0.006, line
    assert set(got) == set(want), set(got) ^ set(want)


def main():
    rows = folded(sys.argv[2])
    with open(sys.argv[3], encoding="utf-8") as f:
        {"json": json_, "svg": svg, "text": text_}[sys.argv[1]](rows, f.read())


main()
