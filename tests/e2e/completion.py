#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""completion.py UNISCOPE BUILD: bash, zsh and fish complete what is typed at their prompt, by the files that are installed. Each
shell runs on a terminal of its own. After the Tab key, the test makes the line the argument of printf, so that the shell itself
prints it. TAP."""
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

U, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DEADLINE_S = 120  # of one line: only a shell that is stuck takes so long
nr = 0


def check(ok, what, why=""):
    global nr
    nr += 1
    print(f"{'ok' if ok else 'not ok'} {nr} - {what}", flush=True)
    for line in [] if ok else str(why).splitlines()[-20:]:
        print(f"# {line!r}")


class Shell:
    """A shell at a terminal; `line` types keys and returns the line as it stands then."""

    def __init__(self, argv, begin, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, env)
        self.said = b""
        self.type(begin + "; printf 'read%s\\n' y\r")
        self.until(rb"ready")

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def until(self, pattern):
        while True:
            m = re.search(pattern, self.said, re.S)
            if m:
                self.said = self.said[m.end():]
                return m
            if not select.select([self.fd], [], [], DEADLINE_S)[0]:
                raise TimeoutError(self.said[-400:])
            self.said += os.read(self.fd, 65536)

    def line(self, keys):
        self.type(keys + "\t\x01printf '<%s>\\n' '\x05'\r")
        return self.until(rb"[\r\n]<([^>]*)>\r").group(1).decode()

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def shells(top, env):
    files = f"{BUILD}/completions"
    yield "bash", ["bash", "--norc", "--noprofile", "-i"], f". {files}/uniscope.bash"
    yield "zsh", ["zsh", "-f", "-i"], f"fpath=({files} $fpath); autoload -Uz compinit; compinit -u -d {top}/dump"
    yield "fish", ["fish", "-N", "-i"], f"source {files}/uniscope.fish"


# The text before the Tab key, and the line after it.
LINES = (
    ("a command", "uniscope rec", "uniscope record"),
    ("a command of trace", "uniscope trace sysc", "uniscope trace syscalls"),
    ("a front end of an older tool", "uniscope compat xen", "uniscope compat xenctx"),
    ("an option", "uniscope record --freq", "uniscope record --frequency"),
    ("a format", "uniscope export -f spee", "uniscope export -f speedscope"),
    ("a format behind =", "uniscope export --format=call", "uniscope export --format=callgrind"),
    ("an input format", "uniscope report --input-format unip", "uniscope report --input-format uniprof"),
    ("a value", "uniscope record --method paus", "uniscope record --method pause"),
    ("a session in the folder", "uniscope report we", "uniscope report web1.uniscope"),
    ("a session below a folder", "uniscope report below/we", "uniscope report below/web2.uniscope"),
    ("a file", "uniscope record -e app.e", "uniscope record -e app.elf"),
    ("a guest of this host by name", "uniscope top shop-comp", "uniscope top shop-completed"),
    ("a kind of target", "uniscope top replay", "uniscope top replay:"),
    ("an option of an older tool's name", "uniprof --missed", "uniprof --missed-deadlines"),
)


def words(*args):
    out = subprocess.run([U, "__complete", *args], capture_output=True, text=True, check=False)
    return [line.split("\t")[0] for line in out.stdout.splitlines()]


def tables(top):
    commands = [c for c in words("") if re.match("[a-z]", c)]
    shown = subprocess.run([U, "help", "--all"], capture_output=True, text=True, check=True).stdout
    check(len(commands) > 10 and all(re.search(f"^  {c}  ", shown, re.M) for c in commands if c != "help"),
          "the commands offered are those of help", commands)
    listed = subprocess.run([U, "export", "--list"], capture_output=True, text=True, check=True).stdout
    formats = re.findall(r"^([\w-]+) +\.", listed, re.M)
    check(len(formats) > 10 and words("export", "-f", "") == formats, "the formats are those of --list",
          f"{formats} {words('export', '-f', '')}")
    check(not any("$" in w or " " in w for w in words("report", "")), "a name with a shell's characters is not offered",
          words("report", ""))
    check(words("trace", "why", "web1.uniscope", "") == [], "nothing is offered for a thread's name")
    check(":files" in words("run", "--", "x") and "web1.uniscope" in words("export", "--before", ""),
          "files behind --, sessions for --before")


def main():
    with tempfile.TemporaryDirectory() as top:
        os.chdir(top)
        for name in ("web1.uniscope", "below/web2.uniscope", "$(touch made).uniscope", "bin"):
            os.makedirs(name)
        pathlib.Path("app.elf").touch()
        for name in ("uniscope", "uniprof"):
            os.symlink(U, f"bin/{name}")
        env = {"PATH": f"{top}/bin:/usr/bin:/bin", "HOME": top, "TERM": "xterm", "LC_ALL": "C.UTF-8", "PS1": "> "}
        # Looks like a QEMU without a name.
        shutil.copy(os.path.realpath("/bin/sh"), "qemu-system-x86_64")
        with subprocess.Popen([f"{top}/qemu-system-x86_64", "-c", "read -r line; :", "vm", "-kernel",
                               "/none/shop-completed.elf", "-gdb", f"unix:{top}/gdb.sock,server=on,wait=off"],
                              stdin=subprocess.PIPE):
            tables(top)
            for name, argv, begin in shells(top, env):
                shell = Shell(argv, begin, env)
                for what, typed, wanted in LINES:
                    try:
                        got = shell.line(typed)
                    except TimeoutError as e:
                        check(False, f"{name}: {what}", e)
                        break
                    # A blank or slash behind it is taken back by some.
                    check(got.rstrip(" /") == wanted, f"{name}: {what}", f"{got!r}, not {wanted!r}")
                shell.close()
        check(not os.path.exists("made"), "no name was executed")
    print(f"1..{nr}")


main()
