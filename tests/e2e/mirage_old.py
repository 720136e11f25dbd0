# SPDX-License-Identifier: BSD-2-Clause
"""mirage_old.py FILE...: reads each as mirage-trace-viewer does, by the rules of its format and nothing of ours. Prints how many
promises there are and how many of them are open. Exits 1 at input that ends that viewer. This is an id that is created after it was
named, a promise that becomes itself, or an event or packet that makes no sense."""
import struct
import sys

UUID = bytes.fromhex("05883b8d521a487bb397456ab150680c")
TOP = 2**64 - 1
TEXT, BYTE = "text", "byte"
# Behind time and id: numbers of 64 bits, then what is there besides.
PAYLOAD = {0: (2, BYTE), 1: (2, None), 2: (2, None), 3: (2, TEXT), 4: (2, None), 5: (1, TEXT), 6: (2, TEXT), 7: (1, None),
           8: (1, None), 9: (2, None), 10: (2, None), 11: (2, TEXT), 12: (2, None), 13: (2, None)}


def packets(data):
    at, found = 0, []
    while at < len(data):
        magic, uuid, size, count, content = struct.unpack_from("<I16sIHI", data, at)
        assert magic == 0xC1FC1FC1 and uuid == UUID, f"no packet at {at}"
        assert size % 8 == 0 and 240 <= content <= size and at + size // 8 <= len(data), f"the packet at {at}: {size}, {content}"
        found.append((count, at, content // 8))
        at += size // 8
    # The oldest one is where the counter leaps, by more than half of its range.
    first = next((i for i in range(1, len(found)) if (found[i][0] - found[i - 1][0]) % 65536 > 0x8000), 0)
    base = found[first][0]
    return sorted(found, key=lambda p: (p[0] - base) % 65536)


def events(data):
    before = 0
    for _, start, content in packets(data):
        at, end = start + 30, start + content
        while at < end:
            time, kind = struct.unpack_from("<QB", data, at)
            numbers, more = PAYLOAD[kind]
            fields = struct.unpack_from(f"<{numbers}Q", data, at + 9)
            at += 9 + 8 * numbers
            if more == TEXT:
                at = data.index(0, at) + 1
            elif more == BYTE:
                at += 1
            assert at <= end and time >= before, f"the event before {at}: it ends behind {end}, or {time} is before {before}"
            before = time
            yield kind, fields


def model(data):
    became, ended, known = {}, set(), {TOP}

    def thread(i):
        known.add(i)
        for _ in range(len(became) + 1):
            if i not in became:
                return i
            i = became[i]
        raise AssertionError(f"{i:#x} becomes itself round about")

    for kind, fields in events(data):
        if kind == 8:
            continue
        who = thread(fields[0])
        if kind == 0:
            assert fields[1] not in known, f"{fields[1]:#x} is created, and was there before"
            known.add(fields[1])
        elif kind in (2, 3):
            ended.add(thread(fields[1]))
        elif kind == 4:
            other = thread(fields[1])
            assert who != other, f"{who:#x} becomes itself"
            ended.add(who)
            became[who] = other
    return len(known) - 1, len(known - ended) - 1


for name in sys.argv[1:]:
    with open(name, "rb") as f:
        print(*model(f.read()))
