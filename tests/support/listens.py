#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""listens.py PID: exit 0 if the process, with its children, listens on TCP, and on loopback alone, as
/proc says."""
import os
import re
import sys

LISTEN = "0A"
LOOPBACK6 = "00000000000000000000000001000000"


def family(pid):
    """The process and all below it."""
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % entry, encoding="utf-8", errors="replace") as f:
                parents[entry] = f.read().rpartition(")")[2].split()[1]
        except OSError:
            continue
    found = {pid}
    while True:
        more = {p for p, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def sockets(pid):
    """None of a process that has ended meanwhile."""
    inodes = set()
    try:
        fds = os.listdir("/proc/%s/fd" % pid)
    except FileNotFoundError:
        return inodes
    for fd in fds:
        try:
            m = re.fullmatch(r"socket:\[(\d+)\]", os.readlink("/proc/%s/fd/%s" % (pid, fd)))
        except OSError:
            continue
        if m:
            inodes.add(m[1])
    return inodes


def is_loopback(address):
    return address == LOOPBACK6 if len(address) == 32 else address.endswith("7F")


def main():
    own = set().union(*map(sockets, family(sys.argv[1])))
    found = []
    for table in ("tcp", "tcp6"):
        try:
            with open("/proc/%s/net/%s" % (sys.argv[1], table), encoding="ascii") as f:
                rows = [line.split() for line in f.readlines()[1:]]
        except OSError:
            continue
        found += [r[1].split(":")[0] for r in rows if r[3] == LISTEN and r[9] in own]
    print("listens on", " ".join(found) or "nothing")
    return 0 if found and all(map(is_loopback, found)) else 1


if __name__ == "__main__":
    sys.exit(main())
