#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""top_screen.py CASE UNISCOPE TARGET IMAGE: `uniscope top` as a user meets it in a terminal.

TARGET is the lab's smp guest (or a replay of it): cpu0_hot, cpu0_warm, cpu1_hot."""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

from screen import Terminal

CASE, U, TARGET, IMAGE = sys.argv[1:5]
ONCE = TARGET.replace("once=0", "once=1")


def top(*args, target=TARGET, **how):
    return Terminal([U, "top", target, "-e", IMAGE, "--no-inline", "-i", "0.2", *args], **how)


def functions(s):
    """Names in the table of functions, from top to bottom."""
    names, inside = [], False
    for line in s.text().split("\n"):
        if "FUNCTION" in line:
            inside = True
        elif "CALLS OF" in line or "CALLERS OF" in line:
            inside = False
        elif inside:
            m = re.match(r" +[0-9.]+ +[0-9.]+ +(?:[0-9,]+ +)?(\w+)$", line)
            if m:
                names.append(m[1])
    return names


def until(t, names, why):
    t.wait(lambda s: names(functions(s)), why)


def quit_well(t):
    t.type("q")
    assert t.end() == 0, t.status
    t.assert_restored()


def keys():
    with top() as t:
        until(t, lambda f: "cpu0_hot" in f, "functions")
        assert t.screen.alt
        t.see("by self")
        t.type("3")
        t.see("by name")
        until(t, lambda f: len(f) > 3 and f == sorted(f), "functions by name")
        t.type("2")
        t.see("by total")
        until(t, lambda f: len(f) > 5 and "cpu0_hot" not in f[:5], "the outermost first")
        t.type("o")
        t.see("by name")
        t.type("1")
        t.see("by self")
        t.type("/cpu0")
        until(t, lambda f: f and all("cpu0" in n for n in f), "only cpu0_*")
        t.see("Functions with: cpu0")
        t.type("x\x7f\r")
        t.see("only *cpu0*")
        until(t, lambda f: f and all("cpu0" in n for n in f), "only cpu0_*")
        t.type("\x1b")
        until(t, lambda f: any("cpu0" not in n for n in f), "all again")
        t.type("/nobody\r")
        t.see("no function has such a name")
        t.type("\x1b")
        quit_well(t)


def select():
    with top("--filter", "cpu0") as t:
        until(t, lambda f: "cpu0_warm" in f, "functions")
        t.type("3")
        until(t, lambda f: f[:1] == ["cpu0_hot"], "functions by name")
        t.see("CALLS OF cpu0_hot")
        t.type("\x1bOB")
        t.see("CALLS OF cpu0_warm")
        t.type("jk")
        t.see("CALLS OF cpu0_warm")
        t.type("c")
        t.see("CALLERS OF cpu0_warm")
        t.see("kmain")
        # Into the callers, two lines on, and to that function.
        t.type("\tjj\r")
        t.wait(lambda s: re.search(r"CALLERS OF (app_main|cpu0_work)", s.text()), "another one")
        t.type("\t")
        t.type("t")
        t.wait(lambda s: "CALLERS OF" not in s.text(), "no calls")
        t.type("t")
        t.see("CALLERS OF")
        quit_well(t)


def code_live():
    """The shares guest as it runs: the hottest function is inlined, so it is the code that has it. Rights
    are given up by then."""
    with Terminal([U, "top", TARGET, "-e", IMAGE, "-i", "0.2"], rows=60, columns=160) as t:
        t.see("CALLS OF lab_burn")
        t.type("\r")
        t.wait(lambda s: re.search(r"CODE OF burn_[abcd]", s.text()), "code")
        t.wait(lambda s: re.search(r" [0-9.]+ % +[0-9]+ .*\(lab_burn, inlined\)", s.text()), "a line with samples")
        first = re.search(r"% +([0-9]+) .*lab_burn, inlined", t.screen.text())[1]
        t.wait(lambda s: re.search(r"% +([0-9]+) .*lab_burn, inlined", s.text())[1] != first, "more samples")
        t.type("\x1b")
        t.see("CALLS OF lab_burn")
        quit_well(t)


