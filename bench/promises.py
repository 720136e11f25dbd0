# SPDX-License-Identifier: BSD-2-Clause
"""The cost of an event of threads and promises in the guest: ours, LTTng's, and a function's entry."""
import os
import statistics
import subprocess
import tempfile
import time

from common import Skip, bench, need


class Lttng:
    """A session daemon of our own unless there is one, recording this benchmark's tracepoints."""

    def __enter__(self):
        need("lttng")
        self.daemon = None
        self.dir = tempfile.mkdtemp(prefix="uniscope-lttng-")
        self.env = dict(os.environ, LTTNG_HOME=self.dir)
        if not self.lttng("list"):
            self.daemon = subprocess.Popen(
                [need("lttng-sessiond"), "--no-kernel"], env=self.env, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(100):
                if self.lttng("list"):
                    break
                time.sleep(0.1)
            else:
                self.__exit__()
                raise Skip("no session daemon of LTTng answers")
        # A flight recorder as ours: the oldest is overwritten, nothing goes to the disk.
        for argv in (["create", "uniscope-bench", "--snapshot", "--output", self.dir],
                     ["enable-channel", "-u", "ring", "-s", "uniscope-bench", "--overwrite",
                      "--subbuf-size", "1M", "--num-subbuf", "4"],
                     ["enable-event", "-u", "uniscope_bench:*", "-s", "uniscope-bench", "-c", "ring"],
                     ["start", "uniscope-bench"]):
            if not self.lttng(*argv):
                self.__exit__()
                raise Skip(f"lttng {' '.join(argv)} failed")
        return self

    def lttng(self, *argv):
        return subprocess.run(["lttng", "--no-sessiond", *argv], env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def __exit__(self, *_):
        self.lttng("destroy", "uniscope-bench")
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait()
        subprocess.run(["rm", "-rf", self.dir], check=True)


def one(args, env=None):
    lines = subprocess.run([f"{args.build}/bench/promises", "400"], check=True, env=env,
                           capture_output=True, text=True).stdout.split("\n")
    rows = [line.split(",") for line in lines[1:-1]]
    return float(lines[0].split()[1]), {name: (float(a), float(b)) for name, a, b in rows}


@bench
def promises(args):
    """Create, resolve and switch, beside LTTng-UST and an entry of a function, in one process."""
    try:
        with Lttng() as peer:
            runs = [one(args, peer.env) for _ in range(args.runs)]
    except Skip as e:
        print(f"without LTTng: {e}")
        runs = [one(args) for _ in range(args.runs)]
    clock = statistics.median(c for c, _ in runs)
    print(f"ns an event: median of {args.runs} runs of the quickest slices (of the lower quartiles);"
          f" the clock (rdtsc) is {clock:.1f} ns")
    for name in runs[0][1]:
        best, quartile = (statistics.median(r[name][i] for _, r in runs) for i in (0, 1))
        ratio = ""
        if f"LTTng {name}" in runs[0][1]:
            ratios = sorted(r[f"LTTng {name}"][0] / r[name][0] for _, r in runs)
            ratio = (f"   LTTng / ours {statistics.median(ratios):.1f}"
                     f" ({ratios[0]:.1f} to {ratios[-1]:.1f})")
        print(f"    {name:20} {best:6.2f} ({quartile:.2f}){ratio}")
