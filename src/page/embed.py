#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""embed.py INPUT OUTPUT.c NAME: the bytes of INPUT as `const char NAME[]`, and their hash as
`NAME_hash`. They go into a script or style element, so they must not end one."""
import base64
import hashlib
import re
import sys

src, dst, name = sys.argv[1:]
with open(src, 'rb') as f:
    data = f.read()
if re.search(rb'</(script|style)|<!--', data, re.I) or b'\0' in data:
    sys.exit(src + ': cannot be put into an element of HTML')
digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
with open(dst, 'w', encoding='ascii') as f:
    f.write('/* Made from ' + src.rsplit('/', 1)[-1] + ' by embed.py. */\n#include "page/assets.h"\n')
    f.write('const char ' + name + '_hash[] = "sha256-' + digest + '";\n')
    f.write('const char ' + name + '[] = {')
    for i, b in enumerate(data + b'\0'):
        # Not every compiler has char unsigned.
        f.write(('\n\t' if i % 16 == 0 else ' ') + str(b - 256 if b > 127 else b) + ',')
    f.write('\n};\n')
