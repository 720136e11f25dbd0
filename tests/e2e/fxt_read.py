#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""fxt_read.py FILE [samples|promises]: prints a Fuchsia trace, by the format's description. A call is "THREAD NAME BEGIN END", an
instant "THREAD NAME TIME", a switch "cpuN TIME OUT IN". A sample is "LANE<TAB>NAME<TAB>BEGIN<TAB>END". Strict."""
import struct
import sys

data = open(sys.argv[1], "rb").read()
assert len(data) % 8 == 0
words = struct.unpack("<%dQ" % (len(data) // 8), data)
assert words[0] == 0x0016547846040010, "no magic"
strings, threads, names = {0: ""}, {}, {}
at, ticks = 1, None


def inline_or_ref(ref, pos):
    if ref & 0x8000:
        n = ref & 0x7FFF
        raw = data[8 * pos:8 * pos + n]
        return raw.decode(), pos + (n + 7) // 8
    return strings[ref], pos


while at < len(words):
    head = words[at]
    kind, size = head & 15, head >> 4 & 0xFFF
    end = at + size
    assert size >= 1 and end <= len(words), (at, hex(head))
    if kind == 1:
        ticks = words[at + 1]
        assert size == 2
    elif kind == 2:
        n = head >> 32 & 0x7FFF
        strings[head >> 16 & 0x7FFF] = data[8 * at + 8:8 * at + 8 + n].decode()
        assert size == 1 + (n + 7) // 8
    elif kind == 3:
        assert size == 3
        threads[head >> 16 & 0xFF] = (words[at + 1], words[at + 2])
    elif kind == 7:
        name, pos = inline_or_ref(head >> 24 & 0xFFFF, at + 2)
        names[words[at + 1]] = name
        for _ in range(head >> 40 & 15):
            assert words[pos] & 15 == 8 and strings[words[pos] >> 16 & 0xFFFF] == "process"
            process = words[pos + 1]
            assert names[process] == "guest" if process == 1 else process >= 1 << 32
            pos += words[pos] >> 4 & 0xFFF
        assert pos == end
    elif kind == 4:
        what, ref = head >> 16 & 15, head >> 24 & 0xFF
        pos = at + 2
        if ref == 0:
            thread = words[pos + 1]
            pos += 2
        else:
            thread = threads[ref][1]
        category = strings[head >> 32 & 0xFFFF]
        assert category in ("calls", "samples", "promises")
        args = []
        name, pos = inline_or_ref(head >> 48, pos)
        for _ in range(head >> 20 & 15):
            assert category == "promises" and words[pos] & 0xFFF == 0x23 and strings[words[pos] >> 16 & 0xFFFF] == "value"
            args.append(words[pos + 1] - (words[pos + 1] >> 63 << 64))
            pos += 2
        if category == "promises":
            assert what in (1, 4, 5, 6, 7, 8, 10) and len(args) == (what == 1)
            if sys.argv[2:] == ["promises"]:
                print(what, names[thread], name, words[at + 1], *(args or ["-"]), words[pos], sep="\t")
            pos += 1
        elif category == "samples":
            assert what == 4 and ref == 0
            if sys.argv[2:] == ["samples"]:
                print(thread, name, words[at + 1], words[pos], sep="\t")
            pos += 1
        elif what == 4:
            print(names[thread], name, words[at + 1], words[pos])
            pos += 1
        else:
            assert what == 0
            print(names[thread], name, words[at + 1])
        assert pos == end
    elif kind == 8:
        assert head >> 60 == 1 and size == 4
        print("cpu%d %d %s %s" % (head >> 20 & 0xFFFF, words[at + 1], names[words[at + 2]], names[words[at + 3]]))
    else:
        raise AssertionError("record type %d" % kind)
    at = end
assert ticks == 10**9
