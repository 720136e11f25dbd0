#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""annotate.py UNISCOPE SRCROOT MKTRACE: `annotate` of a trace, whose functions get code: calls and time of each call. TAP.

The referees are the call tree of `trace graph` and objdump."""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import jsonschema

U, ROOT, MKTRACE = (os.path.realpath(a) for a in sys.argv[1:4])
FIRST, STEP, NR = 0x1000, 0x10, 300  # where the functions of mktrace are
number = 0


def ok(good, what, got=""):
    global number
    number += 1
    print("%s %d - %s" % ("ok" if good else "not ok", number, what))
    if not good:
        print("# " + str(got)[:600].replace("\n", "\n# "))


def run(*args):
    r = subprocess.run([U, *args], capture_output=True, text=True, check=False)
    return r.returncode, r.stdout, r.stderr


def refused(status, words, what, *args):
    rc, out, err = run("annotate", *args)
    ok(rc == status and out == "" and len(err.splitlines()) == 1 and words in err, what, (rc, err))


def numbers(tree, name):
    """Calls, self, total of a function, and by callee the calls and the time that it made there, from all chains."""
    stack, calls, own, total, callees = [], 0, 0, 0, {}
    for n in tree:
        del stack[n["depth"] - 1:]
        if n["function"] == name:
            calls, own = calls + n["calls"], own + n["self_ns"]
            total += 0 if name in stack else n["total_ns"]
        if stack and stack[-1] == name:
            c = callees.setdefault(n["function"], [0, 0])
            c[0], c[1] = c[0] + n["calls"], c[1] + n["total_ns"]
        stack.append(n["function"])
    return calls, own, total, callees


def make(name, nr, called, at=FIRST):
    """The image NAME, in which function nr calls those. Returns its build-id."""
    lines = [".text"]
    for i in range(NR):
        f = "fn_%d" % i
        lines += [".org %d" % (i * STEP), ".globl " + f, ".type %s, @function" % f, f + ":"]
        lines += ["call " + c for c in called] if i == nr else []
        lines += ["ret", ".size %s, . - %s" % (f, f)]
    with open(name + ".s", "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    subprocess.run(["gcc", "-nostdlib", "-static", "-Wl,--build-id=sha1,-Ttext=%#x,-e,fn_0" % at, name + ".s", "-o", name], check=True)
    return re.search(r"Build ID: (\w+)", subprocess.check_output(["readelf", "-n", name], text=True)).group(1)


def moved_image(session, hot, names, own):
    """The image is linked 0x800 below where it runs, so some addresses are of both and some of one."""
    bias, image = 0x800, session["guests"][0]["images"][0]
    session = json.loads(json.dumps(session))
    session["guests"][0]["images"][0].update(id=make("lower", int(hot[3:]), names[:1], FIRST - bias), path=os.path.abspath("lower"), bias=hex(bias))
    shutil.copytree("t.uniscope", "moved.uniscope")
    with open("moved.uniscope/session.json", "w", encoding="utf-8") as f:
        json.dump(session, f)

    def shown(at):
        rc, out, err = run("annotate", "--json", "moved.uniscope", at)
        return (json.loads(out)["function"] if rc == 0 else rc, "".join(line for line in err.splitlines(True) if " %s is " % at in line))

    want = json.loads(run("annotate", "--json", "moved.uniscope", hot)[1])
    ok(want["self"] == own and want["bias"] == hex(bias), "an image that was moved", (want["self"], own, want["bias"]))
    running, linked = (FIRST + STEP * n - b for n, b in ((NR - 1, 0), (0, bias)))
    ok(shown(hex(running)) == ("fn_%d" % (NR - 1), ""), "an address of the running guest", shown(hex(running)))
    ok(shown(hex(linked)) == ("fn_0", "uniscope: %#x is taken as the image is linked: in the running guest it is %#x\n" % (linked, FIRST)),
       "one as objdump has it, and which was taken is said", shown(hex(linked)))
    both = FIRST + STEP * 20
    ok(shown(hex(both)) == ("fn_20", "uniscope: %#x is in fn_20 of the running guest, which is shown, and as the image is linked in fn_%d\n" %
                            (both, 20 + bias // STEP)), "one of both is the running guest's, and both are named", shown(hex(both)))
    refused(1, "no function 0x77 in the image (an address is one of the running guest, or of the image as objdump", "one of neither", "moved.uniscope", "0x77")
    refused(1, "no function 8a0f in the image (an address begins with 0x)", "one without 0x", "moved.uniscope", "8a0f")
    assert image["path"] != session["guests"][0]["images"][0]["path"]


def main():
    subprocess.run([MKTRACE, "t.uniscope", "9000", "2", "graph", "2"], check=True)
    tree = json.loads(run("trace", "graph", "--json", "--min", "0", "t.uniscope")[1])["tree"]
    by_callees = {n["function"]: len(numbers(tree, n["function"])[3]) for n in tree[:400]}
    hot = max(by_callees, key=by_callees.get)
    calls, own, total, callees = numbers(tree, hot)
    names = sorted(callees, key=lambda c: -callees[c][1])
    assert len(names) >= 3, callees
    first, second = names[:2]
    ident = make("image", int(hot[3:]), [first, second, first])
    with open("t.uniscope/session.json", encoding="utf-8") as f:
        session = json.load(f)
    session["guests"][0]["images"][0].update(id=ident, path=os.path.abspath("image"))
    with open("t.uniscope/session.json", "w", encoding="utf-8") as f:
        json.dump(session, f)

    doc = json.loads(run("annotate", "--json", "t.uniscope", hot)[1])
    with open(ROOT + "/docs/schema/annotate.schema.json", encoding="utf-8") as f:
        jsonschema.Draft202012Validator(json.load(f)).validate(doc)
    ok((doc["calls"], doc["self"], doc["total"], doc["unit"]) == (calls, own, total, "ns"), "calls, self and total are those of all chains",
       (doc["calls"], doc["self"], doc["total"], calls, own, total))
    got = {c["name"]: [c["calls"], c["value"]] for c in doc["callees"]}
    ok(got == callees, "each callee has its calls and time", (got, callees))
    sites = [(i["callee"], i["calls"], i["below"], i["sites"]) for i in doc["instructions"] if i["kind"] == "call"]
    want = [(c, *callees[c], 2 if c == first else 1) for c in (first, second, first)]
    ok(sites == want, "each call has them, and two of one callee share them", (sites, want))
    ok(sorted(c["name"] for c in doc["callees"] if c["sites"] == 0) == sorted(names[2:]), "the others are called by no direct call")
    code = subprocess.check_output(["objdump", "-d", "--no-show-raw-insn", "--disassemble=" + hot, "image"], text=True)
    code = [int(a, 16) for a in re.findall(r"^ *([0-9a-f]+):\t", code, re.M)]
    ok([int(i["address"], 16) for i in doc["instructions"]] == code, "its instructions are objdump's", code)
    text = run("annotate", "t.uniscope", hot)[1]
    ok("<%s>  %d calls from 2 places together" % (first, callees[first][0]) in text and "also called, by no direct call:" in text, "the same as text", text)
    at = hex(FIRST + STEP * int(hot[3:]) + 5)
    ok(json.loads(run("annotate", "--json", "t.uniscope", at)[1]) == doc, "an address in the function chooses it")
    moved_image(session, hot, names, own)
    window = json.loads(run("annotate", "--json", "--to", "0.0005", "t.uniscope", hot)[1])
    ok(0 < window["calls"] < doc["calls"], "--to chooses a part of the time", (window["calls"], doc["calls"]))

    refused(1, "no function nothing", "a function that is not there", "t.uniscope", "nothing")
    os.rename("image", "moved")
    refused(1, "--image names it", "without its image", "t.uniscope", hot)
    ok(json.loads(run("annotate", "--json", "-e", "moved", "t.uniscope", hot)[1])["self"] == own, "--image names the one that was moved")
    make("other", 1, ["fn_3"])
    refused(1, "is another build", "with another build", "-e", "other", "t.uniscope", hot)
    with open("folded", "w", encoding="utf-8") as f:
        f.write("main;a 5\n")
    refused(2, "is no session", "folded stacks", "folded", "a")
    run("import", "folded", "-o", "i.uniscope")
    refused(1, "was imported", "an import", "i.uniscope", "a")
    for n in "ab":
        with open(n + ".c", "w", encoding="utf-8") as f:
            f.write("__attribute__((noinline, used)) static int twin(int x) { return x + %d; }\nint %s(int x) { return twin(x); }\n" % (ord(n), n))
    with open("a.c", "a", encoding="utf-8") as f:
        clone = "lone.constprop.0"
        f.write('__asm__(".type %s, @function\\n%s: ret\\n.size %s, . - %s");\n' % (clone, clone, clone, clone))
    subprocess.run(["gcc", "-O1", "-nostdlib", "-static", "-Wl,--build-id=sha1,-e,a", "a.c", "b.c", "-o", "image"], check=True)
    session["guests"][0]["images"][0]["id"] = re.search(r"Build ID: (\w+)", subprocess.check_output(["readelf", "-n", "image"], text=True)).group(1)
    with open("t.uniscope/session.json", "w", encoding="utf-8") as f:
        json.dump(session, f)
    twins = re.findall(r"^0*(\w+) t twin$", subprocess.check_output(["nm", "image"], text=True), re.M)
    refused(2, "2 functions are called twin: give an address (%s)" % ", ".join("0x" + a for a in sorted(twins)), "two functions of one name", "t.uniscope", "twin")
    got = run("annotate", "--json", "t.uniscope", "lone")
    ok(got[0] == 0 and json.loads(got[1])["function"] == clone, "a function of which only a clone is there", got)

    # Sources that clang put into the debug data: the file is gone, or has another text by now; --source goes first.
    if shutil.which("clang"):
        text = "__attribute__((noinline)) int inner(int x)\n{\n\treturn x * 3; /* embedded */\n}\nint a(int x) { return inner(x) + 1; }\n"
        with open("embedded.c", "w", encoding="utf-8") as f:
            f.write(text)
        subprocess.run(["clang", "-O1", "-gdwarf-5", "-gembed-source", "-nostdlib", "-static", "-Wl,--build-id=sha1,-e,a", "embedded.c", "-o", "image"], check=True)
        session["guests"][0]["images"][0]["id"] = re.search(r"Build ID: (\w+)", subprocess.check_output(["readelf", "-n", "image"], text=True)).group(1)
        with open("t.uniscope/session.json", "w", encoding="utf-8") as f:
            json.dump(session, f)
        for what, change in ("is gone", lambda: os.remove("embedded.c")), ("has another text", lambda: open("embedded.c", "w", encoding="utf-8").write("other\n" * 9)):
            change()
            shown = json.loads(run("annotate", "--json", "t.uniscope", "inner")[1])["lines"]
            want = {n + 1: line.replace("\t", "        ") for n, line in enumerate(text.splitlines())}
            ok(shown and all(line.get("text", "") == want[line["line"]] for line in shown), "sources within the debug data, whose file " + what, shown)
        shown = json.loads(run("annotate", "--json", "--source", ".", "t.uniscope", "inner")[1])["lines"]
        ok(all(line["text"] == "other" for line in shown), "--source goes before them", shown)


def fields(data):
    """(number, value) of each field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            at += 1
            value |= (data[at - 1] & 127) << shift
            shift += 7
            if data[at - 1] < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2, key
            size = varint()
            at += size
            yield key >> 3, data[at - size:at]


