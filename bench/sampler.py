# SPDX-License-Identifier: BSD-2-Clause
"""Benchmarks of the sampler in the host's kernel, against our own pausing way and other tools."""
import glob
import json
import os
import shutil
import statistics
import subprocess
import threading
import time

from common import Guest, Skip, bench, need, shell

# Thresholds of the guest's gaps: a jump counts from so many times 1.5 usual turns on.
CLASSES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)


def need_sampler(args):
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise Skip("/dev/kvm cannot be used")
    ways = json.loads(subprocess.run([args.uniscope, "doctor", "--json"], capture_output=True,
                                     text=True).stdout)["ways"]
    way = next(w for w in ways if w["name"] == "kvm-bpf")
    if not way["ok"]:
        raise Skip(way["advice"])


def read(path):
    with open(path) as f:
        return f.read()


class Watched:
    """The gaps guest, and what it says of itself on its console."""

    def __init__(self, args):
        self.guest = Guest(args, "kvm", "gaps-gcc-fp", "every_ms=100 rounds=1000000")

    def __enter__(self):
        self.guest.__enter__()
        try:
            self.find_thread()
        except BaseException:
            self.guest.__exit__()
            raise
        return self

    def find_thread(self):
        self.pid = self.guest.p.pid
        # The vCPU's thread is the busy one.
        time.sleep(0.5)
        task = max(glob.glob(f"/proc/{self.pid}/task/*"),
                   key=lambda t: int(read(f"{t}/schedstat").split()[0]))
        self.tid = int(os.path.basename(task))
        self.schedstat = f"{task}/schedstat"

    def __exit__(self, *a):
        self.guest.__exit__(*a)

    def last_line(self):
        """The newest whole line, and how long its thread had waited for a CPU by then."""
        console = f"{self.guest.dir}/console"
        with open(console, "rb") as f:
            f.seek(0, os.SEEK_END)
            old = f.tell()
        while True:  # until the next line is there
            time.sleep(0.002)
            with open(console, "rb") as f:
                f.seek(max(0, old - 200))
                lines = f.read().split(b"\n")[:-1]
                if os.path.getsize(console) > old and lines and lines[-1].startswith(b"gaps:"):
                    waited = int(read(self.schedstat).split()[1])
                    return [int(x) for x in lines[-1].split()[1:]], waited

    def during(self, what, seconds):
        """Runs `what` (a function of the pid) for so long: what the guest saw meanwhile."""
        with what(self):
            time.sleep(0.7)  # attached
            (a, wait_a), begin = self.last_line(), time.monotonic()
            while time.monotonic() < begin + seconds:
                time.sleep(0.05)
            b, wait_b = self.last_line()
        ms = b[0] - a[0]
        return {
            "gaps": {k: (y - x) * 1000 / ms for k, x, y in zip(CLASSES, a[4:], b[4:])},
            # Turns in the time that the host did not give to others; a stop is not given to others.
            "speed": (b[1] - a[1]) / max(ms - (wait_b - wait_a) / 1e6, 1),
            "threshold_us": a[2] / 1000,
        }


class Nothing:
    """No profiler."""

    argv = ["(none)"]

    def __init__(self, *_):
        self.rate, self.cpu = 0, 0

    def __call__(self, guest):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Record(Nothing):
    """uniscope record, by one way or the other."""

    def __init__(self, args, via, hz, seconds):
        super().__init__()
        self.args, self.via, self.hz, self.seconds = args, via, hz, seconds

    def __enter__(self):
        self.session = f"{self.guest.guest.dir}/s.uniscope"
        self.argv = [self.args.uniscope, "record", f"kvm:pid={self.guest.pid},via={self.via}", "-F",
                     str(self.hz), "-d", str(self.seconds + 2), "-q", "-o", self.session,
                     "--overwrite"]
        self.p = subprocess.Popen(self.argv, stderr=subprocess.DEVNULL)
        return self

    def __call__(self, guest):
        self.guest = guest
        return self

    def __exit__(self, *_):
        if self.p.wait() != 0:
            raise Skip(f"{shell(self.argv)} failed")
        with open(f"{self.session}/session.json") as f:
            st = json.load(f)["statistics"]
        seconds = (st["end_ns"] - st["begin_ns"]) / 1e9
        self.rate = st["state"]["running"] / seconds
        self.cpu = (st["own_cpu_ns"] + st.get("host_ns", 0)) / 1e9 / seconds
        self.cost_us = st.get("host_ns", 0) / max(st.get("host_runs", 0), 1) / 1e3


