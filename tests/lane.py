#!/usr/bin/python3 -IS
# SPDX-License-Identifier: BSD-2-Clause
"""lane.py DIR COMMAND...: runs one test, and says last on stdout what it cost.

With DIR, the test has a CPU to itself among the tests that are run so: it takes the lock of a free one
in DIR and stays there. So tests of guests run side by side, one a CPU, and do not slow each other down
more than one alone would be. With - for DIR it runs anywhere."""
import fcntl
import os
import resource
import signal
import subprocess
import sys
import time


def lane_take(folder):
    """Waits for a CPU that no other test has; the lock stays as long as this process."""
    cpus = sorted(os.sched_getaffinity(0))
    locks = [os.open("%s/cpu%d" % (folder, cpu), os.O_CREAT | os.O_RDWR, 0o600) for cpu in cpus]
    while True:
        for cpu, lock in zip(cpus, locks):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            os.sched_setaffinity(0, {cpu})
            return
        time.sleep(0.05)


def main(argv):
    if argv[1] != "-":
        lane_take(argv[1])
    child = subprocess.Popen(argv[2:])
    for sig in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sig, lambda number, _: child.send_signal(number))
    status = child.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("# cpu %.2f s" % (used.ru_utime + used.ru_stime), flush=True)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv))
