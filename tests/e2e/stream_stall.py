#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""stream_stall.py SOCKET HEAD: a host that asks a guest for much and reads none of it. It asks once more while the answers wait for
room, and goes away. HEAD: address of the guest's uni_trace_head."""
import socket
import struct
import sys
import time

POLY = 0x82f63b78  # CRC-32C


def crc(data):
    c = 0xffffffff
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = c >> 1 ^ (POLY if c & 1 else 0)
    return c ^ 0xffffffff


def request(number, head):
    body = struct.pack('<QII', head, 192, 0) * 21  # 4032 bytes of answer
    fields = struct.pack('<IIHHII', 0x724d5375, number, 4, 0, len(body), 0)
    return fields + struct.pack('<I', crc(fields + body)) + body


line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
line.settimeout(5)
asked = b''.join(request(i + 1, int(sys.argv[2], 16)) for i in range(400))
try:  # until neither side has room
    line.sendall(asked)
except socket.timeout:
    pass
time.sleep(2)
line.close()
