#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""schema.py UNISCOPE SRCROOT MKSESSION MKTRACE: outputs against docs/schema/, by Debian's python3-jsonschema. TAP.
schema.py --file SCHEMA SRCROOT FILE...: outputs that another test has made.

Members that a schema does not name are refused here, so that none is undocumented. Each document is then damaged in every place."""
import copy, json, os, pathlib, re, shutil, subprocess, sys, tarfile, tempfile

import jsonschema

by_file = sys.argv[1] == "--file"
uniscope, root, mksession, mktrace = [None, sys.argv[3], None, None] if by_file else (os.path.realpath(a) for a in sys.argv[1:5])


def closed(s):
    """The schema, in which objects have no other members than those it names."""
    if isinstance(s, list):
        return [closed(one) for one in s]
    if not isinstance(s, dict):
        return s
    ret = {key: closed(one) for key, one in s.items()}
    if isinstance(ret.get("type"), (str, list)) and "object" in ret["type"]:
        ret.setdefault("additionalProperties", False)
    return ret


def validator(kind):
    with open("%s/docs/schema/%s.schema.json" % (root, kind), encoding="utf-8") as f:
        schema = json.load(f)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(closed(schema))


def shortened(v):
    """The first items of each array: the others have the same schema, and each damaged document is judged."""
    if isinstance(v, dict):
        return {key: shortened(one) for key, one in v.items()}
    return [shortened(one) for one in v[:2]] if isinstance(v, list) else v


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


A_PART = "a part, and it says which"
ran = set()  # commands that gave a document here
# Documents that need a guest which runs: another test makes them, and judges them by `--file`.
ELSEWHERE = {"count": ("count.sh", "count"), "annotate": ("exact.sh", "annotate")}


def note(args):
    ran.add(" ".join(args[:args.index("--json")]))


def commands(*path):
    """Each command and command of a command, by what --help lists."""
    text = subprocess.run([uniscope, *path, "--help"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in text.split("\n\ncommands:\n")[1].split("\n\n")[0].splitlines()] if "\n\ncommands:\n" in text else []
    if path:
        yield path, text
    else:
        listed = subprocess.run([uniscope, "help", "--all"], capture_output=True, text=True, check=True).stdout
        names = re.findall(r"^  (\w\S*)(?:  |$)", listed, re.M)
    for name in names:
        yield from commands(*path, name)


def speakers():
    """The commands that have --json."""
    return {" ".join(path) for path, text in commands() if re.search(r"^ +(?:-\w, )?--json\b", text, re.M)}


def output(*args):
    note(args)
    r = subprocess.run([uniscope, *args], capture_output=True, text=True, check=False)
    assert r.returncode in (0, 3, 4), (args, r.returncode, r.stderr)
    return json.loads(r.stdout)


def lines(*args):
    """The first line of each type and set of members."""
    note(args)
    r = subprocess.run([uniscope, *args], capture_output=True, text=True, check=True)
    ret = {}
    for doc in map(json.loads, r.stdout.splitlines()):
        ret.setdefault((doc.get("type", "first"), *sorted(doc)), doc)
    return ret


def session(name):
    with open(name + "/session.json", encoding="utf-8") as f:
        return json.load(f)


def without_clock(name, copy):
    """As a recording leaves it whose last CPU had too few records: our reader takes it."""
    doc = session(name)
    del doc["guests"][0]["trace"]["cpus"][-1]["clock"]["error_ns"]
    shutil.copytree(name, copy)
    with open(copy + "/session.json", "w", encoding="utf-8") as f:
        json.dump(doc, f)
    assert output("trace", "report", "--json", copy)["functions"]
    return doc


def documents():
    subprocess.run([mksession, "s.uniscope", "600", "2", "1", "unsure"], check=True)
    subprocess.run([mktrace, "t.uniscope", "3000", "2", "graph", "2"], check=True)
    for name, a in ("old", 3000), ("new", 3400):
        with open(name, "w", encoding="utf-8") as f:
            f.write("main;a %d\nmain;b 5000\n" % a)
    with open("two", "w", encoding="utf-8") as f:
        f.write("main;a 30 34\nmain;b 50 40\n")
    subprocess.run([uniscope, "import", "old", "-o", "i.uniscope"], check=True, stderr=subprocess.DEVNULL)
    for name in "s.uniscope", "t.uniscope", "i.uniscope":
        yield "session", name, session(name)
    yield "session", "the clock of one CPU is not known", without_clock("t.uniscope", "u.uniscope")
    for args in ["s.uniscope"], ["old"], ["--diff", "two"], ["--all-time", "s.uniscope"]:
        yield "profile", " ".join(args), output("report", "--json", *args)
    assert [output("report", "--json", *top, "--hide", "a", "old")["hidden"] for top in ((), ("--top", "2"))] == [3000, 3000]
    yield "profile", "--hide", output("report", "--json", "--hide", "a", "old")
    yield "view", "root", output("report", "--json", "--top", "2", "s.uniscope")
    below = output("report", "--json", "--top", "1", "old")["children"][0]["handle"]
    yield "view", "under", output("report", "--json", "--top", "2", "--under", below, "old")
    yield "view", "focus", output("report", "--json", "--focus", "a", "old")
    with open("clone", "w", encoding="utf-8") as f:
        f.write("main;a.constprop.0 3000\nmain;b 5000\n")
    yield "view", "focus on a clone", output("report", "--json", "--focus", "a", "clone")
    yield "exits", "s.uniscope", output("report", "--exits", "--json", "s.uniscope")
    part = ["--json", "--to", "0.2", "--vcpu", "0", "s.uniscope"]
    yield "profile", A_PART, output("report", *part)
    yield "view", A_PART, output("report", "--top", "2", *part)
    yield "exits", A_PART, output("report", "--exits", *part)
    yield "diff", A_PART, output("diff", *part, "s.uniscope")
    yield "doctor", "this host", output("doctor", "--json")
    shutil.copy("/bin/sleep", "qemu-system-x86_64")
    with subprocess.Popen(["./qemu-system-x86_64", "600"]) as child:
        yield "ls", "processes", output("ls", "--json")
        child.kill()
    yield "trace-report", "t.uniscope", output("trace", "report", "--json", "-n", "3", "t.uniscope")
    yield "trace-graph", "tree", output("trace", "graph", "--json", "--depth", "2", "t.uniscope")
    busy = output("trace", "report", "--json", "-n", "1", "--sort", "calls", "t.uniscope")["functions"][0]["function"]
    yield "trace-graph", "function", output("trace", "graph", "--json", "--function", busy, "--depth", "1", "t.uniscope")
    yield "trace-breakdown", "cpus", output("trace", "breakdown", "--json", "t.uniscope")
    yield "trace-breakdown", "threads", output("trace", "breakdown", "--json", "--threads", "t.uniscope")
    for mode in "function", "lite":
        subprocess.run([mktrace, mode, "300", "1", mode], check=True)
    for trace in "t.uniscope", "function", "lite":
        for kind, doc in lines("trace", "replay", "--json", trace).items():
            yield "events", trace + " " + " ".join(kind), doc
    tarfile.open(root + "/tests/golden/recorded/recorded.tar.xz").extractall()
    yield "annotate", "samples", output("annotate", "--json", "-e", "demo.elf", "exits.uniscope", "app_main")
    yield "annotate", A_PART, output("annotate", "--json", "--to", "0.2", "--vcpu", "0", "-e", "demo.elf", "exits.uniscope", "app_main")
    yield "trace-threads", "all", output("trace", "threads", "--json", "promises.uniscope")
    ids = [t["id"] for t in output("trace", "threads", "--json", "promises.uniscope")["threads"]]
    for one in ids[0], ids[-1]:
        yield "trace-why", one, output("trace", "why", "--json", "promises.uniscope", one)
    yield "trace-wakeups", "all", output("trace", "wakeups", "--json", "promises.uniscope")
    yield "trace-findings", "all", output("trace", "findings", "--json", "promises.uniscope")
    yield "trace-syscalls", "a text", output("trace", "syscalls", "--json", root + "/fuzz/corpus/syscalls/console")
    yield "trace-syscalls", "by strace's front end", output("compat", "strace", "--json", root + "/fuzz/corpus/syscalls/console")
    yield "stacks", "a core, with registers", output("stacks", "--json", "-r", "core:file=core", "-e", "traced.nm")
    yield "stacks", "a replay, with lines", output("stacks", "--json", "--lines", "replay:file=demo.replay,once=1", "-e", "demo.elf")
    yield "top", "a replay", output("top", "--json", "-d", "0.3", "--function", "app_main", "replay:file=demo.replay,once=0", "-e", "demo.elf")
    for trace in "file3", "file4":
        yield "points", trace, output("compat", "uk-trace", "list", "--json", root + "/fuzz/corpus/uktrace/" + trace)
    yield "points", "definitions", output("compat", "uk-trace", "list", "--json", "--definitions", root + "/fuzz/corpus/uktrace/file3")
    for by in [], ["--cpu"]:
        yield "breakdown", "by thread" if not by else "by CPU", output("compat", "runtime-breakdown", "--json", *by, root + "/fuzz/corpus/callcsv/rows.csv")
    yield "diff", "shares", output("diff", "--json", "--fail-if", "function a +2pp", "old", "new")
    yield "diff", "blocks", output("diff", "--json", "s.uniscope", "s.uniscope")
    yield "diff", "known work", output("diff", "--json", "--per", "exit io*", "s.uniscope", "s.uniscope")
    yield "diff", "exits", output("diff", "--json", "--of", "exits", "s.uniscope", "s.uniscope")
    yield "diff", "calls", output("diff", "--json", "--of", "calls", "t.uniscope", "t.uniscope")


def judge_files(kind, files):
    """Prints what is wrong; the exit status."""
    judge, bad = validator(kind), 0
    for name in files:
        with open(name, encoding="utf-8") as f:
            doc = json.load(f)
        errors = ["%s: %s" % (e.json_path, e.message[:200]) for e in judge.iter_errors(doc)]
        short = shortened(doc)
        short = short if judge.is_valid(short) else doc
        errors = errors or ["damaged at %s, and valid" % (p,) for p in places(short) if judge.is_valid(damaged(short, p))]
        print("\n".join("%s: %s" % (name, e) for e in errors[:8]))
        bad += len(errors)
    return bad != 0


def main():
    nr = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for kind, what, doc in documents():
            judge = validator(kind)
            nr += 1
            bad = ["%s: %s" % (e.json_path, e.message[:200]) for e in judge.iter_errors(doc)]
            said = doc.get("recording", doc).get("part") if what == A_PART else None
            bad += ["part: %s" % said] if what == A_PART and said != {"from": 0, "to": 0.2, "vcpu": 0} else []
            print("%s %d - %s: %s" % ("not ok" if bad else "ok", nr, kind, what))
            for line in bad[:8]:
                print("# " + line)
            nr += 1
            short = shortened(doc)
            short = short if judge.is_valid(short) else doc
            missed = [p for p in places(short) if judge.is_valid(damaged(short, p))]
            print("%s %d - %s: %s, and not when damaged" % ("not ok" if missed else "ok", nr, kind, what))
            for path in missed[:8]:
                print("# nothing is wrong with another type at %s" % (path,))
        os.chdir("/")
    versions = {}
    for path in sorted(pathlib.Path(root, "docs/schema").glob("*.schema.json")):
        of = json.loads(path.read_text(encoding="utf-8"))
        versions[path.name] = {"format", "version"} <= set(of.get("required", ()))
    without = [name for name, has in versions.items() if not has and name != "events.schema.json"]
    nr += 1
    print("%s %d - each schema but that of events asks for format and version %s" % ("not ok" if without else "ok", nr, without))
    judged = ran | {name for name, (test, kind) in ELSEWHERE.items()
                    if "schema.py\" --file %s " % kind in pathlib.Path(root, "tests/e2e", test).read_text(encoding="utf-8")}
    spoken = speakers()
    nr += 1
    print("%s %d - each of the %d commands with --json gave a document to a schema %s" %
          ("ok" if spoken <= judged and len(spoken) > 15 else "not ok", nr, len(spoken), sorted(spoken - judged)))
    print("1..%d" % nr)


sys.exit(judge_files(sys.argv[2], sys.argv[4:]) if by_file else main())
