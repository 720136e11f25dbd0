#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vmlinux.py BZIMAGE VMLINUX: takes the ELF out of an x86 bzImage that is packed with xz or gzip.

Xen can boot the bzImage, but unpacking it in each boot takes seconds under TCG."""
import lzma
import struct
import sys
import zlib

MAGICS = ((b"\xfd7zXZ\0", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)),
          (b"\x1f\x8b\x08", lambda: zlib.decompressobj(wbits=31)))


def payload(image):
    """Linux's x86 boot protocol 2.08: payload_offset counts from the end of the setup sectors."""
    if image[0x202:0x206] != b"HdrS":
        sys.exit("vmlinux.py: not a bzImage")
    setup_sectors = image[0x1f1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    return image[start:start + length]


def main():
    with open(sys.argv[1], "rb") as f:
        packed = payload(f.read())
    for magic, unpacker in MAGICS:
        if packed.startswith(magic):
            elf = unpacker().decompress(packed)
            break
    else:
        sys.exit(f"vmlinux.py: packed in an unknown way: {packed[:4].hex()}")
    if elf[:4] != b"\x7fELF":
        sys.exit("vmlinux.py: what was packed is no ELF")
    with open(sys.argv[2], "wb") as f:
        f.write(elf)


if __name__ == "__main__":
    main()
