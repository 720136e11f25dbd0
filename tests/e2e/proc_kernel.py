#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""proc_kernel.py UNISCOPE PROGRAM: kernel frames of a process (kernelcalls.c), judged by `perf record -g` of the same process. TAP."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from math import sqrt
from pathlib import Path

U, PROGRAM = sys.argv[1:]
OURS = ("main", "read_zeros", "read_more", "doze", "look_up", "spin")
MARK = "_[k]"
# Interrupts of the host come to any function, and more of them if the host has other work: the program's own time is judged.
INTERRUPTS = ("asm_sysvec_", "asm_common_interrupt", "asm_exc_nmi", "asm_exc_page_fault")
T = Path(tempfile.mkdtemp())
number = 0


def check(what, fn):
    global number
    number += 1
    try:
        fn()
        print(f"ok {number} - {what}")
    except (AssertionError, subprocess.CalledProcessError) as e:
        print(f"not ok {number} - {what}")
        for line in str(e).split("\n") + str(getattr(e, "stderr", "") or "").split("\n"):
            print("#", line)
    sys.stdout.flush()


def skip(what, why):
    global number
    number += 1
    print(f"ok {number} - {what} # SKIP {why}")


def run(*args):
    return subprocess.run([str(a) for a in args], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)


class Stacks:
    """Weights by function of the program, in the kernel or not, and by kernel function (with the time of its callees)."""

    def __init__(self):
        self.n, self.of, self.kernel, self.interrupts = 0, collections.Counter(), collections.Counter(), 0

    def add(self, user, kernel, weight):  # both leaf first
        caller = next((f for f in user if f in OURS), "?")
        cut = max((i + 1 for i, f in enumerate(kernel) if f.startswith(INTERRUPTS)), default=0)
        self.interrupts += weight if cut else 0
        kernel = kernel[cut:]
        self.n += weight
        self.of[caller, bool(kernel)] += weight
        self.kernel.update({place(k): weight for k in set(kernel)})


names = {}  # of the kernel's functions: the first one at that address


def read_names():
    at = {}
    for line in open("/proc/kallsyms"):
        address, _, name = line.split()[:3]
        names.setdefault(name, at.setdefault(address, name))


def place(name):
    return names.get(name, name)


def ours(target, seconds, *options):
    run(U, "record", target, "-q", "-F", 1499, "-d", seconds, "-o", T / "s.uniscope", "--overwrite", *options)
    return folded(T / "s.uniscope")


def folded(source):
    s = Stacks()
    for line in run(U, "export", "--no-inline", source, "-f", "folded").stdout.splitlines():
        stack, weight = line.rsplit(" ", 1)
        frames = stack.split(";")[::-1]
        kernel = [f[: -len(MARK)] for f in frames if f.endswith(MARK)]
        s.add([f for f in frames if not f.endswith(MARK)], kernel, int(weight))
    return s


def perfs(pid, seconds):
    run("perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", 1499, "-p", pid, "-o", T / "perf.data", "--", "sleep", seconds)
    text = run("perf", "script", "-i", T / "perf.data").stdout
    (T / "perf.txt").write_text(text)
    s = Stacks()
    for sample in text.split("\n\n"):
        frames = [line.split(None, 1)[1].rsplit(" (", 1) for line in sample.split("\n") if line.startswith("\t")]
        pairs = [(symbol.rsplit("+0x", 1)[0], image) for symbol, image in frames]
        if pairs:
            s.add([f for f, image in pairs if "[kernel" not in image], [f for f, image in pairs if "[kernel" in image], 1)
    return s


def near(what, a, na, b, nb, slack=0.01):
    """Two shares of samples that were taken apart from each other: at most 4 standard errors between them."""
    p = (a + b) / (na + nb)
    error = sqrt(p * (1 - p) * (1 / na + 1 / nb))
    assert abs(a / na - b / nb) <= 4 * error + slack, f"{what}: {a / na:.3f} of {na}, perf has {b / nb:.3f} of {nb} (error {error:.4f})"


def same(mine, perf):
    assert min(mine.n, perf.n) >= 300, f"{mine.n} samples, perf has {perf.n}"
    for key in sorted(set(mine.of) | set(perf.of)):
        near(key, mine.of[key], mine.n, perf.of[key], perf.n)


