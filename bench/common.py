# SPDX-License-Identifier: BSD-2-Clause
"""Shared by the benchmarks: measuring, comparing, lab guests."""
import os
import pathlib
import resource
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCHES = {}


def bench(f):
    BENCHES[f.__name__] = f
    return f


class Skip(Exception):
    pass


def need(program):
    path = shutil.which(program)
    if not path:
        raise Skip(f"{program} is not installed")
    return path


def cpu_of(argv, stdout=subprocess.DEVNULL):
    """User and system seconds of one command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, stdout=stdout, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def wall_of(argv):
    t = time.monotonic()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - t


def shell(argv):
    return " ".join(str(a) for a in argv)


def compare(what, unit, ours, theirs, measure, runs):
    """ours and theirs: (name, argv). Ratio = theirs / ours: above 1, we are better."""
    a, b = [], []
    for argv in (ours[1], theirs[1]):  # warm up: caches, first-time set-up
        measure(argv)
    for _ in range(runs):
        a.append(measure(ours[1]))
        b.append(measure(theirs[1]))
    ratios = sorted(y / x for x, y in zip(a, b))
    print(f"{what}\n    {ours[0]}: {shell(ours[1])}\n    {theirs[0]}: {shell(theirs[1])}")
    print(f"    {unit}: {statistics.median(a):.4g} against {statistics.median(b):.4g};"
          f" ratio {statistics.median(ratios):.2f}"
          f" (from {ratios[0]:.2f} to {ratios[-1]:.2f}, {runs} pairs)\n")


class Guest:
    """A lab guest under QEMU, gone when the block ends."""

    def __init__(self, args, accel, image, append=""):
        self.dir = tempfile.mkdtemp(prefix="uniscope-bench-")
        self.sock = f"{self.dir}/gdb"
        need("qemu-system-x86_64")
        self.image = f"{args.build}/lab/{image}.elf"
        if not os.path.exists(self.image):
            raise Skip(f"{self.image} is not built")
        self.console = open(f"{self.dir}/console", "w+")
        self.p = subprocess.Popen(
            [f"{ROOT}/lab/boot", "--accel", accel, "--append", f"loop=1 {append}", "--gdb",
             f"unix:{self.sock},server=on,wait=off", self.image],
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=subprocess.STDOUT)

    def __enter__(self):
        for _ in range(300):
            if "lab: running" in open(f"{self.dir}/console").read():
                return self
            time.sleep(0.1)
        self.__exit__()
        raise Skip("the guest did not start")

    def __exit__(self, *_):
        self.p.send_signal(signal.SIGKILL)
        self.p.wait()
        shutil.rmtree(self.dir)
