#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""sweep.py UNISCOPE SRCROOT MKSESSION MKTRACE [update|PROGRAM]: each command that needs no guest that runs, with each option: what it says.

tests/golden/sweep/commands lists the commands, said.txt what they print, with their exit status. "update" writes said.txt anew:
read each change before you commit it. PROGRAM is
uniscope that fails if it loses memory: it runs 19 of 20 commands. {a|b} in a command
stands for one command with each. The commands of a line with && run one after the other; @ is a name that no other line uses. A
long output is cut, and its hash stands for the rest. TAP: a test for each line of `commands`."""
import base64
import concurrent.futures
import gzip
import hashlib
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile

UNISCOPE, ROOT, MKSESSION, MKTRACE = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
UPDATE = sys.argv[5:] == ["update"]
LEAKS = None if UPDATE or not sys.argv[5:] else pathlib.Path(sys.argv[5]).resolve()
GOLDEN = ROOT / "tests/golden/sweep"
LINES, WIDTH = 16, {"  ": 150, "! ": 500}  # of an output that are shown
LANES = 2
# Another host, build or day changes this.
HIDDEN = (
    (r"uniscope [0-9]+\.[0-9]+\.[0-9]+ \(([0-9a-f]{12}\+?|unknown)\)", "uniscope VERSION"),
    (r"(?s)(<style>|<script>).*?(</style>|</script>)", r"\1\2"),  # source files of their own
)
# "1 samples": a number and its noun. Not the lines that are cut, and no format of others (perf script, flame graphs).
ONE_OF_MANY = re.compile(r"(?m)^(?!  \.\.\. |  profile |  <).*[ (]1 (samples|calls|functions|places|stacks|chains|events|bytes|others|vCPUs|pauses|exits|"
                         r"rows|instructions|interrupts|lines|waits|threads|snapshots|blocks|records|values|frames|guests|CPUs|promises)\b")
# Takes samples, of guests that are files: what the clock had to do with is not compared.
SAMPLING = re.compile(r"\b(record|top|uniprof|generate-flame-graph|run) .*(file=|--qemu|--xl)")
CLOCKED = (
    (r"\b(in|last) [0-9.]+ s\b", r"\1 T s"),
    (r"\b[0-9]+ (late|samples/s)\b", r"N \1"),
    (r"host [0-9.]+ (ns|us|ms)/sample", "host T/sample"),
    (r"own cost .*", "own cost"),
    (r", [0-9.]+% skipped", ""),
    (r"(?m)^Missed [0-9]+ deadlines\n", ""),
    (r'"(from_s|to_s|rate|host_ns_per_sample|host_cpus)":[0-9.e+-]+', r'"\1":T'),
    (r"\bon 2[0-9]{3}-[0-9-]+ [0-9:]+ UTC", "on DAY"),
    (r"/[^ ]*/uniscope-run-[A-Za-z0-9]+/", "RUN/"),
)
# Each of their options is in `commands`, except for what opens a browser, and what the clock decides.
READERS = ("annotate", "diff", "export", "import", "plugin", "report", "stacks",
           *("trace " + name for name in "breakdown dump findings graph replay report syscalls threads wakeups why".split()),
           *("compat " + name for name in "mirage-trace-viewer parse-trace parse-trace-fg runtime-breakdown summarize-trace symbolize uniprof xenctx".split()),
           *("compat uk-trace " + name for name in "ctf fetch list".split()))
LEFT_OUT = {"report --open", "compat uniprof --missed-deadlines", "compat uniprof --skip-late"}
OPTION = re.compile(r"(?m)^  (?:-(\w)(?:, | |$)|    )(?:--([\w-]+))?")  # in a help
PLAIN = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "dumb", "HOME": "/nonexistent", "PATH": os.environ["PATH"],
         "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""), "UBSAN_OPTIONS": os.environ.get("UBSAN_OPTIONS", "")}
PLAIN |= {name: value for name, value in os.environ.items() if name.startswith(("UNI_MUTANT", "MALLOC_"))}  # of mutants.py, Meson


def make(folder):
    """All files that the commands read."""
    tarfile.open(ROOT / "tests/golden/recorded/recorded.tar.xz").extractall(folder)
    for path in (ROOT / "tests/golden").glob("*.*"):
        shutil.copy(path, folder)
    shutil.copytree(ROOT / "fuzz/corpus", folder / "seed")
    for words in ([MKSESSION, "several.uniscope", "300", "2", "3"], [MKSESSION, "one.uniscope", "200", "1"],
                  [MKTRACE, "calls.uniscope", "600", "1", "work", "3"], [MKTRACE, "cpus.uniscope", "900", "3", "graph", "5", "40"],
                  [MKTRACE, "only.uniscope", "300", "2", "function", "7"], [MKTRACE, "light.uniscope", "300", "2", "lite", "9"],
                  [MKTRACE, "stuck.uniscope", "40", "2", "promises", "1"]):
        subprocess.run(words, cwd=folder, check=True)
    for words in ("graph -f nanos -o fg.ftrace", "only -f nanos -o fn.ftrace", "calls -f csv -o calls.csv", "cpus -f nanos -o cpus.ftrace",
                  "exits -f perf -o exits.perf", "several -f perf -o several.perf", "exits -f speedscope -o exits.speedscope.json",
                  "calls -f uftrace -o calls.uftrace", "promises -f mirage -o promises.mirage", "stuck -f mirage -o stuck.mirage", "exits -f pprof -o exits.pb.gz"):
        name, *more = words.split()
        subprocess.run([UNISCOPE, "export", f"{name}.uniscope", *more], cwd=folder, env=PLAIN, timeout=60, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name, text in (("empty.folded", ""), ("bad.folded", "nonsense\n\xff;;; x\n;a 0\na;b -3\na;b 2 \n"),
                       ("odd.folded", 'a "q";<b>&c;\\d\te 7\nmain;x[1];y\'z 18446744073709551615\n\u00e4;\u4e2d\u6587;\x1b[31mred 3\n'),
                       ("huge.folded", "a;b 999999999999999\na;c 999999999999999\na 1\n"),
                       ("before.folded", "main;a;b 40\nmain;a 20\nmain;c 340\n"), ("after.folded", "main;a;b 90\nmain;a 20\nmain;d 290\n")):
        (folder / name).write_bytes(text.encode())
    shutil.copytree(folder / "exits.uniscope", folder / "torn.uniscope")
    for path in sorted((folder / "torn.uniscope/guest-0").glob("samples*"))[:1]:
        path.write_bytes(path.read_bytes()[:200])
    # The calls of one guest, and the samples of another one, whose threads have names.
    shutil.copytree(folder / "cpus.uniscope", folder / "both.uniscope")
    shutil.copytree(folder / "several.uniscope/guest-1", folder / "both.uniscope/guest-1")
    both, several = (json.loads((folder / name / "session.json").read_text()) for name in ("both.uniscope", "several.uniscope"))
    both["guests"].append(several["guests"][1] | {"all_threads": True, "threads": [{"id": n, "name": f"w{n}", "number": n} for n in range(1, 5)]})
    (folder / "both.uniscope/session.json").write_text(json.dumps(both))
    shutil.copytree(folder / "graph.uniscope", folder / "nameless.uniscope")
    for path in (folder / "nameless.uniscope/symbols").glob("*"):
        path.unlink()


def make_programs(folder):
    """In front of the host's own: an xl whose domain is "demo", others as it created them; a QEMU that ends at once."""
    (folder / "two.replay").write_bytes((folder / "demo.replay").read_bytes())
    for name in ("demo", "boot", "five", "gone", "text", "lost", "fresh"):
        kernel = {"text": "traced.nm", "lost": "none.elf"}.get(name, "demo.elf")
        (folder / f"{name}.cfg").write_text(f'name = "{name}"\nkernel = "{kernel}"\nmemory = 128\nvcpus = 2\n')
    for name, text in (("xl", """case $1 in
domid) if [ "$2" = demo ] || [ -f "there.$2" ]; then echo 5; else exit 1; fi;;
create) for last; do :; done; name=${last##*/}; name=${name%.cfg}; [ "$name" != gone ] || exit 1; : >"there.$name";;
destroy) echo "destroyed: $2" >&2;;
esac"""), ("qemu", """[ "$1" != --version ] || { echo "QEMU emulator version 7.2.9"; exit 0; }
echo "called with: $*" >&2
exit 3""")):
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)


