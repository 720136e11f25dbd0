# SPDX-License-Identifier: BSD-2-Clause
"""Other tools' texts: perf script to folded stacks, and the difference of two folded files."""
import os
import statistics
import tempfile

from common import Skip, bench, compare, cpu_of


def walk(x, names, steps):
    for _ in range(steps):
        x = (x * 1103515245 + 12345) % 2**31
        yield names[x % len(names)]


def make_perf(path, megabytes):
    """Samples of a made-up program with 3000 functions, as perf script prints them."""
    lines = [f"\t{0xffffffff81000000 + i * 512:16x} module{i % 19}_function{i}+0x{i % 400:x} (/boot/app)\n"
             for i in range(3000)]
    size, i = 0, 0
    with open(path, "w") as f:
        while size < megabytes * 10**6:
            i += 1
            x = i * 2654435761 % 2**32 % 4096
            text = f"app{i % 5} {1000 + i % 5}/{1000 + i % 5} [{i % 4:03d}] {i * 1e-4:.6f}: 250000 cycles:u: \n"
            text += "".join(walk(x, lines, 6 + x % 25)) + "\n"
            f.write(text)
            size += len(text)


def make_folded(path, n, seed):
    names = [f"module{i % 40}_function{i}" for i in range(4000)]
    with open(path, "w") as f:
        for i in range(n):
            x = (i + seed) * 2654435761 % 2**32
            f.write(";".join(["main", *walk(x, names, 6 + x % 20)]) + f";leaf{i} {1 + i % 9}\n")


def alone_or_against(args, what, ours, peer, env):
    if peer is None:
        values = [cpu_of(ours[1]) for _ in range(args.runs)]
        print(f"{what}: CPU seconds {statistics.median(values):.3f} (from {min(values):.3f} to"
              f" {max(values):.3f}, {args.runs} runs)")
        raise Skip(f"set {env}=PATH to compare with the script")
    compare(what, "CPU seconds", ours, peer, cpu_of, args.runs)


@bench
def collapse(args):
    """100 MB of perf script's text to folded stacks, against FlameGraph's script."""
    peer = os.environ.get("STACKCOLLAPSE_PERF")
    with tempfile.TemporaryDirectory() as d:
        text = f"{d}/in.perf"
        make_perf(text, 100)
        alone_or_against(args, "100 MB of perf script text to folded stacks",
                         ("uniscope", [args.uniscope, "export", text, "-f", "folded", "-o", "-"]),
                         ("stackcollapse-perf.pl", ["perl", peer, text]) if peer else None,
                         "STACKCOLLAPSE_PERF")


@bench
def difference(args):
    """Two files of 100,000 distinct stacks as one with two columns, against FlameGraph's script."""
    peer = os.environ.get("DIFFFOLDED")
    with tempfile.TemporaryDirectory() as d:
        a, b = f"{d}/a.folded", f"{d}/b.folded"
        make_folded(a, 100000, 1)
        make_folded(b, 100000, 2)
        alone_or_against(args, "difference of 100,000 and 100,000 folded stacks",
                         ("uniscope", [args.uniscope, "export", "--before", a, b, "-f", "folded", "-o",
                                       "-"]),
                         ("difffolded.pl", ["perl", peer, a, b]) if peer else None, "DIFFFOLDED")
