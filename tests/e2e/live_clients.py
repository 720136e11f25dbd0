# SPDX-License-Identifier: BSD-2-Clause
"""live_clients.py URL: 200 clients at once of a page that is served, some of which never read, and some
of which go in the middle. Each is answered, with the page or with "not now"."""
import collections
import re
import socket
import sys
import time

host, port, path = re.fullmatch(r"http://([^:/]+):(\d+)(/\w+/)", sys.argv[1]).groups()
number = 200


def ask(what):
    s = socket.create_connection((host, int(port)), timeout=60)
    s.sendall(f"GET {path}{what} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    return s


def status(s):
    head = b""
    while b"\r\n" not in head:
        data = s.recv(100)
        if not data:
            return "closed"
        head += data
    return head.split()[1].decode()


def count(what):
    clients = [ask(what) for _ in range(number)]
    got = collections.Counter(status(s) for s in clients)
    print(what, dict(got))
    return clients, got


# They stay: as many are told as there is room for, the others are refused.
watchers, got = count("events")
assert got["200"] > 10 and got["200"] + got["503"] == number, got
# Others are served meanwhile, although these read nothing more than their first bytes.
slow, got = count("data")
assert got["200"] == number, got
for s in slow[::2]:
    s.close()
for s in watchers:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    s.close()
# A request that does not end, and one that is none.
half = socket.create_connection((host, int(port)))
half.sendall(b"GET " + path.encode() + b"data HTTP/1.1\r\nHost: loc")
bad = socket.create_connection((host, int(port)), timeout=60)
bad.sendall(b"\0\1\2 nonsense\r\n\r\n" + b"A" * 100000)
pages, got = count("")
assert got["200"] == number, got
for s in slow + pages:
    s.close()
# More of those that ask for nothing, or never end asking, than there is room for.
idle = []
for i in range(600):
    s = socket.create_connection((host, int(port)), timeout=60)
    s.sendall([b"", b"GET " + path.encode() + b"data HTTP/1.1\r\nHost: loc"][i % 2])
    idle.append(s)
began = time.monotonic()
assert status(ask("data")) == "200"
took = time.monotonic() - began
print(f"beside {len(idle)} others: {took:.3f} s")
assert took < 15  # those that ask for nothing are given up after 30 s
