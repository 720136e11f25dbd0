#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""embed.py OBJECT OUTPUT.c NAME HEADER: the bytes of a BPF object as NAME[] (aligned as ELF wants)
and NAME_size, which HEADER declares. Debug sections go: BTF, which the loader needs, is none of them."""
import struct
import sys

src, dst, array, header = sys.argv[1:]
with open(src, 'rb') as f:
    data = bytearray(f.read())

# Their headers stay, with no bytes; only the bytes behind the last section that is needed go.
shoff, = struct.unpack_from('<Q', data, 40)
shentsize, shnum, shstrndx = struct.unpack_from('<HHH', data, 58)
names_at, = struct.unpack_from('<Q', data, shoff + shentsize * shstrndx + 24)
out = bytearray(data[:64])
headers = bytearray(data[shoff:shoff + shentsize * shnum])
for i in range(shnum):
    at = i * shentsize
    name, kind = struct.unpack_from('<II', headers, at)
    offset, size = struct.unpack_from('<QQ', headers, at + 24)
    end = data.index(b'\0', names_at + name)
    if data[names_at + name:end].startswith((b'.debug', b'.rel.debug')):
        # An empty section of no kind, which every reader passes over.
        struct.pack_into('<IIQQQQIIQQ', headers, at, name, 1, 0, 0, 0, 0, 0, 0, 1, 0)
        continue
    if kind in (0, 8):
        continue
    out += b'\0' * (-len(out) % 8)
    struct.pack_into('<Q', headers, at + 24, len(out))
    out += data[offset:offset + size]
out += b'\0' * (-len(out) % 8)
struct.pack_into('<Q', out, 40, len(out))
out += headers
size = len(out)
out += b'\0' * (-size % 8)
words = struct.unpack('<%dQ' % (len(out) // 8), out)
with open(dst, 'w', encoding='ascii') as f:
    f.write('/* Made by embed.py. */\n#include "%s"\n\n' % header)
    f.write('const size_t %s_size = %d;\n' % (array, size))
    f.write('const uint64_t %s[] = {' % array)
    for i, w in enumerate(words):
        f.write(('\n\t' if i % 4 == 0 else ' ') + '0x%x,' % w)
    f.write('\n};\n')
