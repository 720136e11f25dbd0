#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""read.py FORMAT FILE [PERIOD_NS [EXITS.json]]: a profile in somebody's format as folded stacks, sorted, by the
format's own description and none of our code. Values in time are divided by the period. protoc
decodes what is protobuf."""
import collections
import gzip
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
folded = collections.Counter()
exits, exit_ns = collections.Counter(), collections.Counter()  # VM exits by what made them


def text_messages(proto, message, data):
    """The output of `protoc --decode`, as nested dictionaries of lists."""
    out = subprocess.run(["protoc", f"--proto_path={HERE}", f"--decode={message}", proto], input=data,
                         check=True, capture_output=True).stdout.decode()
    stack = [collections.defaultdict(list)]
    for line in out.splitlines():
        line = line.strip()
        assert not re.match(r"\d", line), f"a field that nobody knows: {line}"
        if line.endswith("{"):
            new = collections.defaultdict(list)
            stack[-1][line[:-1].strip()].append(new)
            stack.append(new)
        elif line == "}":
            stack.pop()
        else:
            key, value = line.split(": ", 1)
            if value.startswith('"'):
                value = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]),
                               value[1:-1].encode()).decode()
                value = re.sub(r"\\(.)", r"\1", value)
            else:
                value = {"true": 1, "false": 0}.get(value) or int(value, 0)
            stack[-1][key].append(value)
    assert len(stack) == 1
    return stack[0]


def one(message, key, default=0):
    assert len(message[key]) <= 1
    return message[key][0] if message[key] else default


def pprof(path, _):
    p = text_messages("profile.proto", "Profile", gzip.open(path).read())
    strings = p["string_table"]
    assert strings[0] == ""
    functions = {one(f, "id"): strings[one(f, "name")] for f in p["function"]}
    # Inlined functions are lines of one location, the innermost first.
    locations = {one(l, "id"): ";".join(functions[one(x, "function_id")] for x in reversed(l["line"])) for l in p["location"]}
    mappings = {one(m, "id") for m in p["mapping"]}
    assert 0 not in functions and 0 not in locations
    assert all(one(l, "mapping_id") in mappings | {0} for l in p["location"])
    nr_types = len(p["sample_type"])
    for s in p["sample"]:
        assert len(s["value"]) == nr_types
        folded[";".join(locations[i] for i in reversed(s["location_id"]))] += s["value"][0]
        labels = {strings[one(l, "key")]: one(l, "num") if not l["str"] else strings[one(l, "str")]
                  for l in s["label"]}
        if labels:
            assert labels["vm"] and ("vcpu" in labels or labels["state"] == "off-cpu"), labels


def evented(profile, names, period):
    last, stack = profile["startValue"], []
    for e in profile["events"]:
        if stack and e["at"] > last:
            folded[";".join(stack)] += (e["at"] - last) / period
        assert e["at"] >= last
        last = e["at"]
        if e["type"] == "O":
            stack.append(names[e["frame"]])
        else:
            assert e["type"] == "C" and stack.pop() == names[e["frame"]], "calls nest"
    assert last == profile["endValue"] and not stack and profile["unit"] == "nanoseconds"


def speedscope(path, period):
    p = json.load(open(path))
    names = [f["name"] for f in p["shared"]["frames"]]
    for profile in p["profiles"]:
        if profile["type"] == "evented":
            evented(profile, names, period)
            continue
        assert profile["type"] == "sampled"
        assert len(profile["samples"]) == len(profile["weights"])
        assert abs(sum(profile["weights"]) - profile["endValue"]) < 1e-6
        for s, w in zip(profile["samples"], profile["weights"]):
            folded[";".join(names[i] for i in s)] += w / period


def firefox(path, _):
    p = json.load(open(path))
    shared = p["shared"]
    for name, table in shared.items():
        if name == "stringArray":
            continue
        for column in table:
            assert column == "length" or len(table[column]) == table["length"], (name, column)
    assert p["meta"]["preprocessedProfileVersion"] == 60
    stacks, frames, funcs = shared["stackTable"], shared["frameTable"], shared["funcTable"]
    for c in frames["category"]:
        assert 0 <= c < len(p["meta"]["categories"])
    for r in funcs["resource"]:
        assert -1 <= r < shared["resourceTable"]["length"]
    schema = {m["name"]: {f["key"] for f in m["fields"]} for m in p["meta"]["markerSchema"]}
    for thread in p["threads"]:
        samples, last = thread["samples"], 0.0
        markers = thread["markers"]
        assert all(len(c) == markers["length"] for k, c in markers.items() if k != "length"), thread["name"]
        for name, data, begin, end, phase in zip(*(markers[k] for k in ("name", "data", "startTime", "endTime", "phase"))):
            assert phase == 1 and 0 <= begin <= end and set(data) == {"type"} | schema[data["type"]], data
            exits[shared["stringArray"][name]] += data["exits"]
            exit_ns[shared["stringArray"][name]] += (end - begin) * 1e6 * data["exits"]
        for stack, time, weight in zip(samples["stack"], samples["time"], samples["weight"]):
            names = []
            assert time >= last
            last = time
            while stack is not None:
                names.append(shared["stringArray"][funcs["name"][frames["func"][stacks["frame"][stack]]]])
                assert stacks["prefix"][stack] is None or stacks["prefix"][stack] < stack
                stack = stacks["prefix"][stack]
            folded[";".join(reversed(names))] += weight


def perfetto(path, _):
    sequences, processes, threads = {}, {}, {}
    weights = {}
    tracks, slices, open_slices = {}, collections.Counter(), collections.defaultdict(list)
    for p in text_messages("perfetto.proto", "Trace", open(path, "rb").read())["packet"]:
        key = one(p, "trusted_packet_sequence_id")
        if one(p, "sequence_flags") & 1:
            assert key not in sequences
            sequences[key] = collections.defaultdict(dict)
        known = sequences[key]
        assert one(p, "machine_id") == key
        for data in p["interned_data"]:
            for kind in data:
                for entry in data[kind]:
                    assert one(entry, "iid") not in known[kind], "an iid has one meaning"
                    known[kind][one(entry, "iid")] = entry
        for track in p["track_descriptor"]:
            assert one(track, "uuid") not in tracks or key > 1
            tracks[key, one(track, "uuid")] = track
            for process in track["process"]:
                processes[key, one(process, "pid")] = one(process, "process_name")
            for thread in track["thread"]:
                threads[key, one(thread, "tid")] = one(thread, "thread_name")
        for s in p["perf_sample"]:
            assert processes[key, one(s, "pid")] and threads[key, one(s, "tid")]
            frames = known["callstacks"][one(s, "callstack_iid")]["frame_ids"]
            names = [one(known["function_names"][one(known["frames"][f], "function_name_id")], "str")
                     for f in frames]
            folded[";".join(names)] += one(s, "timebase_count", 1)
        for e in p["track_event"]:
            kind, track = one(e, "type"), (key, one(e, "track_uuid"))
            assert track in tracks
            if kind == 1:
                name = one(e, "name", None) or one(known["event_names"][one(e, "name_iid")], "str")
                if e["debug_annotations"] and not e["debug_annotations"][0]["string_value"]:
                    assert one(tracks[track], "name").startswith("VM exits of vcpu ")
                    assert one(e["debug_annotations"][0], "name") == "exits"
                    exits[name] += one(e["debug_annotations"][0], "uint_value")
                    weights[track] = one(e["debug_annotations"][0], "uint_value")
                open_slices[track].append((name, one(p, "timestamp")))
            elif kind == 2:
                name, begin = open_slices[track].pop()
                if track in weights:
                    exit_ns[name] += (one(p, "timestamp") - begin) * weights[track]
                if tracks[track]["thread"]:
                    slices[name] += one(p, "timestamp") - begin
    for name, ns in slices.items():
        folded["slice " + name] += ns


def perf(path, period):
    """As stackcollapse-perf.pl has it: the period is what a sample weighs."""
    names, weight = [], None
    for line in open(path):
        head = re.match(r"(\S.*?)\s+(\d+)/(\d+)\s+(?:\[\d+\]\s+)?(\d+\.\d+):\s+(\d+)\s+(\S+):\s*$", line)
        frame = re.match(r"\s+([0-9a-f]+) (.*) \((.*)\)$", line)
        if head:
            assert weight is None
            weight = int(head[5])
        elif frame:
            names.append(frame[2])
        else:
            assert line == "\n", line
            folded[";".join(reversed(names))] += weight / period
            names, weight = [], None


def spans(events, period):
    """(lane, begin, end, name): what each took itself, below what it is in."""
    lanes = collections.defaultdict(list)
    for e in events:
        lanes[e[0]].append(e)
    for lane in lanes.values():
        stack = []  # (names from the outermost on, end)
        # If two are equal, the first in the file is outside, as viewers have it.
        for _, begin, end, name in sorted(lane, key=lambda e: (e[1], -e[2])):
            while stack and stack[-1][1] <= begin:
                stack.pop()
            if stack:
                outer, its_end = stack[-1]
                assert end <= its_end, "spans nest"
                folded[outer] -= (end - begin) / period
                name = outer + ";" + name
            stack.append((name, end))
            folded[name] += (end - begin) / period


def chrome(path, period):
    def ns(text):
        us, frac = text.split(".")
        return int(us) * 1000 + int(frac)
    p = json.load(open(path), parse_float=str)
    spans([((e["pid"], e["tid"]), ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["name"])
           for e in p["traceEvents"] if e["ph"] == "X" and 3 <= e["pid"] < 1000000], period)


def fxt(path, period):
    out = subprocess.run([sys.executable, os.path.join(HERE, "..", "fxt_read.py"), path, "samples"],
                         check=True, capture_output=True, text=True).stdout
    spans([(l[0], int(l[2]), int(l[3]), l[1]) for l in (x.split("\t") for x in out.splitlines() if "\t" in x)],
          period)


def callgrind(path, _):
    out = subprocess.run(["callgrind_annotate", "--threshold=100", path], check=True,
                         capture_output=True, text=True).stdout
    for line in out.splitlines():
        m = re.match(r"\s*([\d,]+) \([ \d.]+%\)\s+\S*?:(.*?)(?: \[.*\])?$", line)
        if m:
            folded[m[2]] += int(m[1].replace(",", ""))


def leaves(path, _):
    for line in open(path):
        stack, value = line.rstrip("\n").rsplit(" ", 1)
        folded[stack.rsplit(";", 1)[-1]] += float(value)


def read(form, path, period=1.0):
    """The stacks of a file, without zeros."""
    for each in (folded, exits, exit_ns):
        each.clear()
    globals()[form](path, period)
    return {k: folded[k] for k in sorted(folded) if abs(folded[k]) > 1e-6}


def main(form, path, period="1", report=None):
    if form == "text":  # only what is above is wanted
        form, path = "leaves", os.devnull
    found = read(form, path, float(period))
    if report:  # what `report --exits --json` says of the same
        counts, ns, found = collections.Counter(), collections.Counter(), {}
        for row in json.load(open(report))["rows"]:
            counts[f"[exit {row['exit']}]"] += row["exits"]
            ns[f"[exit {row['exit']}]"] += row["host_ns"]
        assert counts == exits and len(counts) > 3, (counts - exits, exits - counts)
        assert all(abs(exit_ns[k] / ns[k] - 1) < 1e-3 for k in ns if ns[k]), (ns, exit_ns)
    for key, value in found.items():
        print(key, f"{value:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
