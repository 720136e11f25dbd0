#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""embed.py INPUT OUTPUT.c NAME: the text of INPUT as `const char NAME[]`.

Indentation and whole-line comments stay behind. The text goes into a CDATA section, so it must not
hold the end of one."""
import sys

src, dst, name = sys.argv[1:]
with open(src, encoding='ascii') as f:
    lines = [line.strip() for line in f]
text = '\n'.join(s for s in lines if s and not s.startswith('//')
                 and not (s.startswith('/*') and s.endswith('*/'))) + '\n'
if ']]>' in text:
    sys.exit(src + ': "]]>" cannot be embedded')
with open(dst, 'w', encoding='ascii') as f:
    f.write('/* Made from ' + src.rsplit('/', 1)[-1] + ' by embed.py. */\n')
    f.write('extern const char ' + name + '[];\nconst char ' + name + '[] = {')
    for i, b in enumerate(text.encode() + b'\0'):
        f.write(('\n\t' if i % 16 == 0 else ' ') + str(b) + ',')
    f.write('\n};\n')
