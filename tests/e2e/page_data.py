#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""page_data.py PAGE.html: the data inside of a page of `report --html`, unpacked, to stdout."""
import base64
import gzip
import re
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    parts = re.findall(r'<script type="application/octet-stream" id="d\d+">([^<]*)</script>', f.read())
if not parts:
    sys.exit("page_data: no data in " + sys.argv[1])
sys.stdout.buffer.write(gzip.decompress(base64.b64decode("".join(parts))))
