#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""inline_judge.py PROFILE.json SOURCE: do a profile's inlined functions and lines fit the source?
inline_judge.py hot VIEW.json: prints the function with the most samples, which is inlined.
inline_judge.py guided VIEW.json FOCUS.json ANNOTATION.json: has annotate shown that function, with its samples?

The profile is of lab/apps/cxx.cc or rust.rs, exported with --lines. The judge checks the
shares that the source states for its inlined functions. It also checks each frame of that file: its
line must call the next frame's function."""
import json
import math
import os
import re
import sys

SHARES = {"absorb": 60, "scan": 30, "reply": 10}
SIGMAS = 5  # standard deviations that chance may take


def short(name):
    """The last word of a name; those of closures are their variable's."""
    if re.search(r"closure|operator\(\)|lambda", name):
        return "reply"
    while re.search(r"<[^<>]*>", name):
        name = re.sub(r"<[^<>]*>", "", name)
    return name.split("::")[-1]


def check_lines(frames, file, text):
    """Each frame in `file` calls the next one on its line. Yields what does not fit."""
    for caller, callee in zip(frames, frames[1:]):
        if os.path.basename(caller.get("file", "")) != file or callee["kind"] == "synthetic":
            continue
        line = text[caller["line"] - 1]
        if short(callee["name"]) not in line and not short(callee["name"]).startswith("lab_"):
            yield f'{caller["name"]} calls {callee["name"]} on line {caller["line"]}: {line.strip()}'


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        profile = json.load(f)
    with open(sys.argv[2], encoding="utf-8") as f:
        text = f.read().splitlines()
    file, functions = os.path.basename(sys.argv[2]), profile["functions"]
    sums, wrong, total = dict.fromkeys(SHARES, 0), set(), 0
    for stack in profile["stacks"]:
        frames = [functions[i] for i in stack["frames"]]
        names = [short(f["name"]) for f in frames]
        if "serve" not in names:
            continue
        total += stack["value"]
        inlined = [n for n, f in zip(names, frames) if f["kind"] == "inlined"]
        for name in SHARES:
            sums[name] += stack["value"] if name in inlined else 0
        # absorb multiplies the value for mix first; a sample rarely sees that.
        if "absorb" in inlined and "mix" not in inlined and inlined[-1] not in ("absorb", "wrapping_mul"):
            wrong.add("absorb without mix: " + ";".join(names))
        wrong.update(check_lines(frames, file, text))
    print(f"{total} samples in serve: {sums}")
    for name, want in SHARES.items():
        share = 100 * sums[name] / total if total else 0
        allowed = max(1, SIGMAS * math.sqrt(want * (100 - want) / max(total, 1)))
        if abs(share - want) > allowed:
            wrong.add(f"{name} has {share:.1f} %, the source says {want}, +- {allowed:.1f}")
    print("\n".join(sorted(wrong)))
    sys.exit(1 if wrong or total < 100 else 0)


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def print_hot(view):
    hot = load(view)["functions"][0]
    assert hot["kind"] == "inlined", hot
    print(hot["name"])


def judge_guided(view, focus, annotation):
    hot, focus, a = load(view)["functions"][0], load(focus), load(annotation)
    print({k: a[k] for k in ("function", "inlined", "inlined_here", "inlined_all", "self")}, hot, focus["here"])
    assert a["inlined"] == hot["name"] and a["inlined_all"] == focus["here"] and a["inlined_here"] >= 0.9 * a["inlined_all"]
    assert a["function"] not in (hot["name"], ""), a["function"]
    lines = sum(line["self"] for line in a["lines"] if line.get("inlined") == hot["name"])
    print("lines of it:", lines)
    assert 0.9 * hot["self"] <= lines <= hot["self"], (lines, hot["self"])


if sys.argv[1] == "hot":
    print_hot(sys.argv[2])
elif sys.argv[1] == "guided":
    judge_guided(*sys.argv[2:5])
else:
    main()
