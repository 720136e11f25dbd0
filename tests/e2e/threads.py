# SPDX-License-Identifier: BSD-2-Clause
"""Judges what was recorded of the lab's `waits`: who was off-CPU, where, and for how long.

usage: threads.py off|on|stacks FILE
off, on: folded stacks of --off-cpu, and of --on-cpu --per-thread; stacks: `stacks --threads --json`.
"""
import json
import sys

# The chain in which each blocked thread waits, outside in, and the object that it waits for.
BLOCKED = {
    "acceptor": (["acceptor_main", "wait_for_client"], "clients"),
    "reader": (["reader_main", "read_file", "read_block", "wait_for_disk"], "disk"),
    "flusher": (["flusher_main", "flush_journal", "take_lock"], "journal_lock"),
}
TAIL = ["lab_sem_wait", "schedule", "[blocked]"]
NAMES = ["main", "worker", "acceptor", "reader", "flusher", "ticker"]


def folded(path):
    with open(path, encoding="utf-8") as f:
        rows = [line.rsplit(" ", 1) for line in f.read().splitlines()]
    return [(stack.split(";"), int(n)) for stack, n in rows]


def fail(text):
    print(text)
    sys.exit(1)


def share(rows, wanted):
    """Of the rows that the first test lets through, how much passes the second?"""
    mine = [(s, n) for s, n in rows if wanted[0](s)]
    total = sum(n for _, n in mine)
    return sum(n for s, n in mine if wanted[1](s)) / total if total else 0, total


def off(path):
    rows = folded(path)
    ticks = 0
    for name, (chain, _) in BLOCKED.items():
        want = ["thread " + name, "lab_thread_entry"] + chain + TAIL
        part, total = share(rows, (lambda s, t=want[0]: s[0] == t, lambda s, w=want: s == w))
        if part != 1 or total < 50:
            fail(f"{name}: {part:.1%} of {total} samples are {';'.join(want)}")
        if ticks not in (0, total):
            fail(f"{name} has {total} samples, another blocked one {ticks}")
        ticks = total
    part, total = share(rows, (lambda s: s[0] == "thread ticker",
                               lambda s: s[-1] == "[sleeping]" and "lab_thread_sleep" in s))
    if part < 0.5 or not ticks * 0.9 <= total <= ticks:
        fail(f"ticker: {part:.1%} of {total} samples sleep, of {ticks} ticks")
    part, total = share(rows, (lambda s: True, lambda s: s[0] == "thread worker"))
    if part * total > ticks * 0.25:
        fail(f"worker: off-CPU in {part * total:.0f} of {ticks} ticks")
    others = {s[0] for s, _ in rows} - {"thread " + n for n in NAMES}
    if others:
        fail(f"unknown threads: {sorted(others)}")


def on(path):
    rows = folded(path)
    part, total = share(rows, (lambda s: True,
                               lambda s: s[0] == "thread worker" and "work" in s))
    if part < 0.75 or total < 50:
        fail(f"worker: {part:.1%} of {total} samples on-CPU are its work")


def stacks(path):
    with open(path, encoding="utf-8") as f:
        shown = {s["name"]: s for s in json.load(f)["stacks"] if "name" in s}
    if sorted(shown) != sorted(NAMES):
        fail(f"threads: {sorted(shown)}")
    for name, s in shown.items():
        if s["stop"] != "root":
            fail(f"{name}: its chain ends for {s['stop']}")
    for name, (chain, what) in BLOCKED.items():
        names = [f.get("name") for f in shown[name]["frames"]]
        want = (["lab_thread_entry"] + chain + TAIL[:2])[::-1]
        if names != want or shown[name]["state"] != "blocked":
            fail(f"{name}: {shown[name]['state']} in {names}, not {want}")
        if shown[name].get("waits_for") != what:
            fail(f"{name}: waits for {shown[name].get('waits_for')}, not {what}")


{"off": off, "on": on, "stacks": stacks}[sys.argv[1]](sys.argv[2])
