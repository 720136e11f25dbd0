#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""babeltrace2 SESSION | choice_judge.py THREAD FILE...: do exported files have the calls of that thread,
and of no other? The files hold names fn_N in whatever format; babeltrace2 says which functions were
entered on which CPU, and when its thread changed."""
import collections
import os
import re
import sys

FIRST = 0x100  # mktrace: fn_0


def entered(lines):
    """{thread: functions and how often they were entered}"""
    now, before = {}, collections.defaultdict(collections.Counter)
    calls = collections.defaultdict(collections.Counter)
    for line in lines:
        m = re.search(r"(\w+): \{ cpu_id = (\d+), .*?\}, \{(.*)\}", line)
        if not m:
            continue
        kind, cpu, rest = m.groups()
        if kind == "entry":
            name = "fn_%d" % (int(re.search(r"function = (\w+)", rest)[1], 16) - FIRST)
            (calls[now[cpu]] if cpu in now else before[cpu])[name] += 1
        elif kind == "extended" and '"switch"' in rest:
            words = [int(w, 16) for w in re.findall(r"= (0x[0-9A-F]+)", rest)]
            if cpu not in now:
                calls[words[0]].update(before.pop(cpu, {}))
            now[cpu] = words[1]
    return calls


def names(path):
    found = set()
    files = [path] if os.path.isfile(path) else [os.path.join(path, f) for f in os.listdir(path)]
    for file in files:
        if file.endswith((".sym", ".map")):
            continue  # what uftrace knows of, not what was called
        with open(file, "rb") as f:
            found |= {n.decode() for n in re.findall(rb"fn_\d+", f.read())}
    return found


def main():
    calls = entered(sys.stdin)
    own = calls[int(sys.argv[1])]
    others = set().union(*(c for t, c in calls.items() if t != int(sys.argv[1]))) - set(own)
    often = {n for n, count in own.items() if count > 3}
    print("%d functions of the thread, %d often; %d of others only" % (len(own), len(often), len(others)))
    good = len(often) > 10 and len(others) > 10
    for path in sys.argv[2:]:
        seen = names(path)
        print("%s: %d functions; missing: %s; of others: %s" % (
            path, len(seen), sorted(often - seen)[:5], sorted(seen & others)[:5]))
        good = good and bool(seen) and not often - seen and not seen & others
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
