#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""straced.py UNISCOPE: `trace syscalls` of strace's own output of a program with threads. TAP.

The referee is strace: its lines as read here, and its own table."""
import json
import os
import re
import subprocess
import sys
import tempfile

U = os.path.realpath(sys.argv[1])
PROGRAM = """
import os, threading, time
def work():
    for _ in range(20):
        time.sleep(0.001)
        try:
            os.unlink("")
        except OSError:
            os.getppid()
t = [threading.Thread(target=work) for _ in range(3)]
[x.start() for x in t]
[x.join() for x in t]
"""
number = 0


def ok(good, what, got=""):
    global number
    number += 1
    print("%s %d - %s" % ("ok" if good else "not ok", number, what))
    if not good:
        print("# " + str(got)[:600].replace("\n", "\n# "))


def read(path, stamped):
    """Each call: thread, name, arguments, error, when it began and how long it took in us, or None."""
    calls, waiting = [], {}
    for line in open(path, errors="replace"):
        m = re.match(r"(\d+) +(?:([\d.:]+) +)?(?:\(\+ +[\d.]+\) )?(?:\[ *\d+\] )?(?:\[[0-9a-f?]{16}\] )?(.*)\n", line)
        if not m:
            continue
        pid, stamp, text = m.groups()
        m = re.match(r"(.*) <(\d+\.\d+)>$", text)
        text, took = (m.group(1), round(float(m.group(2)) * 1e6)) if m else (text, None)
        m = re.match(r"<\.\.\. \w+ resumed>(.*)\) += (.*)", text)
        if m:
            call = waiting.pop(pid)
            call["args"] += m.group(1)
        else:
            m = re.match(r"(\w+)\((.*) <unfinished \.\.\.>()$", text) or re.match(r"(\w+)\((.*)\) += (.*)", text)
            if not m:
                continue
            call = {"thread": "pid " + pid, "name": m.group(1), "args": m.group(2), "error": None, "took": None,
                    "began": round(float(stamp) * 1e6) if stamped else None}
            calls.append(call)
            waiting[pid] = call
        call["took"] = took
        error = re.match(r"-1 (E\w+)", m.groups()[-1] or "")
        call["error"] = error.group(1) if error else None
    return [dict(c, args=c["args"].rstrip()) for c in calls]


def ours(path):
    r = subprocess.run([U, "trace", "syscalls", "--json", path], capture_output=True, text=True, check=True)
    return [{"thread": c["thread"], "name": c["name"], "args": c["args"], "error": c.get("error"),
             "took": round(c["duration_ns"] / 1e3) if "duration_ns" in c else None,
             "began": round(c["time_ns"] / 1e3) if "time_ns" in c else None} for c in json.loads(r.stdout)["calls"]]


def table(text):
    """Calls and errors of each name; seconds are strace's own time of the system."""
    rows = {}
    for line in text.splitlines():
        m = re.match(r" *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:(\d+) +)?(\w+)$", line)
        if m and m.group(3) != "total":
            rows[m.group(3)] = (int(m.group(1)), int(m.group(2) or 0))
    return rows


def main():
    tmp = tempfile.mkdtemp()
    path = os.path.join(tmp, "lines")
    for options in (["-ttt", "-T"], ["-T"], ["-ttt"], ["-tt", "-T"], ["-r"], ["-ttt", "-r"], ["-n"], ["-i", "-r"], ["-n", "-i", "-T"], ["-C", "-ttt", "-T"]):
        subprocess.run(["strace", "-f", *options, "-o", path, sys.executable, "-S", "-c", PROGRAM], check=True)
        want, got = read(path, "-ttt" in options), ours(path)
        resumed = sum(" resumed>" in line for line in open(path, errors="replace"))
        wrong = [(w, g) for w, g in zip(want, got) if w != g]
        ok(len(want) > 200 and resumed > 10 and len(want) == len(got) and not wrong,
           "%d calls, %d of them resumed: strace %s" % (len(want), resumed, " ".join(options)), (len(got), wrong[:3]))
    sums = subprocess.run([U, "trace", "syscalls", "-c", path], capture_output=True, text=True, check=True).stdout
    want, got = table(open(path, errors="replace").read()), table(sums)
    ok(len(want) > 10 and {n: got.get(n) for n in want} == want, "a call in strace's own table counts once", sums)
    for name in os.listdir(tmp):
        os.unlink(os.path.join(tmp, name))
    os.rmdir(tmp)
    print("1..%d" % number)


trial = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False)
if trial.returncode != 0:
    print("1..0 # SKIP strace may not trace here: %s" % trial.stderr.decode()[:200].strip())
else:
    main()
