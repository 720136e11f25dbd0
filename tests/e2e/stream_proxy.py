#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A bad line between a profiler and a guest's port.

usage: stream_proxy.py LISTEN-SOCKET GUEST-SOCKET HOW N

Serves one connection, then ends. HOW, of the bytes that the guest sends:
  cut     closes the line after N of them
  hush    sends no more after N of them, and stays
  garble  spoils one in N
  lose    leaves one in N out
  slow    N bytes at a time, a hundred times a second
  noise   N bytes of noise first, and after each piece
  tty     not a bad one, but LISTEN-SOCKET is a terminal (N: nothing), for one profiler after another
"""
import os
import pty
import random
import select
import socket
import sys
import time


class Terminal:
    """The side of a pseudo terminal that the profiler does not have, used like a socket."""

    def __init__(self, at):
        # The other side stays open here, or this one would hang up between two profilers.
        self.fd, self.kept = pty.openpty()
        os.symlink(os.ttyname(self.kept), at)

    def fileno(self):
        return self.fd

    def recv(self, size):
        return os.read(self.fd, size)

    def sendall(self, data):
        while data:
            data = data[os.write(self.fd, data):]


def spoil(how, n, data, seen):
    if how == 'noise':
        return data + os.urandom(n)
    out = bytearray()
    for i, byte in enumerate(data):
        hit = (seen + i) % n == n - 1
        if hit and how == 'lose':
            continue
        out.append(byte ^ (1 << random.randrange(8)) if hit and how == 'garble' else byte)
    return bytes(out)


def forward(host, guest, how, n):
    seen = 0
    while True:
        ready = select.select([host, guest], [], [], 60)[0]
        if not ready:
            return
        if host in ready:
            data = host.recv(4096)
            if not data:
                return
            guest.sendall(data)
        if guest not in ready:
            continue
        data = guest.recv(n if how == 'slow' else 4096)
        if not data:
            return
        left = max(0, n - seen)
        if how in ('cut', 'hush'):
            host.sendall(data[:left])
            if how == 'cut' and len(data) >= left:
                return
        elif how == 'tty':
            host.sendall(data)
        elif how == 'slow':
            host.sendall(data)
            time.sleep(0.01)
        else:
            host.sendall(spoil(how, n, data, seen))
        seen += len(data)


def main():
    at, to, how, n = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    listener = socket.socket(socket.AF_UNIX)
    if os.path.lexists(at):
        os.unlink(at)
    guest = socket.socket(socket.AF_UNIX)
    guest.connect(to)
    if how == 'tty':
        host = Terminal(at)
    else:
        listener.bind(at)
        listener.listen(1)
        listener.settimeout(60)
        host = listener.accept()[0]
    random.seed(n)
    try:
        if how == 'noise':
            host.sendall(os.urandom(n))
        forward(host, guest, how, n)
    except OSError:
        pass  # the profiler went away


main()
