# SPDX-License-Identifier: BSD-2-Clause
"""Decoding a trace of function calls: events a second of CPU time, beside uftrace and babeltrace2."""
import os
import shutil
import statistics
import subprocess
import tempfile

from common import bench, cpu_of, need

EVENTS = 20_000_000  # of ours; the others get fewer, for they take longer
OTHERS = 2_000_000
PROGRAM = """
#include <stdlib.h>
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv)
{
	static int v[20000];
	int sum = 0;
	for (int i = 0; i < 3; i++) {
		sum += fib(20);
		for (int k = 0; k < 20000; k++)
			v[k] = rand();
		qsort(v, 20000, sizeof(v[0]), compare);
	}
	return argc > 9 ? sum + argv[0][0] : 0;
}
"""


def uftrace_data(d):
    """A recording by uftrace of a program like ours, and how many events it has."""
    with open(f"{d}/p.c", "w") as f:
        f.write(PROGRAM)
    subprocess.run([need("gcc"), "-O2", "-fno-inline", "-fno-optimize-sibling-calls", "-pg",
                    f"{d}/p.c", "-o", f"{d}/p"], check=True)
    subprocess.run([need("uftrace"), "record", "-d", f"{d}/u", "-b", "64m", "--no-libcall", f"{d}/p"],
                   check=True, capture_output=True)
    out = subprocess.run(["uftrace", "report", "-d", f"{d}/u", "-f", "call"], check=True,
                         capture_output=True, text=True).stdout
    return 2 * sum(int(line.split()[0]) for line in out.splitlines() if line.split()[:1]
                   and line.split()[0].isdigit())


def rate(argv, events, runs):
    with open("/dev/shm/uniscope-bench-decode" if os.path.isdir("/dev/shm") else os.devnull, "w+b") as f:
        try:
            rates = []
            for _ in range(runs):
                f.seek(0)
                f.truncate()
                rates.append(events / cpu_of(argv, f) / 1e6)
        finally:
            if f.name != os.devnull:
                os.unlink(f.name)
    return statistics.median(rates), max(rates)


@bench
def decode(args):
    make = f"{args.build}/tests/e2e/mktrace"
    ours = f"{args.build}/src/cli/uniscope"
    d = tempfile.mkdtemp(prefix="uniscope-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        subprocess.run([make, f"{d}/s.uniscope", str(EVENTS), "1", "work"], check=True)
        subprocess.run([make, f"{d}/few.uniscope", str(OTHERS), "1", "work"], check=True)
        peer = uftrace_data(d)
        for what, argv, theirs in (
                ("statistics of functions", ["report"], ["uftrace", "report"]),
                ("call tree", ["graph"], ["uftrace", "graph"]),
                ("function_graph text, written", ["replay"], ["uftrace", "replay"]),
                ("JSON, written", ["replay", "--json"], ["uftrace", "dump", "--chrome"])):
            a = rate([ours, "trace", *argv, f"{d}/s.uniscope"], EVENTS, args.runs)
            b = rate([*theirs, "-d", f"{d}/u"], peer, args.runs)
            print(f"{what}: {a[0]:.1f} M events/s (best {a[1]:.1f}); {' '.join(theirs)}: {b[0]:.2f}"
                  f" (best {b[1]:.2f}); ratio {a[0] / b[0]:.1f}")
        few = f"{d}/few.uniscope/guest-0"
        for what, argv in (("counts only", [need("babeltrace2"), "-o", "dummy", few]),
                           ("text", [need("babeltrace2"), few])):
            b = rate(argv, OTHERS, 1)
            print(f"babeltrace2, {what}: {b[0]:.2f} M events/s")
    finally:
        shutil.rmtree(d)