def annotation():
    """The numbers on the screen at each instruction, by its address."""
    p = subprocess.run([U, "annotate", SESSION, "cpu0_hot", "--json"], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    return json.loads(p.stdout)


def code():
    """Enter on a function: its code, with the samples that annotate finds in the same session."""
    global SESSION
    with top("--filter", "cpu0", "--window", "0", "-o", "code", target=ONCE, rows=200,
             columns=160) as t:
        t.see("ENDED")
        until(t, lambda f: f[:1] == ["cpu0_hot"], "functions")
        t.type("s")
        t.see("saved ")
        SESSION = re.search(r"saved (\S+):", t.screen.text())[1]
        t.type("\r")
        t.see("CODE OF cpu0_hot")
        t.type("g")
        want = annotation()
        t.see("function   cpu0_hot")
        t.see("%x " % int(want["instructions"][-1]["address"], 16))
        seen = {}
        for line in t.screen.text().split("\n"):
            m = re.match(r" +[0-9.]+ % +([0-9,]+) .{12}  +([0-9a-f]+) ", line)
            if m:
                seen[int(m[2], 16)] = int(m[1].replace(",", ""))
        told = {int(i["address"], 16): i["self"] for i in want["instructions"] if i["self"]}
        assert seen == told and seen, (seen, told, t.screen.text())
        t.type("j")
        t.wait(lambda s: "function   cpu0_hot" not in s.text(), "a line on")
        t.type("q")  # leaves the code, not the program
        until(t, lambda f: "cpu0_hot" in f, "functions")
        t.type("\r")
        t.see("CODE OF")
        t.type("\t")
        t.see("CALLS OF cpu0_hot")
        t.type("\t/nosuch\r")
        t.see("no function has such a name")
        quit_well(t)
    for f in glob.glob("*.uniscope"):
        subprocess.run(["rm", "-r", f], check=True)


def pause():
    with top() as t:
        until(t, lambda f: "cpu0_hot" in f, "functions")
        t.type(" ")
        t.see("PAUSED")
        # Its picture stands still: the table, and the time at the top right.
        t.read(1.0)
        still = t.screen.text()
        t.read(1.0)
        assert t.screen.text() == still, still + t.screen.text()
        t.type("w")
        t.type("p")
        t.wait(lambda s: "PAUSED" not in s.text(), "going on")
        t.type("WWWWW")
        t.see("since the start")
        t.type("i")
        t.see("with idle")
        t.type("v")
        t.see("vCPU 0 only")
        until(t, lambda f: "cpu1_hot" not in f, "vCPU 0's functions")
        t.type("v")
        t.see("vCPU 1 only")
        until(t, lambda f: "cpu1_hot" in f and "cpu0_hot" not in f, "vCPU 1's functions")
        t.type("v")
        t.wait(lambda s: "only" not in s.text(), "all vCPUs")
        t.type("z")
        t.see("started anew")
        t.type("?")
        t.see("draw the screen anew")
        t.type("q")  # leaves the help, not the program
        until(t, lambda f: "cpu0_hot" in f, "functions")
        quit_well(t)


def sizes():
    with top(rows=24, columns=80) as t:
        until(t, lambda f: "cpu0_hot" in f, "functions")
        for rows, columns in (60, 200), (10, 40), (3, 20), (1, 1), (24, 80):
            t.resize(rows, columns)
            t.read(0.5)
            if rows >= 10:
                t.see("cpu0_hot")
                t.wait(lambda s: "help" in s.line(s.rows - 1), "keys in the last line")
        quit_well(t)


def save():
    with top("-o", "seen") as t:
        until(t, lambda f: "cpu0_hot" in f, "functions")
        t.read(1.0)
        t.type("s")
        t.see("saved seen.uniscope")
        said = int(re.search(r": ([0-9]+) samples", t.screen.text())[1])
        t.type("s")
        t.see("saved seen-2.uniscope")
        quit_well(t)
    stats = json.load(open("seen.uniscope/session.json"))
    assert stats["state"] == "closed", stats
    report = subprocess.run([U, "report", "seen.uniscope"], capture_output=True, text=True)
    assert report.returncode == 0 and "cpu0_hot" in report.stdout, report
    folded = subprocess.run(
        [U, "export", "seen.uniscope", "-f", "folded"], capture_output=True, text=True
    )
    assert sum(int(l.split()[-1]) for l in folded.stdout.splitlines()) == said, folded.stdout
    assert ", 0 lost" in report.stdout, report.stdout


def signals():
    every = bool(os.environ.get("UNISCOPE_ALL"))
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT) if every else (signal.SIGTERM,):
        with top() as t:
            until(t, lambda f: "cpu0_hot" in f, "functions")
            os.kill(t.pid, sig)
            assert t.end() == 0, (sig, t.status)
            t.assert_restored()
    with top() as t:
        until(t, lambda f: "cpu0_hot" in f, "functions")
        t.type("\x03")
        assert t.end() == 0, t.status
        t.assert_restored()
    # It cannot survive these, but the terminal does.
    for sig in (signal.SIGSEGV, signal.SIGABRT) if every else (signal.SIGSEGV,):
        with top() as t:
            until(t, lambda f: "cpu0_hot" in f, "functions")
            os.kill(t.pid, sig)
            t.end()
            t.assert_restored()
            assert t.status != 0


