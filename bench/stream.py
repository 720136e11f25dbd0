# SPDX-License-Identifier: BSD-2-Clause
"""A live trace at full rate: is every event there? A native program that links the tracer makes ten million events a second for ten
seconds into a ring of 64 MiB. It counts its own calls; `trace record` reads."""
import json
import os
import shutil
import subprocess
import tempfile
import time

from common import bench

EVENTS_A_SECOND = 10_000_000
SECONDS = 10
CALLS_A_ROUND = 267  # of work_round() in tests/e2e/proctraced_work.c


def once(args, d):
    program = f"{args.build}/tests/e2e/proctraced"
    calls = EVENTS_A_SECOND // 2
    with subprocess.Popen([program, str(calls * SECONDS // CALLS_A_ROUND), "64", str(calls)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p, \
            open(f"{d}/said", "w+") as said:
        assert p.stdout.readline() == "ready\n"
        with subprocess.Popen([args.uniscope, "trace", "record", f"proc:pid={p.pid}", "-e", program, "-d", "0",
                               "-o", f"{d}/s.uniscope", "--overwrite"], stderr=said) as recorder:
            while "places are traced" not in open(f"{d}/said").read():
                time.sleep(0.05)
            p.stdin.write("\n")
            p.stdin.flush()
            lines = []
            while not lines or lines[-1] != "done\n":
                lines.append(p.stdout.readline())
            recorder.terminate()
            if recorder.wait() != 0:
                raise RuntimeError(open(f"{d}/said").read())
        p.stdin.close()
    took = float(lines[0].split()[1])
    truth = {line.split()[0]: int(line.split()[1]) for line in lines[1:-1]}
    report = json.loads(subprocess.run([args.uniscope, "trace", "report", "--json", f"{d}/s.uniscope"],
                                       check=True, capture_output=True, text=True).stdout)
    got = {f["function"]: f["calls"] for f in report["functions"]}
    events = 2 * sum(truth.values())
    print(f"{events / 1e6:.1f} M events in {took:.2f} s ({events / took / 1e6:.2f} M a second): lost {report['lost']},"
          f" {'each call is there' if got == truth else f'{got} recorded of {truth}'}", flush=True)


@bench
def stream(args):
    d = tempfile.mkdtemp(prefix="uniscope-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        for _ in range(args.runs):
            once(args, d)
    finally:
        shutil.rmtree(d)
