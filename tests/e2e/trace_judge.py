#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""trace_judge.py COMMAND ...: is a recorded trace what the guest `traced` says of itself?

  truth SESSION WATCHED ELF MODE   records + lost == calls that the guest counted since its boot
  babeltrace SESSION               babeltrace2 reads it without an error, and counts the same
  clock SESSION NS                 every CPU that recorded has a clock, known to within NS
"""
import collections
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import threading

HEAD = struct.Struct("<I16sIQQQQQQIiQQQ24x")
FUNCTIONS = (1, 3, 4, 5, 6)


def load(session):
    doc = json.loads(pathlib.Path(session, "session.json").read_text(encoding="utf-8"))
    assert doc["state"] == "closed", doc["state"]
    return doc["guests"][0]


def packets(session, cpu):
    path = pathlib.Path(session, "guest-0", f"events-vcpu{cpu}")
    data = path.read_bytes() if path.exists() else b""
    at, end, lost = 0, 0, 0
    while at < len(data):
        h = HEAD.unpack_from(data, at)
        size = h[6] // 8
        assert h[0] == 0xC1FC1FC1 and h[5] == h[6] and at + size <= len(data), (cpu, at, h)
        assert h[3] >= end and h[4] >= h[3], f"CPU {cpu}: time goes back at {at}"
        assert h[8] >= lost, f"CPU {cpu}: the count of lost events goes back at {at}"
        end, lost = h[4], h[8]
        yield h, struct.unpack_from(f"<{(size - 128) // 8}Q", data, at + 128)
        at += size


def records(kinds, words, begin):
    """What a packet holds: the upper halves of the words of one-word records, (word, words that follow) of the others, the last time."""
    single, longer, at, now, end = [], [], 0, begin, len(words)
    while at < end:
        w = words[at]
        at += 1
        now += (w - now) & 0xFFFFFFFF
        kind = kinds[w >> 32 & 15]
        if kind not in ("sync", "extended"):
            single.append(w >> 32)
            continue
        n = 2 if kind == "sync" else w >> 36 & 0xFFF
        assert at + n <= end, f"record {w:#x} makes no sense"
        if kind == "sync":
            now = max(now, words[at])
        longer.append((w, words[at:at + n]))
        at += n
    return single, longer, now


def count(session):
    """The contents of the streams: entries by address, the number of each kind, and lost events."""
    guest = load(session)
    names = guest["trace"]["kinds"]
    entries, kinds, lost = collections.Counter(), collections.Counter(), 0
    for cpu, about in enumerate(guest["trace"]["cpus"]):
        last, events, others = 0, 0, 0
        for h, words in packets(session, cpu):
            last = h[8]
            single, longer, now = records(names, words, h[3])
            assert now <= h[4], f"CPU {cpu}: a record is later than its packet"
            for upper, n in collections.Counter(single).items():
                kind = names[upper & 15]
                assert kind != "none", f"record {upper:#x} makes no sense"
                kinds[kind] += n
                events += n
                if kind in ("entry", "leaf", "call"):
                    entries[upper & 0xFFFFFFF0] += n
            for w, more in longer:
                kind, cls = names[w >> 32 & 15], w >> 48
                kinds[kind] += 1
                if kind == "extended" and cls in (1, 3, 5, 6):
                    entries[more[-1] & 0xFFFFFFFF] += 1
                    kinds["entry-extended"] += 1
                elif kind == "extended" and cls == 4:
                    kinds["exit-extended"] += 1
                events += kind == "extended" and cls in FUNCTIONS
                others += kind == "extended" and cls not in FUNCTIONS
        assert (events, others) == (about["events"], about["other_events"]), (events, others, about)
        assert last == about["lost"] + about["lost_words"] - about["lost_extra_words"], (cpu, last, about)
        lost += last
    return guest, entries, kinds, lost


def truth_of(watched):
    doc = json.loads(pathlib.Path(watched, "session.json").read_text(encoding="utf-8"))
    (w,) = [w for w in doc["guests"][0]["watches"] if w["name"] == "lab_traced"]
    raw = bytes.fromhex(w["last"]["bytes"])
    nr = struct.unpack_from("<I", raw, 12)[0]
    names = [raw[64 + 32 * i:96 + 32 * i].split(b"\0")[0].decode() for i in range(nr)]
    calls = collections.Counter()
    for cpu in range(4):
        for i, name in enumerate(names):
            calls[name] += struct.unpack_from("<Q", raw, 576 + (cpu * 16 + i) * 8)[0]
    return calls


def symbols(elf):
    text = subprocess.run(["nm", elf], check=True, capture_output=True, text=True).stdout
    out = collections.defaultdict(list)
    for line in text.splitlines():
        address, _, name = line.partition(" ")
        if address:
            out[name[2:]].append(int(address, 16) & 0xFFFFFFFF)
    return out


def truth(session, watched, elf, mode):
    _, entries, kinds, lost = count(session)
    calls, where = truth_of(watched), symbols(elf)
    seen = {f: sum(entries[a] for a in where[f]) for f in calls}
    total, got = sum(calls.values()), sum(seen.values())
    print(f"{total} calls, {got} recorded, {lost} events lost, {dict(kinds)}")
    assert total > 1000, "the guest did nothing"
    if lost == 0:
        assert seen == dict(calls), {f: (seen[f], calls[f]) for f in calls if seen[f] != calls[f]}
    else:
        assert got <= total and got + lost >= total, (got, lost, total)
        # If events of several words were overwritten, the exact number of events is still known.
        each = {"graph": 2, "function": 1}.get(mode)
        events = got + kinds["exit"] + kinds["exit-extended"] + lost
        if each and kinds["extended"] == kinds["entry-extended"] + kinds["exit-extended"]:
            assert abs(events - each * total) <= 8, (events, each * total)
    ends = kinds["exit"] + kinds["leaf"] + kinds["exit-extended"]
    begins = kinds["entry"] + kinds["leaf"] + kinds["entry-extended"]
    if mode == "function":
        assert ends == 0 and kinds["entry"] == 0 and kinds["call"] > 0, kinds
    elif lost == 0:
        # Calls that were made before it was switched on, or have not returned.
        assert abs(begins - ends) <= 8, kinds
    if mode == "lite":
        assert kinds["leaf"] > 0, kinds
    return lost


def babeltrace(session):
    _, _, kinds, lost = count(session)
    # Lines as short as can be, counted by awk: most of the time went into text.
    read = subprocess.Popen(["babeltrace2", "--no-delta", "--clock-cycles", "--names", "none", f"{session}/guest-0"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told = []
    said = threading.Thread(target=lambda: told.extend(read.stderr))
    said.start()
    lines = subprocess.run(["awk", "/^\\[[0-9]+\\] [a-z]+:/ { n[$2]++; next } { n[$0]++ } END { for (k in n) print n[k], k }"],
                           stdin=read.stdout, env={**os.environ, "LC_ALL": "C"}, check=True, capture_output=True, text=True).stdout
    said.join()
    assert read.wait() == 0, told
    names = {name.rstrip(":"): int(n) for n, name in (line.split(" ", 1) for line in lines.splitlines())}
    want = {k: n for k, n in kinds.items() if "-" not in k}
    assert names == want, (names, want)
    discarded = sum(int(n) for n in re.findall(r"discarded (\d+) events? between", "".join(told)))
    assert discarded == lost, (told, lost)
    bad = [l for l in told if l.strip() and "discarded" not in l]
    assert not bad, bad
    print(f"{sum(names.values())} events, {discarded} discarded")


def clock(session, most):
    guest = load(session)
    cpus = [c for c in guest["trace"]["cpus"] if c["words"] > 1000]
    assert cpus, "no CPU recorded"
    clocks = [c["clock"] for c in cpus]
    # A guest that was not run while it measured its counter contradicts the host's: then no error is
    # sure, and none may be told.
    own = guest["trace"]["tsc_hz"]
    if abs(own - clocks[0]["hz"]) > clocks[0]["hz"] // 100:
        print(f"the guest measured {own} Hz")
        assert all(c["source"] == "ring" for c in clocks), clocks
        return
    known = [c["error_ns"] for c in clocks if "error_ns" in c]
    print(known)
    assert known and min(known) <= int(most), clocks


if __name__ == "__main__":
    {"truth": truth, "babeltrace": babeltrace, "clock": clock}[sys.argv[1]](*sys.argv[2:])