def expanded(line):
    parts = [p[1:-1].split("|") if p.startswith("{") else [p] for p in re.split(r"(\{[^{}]*\})", line)]
    return [" ".join("".join(words).split()) for words in itertools.product(*parts)]


def unpacked(data):
    """The data, or page, without gzip: another zlib packs in another way."""
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    return re.sub(rb"H4sI[A-Za-z0-9+/=]{20,}", lambda m: gzip.decompress(base64.b64decode(m.group(0))), data)


def readable(data, folder, hidden):
    text = unpacked(data).decode(errors="backslashreplace").replace(str(folder), "FOLDER")
    for program in filter(None, (UNISCOPE, LEAKS)):
        text = text.replace(str(program.parent), "BIN")
    for old, new in hidden:
        text = re.sub(old, new, text)
    return "".join(c if c == "\n" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def shown(data, folder, mark, hidden):
    """Its lines, each behind the mark; what is cut is said, with a hash of all."""
    text = readable(data, folder, hidden)
    lines, width = text.splitlines(), WIDTH[mark]
    ret = [(mark + line[:width]).rstrip() for line in lines[:LINES]]
    if len(lines) > LINES or any(len(line) > width for line in lines[:LINES]):
        ret.append(f"{mark}... {len(lines)} lines, {hashlib.sha256(text.encode()).hexdigest()[:24]}")
    return ret


def say(command, folder):
    """The same, again if the host stood still for so long that samples were skipped: then there are too few."""
    for nr in range(3):
        text = say_once(command, folder, nr)
        if not SAMPLING.search(command) or not re.search(r"(?m)^! .*\b[1-9][0-9]* skipped", text):
            break
        print(f"# retry: samples were skipped: {command[:60]}", flush=True)
    return text


def say_once(command, folder, nr):
    """The output and status of each command of a line. nr: of the attempt, for names of its own."""
    hidden = HIDDEN + CLOCKED if SAMPLING.search(command) else HIDDEN
    env = PLAIN | {"PATH": f"{folder / 'bin'}:{PLAIN['PATH']}"}
    ret, parts, own = [], command.split(" && "), "made" + hashlib.sha256(f"{command} {nr}".encode()).hexdigest()[:24]
    program = UNISCOPE if LEAKS is None or int(own[4:12], 16) % 20 == 0 else LEAKS
    for part in parts:
        ret += [f"$ {part}"] if len(parts) > 1 else []
        words = [program, *shlex.split(part.replace("@", own))]
        try:
            done = subprocess.run(words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
            out, said = (data.replace(own.encode(), b"@") for data in (done.stdout, done.stderr))
            ret += [*shown(out, folder, "  ", hidden), *shown(said, folder, "! ", hidden), f"= {done.returncode}"]
        except subprocess.TimeoutExpired:
            ret.append("= no end")
    return "\n".join(ret + ([] if SAMPLING.search(command) else wrote(folder, own, hidden))) + "\n"


def wrote(folder, own, hidden):
    """The files that it made, but for sessions, which know the time: other commands read these."""
    ret = []
    for path in sorted(p for p in folder.glob(own + "*") if p.suffix != ".tar"):
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and not (path / "session.json").exists():
                text = readable(file.read_bytes().replace(own.encode(), b"@"), folder, hidden)
                ret.append(f"> @{str(file.relative_to(folder))[len(own):]} {hashlib.sha256(text.encode()).hexdigest()[:24]}")
    return ret


def unused_options(commands):
    """The options of READERS that no command uses."""
    ret = []
    for name in READERS:
        words = {w.partition("=")[0] for c in commands for part in c.split(" && ") if part.startswith(name + " ") for w in part.split()}
        text = subprocess.run([UNISCOPE, *name.split(), "--help"], env=PLAIN, capture_output=True, text=True, check=True).stdout
        for letter, word in OPTION.findall(text):
            if (letter or word) and not ({"-" + letter, "--" + word} - {"-", "--"}) & words:
                ret.append(f"{name} {'--' + word if word else '-' + letter}")
    return sorted(set(ret) - LEFT_OUT)


def read_golden():
    """{command: what it said}"""
    text = (GOLDEN / "said.txt").read_text()
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in re.split(r"(?m)^# ", text)[1:]}


def difference(old, new):
    for a, b in itertools.zip_longest(old.splitlines(), new.splitlines(), fillvalue="(nothing)"):
        if a != b:
            return f"was: {a}\n# is:  {b}"
    return None


def main():
    lines = [line for line in (GOLDEN / "commands").read_text().splitlines() if line and not line.startswith("#")]
    commands = {line: expanded(line) for line in lines}
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(LANES) as pool:
        folder = pathlib.Path(name).resolve()
        make(folder)
        make_programs(folder)
        each = [c for some in commands.values() for c in some]
        said = dict(zip(each, pool.map(lambda c: say(c, folder), each)))
    if UPDATE:
        (GOLDEN / "said.txt").write_text("".join(f"# {c}\n{text}\n" for c, text in said.items()))
    golden = {c: text.removesuffix("\n") for c, text in read_golden().items()}
    for n, (line, some) in enumerate(commands.items(), 1):
        wrong = [f"{c}\n# {found}" for c in some if (found := difference(golden.get(c, ""), said[c]))]
        print(f"{'not ok' if wrong else 'ok'} {n} - {line.replace('#', '')}")
        for text in wrong[:3]:
            print("# " + text)
    unused = sorted(set(golden) - set(said))
    print(f"{'not ok' if unused else 'ok'} {len(commands) + 1} - each part of said.txt belongs to a command")
    options = unused_options(each)
    print(f"{'not ok' if options else 'ok'} {len(commands) + 2} - each option of a command that reads is used")
    many = [f"{c}: {found[0]}" for c, text in said.items() for found in ONE_OF_MANY.finditer(text)]
    print(f"{'not ok' if many else 'ok'} {len(commands) + 3} - one of a thing is no plural\n1..{len(commands) + 3}")
    for text in [*options, *many[:5]]:
        print("# " + text)


if __name__ == "__main__":
    main()