class Loop(Nothing):
    """A command again and again, as people do with gdb."""

    def __init__(self, argv):
        super().__init__()
        self.argv = argv

    def __enter__(self):
        self.stop, self.n = threading.Event(), 0
        self.thread = threading.Thread(target=self.run)
        self.begin = time.monotonic()
        self.thread.start()
        return self

    def run(self):
        while not self.stop.is_set():
            subprocess.run(self.argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.n += 1

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        self.rate = self.n / (time.monotonic() - self.begin)


class PerfKvm(Nothing):
    """perf kvm: instruction pointers only, no call chains of the guest."""

    def __init__(self, perf, hz):
        super().__init__()
        self.perf, self.hz = perf, hz

    def __call__(self, guest):
        self.guest = guest
        self.data = f"{guest.guest.dir}/perf.data"
        self.argv = [self.perf, "kvm", "--host", "--guest", "record", "-q", "-e", "cpu-clock", "-F",
                     str(self.hz), "-t", str(guest.tid), "-o", self.data]
        return self

    def __enter__(self):
        self.begin = time.monotonic()
        self.p = subprocess.Popen(self.argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        if self.p.poll() is not None:
            raise Skip(f"{shell(self.argv)} does not run here")
        self.p.terminate()
        self.p.wait()
        seconds = time.monotonic() - self.begin
        out = subprocess.run([self.perf, "script", "-F", "ip", "-i", self.data], capture_output=True,
                             text=True).stdout
        self.rate = len(out.splitlines()) / seconds


def median(values):
    return statistics.median(values)


def spread(values, form="%.2f"):
    return f"{form} (from {form} to {form})" % (median(values), min(values), max(values))


@bench
def gaps(args, seconds=6):
    """Gaps as the guest itself sees them: jumps of its clock, with and without a profiler at 997
    Hz."""
    need_sampler(args)
    tools = [("no profiler", lambda: Nothing()),
             ("kernel", lambda: Record(args, "bpf", 997, seconds)),
             ("pausing", lambda: Record(args, "stop", 997, seconds)),
             ("no profiler again", lambda: Nothing())]
    seen = {name: [] for name, _ in tools}
    with Watched(args) as w:
        for _ in range(args.runs):
            for name, make in tools:
                tool = make()
                seen[name].append(w.during(tool, seconds))
                tool.name = shell(tool.argv)
                if len(seen[name]) == 1:
                    print(f"    {name}: {tool.name}")
    print(f"gaps that a guest sees, a second, median of {args.runs} runs of {seconds} s; one "
          f"threshold is {seen['kernel'][0]['threshold_us']:.1f} us")
    print("    of at least  " + "".join(f"{n:>19}" for n in seen))
    for k in CLASSES:
        row = [median([r["gaps"][k] for r in seen[n]]) for n in seen]
        print(f"    {k:4} thresholds " + "".join(f"{v:19.1f}" for v in row))
    verdict(seen)


def verdict(seen):
    """Pausing against the kernel, and the kernel against no profiler, in the same rounds. The class
    is the one in which the two ways differ most beyond what there is anyway."""
    def total(name, k):
        return sum(r["gaps"][k] for r in seen[name])

    def excess(k):
        return total("pausing", k) - max(total("no profiler", k), total("no profiler again", k))

    k = max(CLASSES, key=excess)
    base = [max(a["gaps"][k], b["gaps"][k])
            for a, b in zip(seen["no profiler"], seen["no profiler again"])]
    ours = [r["gaps"][k] for r in seen["kernel"]]
    theirs = [r["gaps"][k] for r in seen["pausing"]]
    print(f"    at {k} thresholds, a second: no profiler (larger of two) {spread(base)}, kernel "
          f"{spread(ours)}, pausing {spread(theirs)}")
    print(f"    pausing / kernel {spread([b / max(a, 0.1) for a, b in zip(ours, theirs)])}; kernel / "
          f"no profiler {spread([a / max(b, 0.1) for a, b in zip(ours, base)])}\n")


@bench
def slowdown(args, seconds=4):
    """Samples a second that are really made, and how much slower the guest gets."""
    need_sampler(args)
    with Watched(args) as w:
        for hz in (99, 997, 5000):
            measure(args, w, seconds, [(f"kernel {hz} Hz", Record(args, "bpf", hz, seconds)),
                                       (f"pausing {hz} Hz", Record(args, "stop", hz, seconds))])
        gdb = shutil.which("gdb")
        if gdb:
            measure(args, w, seconds, [("gdb in a loop", Loop(
                [gdb, "-nx", "-batch", "-ex", f"target remote {w.guest.sock}", "-ex", "bt", "-ex",
                 "detach", w.guest.image]))])
        else:
            print("    gdb in a loop: skipped: gdb is not installed")
        perf = shutil.which("perf")
        for hz in (997, 5000) if perf else ():
            try:
                measure(args, w, seconds, [(f"perf kvm {hz} Hz", PerfKvm(perf, hz))])
            except Skip as e:
                print(f"    perf kvm: skipped: {e}")
        if not perf:
            print("    perf kvm: skipped: perf is not installed")
    print()


def measure(args, w, seconds, tools):
    """Each tool beside a run without one; the ratio of such a pair counts."""
    slow = {name: [] for name, _ in tools}
    rate = {name: [] for name, _ in tools}
    cpu = {name: [] for name, _ in tools}
    for _ in range(args.runs):
        for name, tool in tools:
            plain = w.during(Nothing(), seconds)["speed"]
            slow[name].append(100 * (1 - w.during(tool, seconds)["speed"] / plain))
            rate[name].append(tool.rate)
            cpu[name].append(100 * tool.cpu)
    for name, tool in tools:
        print(f"    {name}: {shell(tool.argv)}")
        print(f"        {spread(rate[name], '%.1f')} samples a second of the vCPU, guest slower by "
              f"{spread(slow[name], '%.1f')} %"
              + (f", host CPU {spread(cpu[name], '%.2f')} % of one" if any(cpu[name]) else ""))


@bench
def cost(args, seconds=5):
    """CPU time of the kernel's part for each sample, by its own run-time statistics."""
    need_sampler(args)
    print("cost of a sample in the kernel (BPF run-time statistics)")
    for image, append in (("shares-gcc-fp", ""), ("deep-gcc-fp", "depth=20"),
                          ("deep-gcc-fp", "depth=100")):
        with Guest(args, "kvm", image, append) as g:
            costs, depth, argv = [], 0, []
            for _ in range(args.runs):
                session = f"{g.dir}/s.uniscope"
                argv = [args.uniscope, "record", f"kvm:pid={g.p.pid},via=bpf", "-F", "997", "-d",
                        str(seconds), "-q", "-o", session, "--overwrite"]
                subprocess.run(argv, check=True, stderr=subprocess.DEVNULL)
                with open(f"{session}/session.json") as f:
                    st = json.load(f)["statistics"]
                if not st["host_runs"]:
                    raise Skip("the kernel keeps no run-time statistics for us (CAP_SYS_ADMIN)")
                costs.append(st["host_ns"] / st["host_runs"] / 1e3)
                depth = mean_depth(args, session)
        print(f"    {shell(argv)}\n        {image} {append}: mean depth {depth:.1f}, "
              f"{spread(costs)} us per run of the program")
    print()


def mean_depth(args, session):
    out = subprocess.run([args.uniscope, "export", "--no-inline", session, "-f", "folded", "-o", "-"], check=True,
                         capture_output=True, text=True).stdout
    frames = samples = 0
    for line in out.splitlines():
        stack, _, n = line.rpartition(" ")
        names = [f for f in stack.split(";") if not f.startswith("[")]
        frames, samples = frames + len(names) * int(n), samples + int(n)
    return frames / max(samples, 1)


@bench
def two(args, seconds=60):
    """Two guests at once at 99 Hz: CPU of the profiler, attaching and writing included."""
    need_sampler(args)
    need("qemu-system-x86_64")
    with Guest(args, "kvm", "shares-gcc-fp") as a, Guest(args, "kvm", "deep-gcc-fp") as b:
        argv = [args.uniscope, "record", f"kvm:pid={a.p.pid},via=bpf", f"kvm:pid={b.p.pid},via=bpf",
                "-F", "99", "-d", str(seconds), "-q", "-o", f"{a.dir}/two.uniscope"]
        before = os.times()
        subprocess.run(argv, check=True)
        after = os.times()
        cpu = (after.children_user - before.children_user
               + after.children_system - before.children_system)
        with open(f"{a.dir}/two.uniscope/session.json") as f:
            st = json.load(f)["statistics"]
        print(f"two guests for {seconds} s at 99 Hz\n    {shell(argv)}\n    profiler's own CPU "
              f"{100 * cpu / seconds:.2f} % of one, in the kernel's part "
              f"{st['host_ns'] / 1e7 / seconds:.3f} %; {st['samples']} samples\n")
