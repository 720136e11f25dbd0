# SPDX-License-Identifier: BSD-2-Clause
"""mirage_ring.py FILE: writes a ring of mirage-profile with nothing wrong and four things in doubt. Two workers begin to wait for
something that was signalled while nobody waited, and a third for what no thread signalled. That one is ready while another is
silent."""
import struct
import sys

UUID = bytes.fromhex("05883b8d521a487bb397456ab150680c")
NOBODY = 0xFFFFFFFFFFFFFFFF
CREATE, LABEL, SWITCH, TRY_READ, NOTIFY = 0, 5, 7, 10, 13
THREAD, CONDITION = 19, 8


def event(ms, number, *fields, text=None, kind=None):
    return struct.pack("<QB", ms * 1000000, number) + b"".join(struct.pack("<Q", f) for f in fields) + \
        (b"" if text is None else text.encode() + b"\0") + (b"" if kind is None else bytes([kind]))


def packet(events, count=0):
    body = b"".join(events)
    bits = 8 * (30 + len(body))
    return struct.pack("<I", 0xC1FC1FC1) + UUID + struct.pack("<IHI", bits, count, bits) + body


def doubts():
    yield from (event(0, CREATE, NOBODY, i, kind=k) for i, k in ((1, THREAD), (2, THREAD), (3, THREAD), (4, THREAD), (8, CONDITION),
        (9, CONDITION)))
    yield from (event(0, LABEL, i, text=t) for i, t in ((1, "worker"), (2, "other worker"), (3, "hog"), (4, "<b>ready"), (8, "work"), (9, "device")))
    yield event(1, SWITCH, 4)
    yield event(1, TRY_READ, 4, 8)
    yield event(2, SWITCH, 3)
    yield event(2, NOTIFY, 4, 8)
    yield event(302, NOTIFY, NOBODY, 8)
    yield event(303, SWITCH, 4)
    yield event(304, SWITCH, 1)
    yield event(304, TRY_READ, 1, 8)
    yield event(305, SWITCH, 2)
    yield event(305, TRY_READ, 2, 8)
    yield event(306, SWITCH, NOBODY)
    yield event(307, NOTIFY, NOBODY, 9)
    yield event(308, SWITCH, 4)
    yield event(308, TRY_READ, 4, 9)
    yield event(309, SWITCH, NOBODY)


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as f:
        f.write(packet(doubts()))
