#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""trace_oracle.py SESSION REPORT.json CPUS.json THREADS.json REPLAY.txt FUNCTION.txt: decodes the
packets of a session by itself, slowly, and compares with what uniscope says of it. Prints what
differs and exits 1 then."""
import collections
import json
import re
import struct
import sys

HEAD = struct.Struct("<I16sIQQQQQQIiQQQ24x")


def packets(path):
    data = open(path, "rb").read()
    at = 0
    while at < len(data):
        h = HEAD.unpack_from(data, at)
        content, size = h[5] // 8, h[6] // 8
        words = struct.unpack_from(f"<{content // 8 - 16}Q", data, at + 128)
        yield {"begin": h[3], "lost": h[8], "words_before": h[13], "words": words}
        at += size


def records(stream, kinds, window, cpu):
    """(time, cpu, what, ...) of each record, losses too."""
    lost = after = None
    for p in packets(stream):
        now = p["begin"]
        gap = p["words_before"] - after if after is not None else 0
        if gap > 0:
            yield (now, cpu, "lost", gap)
        more = p["lost"] - (lost or 0) - gap
        lost, after = p["lost"], p["words_before"] + len(p["words"])
        i = 0
        while i < len(p["words"]):
            w = p["words"][i]
            now += (w - now) & 0xffffffff
            kind = kinds[w >> 32 & 15]
            address = window | (w >> 32 & ~15)
            i += 1
            if kind == "sync":
                now = max(now, p["words"][i])
                i += 2
            elif kind == "extended":
                nr = w >> 36 & 0xfff
                if w >> 48 == 2:
                    yield (now, cpu, "switch", p["words"][i], p["words"][i + 1])
                i += nr
            else:
                yield (now, cpu, kind, address)
        if more > 0:  # that found no room in the packet, or behind it
            yield (now, cpu, "lost", more)


class Call:
    def __init__(self, func, begin):
        self.func, self.begin, self.child, self.off = func, begin, 0, 0


class Thread:
    def __init__(self, name):
        self.name, self.calls, self.off_since, self.losses = name, [], None, 0


class Oracle:
    """Times are ns: the made-up counter has 1 GHz."""

    def __init__(self):
        self.stats = collections.defaultdict(collections.Counter)
        self.durations = collections.defaultdict(list)
        self.cpu, self.known, self.spent = {}, {}, collections.Counter()
        self.last, self.losses, self.lost, self.events = {}, 0, 0, 0
        self.lines = []

    def thread(self, cpu):
        return self.cpu.setdefault(cpu, Thread(("unknown", cpu)))

    def spend(self, cpu, now, thread):
        func = thread.calls[-1].func if thread.calls else None
        if cpu in self.last:
            took = now - self.last[cpu]
            self.spent["cpu", cpu, func] += took
            self.spent["thread", thread, func] += took
        self.last[cpu] = now

    def end(self, thread, now, returned):
        c = thread.calls.pop()
        took = now - c.begin
        if thread.calls:
            thread.calls[-1].child += took
        s = self.stats[c.func]
        s["calls"] += 1
        s["timed"] += 1
        s["sum"] += took
        s["self"] += took - c.child - c.off
        if not any(x.func == c.func for x in thread.calls):
            s["total"] += took
        if returned:
            self.durations[c.func].append(took)
        else:
            s["cut"] += 1
        return c, took

    def come(self, cpu, thread, now):
        self.cpu[cpu] = thread
        if thread.off_since is not None and thread.calls:
            thread.calls[-1].off += now - thread.off_since
        if thread.losses != self.losses:
            while thread.calls:
                self.end(thread, now, False)
        thread.losses = self.losses

    def switch(self, cpu, now, prev, to):
        t = self.thread(cpu)
        if t.calls:  # else it is the time of the thread that it turns out to be
            self.spend(cpu, now, t)
        if t.name[0] == "unknown":
            if prev in self.known:
                while t.calls:
                    self.end(t, now, False)
                t = self.known[prev]
                self.come(cpu, t, now)
            else:
                t.name = ("known", prev)
                self.known[prev] = t
        self.spend(cpu, now, t)
        if to not in self.known:
            self.known[to] = Thread(("known", to))
            self.known[to].losses = self.losses
        t.off_since, t.losses = now, self.losses
        self.come(cpu, self.known[to], now)

    def record(self, now, cpu, what, *args):
        t = self.thread(cpu)
        if what == "lost":
            before = self.last.get(cpu, now)
            while t.calls:
                self.end(t, before, False)
            self.losses += 1
            self.lost += args[0]
            self.last[cpu] = now
            if t.name[0] != "unknown":
                self.cpu[cpu] = Thread(("unknown", cpu))
                self.cpu[cpu].losses = self.losses
            else:
                t.losses = self.losses
            return
        if what == "switch":
            self.switch(cpu, now, *args)
            return
        self.events += 1
        self.spend(cpu, now, t)
        if what == "entry":
            t.calls.append(Call(args[0], now))
        elif what == "leaf":
            self.stats[args[0]]["calls"] += 1
            self.lines.append((cpu, "leaf", args[0], len(t.calls), None))
        elif t.calls:
            depth = len(t.calls) - 1
            c, took = self.end(t, now, True)
            self.lines.append((cpu, "end", c.func, depth, took))

    def finish(self, now):
        for t in list(self.cpu.values()):
            while t.calls:
                self.end(t, now, False)
        for t in self.known.values():
            if t.calls and t.off_since is not None:
                t.calls[-1].off += now - t.off_since
            while t.calls:
                self.end(t, now, False)


def close(a, b, slack=1):
    return abs(a - b) <= slack


class Compare:
    def __init__(self, oracle):
        self.o, self.bad, self.checked = oracle, [], 0

    def same(self, what, got, want, slack=0):
        self.checked += 1
        if abs(got - want) > slack:
            self.bad.append(f"{what}: {got}, expected {want}")

    def report(self, report):
        o = self.o
        self.same("events", report["events"], o.events)
        self.same("lost", report["lost"], o.lost)
        got = {int(f["address"], 16): f for f in report["functions"]}
        self.same("functions", len(got), len(o.stats))
        for func, s in o.stats.items():
            f, d = got[func], sorted(o.durations[func])
            for key, name in (("calls", "calls"), ("timed", "timed"), ("cut", "without_return"),
                              ("sum", "sum_ns"), ("self", "self_ns"), ("total", "total_ns")):
                self.same(f"{key} of {func:#x}", f[name], s[key])
            if not d:
                continue
            self.same(f"min of {func:#x}", f["min_ns"], d[0])
            self.same(f"max of {func:#x}", f["max_ns"], d[-1])
            for p in (50, 99):
                want = d[max(0, -(-len(d) * p // 100) - 1)]
                self.same(f"p{p} of {func:#x}", f[f"p{p}_ns"], want, want / 32 + 1)

    def breakdown(self, groups, which, names, number):
        spent = collections.Counter()
        for (kind, who, func), ns in self.o.spent.items():
            if kind == which and ns:
                spent[number(who), names(func)] += ns
        got = {}
        for g in groups:
            for f in g["functions"]:
                key = g.get("cpu", g["name"]), f["function"]
                got[key] = got.get(key, 0) + f["self_ns"]
        for key in set(spent) | {k for k, v in got.items() if v}:
            self.same(f"time of {key}", got.get(key, 0), spent[key])

    def replay(self, path, names):
        """Each call's end, with its duration, in order of time."""
        line = re.compile(r" (\d+)\) (?:(.) ([0-9.]+) us *| {13}) \|  ( *)(} /\* )?([^ (]+)(.*)")
        want = iter(self.o.lines)
        for text in open(path):
            m = line.fullmatch(text.rstrip("\n"))
            if not m or m[7] == "() {":
                continue
            if m[5] and m[3] is None:
                continue  # cut by a loss
            cpu, kind, func, depth, took = next(want)
            number = "" if took is None else f"{took // 1000}.{took % 1000:03}"[:8]
            self.checked += 1
            if (int(m[1]), m[3] or "", len(m[4]) // 2, m[6]) != (cpu, number, depth, names(func)):
                self.bad.append(f"{text.rstrip()}: expected {cpu} {kind} {names(func)} {number}")
            if len(self.bad) > 20:
                return
        self.same("lines that are missing", len(list(want)), 0)


def main():
    session, report, cpus, threads, replay, mode = sys.argv[1:7]
    threads_move = mode != "work"
    meta = json.load(open(f"{session}/session.json"))["guests"][0]["trace"]
    window = int(meta["text_window"], 16)
    oracle, all_records = Oracle(), []
    for cpu in range(len(meta["cpus"])):
        all_records += records(f"{session}/guest-0/events-vcpu{cpu}", meta["kinds"], window, cpu)
    all_records.sort(key=lambda r: (r[0], r[1]))
    for r in all_records:
        oracle.record(*r)
    oracle.finish(max(r[0] for r in all_records))
    c = Compare(oracle)
    found = json.load(open(report))
    names = {int(f["address"], 16): f["function"] for f in found["functions"]}
    names[None] = "[in no traced function]"
    c.report(found)
    c.breakdown(json.load(open(cpus))["cpus"], "cpu", names.get, lambda cpu: cpu)
    c.breakdown(json.load(open(threads))["threads"], "thread", names.get,
                lambda t: f"thread {t.name[1]:#x}" if t.name[0] == "known"
                else f"unknown thread of CPU {t.name[1]}")
    c.replay(replay, names.get)
    c.same("has losses", oracle.losses > 2, threads_move)
    print(f"{c.checked} values compared, {len(oracle.durations)} functions,"
          f" {len(all_records)} records, {oracle.lost} lost")
    for b in c.bad[:20]:
        print(b)
    sys.exit(1 if c.bad else 0)


main()
