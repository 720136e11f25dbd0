#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""make.py SECTOR KERNEL PROGRAM APPEND OUT: a raw disk that boots the ELF KERNEL, as boot.S says."""
import struct
import subprocess
import sys
import tempfile

BUFFER, READ, NUMBERS, WORDS = 0x10000, 32 * 512, 416, 53

sector, kernel, program, append, out = sys.argv[1:]
first = bytearray(open(sector, "rb").read())
assert len(first) == 512, f"{sector} has {len(first)} bytes"
assert len(append) <= WORDS, f"'{append}' is longer than {WORDS} bytes"
with tempfile.NamedTemporaryFile() as stripped:
    subprocess.run(["objcopy", "--strip-all", kernel, stripped.name], check=True)
    elf = open(stripped.name, "rb").read()
entry, phoff = struct.unpack_from("<QQ", elf, 24)
for i in range(struct.unpack_from("<H", elf, 56)[0]):
    kind, _, _, vaddr, paddr, _, memsz = struct.unpack_from("<IIQQQQQ", elf, phoff + 56 * i)
    if kind == 1 and vaddr <= entry < vaddr + memsz:
        entry += paddr - vaddr
        break
body = elf + bytes(-len(elf) % 512)
module = BUFFER + len(body)
with open(program, "rb") as f:
    loaded = f.read()
body += loaded
body += bytes(-len(body) % READ)
assert len(body) <= 512 << 10, "larger than low memory"
struct.pack_into("<QQQQII", first, NUMBERS, module, len(loaded), 0, 0, entry, len(body) // READ)
first[NUMBERS + 40:NUMBERS + 40 + len(append)] = append.encode()
with open(out, "wb") as f:
    f.write(first + body)
    f.truncate(2 << 20)  # the BIOS reads no disk that has not one cylinder