def suspend():
    with top() as t:
        until(t, lambda f: "cpu0_hot" in f, "functions")
        t.type("\x1a")
        pid, status = os.waitpid(t.pid, os.WUNTRACED)
        assert pid == t.pid and os.WIFSTOPPED(status), status
        t.read(0.2)
        t.assert_restored()
        os.kill(t.pid, signal.SIGCONT)
        t.wait(lambda s: s.alt, "the screen is back")
        until(t, lambda f: "cpu0_hot" in f, "functions")
        quit_well(t)


def suspend_paused():
    """The same with many stops a second: whenever it comes, none is under way. The guest's own CPU
    time, while we are stopped, tells that it is not."""
    pid = int(TARGET.split("pid=")[1])

    def cpu():
        fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    with top("--method", "pause", "-F", "997") as t:
        until(t, lambda f: "burn_a" in f, "functions")
        for _ in range(5):
            t.read(0.2)
            t.type("\x1a")
            _, status = os.waitpid(t.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), status
            before, until_s = cpu(), time.monotonic() + 60
            while cpu() < before + 3:
                assert time.monotonic() < until_s, "the guest stands still"
                time.sleep(0.05)
            os.kill(t.pid, signal.SIGCONT)
            t.wait(lambda s: s.alt, "the screen is back")
        quit_well(t)


def colour():
    with top() as t:
        until(t, lambda f: "cpu0_hot" in f, "functions")
        assert t.screen.colours
        quit_well(t)
    with top(env={"NO_COLOR": "1"}) as t:
        until(t, lambda f: "cpu0_hot" in f, "functions")
        quit_well(t)
        assert not t.screen.colours, t.screen.colours


def gone():
    """The guest ends (a replay that is not repeated): it says so, and everything stays readable."""
    with top("-F", "200", target=ONCE) as t:
        t.see("the guest ended")
        t.see("ENDED")
        until(t, lambda f: "cpu0_hot" in f, "functions")
        t.type("3")
        t.see("by name")
        t.type("s")
        t.see("saved ")
        quit_well(t)
    for f in glob.glob("*.uniscope"):
        subprocess.run(["rm", "-r", f], check=True)


def duration():
    with top("-d", "1") as t:
        assert t.end() == 0, t.status
        t.assert_restored()


def refused():
    """No terminal, or a poor one."""
    p = subprocess.run([U, "top", TARGET, "-e", IMAGE], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True)
    assert p.returncode == 1 and "--batch" in p.stderr and p.stdout == "", p
    with top(env={"TERM": "no-such-terminal"}) as t:
        t.see("--batch")
        assert t.end() == 256, t.status
        t.assert_restored()


globals()[CASE]()
