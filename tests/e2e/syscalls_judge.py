#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""syscalls_judge.py COMMAND WATCHED ...: is what was read what the guest `syscalls` counted itself?

  calls WATCHED JSON       `trace syscalls --json`: how many of each, how many failed, what each was given
  points WATCHED JSON      `uk-trace list --json`: as many records as it made, with their arguments
  ctf FOLDER JSON          babeltrace2 reads the trace without an error, and counts the same events"""
import collections
import json
import pathlib
import re
import struct
import subprocess
import sys

ARGS = {
    "open": ('"/data/file", O_RDWR|O_CREAT, 0644', '"/nonexistent", O_RDONLY'),
    "writev": (r"3, 0x[0-9a-f]+, 2",),
    "write": (r'3, "\\ttext\\n", 6', "5, 0x[0-9a-f]+, 16"),
    "lseek": ("3, -6, SEEK_END",),
    "read": (r"3, 0x[0-9a-f]+, 64",),
    "close": ("3", "4"),
    "mmap": (re.escape("NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0"),),
    "socket": (re.escape("AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0"),),
}
ARGS["open"] = tuple(re.escape(a) for a in ARGS["open"])
RESULTS = {"open": 3, "writev": 11, "write": 6, "lseek": 11, "read": 6, "close": 0, "mmap": 0x7F0000402000}
ERRORS = {"open": "ENOENT", "close": "EBADF", "socket": "EAFNOSUPPORT"}
WIDTHS = [-5, 65535, -123456, 0xFEEDFACECAFEBEEF, "a text", "0x1234", 120, 0xFFFFFFFF]


def counts(watched):
    """The guest's counts, by name."""
    guest = json.loads(pathlib.Path(watched, "session.json").read_text(encoding="utf-8"))["guests"][0]
    data = bytes.fromhex(next(w for w in guest["watches"] if w["name"] == "lab_traced")["last"]["bytes"])
    nr, = struct.unpack_from("<I", data, 12)
    state, rounds = struct.unpack_from("<IQ", data, 20)
    assert state == 2, "the guest is not done"
    names = [data[64 + 32 * i:96 + 32 * i].split(b"\0")[0].decode() for i in range(nr)]
    return dict(zip(names, struct.unpack_from(f"<{nr}Q", data, 576)), rounds=rounds)


def calls(watched, listed):
    truth, got = counts(watched), json.loads(pathlib.Path(listed).read_text(encoding="utf-8"))["calls"]
    nr = collections.Counter(c["name"] for c in got)
    failed = collections.Counter(c["name"] for c in got if c["end"] == "failed")
    rounds = truth["rounds"]
    assert rounds > 0
    for name in ARGS:
        prefix = "__uk_syscall_r_" if name == "close" else "uk_syscall_r_"
        # Two of four writes of a round are writev's own: no system calls of the program.
        want = truth[prefix + name] - (2 * rounds if name == "write" else 0)
        assert nr[name] == want, f"{name}: {nr[name]} calls, not {want}"
        assert failed[name] == truth.get(f"error {name}", 0), (name, failed[name])
    assert sum(nr.values()) == 11 * rounds, nr
    begin = 0
    for c in got:
        assert any(re.fullmatch(a, c["args"]) for a in ARGS[c["name"]]), c
        if c["end"] == "failed":
            assert c["error"] == ERRORS[c["name"]], c
        else:
            want = 16 if c["args"].startswith("5, ") else RESULTS[c["name"]]
            assert c["end"] == "ok" and c["result"] == want, c
        assert c["time_ns"] >= begin and c["duration_ns"] >= 0, c
        begin = c["time_ns"]
    print(f"{len(got)} calls, {sum(failed.values())} of them failed")


def points(watched, listed):
    truth, got = counts(watched), json.loads(pathlib.Path(listed).read_text(encoding="utf-8"))["records"]
    assert len(got) == truth["points"], f'{len(got)} records, not {truth["points"]}'
    assert got[0]["name"] == "lab_widths" and got[0]["args"] == WIDTHS, got[0]
    assert got[0]["message"] == ("-5 65535 -123456 18369614221190020847 a text 0x0000000000001234 x ffffffff"), got[0]
    assert got[1]["name"] == "lab_nothing" and got[1]["args"] == [] and got[1]["message"] == "nothing", got[1]
    rounds, last = 0, 0
    for r in got:
        assert r["time_ns"] >= last, r
        last = r["time_ns"]
        if r["name"] == "lab_round":
            assert r["args"] == [rounds], r
            rounds += 1
        if r["name"] == "trace_vfs_lseek":
            assert r["args"] == [3, 2**64 - 6, 2], r
    assert rounds == truth["rounds"] or truth["points lost"] > 0, (rounds, truth)
    print(f'{len(got)} records of {rounds} rounds, {truth["points lost"]} found no room')


def ctf(folder, listed):
    got = json.loads(pathlib.Path(listed).read_text(encoding="utf-8"))["records"]
    run = subprocess.run(["babeltrace2", folder], capture_output=True, text=True, check=True)
    assert not run.stderr.strip(), run.stderr
    names = collections.Counter(re.match(r".*?\) (\S+): ", line).group(1) for line in run.stdout.splitlines())
    assert names == collections.Counter(r["name"] for r in got), names
    first = run.stdout.splitlines()[0]
    assert "arg1 = -5, arg2 = 65535, arg3 = -123456, arg4 = 18369614221190020847" in first, first
    assert 'arg5 = "a text"' in first and "arg7 = 120" in first, first


def main():
    {"calls": calls, "points": points, "ctf": ctf}[sys.argv[1]](*sys.argv[2:])


main()
