#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""arithmetic.py UNISCOPE SESSION: the self time of each function is the same, to the nanosecond, in
all outputs. These are the report, folded stacks, csv, pprof, speedscope, Chrome, the page and
uftrace. Formats are read by their own descriptions (exchange/read.py, protoc) and by Debian's
uftrace."""
import collections
import csv
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
U, SESSION = sys.argv[1:3]


def run(*args):
    return subprocess.run(args, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def of_folded(text):
    """The value of each function itself: it is the last frame."""
    selfs = collections.Counter()
    for line in text.decode().splitlines():
        stack, value = line.rsplit(" ", 1)
        name = stack.rsplit(";", 1)[-1]
        selfs[name] += round(float(value) * 1000) / 1000
    return {k: round(v) for k, v in selfs.items()}


def report():
    doc = json.loads(run(U, "trace", "report", "--json", "-n", "0", SESSION))
    return {f["function"]: f["self_ns"] for f in doc["functions"]}


def folded():
    return of_folded(run(U, "export", SESSION, "-f", "folded"))


def table():
    selfs = collections.Counter()
    for row in csv.DictReader(io.StringIO(run(U, "export", SESSION, "-f", "csv").decode())):
        selfs[row["function"]] += round(float(row["latency_us_self"] or 0) * 1000)
    return dict(selfs)


def read(fmt):
    def of(folder):
        path = os.path.join(folder, "out." + fmt)
        run(U, "export", SESSION, "-f", fmt, "-o", path)
        return of_folded(run(sys.executable, os.path.join(HERE, "exchange/read.py"), fmt, path, "1"))
    return of


def page(folder):
    path = os.path.join(folder, "page.html")
    run(U, "report", "--html", path, SESSION)
    data = run(sys.executable, os.path.join(HERE, "page_data.py"), path)
    at = 8 + struct.unpack_from("<I", data, 4)[0]
    head = json.loads(data[8:at])
    columns = {}
    for c in head["columns"]:
        raw, values, value, shift = data[at:at + c["bytes"]], [], 0, 0
        at += c["bytes"]
        if c["name"] not in ("c.parent", "c.frame", "c.dur", "c.node"):
            continue
        for byte in raw:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                values.append(value)
                value, shift = 0, 0
        columns[c["name"]] = values
    names = [None] + [head["calls"]["frames"][f][0] for f in columns["c.frame"]]
    parents = [None] + [i - p for i, p in enumerate(columns["c.parent"])]
    selfs = collections.Counter()
    for node, dur in zip(columns["c.node"], columns["c.dur"]):
        selfs[names[node]] += dur
        selfs[names[parents[node]]] -= dur
    return {k: v for k, v in selfs.items() if k not in (None, "[waiting]")}


def chrome(folder):
    path = os.path.join(folder, "out.json")
    run(U, "export", SESSION, "-f", "chrome", "-o", path)
    with open(path) as f:
        events = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
    selfs, lanes = collections.Counter(), collections.defaultdict(list)
    for e in events:
        begin = round(e["ts"] * 1000)
        lanes[e["pid"], e["tid"]].append((begin, -(begin + round(e["dur"] * 1000)), e["name"]))
    for lane in lanes.values():
        stack = []
        # A call is written when it ends: of two that are equal to the ns the later one is outside.
        for begin, end, name in sorted(reversed(lane), key=lambda s: s[:2]):
            while stack and -stack[-1][1] <= begin:
                stack.pop()
            if stack:
                selfs[stack[-1][2]] -= -end - begin
            selfs[name] += -end - begin
            stack.append((begin, end, name))
    return dict(selfs)


def uftrace(folder):
    """Debian's own program tells when calls begin and end."""
    path = os.path.join(folder, "uf")
    run(U, "export", SESSION, "-f", "uftrace", "-o", path)
    selfs, stacks = collections.Counter(), collections.defaultdict(list)
    for line in run("uftrace", "dump", "-d", path).decode().splitlines():
        m = re.match(r"(\d+)\.(\d{9}) +(\d+): \[(entry|exit ?)\] *(.*)\([0-9a-f]+\) depth: ", line)
        if m is None:
            continue
        ns, stack = int(m[1] + m[2]), stacks[m[3]]
        if m[4] == "entry":
            stack.append([m[5], ns, 0])
            continue
        name, begin, inner = stack.pop()
        assert name == m[5], (name, m[5])
        selfs[name] += ns - begin - inner
        if stack:
            stack[-1][2] += ns - begin
    assert not any(stacks.values())
    return dict(selfs)


want = {k: v for k, v in report().items() if v != 0}
assert len(want) >= 3, want
ways = [("folded", lambda _: folded()), ("csv", lambda _: table()), ("page", page), ("chrome", chrome),
        ("speedscope", read("speedscope"))]
if shutil.which("protoc"):
    ways.append(("pprof", read("pprof")))
if shutil.which("uftrace"):
    ways.append(("uftrace", uftrace))
bad = 0
for what, way in ways:
    with tempfile.TemporaryDirectory() as d:
        got = {k: v for k, v in way(d).items() if v != 0}
    off = {k: (want.get(k, 0), got.get(k, 0)) for k in want.keys() | got.keys() if want.get(k) != got.get(k)}
    bad += len(off) != 0
    print(f"# {what}: {sum(got.values())} ns of {len(got)} functions; report: {sum(want.values())} ns", dict(list(off.items())[:4]))
sys.exit(bad != 0)
