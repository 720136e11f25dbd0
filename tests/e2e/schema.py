#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""schema.py UNISCOPE SRCROOT MKSESSION MKTRACE: outputs against docs/schema/. TAP.

The validator knows the keywords that the schemas use, and no other. It also refuses members that a
schema does not name, so that none is undocumented. Each document is then damaged in every place."""
import copy, json, os, re, subprocess, sys, tempfile

uniscope, root, mksession, mktrace = (os.path.realpath(a) for a in sys.argv[1:5])
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$id", "$defs", "title", "$ref", "anyOf", "type", "const", "enum", "required", "properties",
         "additionalProperties", "items", "minItems", "maxItems", "minimum", "maximum", "pattern"}


def has_type(v, name):
    if name in ("number", "integer"):
        return type(v) is int or (name == "number" and type(v) is float) or (type(v) is float and v == int(v))
    return type(v) is TYPES[name]


def problems(v, s, top, at="$"):
    """Yields a line for each place where v is not as schema s says."""
    assert set(s) <= KNOWN, set(s) - KNOWN
    if "$ref" in s:
        yield from problems(v, top["$defs"][s["$ref"].split("/")[-1]], top, at)
    if "anyOf" in s and all(list(problems(v, one, top, at)) for one in s["anyOf"]):
        yield at + ": fits none of anyOf"
    types = s.get("type", [])
    if types and not any(has_type(v, t) for t in ([types] if isinstance(types, str) else types)):
        yield "%s: %r is no %s" % (at, v, types)
        return
    if "const" in s and (v != s["const"] or type(v) is not type(s["const"])):
        yield "%s: %r is not %r" % (at, v, s["const"])
    if "enum" in s and v not in s["enum"]:
        yield "%s: %r is none of %r" % (at, v, s["enum"])
    if "minimum" in s and v < s["minimum"] or "maximum" in s and v > s["maximum"]:
        yield "%s: %r is out of range" % (at, v)
    if "pattern" in s and not re.search(s["pattern"], v):
        yield "%s: %r does not match" % (at, v)
    if isinstance(v, list):
        if len(v) < s.get("minItems", 0) or len(v) > s.get("maxItems", len(v)):
            yield at + ": number of items"
        for i, one in enumerate(v):
            yield from problems(one, s.get("items", {}), top, "%s[%d]" % (at, i))
    if isinstance(v, dict) and "type" in s:
        for name in s.get("required", []):
            if name not in v:
                yield "%s: no %s" % (at, name)
        for name, one in v.items():
            sub = s.get("properties", {}).get(name, s.get("additionalProperties"))
            if sub is None:
                yield "%s: %s is in no schema" % (at, name)
            else:
                yield from problems(one, sub, top, at + "." + name)


def places(v, path=()):
    """Paths of all members; of an array only its first item, as the others have the same schema."""
    items = v.items() if isinstance(v, dict) else enumerate(v[:1]) if isinstance(v, list) else ()
    for key, one in items:
        yield path + (key,)
        yield from places(one, path + (key,))


def damaged(doc, path):
    """doc with a value of a wrong type there."""
    ret = copy.deepcopy(doc)
    at = ret
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = [[None]] if not isinstance(at[path[-1]], list) else {"wrong": None}
    return ret


def output(*args):
    r = subprocess.run([uniscope, *args], capture_output=True, text=True, check=False)
    assert r.returncode in (0, 3, 4), (args, r.returncode, r.stderr)
    return json.loads(r.stdout)


def session(name):
    with open(name + "/session.json", encoding="utf-8") as f:
        return json.load(f)


def documents():
    subprocess.run([mksession, "s.uniscope", "600", "2"], check=True)
    subprocess.run([mktrace, "t.uniscope", "3000", "2", "graph", "2"], check=True)
    for name, a in ("old", 3000), ("new", 3400):
        with open(name, "w", encoding="utf-8") as f:
            f.write("main;a %d\nmain;b 5000\n" % a)
    with open("two", "w", encoding="utf-8") as f:
        f.write("main;a 30 34\nmain;b 50 40\n")
    subprocess.run([uniscope, "import", "old", "-o", "i.uniscope"], check=True, stderr=subprocess.DEVNULL)
    for name in "s.uniscope", "t.uniscope", "i.uniscope":
        yield "session", name, session(name)
    for args in ["s.uniscope"], ["old"], ["--diff", "two"], ["--all-time", "s.uniscope"]:
        yield "profile", " ".join(args), output("report", "--json", *args)
    yield "exits", "s.uniscope", output("report", "--exits", "--json", "s.uniscope")
    yield "diff", "shares", output("diff", "--json", "--fail-if", "function a +2pp", "old", "new")
    yield "diff", "blocks", output("diff", "--json", "s.uniscope", "s.uniscope")
    yield "diff", "known work", output("diff", "--json", "--per", "exit io*", "s.uniscope", "s.uniscope")
    yield "diff", "exits", output("diff", "--json", "--of", "exits", "s.uniscope", "s.uniscope")
    yield "diff", "calls", output("diff", "--json", "--of", "calls", "t.uniscope", "t.uniscope")


def main():
    nr = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for kind, what, doc in documents():
            with open("%s/docs/schema/%s.schema.json" % (root, kind), encoding="utf-8") as f:
                schema = json.load(f)
            nr += 1
            bad = list(problems(doc, schema, schema))
            print("%s %d - %s: %s" % ("not ok" if bad else "ok", nr, kind, what))
            for line in bad[:8]:
                print("# " + line)
            nr += 1
            missed = [p for p in places(doc) if not list(problems(damaged(doc, p), schema, schema))]
            print("%s %d - %s: %s, and not when damaged" % ("not ok" if missed else "ok", nr, kind, what))
            for path in missed[:8]:
                print("# nothing is wrong with another type at %s" % (path,))
        os.chdir("/")
    print("1..%d" % nr)


main()
