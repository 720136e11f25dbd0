#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vcpus_judge.py COMMAND ...: does each vCPU of the guest `wide` have what it did?

  listed LS PID NR                  `ls --json` has the guest with so many vCPUs, none left off
  traced SESSION WATCHED ELF NR     the stream of each CPU has the calls that the guest counted
  stacks STACKS NR REGISTERS        each stands in its function, at the stack pointer and the
                                    instruction that QEMU's monitor says
  sampled FOLDED SESSION NR         each has its samples, in its function: one a tick, or as many as
                                    go into the time that is told of it
  replayed FOLDED SESSION NR        each was where mkreplay put it, once a tick
  counted STACKS NR                 so many stacks
"""
import collections
import json
import pathlib
import re
import struct
import sys

import trace_judge

FNS = 8


def read_json(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def listed(path, pid, nr):
    (one,) = [g for g in read_json(path)["guests"] if g["pid"] == int(pid)]
    assert (one["vcpus"], one["vcpus_left_off"]) == (int(nr), 0), one


def books(watched, nr):
    (w,) = [w for w in read_json(pathlib.Path(watched, "session.json"))["guests"][0]["watches"]
            if w["name"] == "lab_wide"]
    raw = bytes.fromhex(w["last"]["bytes"])
    magic, cpus, standing = struct.unpack_from("<QII", raw)
    assert (magic, cpus, standing) == (0x6564695762616C, nr, nr), (magic, cpus, standing)
    return struct.unpack_from("<%dQ" % nr, raw, 16)


def traced(session, watched, elf, nr):
    nr = int(nr)
    guest, where = trace_judge.load(session), trace_judge.symbols(elf)
    kinds = guest["trace"]["kinds"]
    (at,) = zip(*(where["wide_%d" % i] for i in range(FNS)))
    assert sum(c["lost"] + c["lost_words"] for c in guest["trace"]["cpus"]) == 0
    for cpu, calls in enumerate(books(watched, nr)):
        entries, exits = collections.Counter(), 0
        for head, words in trace_judge.packets(session, cpu):
            for upper, n in collections.Counter(trace_judge.records(kinds, words, head[3])[0]).items():
                if kinds[upper & 15] == "entry":
                    entries[upper & 0xFFFFFFF0] += n
                exits += n * (kinds[upper & 15] == "exit")
        # It stands in the last one.
        assert dict(entries) == {at[cpu % FNS]: calls} and exits == calls - 1, \
            (cpu, calls, dict(entries), exits)


def monitor(path):
    """(RIP, RSP) of each, by QEMU's `info registers -a`."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    parts = re.split(r"^\s*CPU#(\d+)", text, flags=re.M)[1:]
    return {int(n): tuple(int(re.search(r"\b%s=([0-9a-f]+)" % r, part).group(1), 16)
                          for r in ("RIP", "RSP")) for n, part in zip(parts[::2], parts[1::2])}


def stacks(path, nr, registers):
    said = monitor(registers)
    got = {s["vcpu"]: s for s in read_json(path)["stacks"]}
    assert sorted(got) == sorted(said) == list(range(int(nr))), (sorted(got), sorted(said))
    for vcpu, stack in got.items():
        names = [f["name"] for f in stack["frames"]]
        assert "wide_%d" % (vcpu % FNS) in names and stack["stop"] == "root", (vcpu, stack)
        regs = stack["registers"]
        assert (int(regs["rip"], 16), int(regs["rsp"], 16)) == said[vcpu], (vcpu, regs, said[vcpu])
    assert len({rsp for _, rsp in said.values()}) == int(nr)


def samples_of(folded):
    """Weights by vCPU, and by vCPU and function."""
    out = collections.defaultdict(collections.Counter)
    for line in pathlib.Path(folded).read_text(encoding="utf-8").splitlines():
        chain, _, weight = line.rpartition(" ")
        frames = chain.split(";")
        out[int(frames[0].removeprefix("vcpu "))][";".join(frames[1:])] += int(weight)
    return out


def sampled(folded, session, nr):
    got, nr = samples_of(folded), int(nr)
    sums = {vcpu: sum(chains.values()) for vcpu, chains in got.items()}
    doc = read_json(pathlib.Path(session, "session.json"))
    stats = doc["guests"][0]["statistics"]
    times = stats.get("vcpus", [])
    assert sorted(got) == list(range(nr)) and min(sums.values()) > 0, sorted(got)
    for vcpu, chains in got.items():
        assert all("wide_%d" % (vcpu % FNS) in c.split(";") for c in chains), (vcpu, chains)
    if not times:
        # A tick has a sample of each vCPU, or two, now and then none, or tells how many could not be had.
        # Samples stand for skipped deadlines, too; a few ticks may be lent to a vCPU.
        due = stats["ticks"] + stats["skipped"]
        assert max(sums.values()) <= due + 9 * due / stats["ticks"], (sums, stats)
        assert sum(sums.values()) == stats["weight"] and \
            stats["samples"] / 2 <= stats["ticks"] * nr <= 2 * stats["samples"] + stats["failed"], stats
        return
    assert len(times) == nr, len(times)
    for vcpu, t in enumerate(times):
        told = sum(t.get(k, 0) for k in ("guest_ns", "kvm_ns", "vmm_ns", "unsampled_ns", "idle_ns", "stolen_ns"))
        # All stand halted; and its samples stand for the time that is told of it.
        assert t["idle_ns"] > told / 2, (vcpu, t)
        assert abs(sums[vcpu] - told * doc["frequency_hz"] / 1e9) <= 2, (vcpu, sums[vcpu], t)


def replayed(folded, session, nr):
    got = samples_of(folded)
    ticks = read_json(pathlib.Path(session, "session.json"))["guests"][0]["statistics"]["ticks"]
    assert ticks > 0 and {v: dict(c) for v, c in got.items()} == {
        v: {"at_%d" % v: ticks} for v in range(int(nr))}, (ticks, dict(got))


def counted(path, nr):
    stacks_ = read_json(path)["stacks"]
    assert len(stacks_) == int(nr), len(stacks_)


def main():
    globals()[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
