#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""embed.py html|svg INPUT OUTPUT.c NAME: the text of INPUT as `const char NAME[]`, and its hash, as a content security
policy has it, as `NAME_hash`.

In HTML it is the whole content of a script or style element, which it must not end. In an SVG it is in a CDATA
section; indentation and whole-line comments stay behind."""
import base64
import hashlib
import re
import sys

where, src, dst, name = sys.argv[1:]
with open(src, 'rb') as f:
    data = f.read()
if where == 'svg':
    lines = [line.strip() for line in data.decode('ascii').splitlines()]
    data = ('\n'.join(s for s in lines if s and not s.startswith('//')
                      and not (s.startswith('/*') and s.endswith('*/'))) + '\n').encode()
ends = rb']]>' if where == 'svg' else rb'</(script|style)|<!--'
if re.search(ends, data, re.I) or b'\0' in data:
    sys.exit(src + ': cannot be embedded into ' + where)
digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
with open(dst, 'w', encoding='ascii') as f:
    f.write('/* Made from ' + src.rsplit('/', 1)[-1] + ' by embed.py. */\n')
    f.write('extern const char ' + name + '[], ' + name + '_hash[];\n')
    f.write('const char ' + name + '_hash[] = "sha256-' + digest + '";\n')
    f.write('const char ' + name + '[] = {')
    for i, b in enumerate(data + b'\0'):
        # Not every compiler has char unsigned.
        f.write(('\n\t' if i % 16 == 0 else ' ') + str(b - 256 if b > 127 else b) + ',')
    f.write('\n};\n')
