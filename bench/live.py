# SPDX-License-Identifier: BSD-2-Clause
"""A ring that is overwritten while it is read: is each event there, or counted as lost?"""
import subprocess

from common import bench


@bench
def live(args):
    """A minute each: at full speed into a small and a large ring, and a million events a second."""
    for what, rate, ring in (("full speed, 1 MiB", 0, 1), ("full speed, 64 MiB", 0, 64),
                             ("a million a second, 64 MiB", 1000000, 64)):
        out = subprocess.run([f"{args.build}/bench/live", "60", str(rate), str(ring)], check=False,
                             capture_output=True, text=True)
        print(f"{what}: {out.stdout}{out.stderr}", end="")
