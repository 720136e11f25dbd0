#!/usr/bin/python3 -IS
# SPDX-License-Identifier: BSD-2-Clause
"""lane.py DIR COMMAND...: runs one test, and prints its cost last on stdout. Behind each check of TAP that took a second or more
comes a remark with the time.

With DIR, the test has a CPU to itself among the tests that run so. It takes the lock of a free one in DIR and stays there. So tests
of guests run side by side, one a CPU, and do not slow each other down more than one alone would be. With - for DIR it runs
anywhere.

Meson ends a test that takes too long by SIGTERM, and half a second later by SIGKILL. In between, it ends all that the test left
running and waits for it, so that the cost is known, and counts."""
import ctypes
import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
import time

SUBREAPER = 36  # of prctl()
PATIENCE = 0.2  # seconds that a test has to end by itself


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


def descendants():
    """All processes below this one."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid, encoding="latin-1") as f:
                parent = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended
        children.setdefault(parent, []).append(int(pid))
    found = children.get(os.getpid(), [])
    for pid in found:  # which grows
        found += children.get(pid, [])
    return found


def end_all(*_):
    for pid in descendants():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def reap(wait):
    """Those who lost their parents came to us: what they cost counts as well."""
    try:
        while os.waitpid(-1, 0 if wait else os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def relay(pipe):
    """Line by line, as they come."""
    last = time.monotonic()
    for line in pipe:
        if line.startswith((b"ok ", b"not ok ")):
            now = time.monotonic()
            if now - last >= 1:
                line = line.rstrip(b"\n") + b"\n# took %.1f s\n" % (now - last)
            last = now
        while line:
            line = line[os.write(1, line):]


def session_weigh():
    """Meson starts each test in a session of its own. Linux with autogroups weighs sessions against each other. A nice
    value counts among the processes of one. So the session gets the value that this process has."""
    try:
        with open("/proc/self/autogroup", "w", encoding="latin-1") as f:
            f.write(str(os.getpriority(os.PRIO_PROCESS, 0)))
    except OSError:
        pass  # there are none, or this one may not be changed so soon again


def main(argv):
    if argv[1] != "-":
        lane_take(argv[1])
    session_weigh()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    told = []
    child = subprocess.Popen(argv[2:], stdout=subprocess.PIPE)
    said = threading.Thread(target=relay, args=(child.stdout,), daemon=True)
    said.start()

    def tell(number, _):
        told.append(number)
        child.send_signal(number)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)

    signal.signal(signal.SIGALRM, end_all)
    for sig in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sig, tell)
    status = child.wait()
    if told:
        end_all()
    reap(bool(told))
    said.join(PATIENCE)  # a process that outlived the test may have its stdout
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.write(1, b"# cpu %.2f s\n" % (used.ru_utime + used.ru_stime))
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv))