def numbers_of(data):
    """A packed list of numbers."""
    return [value for _, value in fields(b"".join(b"\x08" + bytes(x) for x in re.findall(rb"[\x80-\xff]*[\0-\x7f]", data, re.S)))]


def pprof_sites():
    """The locations of a pprof file are the instructions that were sampled: as annotate has them, and with nm's function."""
    tarfile.open(os.path.join(ROOT, "tests/golden/recorded/recorded.tar.xz")).extractall()
    run("export", "exits.uniscope", "-o", "x.pb.gz")
    with gzip.open("x.pb.gz") as f:
        parts = list(fields(f.read()))
    text = [v for k, v in parts if k == 6]
    functions = {m[1]: text[m[2]].decode() for m in (dict(fields(v)) for k, v in parts if k == 5)}
    where = {m[1]: (m[3], functions[dict(fields(m[4]))[1]]) for m in (dict(fields(v)) for k, v in parts if k == 4)}
    selfs = {}
    for sample in (dict(fields(v)) for k, v in parts if k == 2):
        at = where[numbers_of(sample[1])[0]]
        selfs[at] = selfs.get(at, 0) + numbers_of(sample[2])[0]
    table = sorted((int(a, 16), name) for a, name in re.findall(r"^(\w+) [tT] (\S+)$", subprocess.check_output(
        ["nm", "demo.elf"], text=True), re.M))
    wrong = [w for w in where.values() if max(s for s in table if s[0] <= w[0])[1] != w[1]]
    begins = sum(w[0] in dict(table) for w in where.values())
    ok(not wrong and len(where) > 20 and begins < len(where) / 4, "pprof: locations are instructions of their functions", (wrong, begins))
    hot = max(selfs, key=selfs.get)[1]
    want = json.loads(run("annotate", "--json", "-e", "demo.elf", "exits.uniscope", hot)[1])["instructions"]
    want = {int(i["address"], 16): i["self"] for i in want if i["self"] != 0}
    got = {at: n for (at, name), n in selfs.items() if name == hot}
    ok(got == want and len(got) > 2, "pprof: samples of each instruction as annotate has them", (got, want))
    ids = [text[m[6]].decode() for m in (dict(fields(v)) for k, v in parts if k == 3)]
    build = re.search(r"Build ID: (\w+)", subprocess.check_output(["readelf", "-n", "demo.elf"], text=True)).group(1)
    ok(ids == [build], "pprof: the mapping has the build-id", ids)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    main()
    pprof_sites()
    os.chdir("/")
print("1..%d" % number)
