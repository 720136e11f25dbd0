# SPDX-License-Identifier: BSD-2-Clause
"""Exact counts: what QEMU costs with the plugin, in CPU time, against QEMU without it."""
import os
import statistics
import subprocess
import tempfile

from common import ROOT, Skip, bench, cpu_of, need

# A program's work, the lab's image, its command line.
PROGRAMS = (
    ("loops of four instructions without any call", "shares-gcc-nofp", "rounds=40000"),
    ("loops, and a call every 400 instructions", "threads-gcc-nofp", "rounds=40000"),
    ("a call every 14 instructions", "exact-gcc-nofp", "rounds=1 fib=38 faults=0 turns=1"),
)


@bench
def exact(args):
    """CPU seconds of `run --exact`, its reader included, for each mode; QEMU alone is 1."""
    need("qemu-system-x86_64")
    with tempfile.TemporaryDirectory() as d:
        for what, image, append in PROGRAMS:
            elf = f"{args.build}/lab/{image}.elf"
            if not os.path.exists(elf):
                raise Skip(f"{elf} is not built")
            measure(args, d, what, elf, append)


def plain(elf, append):
    return ["sh", "-c", f"{ROOT}/lab/boot --accel tcg --serial null --append '{append}' {elf};"
            " [ $? -eq 33 ]"]


def measure(args, d, what, elf, append):
    ways = {"plain": plain(elf, append)}
    for mode in ("counts", "tree", "calls"):
        ways[mode] = [args.uniscope, "run", f"--exact={mode}", "-q", "-d", "0", "--append", append,
                      "-o", f"{d}/s.uniscope", "--overwrite", elf]
    times = {way: [] for way in ways}
    for way, argv in ways.items():  # warm up
        cpu_of(argv)
    for _ in range(args.runs):
        for way, argv in ways.items():
            times[way].append(cpu_of(argv))
    print(f"{what}: {os.path.basename(elf)}, {append}")
    print(f"    {'plain':8}{statistics.median(times['plain']):6.2f} s")
    for way in list(ways)[1:]:
        ratios = sorted(x / p for x, p in zip(times[way], times["plain"]))
        print(f"    {way:8}{statistics.median(times[way]):6.2f} s, {statistics.median(ratios):.2f}"
              f" (from {ratios[0]:.2f} to {ratios[-1]:.2f}, {args.runs} runs)")
