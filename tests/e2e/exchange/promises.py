#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""promises.py FILE.trace.json FILE.fxt [FILE.pftrace] THREADS.json: three formats have the same threads and promises, read by their
own descriptions. `trace threads --json` lists the same. Both ends of each wake-up lie in a run of their CPU. protoc decodes
Perfetto's."""
import collections
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Parts:
    def __init__(self):
        self.lives, self.waits, self.labels = collections.Counter(), collections.Counter(), collections.Counter()
        self.runs, self.counts, self.wakes = collections.defaultdict(list), collections.Counter(), {}
        self.pauses = collections.Counter()

    def span(self, lane, name, begin, end):
        if lane.startswith("run by CPU "):
            self.runs[lane].append((begin, end, name))
        else:
            assert lane.startswith("pauses of CPU "), lane
            self.pauses[name, begin, end] += 1

    def all(self):
        for (a, from_lane), (b, to_lane) in self.wakes.values():
            assert a <= b and any(r[0] <= a <= r[1] for r in self.runs[from_lane]), "who woke ran"
            assert any(r[0] == b for r in self.runs[to_lane]), "who was woken runs"
        return [self.lives, self.waits, self.labels, dict(self.runs), self.counts, self.pauses, sorted(self.wakes.values())]


def chrome(path):
    got, lanes, begun, flows = Parts(), {}, {}, collections.defaultdict(dict)

    def ns(text):
        us, frac = text.split(".")
        return int(us) * 1000 + int(frac)
    for e in json.load(open(path), parse_float=str)["traceEvents"]:
        if e["pid"] != 1000000:
            continue
        ph, t = e["ph"], ns(e["ts"]) if "ts" in e else None
        if ph == "M":
            lanes[e["tid"]] = e["args"]["name"]
        elif ph == "b":
            begun[e["cat"], e["id"]] = (e["name"], t, e.get("args", {}).get("fate", ""))
        elif ph == "e":
            name, begin, fate = begun.pop((e["cat"], e["id"]))
            if e["cat"] == "promise":
                got.lives[name, begin, t, fate] += 1
            else:
                got.waits[name, begin, t] += 1
        elif ph == "n":
            got.labels[e["name"], t] += 1
        elif ph == "X":
            got.span(lanes[e["tid"]], e["name"], t, t + round(float(e["dur"]) * 1000))  # more decimals than ns
        elif ph in "sf":
            flows[e["id"]][ph] = (t, lanes[e["tid"]])
        else:
            assert ph == "C", e
            got.counts[e["name"], t, e["args"]["value"]] += 1
    assert not begun
    got.wakes = {k: (v["s"], v["f"]) for k, v in flows.items()}
    return got


def fxt(path):
    got, begun, flows = Parts(), {}, collections.defaultdict(dict)
    out = subprocess.run([sys.executable, os.path.join(HERE, "..", "fxt_read.py"), path, "promises"],
                         check=True, capture_output=True, text=True).stdout
    for what, lane, name, t, value, last in (x.split("\t") for x in out.splitlines() if "\t" in x):
        what, t, last = int(what), int(t), int(last)
        if what == 5:
            begun[last] = (name, t)
        elif what == 7:
            (got.waits if last >> 32 else got.lives)[(*begun.pop(last), t)] += 1
        elif what == 6:
            got.labels[name, t] += 1
        elif what == 4:
            got.span(lane, name, t, last)
        elif what == 1:
            got.counts[name, t, int(value)] += 1
        else:
            flows[last][what] = (t, lane)
    assert not begun
    got.wakes = {k: (v[8], v[10]) for k, v in flows.items()}
    return got


def perfetto(path):
    sys.argv[1:] = ["text", path]
    sys.path.insert(0, HERE)
    import read
    got, tracks, begun, flows = Parts(), {}, {}, collections.defaultdict(dict)
    for p in read.text_messages("perfetto.proto", "Trace", open(path, "rb").read())["packet"]:
        if read.one(p, "machine_id") != 1002:
            continue
        for track in p["track_descriptor"]:
            tracks[read.one(track, "uuid")] = track
        for e in p["track_event"]:
            uuid, t, kind, name = (read.one(e, "track_uuid"), read.one(p, "timestamp"), read.one(e, "type"), read.one(e, "name", ""))
            lane = read.one(tracks[uuid], "name")
            if kind == 1:
                fate = [read.one(a, "string_value") for a in e["debug_annotations"]]
                begun[uuid] = (name, t, fate[0] if fate else "")
            elif kind == 2:
                name, begin, fate = begun.pop(uuid)
                if lane == "promises":
                    got.lives[name, begin, t, fate] += 1
                elif lane == "waits":
                    assert read.one(tracks[read.one(tracks[uuid], "parent_uuid")], "name") == "promises"
                    got.waits[name, begin, t] += 1
                else:
                    got.span(lane, name, begin, t)
            elif kind == 4:
                assert tracks[uuid]["counter"]
                got.counts[lane, t, read.one(e, "counter_value")] += 1
            elif e["flow_ids"]:
                flows[e["flow_ids"][0] - 1]["s"] = (t, lane)
            elif e["terminating_flow_ids"]:
                flows[e["terminating_flow_ids"][0] - 1]["f"] = (t, lane)
            else:
                got.labels[name, t] += 1
    assert not begun
    got.wakes = {k: (v["s"], v["f"]) for k, v in flows.items()}
    return got


files, threads = sys.argv[1:-1], json.load(open(sys.argv[-1]))
want = chrome(files[0])
fates = {"open": "", "became": "became another"}
end = threads["duration_ns"]
told = collections.Counter((t["name"], t["begin"] + threads["begin_ns"],
                            (t["end"] if t["end"] is not None else end) + threads["begin_ns"], fates.get(t["fate"], t["fate"]))
                           for t in threads["threads"])
assert told and told == want.lives, (told - want.lives, want.lives - told)
assert sum(t["runs"] for t in threads["threads"]) == sum(map(len, want.runs.values()))
assert sum(t["run"] for t in threads["threads"]) == sum(r[1] - r[0] for rs in want.runs.values() for r in rs)
assert want.waits and want.wakes and want.counts
got = fxt(files[1])
got.lives = want.lives if got.lives == collections.Counter(k[:3] for k in want.lives.elements()) else got.lives  # no fates there
assert got.all() == want.all(), "fxt"
if files[2:]:
    assert perfetto(files[2]).all() == want.all(), "perfetto"