def judge(pid):
    for seconds in 2, 5, 12, 40, 120:  # a busy host gives it few turns
        mine, perf = ours(f"proc:pid={pid}", seconds), perfs(pid, seconds)
        if min(mine.n, perf.n) >= 500:
            break
    print("#", mine.n, dict(mine.of))
    print("#", perf.n, dict(perf.of))
    check("time of each function, in it and in the kernel below it, is perf's", lambda: same(mine, perf))

    def kernel():
        large = [k for k, n in perf.kernel.items() if n >= perf.n / 20]
        assert len(large) > 3, perf.kernel
        for k in large:
            near(k, mine.kernel[k], mine.n, perf.kernel[k], perf.n)

    check("kernel functions, with what they call, have perf's shares", kernel)
    return perf


def quality():
    text = run(U, "report", T / "s.uniscope").stdout
    assert "100.00 % end at their root" in text and "_[k]" in text, text
    size = sum(f.stat().st_size for f in (T / "s.uniscope/symbols").iterdir())
    assert size < 1 << 20, f"{size} bytes of symbols: all of the kernel's?"


def annotated():
    """Samples at each instruction of `spin`, by `perf annotate` and ours, and where the instructions are."""
    text = run("perf", "annotate", "--stdio", "--stdio-color", "never", "--show-nr-samples", "-i", T / "perf.data", "-s", "spin").stdout
    theirs = {int(a, 16): int(n) for n, a in re.findall(r"^ *(\d+) +: +([0-9a-f]+):", text, re.M)}
    doc = json.loads(run(U, "annotate", "--json", T / "s.uniscope", "spin").stdout)
    mine = {int(i["address"], 16): i["self"] for i in doc["instructions"]}
    print("#", sum(mine.values()), sum(theirs.values()), "samples in spin")
    assert doc["skid"] == "next" and doc["unit"] == "samples" and sum(mine.values()) == doc["self"] >= 100 <= sum(theirs.values()), (doc["self"], theirs)
    assert mine.keys() == theirs.keys(), (mine, theirs)
    for at in mine:
        near(hex(at), mine[at], doc["self"], theirs[at], sum(theirs.values()), 0.05)


def again(perf):
    """import of perf script keeps the mark, the image and the shares; the java palette has it orange."""
    mine = folded(T / "perf.txt")
    assert (mine.n > perf.n) and mine.kernel.keys() == perf.kernel.keys(), mine.kernel.keys() ^ perf.kernel.keys()
    for key in perf.of:
        assert abs(mine.of[key] / mine.n - perf.of[key] / perf.n) < 1e-3, (key, mine.of, perf.of)
    back = run(U, "export", T / "perf.txt", "-f", "perf").stdout
    assert " read_zero ([kernel.kallsyms])" in back and "_[k]" not in back, back[:1000]
    for source in T / "perf.txt", T / "s.uniscope":
        svg = run(U, "export", source, "-f", "svg", "-O", "colors=java").stdout
        fill = {}
        for part in svg.split("<title>")[1:]:
            if 'fill="rgb(' in part:
                red, green, blue = map(int, part.split('fill="rgb(')[1].split(")")[0].split(","))
                fill[part.split(" (")[0]] = (red, green, blue)
        assert fill["do_syscall_64"][2] == 0 and fill["do_syscall_64"][1] >= 90, fill["do_syscall_64"]
        assert fill["spin"][2] >= 50, fill["spin"]


def stopped(pid, perf):
    """Stops show where the program is by chance, in a system call or not, also without a right to run before others."""
    for seconds in 4, 10, 25, 60, 180:  # a busy host gives it few turns
        run("setpriv", "--bounding-set", "-sys_nice", U, "record", f"proc:pid={pid},via=stop", "-q", "-F", 499, "-d", seconds, "-o", T / "s.uniscope", "--overwrite")
        mine, stats = folded(T / "s.uniscope"), json.loads((T / "s.uniscope/session.json").read_text())["guests"][0]["statistics"]
        ran = stats["pause_ns"]["nr"] * mine.n // stats["weight"]  # stops, less those in which it waited for a CPU
        if ran >= 400:
            break
        print(f"# retry: {ran} stops")
    print("#", ran, mine.n, dict(mine.of))
    assert ran >= 400 and set(mine.kernel) == {"[kernel]"} and mine.of["?", True] == 0, (ran, mine.of)
    for key in sorted(set(mine.of) | set(perf.of)):
        near(key, mine.of[key] * ran / mine.n, ran, perf.of[key], perf.n, 0.03)


def not_permitted(target, *options):
    """A recording without the capabilities that show the kernel, which kernel.perf_event_paranoid of 2 or more asks for."""
    said = run("setpriv", "--bounding-set", "-sys_admin,-perfmon", U, "record", target, "-F", 499, "-o", T / "s.uniscope", "--overwrite", *options).stderr
    mine = folded(T / "s.uniscope")
    print("#", mine.n, dict(mine.of))
    assert set(mine.kernel) == {"[kernel]"}, mine.kernel
    return mine, said, json.loads((T / "s.uniscope/session.json").read_text())["guests"][0]["statistics"]


