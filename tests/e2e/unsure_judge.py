#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""unsure_judge.py UNISCOPE SESSION: each output of a session of `mksession ... 3000 2 1 unsure` marks the one
function of which over a tenth is unsure, and no other. Which that is, mksession's source says."""
import json
import re
import subprocess
import sys

STATES = 11
own, unsure = {}, {}
for n in (n for n in range(3000) if n % STATES in (0, 3)):  # of a vCPU that ran, or nobody knows
    if n % 97 != 0 and n % 30 == 0:  # without registers
        continue
    name, weight = f"0x{0xffffffff80000000 + n % 11 * 16:x}", 1 + n % 3
    own[name] = own.get(name, 0) + weight
    if (n % 11 == 3 and n % 4 == 0) or (n % 11 == 0 and n % 64 == 0):
        unsure[name] = unsure.get(name, 0) + weight
marked = [name for name in unsure if unsure[name] / own[name] > 0.1]
assert len(unsure) == 2 and len(marked) == 1, (unsure, own)
(name,) = marked


def said(*words):
    p = subprocess.run([sys.argv[1], *words], capture_output=True, text=True, errors="replace", check=True)
    return p.stdout, p.stderr


def only(text, rows, what):
    """`rows` finds the names in the text's rows, with their marks."""
    found = set(re.findall(rows, text, re.M))
    assert found and {x for x in found if "~" in x} == {name + " ~"}, (what, found)


s = sys.argv[2]
text, _ = said("report", "--tree", "-n", "0", s)
table, tree = text.split("   TOTAL      SELF   FUNCTION", 1)
only(table, r"(0xf\w+(?: ~)?)$", "report")
only(tree, r"(0xf\w+(?: ~)?)$", "report --tree")
assert " ~  over 10 % of its own samples may be of its caller, its callee, or code that leads into it\n" \
    "    (where a chain ends is in doubt, and not the callers in it)\n" in table, table
for words in (["report", "--json", s], ["export", "-f", "json", s]):
    got = {f["name"]: f["unsure"] for f in json.loads(said(*words)[0])["functions"] if "unsure" in f}
    assert {k: round(v, 9) for k, v in got.items()} == {k: round(v / own[k], 9) for k, v in unsure.items()}, (words, got)
titles = re.findall(r"<title>(0xf\w+) \([^)]*\)(| ~: [^<]*)</title>", said("export", "-f", "svg", "-O", "minwidth=0", s)[0])
assert {n for n, mark in titles if mark} == {name} and len(titles) > 99, titles
for form in ("folded", "pprof", "speedscope", "callgrind"):
    _, err = said("export", "-f", form, s)
    assert "only where chains end is in doubt, and not who called" in err, err
    assert f"callees: {name} ({100 * unsure[name] / own[name]:.0f} %)\n" in err, err
page = s + ".html"
said("report", "--html", page, s)
data = subprocess.run([sys.executable, sys.path[0] + "/page_data.py", page], capture_output=True, check=True).stdout
head = json.loads(data[8:8 + int.from_bytes(data[4:8], "little")])
got = {f[0]: round(f[5], 9) for f in head["samples"]["frames"] if len(f) > 5}
assert got == {name: round(unsure[name] / own[name], 9)}, got
