# SPDX-License-Identifier: BSD-2-Clause
"""The cost of recording VM exits: a guest that does nothing but leave, a known number of times."""
import glob
import json
import os
import shutil
import subprocess
import tempfile
import time

from common import ROOT, Skip, bench, need, shell
from sampler import need_sampler, read, spread

PER_ROUND = 12100  # of lab/apps/ports.c: port writes and reads, MMIO


class Leaver:
    """The ports guest: waits for a byte, leaves so many rounds, and ends."""

    def __init__(self, args, rounds):
        need("qemu-system-x86_64")
        image = f"{args.build}/lab/ports-gcc-fp.elf"
        if not os.path.exists(image):
            raise Skip(f"{image} is not built")
        self.dir = tempfile.mkdtemp(prefix="uniscope-bench-")
        self.argv = [f"{ROOT}/lab/boot", "--accel", "kvm", "--append", f"wait=1 rounds={rounds}",
                     image]

    def __enter__(self):
        with open(f"{self.dir}/console", "wb") as console:
            self.p = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=console,
                                      stderr=subprocess.STDOUT)
        for _ in range(300):
            if "lab: waiting" in read(f"{self.dir}/console"):
                return self
            time.sleep(0.1)
        self.__exit__()
        raise Skip("the guest did not start")

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()
        self.p.stdin.close()
        shutil.rmtree(self.dir)

    def work(self):
        """CPU seconds of its vCPU's thread, which does all that an exit makes the host do, and wall
        seconds."""
        tasks = glob.glob(f"/proc/{self.p.pid}/task/*")
        # Waiting, it looks at its serial port all the time: the vCPU's thread is the busy one.
        task = max(tasks, key=lambda t: int(read(f"{t}/schedstat").split()[0]))
        first, begin = int(read(f"{task}/schedstat").split()[0]), time.monotonic()
        last = first
        self.p.stdin.write(b"x")
        self.p.stdin.flush()
        while "lab: done" not in read(f"{self.dir}/console"):
            if self.p.poll() is not None:
                break
            try:
                last = int(read(f"{task}/schedstat").split()[0])
            except OSError:
                break  # it ended
            time.sleep(0.002)
        return (last - first) / 1e9, time.monotonic() - begin


def plain(args, rounds):
    with Leaver(args, rounds) as g:
        return g.work()[0]


def recorded(args, rounds, every):
    """CPU seconds, exits a second and the session's statistics."""
    with Leaver(args, rounds) as g:
        session = f"{g.dir}/s.uniscope"
        argv = [args.uniscope, "record", f"kvm:pid={g.p.pid},via=bpf", f"--exits={every}",
                "-F", "0", "-d", "600", "-q", "-o", session]
        with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as p:
            while not glob.glob(f"{session}/guest-0/exits-vcpu*"):
                if p.poll() is not None:
                    raise Skip(f"{shell(argv)} failed")
                time.sleep(0.05)
            cpu, wall = g.work()
            if p.wait() != 0:
                raise Skip(f"{shell(argv)} failed")
        with open(f"{session}/session.json") as f:
            st = json.load(f)["statistics"]
        return argv, cpu, rounds * PER_ROUND / wall, st


@bench
def exits(args, rounds=20):
    """Recording each VM exit, or one in 100: how many a second, and what one costs the guest."""
    need_sampler(args)
    nr = rounds * PER_ROUND
    print(f"a guest that leaves {nr:,} times; CPU time of its vCPU's thread, beside a run without a "
          "profiler")
    for every in (1, 100):
        slow, cost, rate, lost, argv = [], [], [], 0, []
        for _ in range(args.runs):
            alone = plain(args, rounds)
            argv, cpu, a_second, st = recorded(args, rounds, every)
            slow.append(100 * (cpu / alone - 1))
            cost.append(1e6 * (cpu - alone) / nr)
            rate.append(a_second)
            lost += st["exits_lost"]
            if st["exits"] < nr:
                raise Skip(f"only {st['exits']} of {nr} exits were recorded")
        print(f"    {shell(argv)}\n        {spread(rate, '%.0f')} exits a second recorded, {lost} "
              f"lost; {spread(cost)} us each, guest slower by {spread(slow, '%.1f')} %; without it "
              f"{1e6 * alone / nr:.1f} us each")
    print()
