# SPDX-License-Identifier: BSD-2-Clause
"""What a page that is served costs: the index of calls, and replies for what a screen shows of them."""
import os
import subprocess

from common import bench


@bench
def served(args):
    """CPU time, INTERVALS=N of them in 24 rows (default 10 million; 100 million take 4 GB), 1600 pixels."""
    print(subprocess.run([f"{args.build}/bench/lod", os.environ.get("INTERVALS", "10000000")], check=True,
                         capture_output=True, text=True).stdout, end="")
