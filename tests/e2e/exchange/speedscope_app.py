#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""speedscope_app.py NODE_MODULES FILE FOLDED: FILE opened by speedscope's own app in a headless browser. Its table of
functions must have the names of FOLDED, and total and self of each as far as it prints digits."""
import base64
import collections
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import browser

modules, path, folded = sys.argv[1:]
# It draws by WebGL, on the CPU here.
ARGS = ("--allow-file-access-from-files", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
        "--ignore-gpu-blocklist")
UNITS = {"": 1, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}

own, total = collections.Counter(), collections.Counter()
for line in open(folded):
    stack, value = line.rstrip("\n").rsplit(" ", 1)
    frames = stack.split(";")
    own[frames[-1]] += float(value)
    for name in set(frames):
        total[name] += float(value)


def number(text):
    """'1.25ms (12%)', '1,234 (5.0%)': the value, and by how much its digits may be off."""
    m = re.match(r"([\d,]+(?:\.(\d+))?) ?(ns|µs|ms|s)? ?\(", text)
    if not m:  # '1:02.50', minutes, does not come here
        raise AssertionError(f"no value: {text}")
    scale = UNITS[m[3] or ""]
    return float(m[1].replace(",", "")) * scale, 0.51 * scale * 10 ** -len(m[2] or "")


app = os.path.join(modules, "speedscope", "dist", "release", "index.html")
with tempfile.NamedTemporaryFile("w", suffix=".js") as js, browser.Browser(args=ARGS) as b:
    # As speedscope's command line hands files to its page.
    js.write("speedscope.loadFileFromBase64(%s, %s)" % (json.dumps(os.path.basename(path)),
                                                      json.dumps(base64.b64encode(open(path, "rb").read()).decode())))
    js.flush()
    b.open(f"file://{app}#localProfilePath={js.name}", "!!document.querySelector('canvas')")
    table = "[...document.querySelectorAll('table tr')].map(r => [...r.querySelectorAll('td')].map(d => d.textContent)).filter(r => r.length === 3)"
    b.wait("document.body.textContent.includes('Sandwich')", 60)
    b.key("3", "Digit3")
    b.wait(f"({table}).length >= {min(len(total), 8)}", 60)
    rows = b.run(table)
    bad = [t for t in b.trouble() if "favicon" not in t]
assert not bad, bad
seen = {}
for t, s, name in rows:
    seen[name] = (number(t), number(s))
assert set(seen) == set(total), (sorted(seen), sorted(total))
for name, ((t, dt), (s, ds)) in seen.items():
    assert abs(t - total[name]) <= dt and abs(s - own[name]) <= ds, (name, t, total[name], s, own[name])
