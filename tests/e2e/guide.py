#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""guide.py UNISCOPE SRCROOT: a script that knows only `uniscope guide` and docs/schema finds what was planted in five sessions. TAP.

The commands are those of the guide's text, with its words replaced; each answer has its schema, and no list is longer than asked for."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import jsonschema

U, ROOT = (os.path.realpath(a) for a in sys.argv[1:3])
TOP = 10
GUIDE = subprocess.run([U, "guide"], check=True, capture_output=True, text=True).stdout
asked = 0


def command(*options):
    """The guide's command with these options."""
    for line in GUIDE.splitlines():
        words = line.split("   ")[-1].split() if line.startswith("     uniscope ") else []
        if words and all(o in words for o in options) and sum(w.startswith("--") for w in words) == sum(o.startswith("--") for o in options):
            return words
    raise AssertionError("the guide has no command with %s" % (options,))


def ask(*options, **given):
    """The answer to the guide's command, in which the words in capitals and names of files are replaced."""
    global asked
    words = command(*options)
    replaced = {"before.uniscope": given["session"], "after.uniscope": given.get("after"), "HANDLE": given.get("handle"),
                "'FUNCTION'": given.get("function")}
    r = subprocess.run([U] + [replaced.get(w) or w for w in words[1:]], capture_output=True, text=True, check=False)
    assert r.returncode in (0, 3, 4), (words, r.stderr)
    doc = json.loads(r.stdout)
    name = doc["format"].removeprefix("uniscope-")
    with open("%s/docs/schema/%s.schema.json" % (ROOT, name), encoding="utf-8") as f:
        jsonschema.Draft202012Validator(json.load(f)).validate(doc)
    if name == "view":
        assert all(len(doc.get(key, [])) <= TOP for key in ("functions", "children", "callers")), words
        asked += 1
    return doc


def find(session):
    """The hot function; or who calls it, if that is one among several; or where the call tree parts, if no function is hot."""
    doc = ask("report", "--json", "--top", session=session)
    hot = doc["functions"][0]
    if hot["self"] >= doc["total"] / 4:
        callers = ask("report", "--json", "--top", "--focus", session=session, function=hot["name"])["callers"]
        whole = sum(c["total"] for c in callers)
        return callers[0]["name"] if len(callers) > 1 and callers[0]["total"] >= 0.7 * whole else hot["name"]
    while doc["children"] and doc["children"][0]["total"] >= 0.6 * doc["here"]:
        handle = doc["children"][0]["handle"]
        deeper = ask("report", "--json", "--top", "--under", session=session, handle=handle)
        assert deeper["handle"] == handle and len(deeper["path"]) == len(doc["path"]) + 1, (doc["path"], deeper["path"])
        doc = deeper
    return doc["path"][-1]


def compare(before, after):
    doc = ask("diff", "--json", session=before, after=after)
    assert doc["verdict"] == "larger", doc["text"]
    changed = [f for f in doc["functions"] if f["self"]["changed"]]
    return max(changed, key=lambda f: f["self"]["difference"])["name"]


def background(rng, nr):
    """Stacks of many functions, none of them hot."""
    for _ in range(nr):
        yield ["main"] + ["f%d" % rng.randrange(3000) for _ in range(rng.randrange(2, 12))], rng.randrange(1, 20)


def session(name, stacks):
    with open(name + ".folded", "w", encoding="utf-8") as f:
        f.writelines("%s %d\n" % (";".join(frames), n) for frames, n in stacks)
    subprocess.run([U, "import", name + ".folded", "-o", name], check=True, capture_output=True)
    return name


def planted():
    """Each kind of hot spot, its name, and the name that the script finds."""
    rng = random.Random(22)
    names = ["f%d" % n for n in rng.sample(range(3000), 8)]
    base = list(background(rng, 2000))
    whole = sum(n for _, n in base)
    # A function that many call.
    stacks = base + [(frames + [names[0]], n) for frames, n in base[:1000]]
    yield "a hot function with many callers", names[0], find(session("hot", stacks))
    # A helper that is hot by the fault of one of its callers.
    stacks = base + [(["main", "f1", names[1], "memcpy"], whole), (["main", "f2", "memcpy"], whole // 9), (["main", "f3", "memcpy"], whole // 9)]
    yield "the caller of a hot helper", names[1], find(session("helper", stacks))
    # A subsystem, all of whose functions are small.
    stacks = base + [(["main", "loop", names[2]] + frames[1:], 2 * n) for frames, n in base]
    yield "a subsystem of small functions", names[2], find(session("system", stacks))
    # The same at the end of a long chain with recursion.
    chain = ["step%d" % (i % 7) for i in range(60)] + [names[3]]
    stacks = base + [(["main"] + chain + frames[1:], 3 * n) for frames, n in base]
    yield "a subsystem below a deep recursion", names[3], find(session("deep", stacks))
    # One of many functions that got slower.
    slower = [(frames, 2 * n if frames[-1] == "work" else n) for frames, n in base + [(["main", names[4], "work"], whole // 12)]]
    before = session("before", base + [(["main", names[4], "work"], whole // 12)])
    yield "a function that takes more than before", "work", compare(before, session("after", slower))


def main():
    nr = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for what, want, got in planted():
            nr += 1
            print("%s %d - %s" % ("ok" if got == want else "not ok", nr, what))
            if got != want:
                print("# %s was planted, and %s found" % (want, got))
        nr += 1
        print("%s %d - no answer was longer than asked for, and a walk took small steps: %d answers" % ("ok" if asked > 60 else "not ok", nr, asked))
        os.chdir("/")
    print("1..%d" % nr)


main()
