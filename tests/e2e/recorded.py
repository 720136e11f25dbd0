#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""recorded.py UNISCOPE SRCROOT [update]: what commit 6d912eb recorded is read with the results that it gave.

tests/golden/recorded/README.md says what lies there. A member of JSON that is not in the old result is ignored, so
that reports may grow; all else must be equal. With "update" the results are written anew. TAP."""
import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

UNISCOPE, GOLDEN = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2], "tests/golden/recorded").resolve()
UPDATE = sys.argv[3:] == ["update"]
# Each result by its file name: the command's words.
RESULTS = {f"{name}.report.json": ["report", "--json", f"{name}.uniscope"] for name in ("paused", "exits", "counted")}
RESULTS |= {f"{name}.trace.json": ["trace", "report", "--json", "-n", "0", f"{name}.uniscope"]
            for name in ("graph", "lite", "function", "ring")}
RESULTS |= {
    "bundle.trace.json": ["trace", "report", "--json", "-n", "0", "dump.tar"],
    "threads.trace.json": ["trace", "report", "--json", "-n", "25", "threads.uniscope"],
    "exits.report.txt": ["report", "--exits", "exits.uniscope"],
    "graph.replay.txt": ["trace", "replay", "graph.uniscope"],
    "graph.report.txt": ["trace", "report", "graph.uniscope"],
    "promises.threads.txt": ["trace", "threads", "--all", "-n", "60", "promises.uniscope"],
    "replay.folded": ["export", "replay.uniscope", "-f", "folded"],
}
# Formats that are equal byte by byte; what else is in them (scripts of SVG) is a source file of its own.
EXPORTED = ("paused", "exits", "counted", "graph", "threads", "promises")
NOT_EQUAL = (".svg",)
# Made here: what is read is no session yet.
FIRST = [
    ["trace", "dump", "core:file=core", "-e", "traced.nm", "-q", "-o", "ring.uniscope"],
    ["record", "replay:file=demo.replay,once=1", "-e", "demo.elf", "-q", "-F", "49", "-d", "60",
     "-o", "replay.uniscope"],
]


def run(words, folder):
    done = subprocess.run([UNISCOPE, *words], cwd=folder, capture_output=True, timeout=120)
    if done.returncode != 0:
        raise ValueError(f"{' '.join(words)}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


def difference(old, new, where=""):
    """The first difference; None if the new one has all members of the old one."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key not in new:
                return f"{where}.{key} is missing"
            found = difference(value, new[key], f"{where}.{key}")
            if found:
                return found
        return None
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return next(filter(None, (difference(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(old, new)))), None)
    return None if old == new else f"{where}: was {str(old)[:60]}, is {str(new)[:60]}"


def compare(name, text):
    path = GOLDEN / name
    if UPDATE:
        path.write_text(text)
    old = path.read_text()
    if name.endswith(".json"):
        return difference(json.loads(old), json.loads(text))
    if name.endswith(".folded"):  # how often each is met is up to the host
        old, text = ("\n".join(sorted(line.rpartition(" ")[0] for line in t.splitlines())) for t in (old, text))
    if len(old.splitlines()) != len(text.splitlines()):
        return f"was {len(old.splitlines())} lines, is {len(text.splitlines())}"
    for n, (a, b) in enumerate(zip(old.splitlines(), text.splitlines()), 1):
        if a.split() != b.split():  # columns may be wider
            return f"line {n}: was {a!r}, is {b!r}"
    return None


def sums(folder):
    """Each file of `export --all` with its hash."""
    lines = []
    for name in EXPORTED:
        run(["export", "--all", f"all.{name}", f"{name}.uniscope"], folder)
        for path in sorted(pathlib.Path(folder, f"all.{name}").rglob("*")):
            if path.is_file() and path.suffix not in NOT_EQUAL:
                lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()[:32]}  {path.relative_to(folder)}\n")
    return "".join(lines)


def main():
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        tarfile.open(GOLDEN / "recorded.tar.xz").extractall(folder)
        for words in FIRST:
            run(words, folder)
        for name, make in [*((n, lambda w=w: run(w, folder)) for n, w in RESULTS.items()),
                           ("exports.sums", lambda: sums(folder))]:
            number += 1
            try:
                found = compare(name, make())
            except (ValueError, OSError, subprocess.TimeoutExpired) as e:
                found = str(e)
            print(f"{'not ok' if found else 'ok'} {number} - {name} as commit 6d912eb had it")
            if found:
                print("# " + found.replace("\n", "\n# "))
    print(f"1..{number}")


if __name__ == "__main__":
    main()
