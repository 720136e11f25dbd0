#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""nomem.py UNISCOPE SRCROOT MKSESSION MKTRACE PROGRAM: commands of sweep.py, in which each allocation fails once.

PROGRAM is uniscope with nomem.c. A command without memory says so, or does what it does with all memory. It never crashes or hangs."""
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile

import sweep

PROGRAM = sweep.LEAKS
NOBODY = 65534
# Those have threads; or they are several commands, and the first child's file is in the way of the next one.
LEFT_OUT = re.compile(sweep.SAMPLING.pattern + "|@|&&")


def chosen():
    """The first command of each line, and others by turns."""
    ret = {}
    for line in (sweep.GOLDEN / "commands").read_text().splitlines():
        if line and not line.startswith("#"):
            ret[line] = [c for n, c in enumerate(sweep.expanded(line)) if (n == 0 or n % 9 == 4) and not LEFT_OUT.search(c)]
    return {line: some for line, some in ret.items() if some}


def hash_of(data):
    h = 0xcbf29ce484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001b3) & (1 << 64) - 1
    return h


class Ran:
    """One command, and its children without memory."""

    def __init__(self, words, folder, number):
        self.told = folder / f"told.{number}"
        env = sweep.PLAIN | {"PATH": f"{folder / 'bin'}:{sweep.PLAIN['PATH']}", "UNI_NOMEM": f"{folder / 'ways'} {self.told}"}
        # A reader of root has a process beside it that opens files; an ordinary user's has none.
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        with open(folder / "out", "w+b") as out, open(folder / "err", "w+b") as err:
            self.status = subprocess.run([PROGRAM, *words], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                         timeout=300, check=False, **user).returncode
            out.seek(0)
            self.hash = hash_of(out.read())
            err.seek(0)
            self.said = " ".join(err.read(479).decode(errors="replace").split("\n")).replace("\t", " ").strip()
        self.children = [line.split("\t") for line in self.told.read_text(errors="replace").splitlines()] if self.told.exists() else []

    def wrong(self):
        """(what is wrong, addresses) of each child."""
        for status, output, said, way in self.children:
            status = os.waitstatus_to_exitcode(int(status))
            if status < 0:
                yield f"ended by signal {-status}", way
            elif "memory" not in said and not (status == self.status and int(output, 16) == self.hash and said.strip() == self.said):
                yield f"status {status}, and not as it is with memory: {said or '(nothing)'}", way


def limited(folder):
    """uniscope itself in less and less room: what is wrong."""
    def run(room):
        def limit():
            if room is not None:
                resource.setrlimit(resource.RLIMIT_AS, (room, room))
        done = subprocess.run([sweep.UNISCOPE, "report", "--tree", "exits.uniscope"], cwd=folder, env=sweep.PLAIN, capture_output=True,
                              text=True, timeout=60, check=False, preexec_fn=limit)
        return done.returncode, done.stdout, done.stderr

    whole, short = run(None), 0
    for room in range(100 << 20, 30 << 20, -1 << 19):
        ran = run(room)
        short += ran[0] == 1
        if ran != whole and not (ran[0] in (1, 127) and "memory" in ran[2].lower()):
            yield f"{room} bytes of room: status {ran[0]}: {ran[2] or '(nothing)'}"
    if short == 0:
        yield "none of them lacked memory"


def names_of(way):
    addresses = subprocess.run(["addr2line", "-f", "-s", "-e", PROGRAM, *way.split()], stdout=subprocess.PIPE, text=True,
                               check=False).stdout.splitlines()
    return " < ".join(f"{name} ({place})" for name, place in zip(addresses[::2], addresses[1::2]))


def main():
    lines = chosen()
    children = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        sweep.make(folder)
        sweep.make_programs(folder)
        (folder / "ways").touch()
        for path in [folder, *folder.rglob("*")] if os.getuid() == 0 else []:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        for n, (line, some) in enumerate(lines.items(), 1):
            found = []
            for nr, command in enumerate(some):
                ran = Ran(shlex.split(command), folder, f"{n}.{nr}")
                children += len(ran.children)
                found += [f"{command}: {what}\n#   {names_of(way)}" for what, way in ran.wrong()]
            print(f"{'not ok' if found else 'ok'} {n} - {line.replace('#', '')}", flush=True)
            for text in found[:9]:
                print("# " + text)
        wrong = [*limited(folder), *([] if children > 1000 else [f"{children} allocations failed"])]
        print(f"{'not ok' if wrong else 'ok'} {len(lines) + 1} - in less and less room, a report is whole or says why not\n1..{len(lines) + 1}")
        for text in wrong[:9]:
            print("# " + text)
        print(f"# {children} allocations failed")


if __name__ == "__main__":
    main()