SECONDS = ("-d", 4 if os.environ.get("UNISCOPE_ALL") else 2)


def right_amount(mine, perf):
    inside = sum(n for (_, k), n in perf.of.items() if k) + perf.interrupts / 2
    near("in the kernel", mine.kernel["[kernel]"], mine.n, inside, perf.n, 0.02 + 2 * perf.interrupts / perf.n)


def never_stopped(pid, perf):
    for target, options in (f"proc:pid={pid},via=perf", ()), (f"proc:pid={pid}", ("--no-pause",)):
        mine, said, stats = not_permitted(target, *SECONDS, *options)
        assert "[kernel], without the caller" in said and "pauses none" in said, said
        assert mine.of["?", True] == mine.kernel["[kernel]"] and "callers" not in stats, (mine.of, stats)
        right_amount(mine, perf)


def with_votes(target, least):
    """Records until there are enough stops in the kernel: a busy host gives it few turns."""
    for seconds in 4, 10, 25, 60, 180:
        mine, said, stats = not_permitted(target, "-d", seconds)
        votes = stats.get("callers", 0)
        if votes >= least:
            break
        print(f"# retry: {votes} stops in the kernel")
    assert votes >= least and stats["pause_ns"]["nr"] >= votes / 2, stats
    due = sum(v["guest_ns"] for v in stats["vcpus"]) * 499e-9
    print(f"# samples stand for {stats['weight']} periods of {due:.0f}")
    assert abs(stats["weight"] + stats["lost"] - due) <= 3 + due / 50, (stats["weight"], due)
    assert f"divided among its callers by {votes} looks" in said, said
    assert f"divided among its callers by {votes} looks" in run(U, "report", T / "s.uniscope").stdout
    return mine, votes


def callers_found(pid, perf):
    mine, votes = with_votes(f"proc:pid={pid}", 80)
    all_mine, all_perf = (sum(n for (_, k), n in s.of.items() if k) for s in (mine, perf))
    for f in "read_zeros", "look_up", "spin":
        near(f"{f} of the kernel's callers", mine.of[f, True] * votes / all_mine, votes, perf.of[f, True], all_perf, 0.03)
    right_amount(mine, perf)


def sleeper():
    """Its callers, by its own count of calls; and no sleep is ended."""
    with subprocess.Popen([PROGRAM, "sleeps"], stdout=subprocess.PIPE, text=True) as child:
        try:
            child.stdout.readline()
            mine, votes = with_votes(f"proc:pid={child.pid}", 80)
        finally:
            child.kill()
        ended = child.stdout.read().count("EINTR")
    zeros, more = mine.of["read_zeros", True], mine.of["read_more", True]
    share, part = more / (zeros + more), (zeros + more) / sum(n for (_, k), n in mine.of.items() if k)
    assert abs(share - 0.75) <= 4 * sqrt(0.75 * 0.25 / (votes * part)) + 0.02, f"{share:.3f} by {votes} stops"
    assert mine.of["spin", True] <= 0.05 * (zeros + more), mine.of
    # A call that has begun, but does not sleep yet, may be stopped.
    assert ended <= votes / 20, f"{ended} sleeps were ended, {votes} stops"


def main():
    read_names()
    with subprocess.Popen([PROGRAM], stdout=subprocess.PIPE) as child:
        try:
            child.stdout.readline()
            perf = judge(child.pid)
            check("its chains are whole, and reports mark the kernel's functions", quality)
            check("annotate: the samples at each instruction are those of perf annotate", annotated)
            check("import of perf script keeps kernel frames, their mark and its colour", lambda: again(perf))
            check("stopped by ptrace: [kernel] is below the function that called, by perf's shares", lambda: stopped(child.pid, perf))
            cases = (
                ("without the right to see the kernel its time is there, as [kernel]", lambda: never_stopped(child.pid, perf)),
                ("unless it may not be stopped: then [kernel] is below the functions that called", lambda: callers_found(child.pid, perf)),
                ("also of a program that sleeps, whose sleep is not ended", sleeper),
            )
            for what, case in cases:
                if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 2:
                    skip(what, "kernel.perf_event_paranoid shows the kernel to everybody")
                else:
                    check(what, case)
        finally:
            child.kill()
    print(f"1..{number}")


main()
run("rm", "-rf", T)
