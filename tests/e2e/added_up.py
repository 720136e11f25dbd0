#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""added_up.py DIR: report, graph, breakdown and replay --json and calls.folded of one trace. Prints "FUNCTION CALLS" of
the report, if all of them have the same self time of each function."""
import json
import sys
from collections import Counter
from pathlib import Path

there = Path(sys.argv[1])


def add(pairs):
    """Without what has none."""
    ret = Counter()
    for name, value in pairs:
        ret[name] += value
    return +ret


def load(name):
    return json.loads((there / name).read_text())


functions = load("report.json")["functions"]
events = [json.loads(line) for line in (there / "events.json").read_text().splitlines()]
folded = [line.rsplit(" ", 1) for line in (there / "calls.folded").read_text().splitlines()]
cells = [f for group in load("breakdown.json")["cpus"] for f in group["functions"]]
want = add((f["function"], f["self_ns"]) for f in functions)
for what, got in {
    "graph": add((n["function"], n["self_ns"]) for n in load("graph.json")["tree"]),
    "breakdown": add((c["function"], c["self_ns"]) for c in cells if not c["function"].startswith("[")),
    "replay": add((e["function"], e["self_ns"]) for e in events if e.get("type") == "leave"),
    "folded": add((stack.split(";")[-1], int(value)) for stack, value in folded),
}.items():
    if got != want or not want:
        sys.exit(f"{what} has {got}, the report {want}")
calls = add((n["function"], n["calls"]) for n in load("graph.json")["tree"])
if calls != add((f["function"], f["calls"]) for f in functions):
    sys.exit(f"the graph has other numbers of calls: {calls}")
for name in sorted(calls):
    print(name, calls[name])
