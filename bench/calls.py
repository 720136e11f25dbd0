# SPDX-License-Identifier: BSD-2-Clause
"""The cost of tracing a call: our guest tracer in a native program, against uftrace record."""
import statistics
import subprocess
import tempfile

from common import bench, need

WORK = ("fib", "json", "sort")


def ours_of(program):
    """Clock's ns, and by mode: (calls, ns a call, lower quartile, bytes a call) of each program."""
    lines = subprocess.run([program, "60"], check=True, capture_output=True,
                           text=True).stdout.split("\n")
    modes = {}
    for line in lines[1:-1]:
        mode, _, calls, best, quartile, size = line.split(",")
        modes.setdefault(mode, []).append((float(calls), float(best), float(quartile), float(size)))
    return float(lines[0].split()[1]), modes


def mean(rows, column):
    return statistics.mean(row[column] for row in rows)


@bench
def calls(args):
    """Entry and exit of a call, in each mode, and while it is off; uftrace for comparison."""
    uftrace = need("uftrace")
    clocks, theirs, ratios, modes = [], [], [], {}
    for _ in range(args.runs):
        with tempfile.TemporaryDirectory() as d:
            out = subprocess.run([uftrace, "record", "-d", d, f"{args.build}/bench/calls_peer", "20"],
                                 check=True, capture_output=True, text=True).stdout
        clock, run = ours_of(f"{args.build}/bench/calls")
        peer = statistics.mean((float(ns) - p[1] * p[0]) / p[0]
                               for ns, p in zip(out.split(), run["plain"]))
        clocks.append(clock)
        theirs.append(peer)
        ratios.append(peer / mean(run["graph"], 1))
        for mode, rows in run.items():
            modes.setdefault(mode, []).append((mean(rows, 1), mean(rows, 2), mean(rows, 3)))
    print(f"ns a call more than plain, mean of {', '.join(WORK)}: median of {args.runs} runs of the"
          f" quickest slices (of the lower quartiles), bytes a call; the clock (rdtsc) is"
          f" {statistics.median(clocks):.1f} ns")
    for mode, rows in modes.items():
        best, quartile, size = (statistics.median(row[i] for row in rows) for i in range(3))
        print(f"    {mode:14} {best:6.2f} ({quartile:.2f}) {size:5.1f}")
    print(f"    uftrace record {statistics.median(theirs):6.2f}  ratio to graph"
          f" {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
