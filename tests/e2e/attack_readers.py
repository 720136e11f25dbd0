#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""attack_readers.py UNISCOPE MKSESSION PLANTED OPENER: what is left to a process that reads files, once it was taken over.
PLANTED: a library that makes system calls in it. OPENER: uniscope-opener with that code. TAP."""
import ctypes
import os
import re
import shutil
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from attack import check, children, finish, has_no_rights, parses_nothing, status_of, wait_for  # noqa: E402

U, MKSESSION, PLANTED, PLANTED_OPENER = map(os.path.abspath, sys.argv[1:5])
OTHER = 65534
READERS = (["report"], ["export", "-f", "folded"], ["import", "-o", "/nonexistent/s"], ["serve", "-p", "0"], ["parse-trace"],
           ["parse-trace-fg"], ["runtime-breakdown"], ["summarize-trace"], ["symbolize", "SYMS"], ["mirage-trace-viewer"],
           ["trace", "report"], ["trace", "graph"], ["trace", "replay"], ["trace", "breakdown"], ["trace", "findings"],
           ["trace", "threads"], ["trace", "wakeups"], ["trace", "why", "FILE", "1"], ["trace", "syscalls"],
           ["uk-trace", "list"], ["uk-trace", "ctf", "-o", "/nonexistent/d"])
AS_OTHER = {"user": OTHER, "group": OTHER, "extra_groups": []}
OPENERS = 0x6  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
# of x86_64: socket, execve, kill, ptrace, mount, setuid, open_by_handle_at, bpf, process_vm_readv, io_uring_setup
CALLS = (41, 59, 62, 101, 165, 105, 304, 321, 310, 425)


def rights_of(program, args, fifo, **more):
    """The rights of the worker and of its children, while it waits for the first byte."""
    args = [{"FILE": fifo, "SYMS": f"{fifo}.syms"}.get(a, a) for a in args]
    # pylint: disable=consider-using-with
    p = subprocess.Popen([program, *args, *([] if fifo in args else [fifo])], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)

    def waits():
        assert p.poll() is None, f"{args}: {p.stderr.read()}"
        with open(f"/proc/{p.pid}/syscall", encoding="utf-8") as f:
            return f.read().split()[0] in ("257", "7")  # openat of a pipe without a writer; or poll, if it was opened

    try:
        wait_for(waits)
        return status_of(p.pid), [status_of(c) | {"Small": parses_nothing(c)} for c in children(p.pid)]
    finally:
        p.kill()
        p.wait()


def rights(top):
    capable, fifo = f"{top}/uniscope", f"{top}/fifo"
    shutil.copy(U, capable)
    subprocess.run(["setcap", "cap_sys_ptrace,cap_perfmon,cap_bpf,cap_dac_override+ep", capable], check=True)
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    with open(f"{fifo}.syms", "w", encoding="utf-8") as f:
        f.write("0000000000001000 T first\n")
    os.chmod(f"{fifo}.syms", 0o644)
    for args in READERS:
        for program, more in ((U, {}), (U, AS_OTHER), (capable, AS_OTHER)):
            worker, openers = rights_of(program, args, fifo, **more)
            assert has_no_rights(worker), f"{args}: {worker}"
            assert "0" not in worker["Uid"] | worker["Gid"], f"{args}: {worker}"
            assert len(openers) == (0 if more else 1), f"{args}: {openers}"
            for o in openers:
                assert worker["Groups"] == [], f"{args}: {worker}"
                assert o["CapPrm"] == o["CapEff"] == OPENERS and o["CapInh"] == o["CapAmb"] == 0, f"{args}: {o}"
                assert o["NoNewPrivs"] == 1 and o["Seccomp"] == 2 and o["Small"], f"{args}: {o}"


def session(top, owner=0):
    name = f"{top}/private/s.uniscope"
    os.makedirs(f"{top}/private", 0o700)
    subprocess.run([MKSESSION, name, "500", "2"], check=True, stdout=subprocess.DEVNULL)
    for folder, _, files in os.walk(f"{top}/private"):
        os.chown(folder, owner, owner)
        for f in files:
            os.chown(f"{folder}/{f}", owner, owner)
    return name


def run(args, **more):
    return subprocess.run([U, *args], capture_output=True, timeout=300, check=False, **more)


def good(args, **more):
    r = run(args, **more)
    assert r.returncode == 0, f"{args}: {r.stderr.decode()}"
    return r.stdout


def is_roots(path, kind=stat.S_ISREG):
    st = os.stat(path)
    return st.st_uid == 0 and st.st_mode & 0o77 == 0 and kind(st.st_mode) and not [
        f for f in os.listdir(os.path.dirname(path)) if ".tmp-" in f]


def root_reads_and_writes(top):
    """A file that root asks for is there, is root's, and is complete."""
    s = session(top, OTHER)
    out = f"{top}/private"
    folded = good(["export", "-f", "folded", "--force", s])
    assert folded.count(b"\n") > 10
    for name in ("f.folded", "./g.folded"):
        good(["export", "-f", "folded", "--force", s, "-o", name], cwd=out)
        assert is_roots(f"{out}/{name}") and open(f"{out}/{name}", "rb").read() == folded, name
    good(["export", "-f", "folded", "--force", s, "-o", f"{out}/f.folded"])
    good(["export", "--force", "--all", f"{out}/all", s])
    assert len(os.listdir(f"{out}/all")) > 5 and all(is_roots(f"{out}/all/{f}", lambda m: True)
                                                     for f in os.listdir(f"{out}/all"))
    good(["report", "--force", "--html", f"{out}/page.html", s])
    assert is_roots(f"{out}/page.html")
    good(["import", f"{out}/f.folded", "-o", f"{out}/i.uniscope"])
    good(["import", f"{out}/f.folded", "-o", f"{out}/i.uniscope", "--overwrite"])
    assert is_roots(f"{out}/i.uniscope", stat.S_ISDIR) and is_roots(f"{out}/i.uniscope/session.json")
    assert good(["export", "-f", "folded", "--force", s, "-o", "/dev/stdout"]) == folded
    pipe = subprocess.run(["bash", "-c", f"{U} export -f folded --force {s} -o >(cat) | cat; "
                           f"{U} export -f folded <({U} export -f bundle --force {s}); wait"],
                          capture_output=True, timeout=300, check=False)
    return None if pipe.returncode == 0 or b"bundle" in pipe.stderr else pipe.stderr.decode()


def preloaded(**env):
    return {**os.environ, "LD_PRELOAD": PLANTED, **env}


def calls(top):
    s = session(top)
    os.chmod(f"{top}/private", 0o755)
    for nr in CALLS:
        r = run(["report", s], env=preloaded(PLANTED_CALL=str(nr)))
        text = r.stderr.decode()
        assert r.returncode == 1 and text.count("\n") == 1 and f"system call {nr}," in re.sub(" +", " ", text), \
            f"{nr}: {r.returncode} {text}"


def has_landlock():
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 1


def writes(top):
    """An opener that was led to write elsewhere; and a user's own process."""
    s, other = session(top), f"{top}/elsewhere"
    os.mkdir(other)
    os.mkdir(f"{top}/out")
    shutil.copytree(s, f"{top}/trigger")
    shutil.copy(U, top)
    shutil.copy(PLANTED_OPENER, f"{top}/uniscope-opener")
    for user, program, env in ((0, f"{top}/uniscope", {}), (OTHER, U, preloaded(PLANTED_FILE="1"))):
        os.chown(other, user, user)
        for d, _, files in os.walk(f"{top}/trigger"):
            for f in (d, *(f"{d}/{f}" for f in files)):
                os.chown(f, user, user)
        os.chown(top, user, user)
        r = subprocess.run([program, "export", "-f", "folded", f"{top}/trigger", "-o", f"{top}/out/x"], user=user, group=user,
                           extra_groups=[], env=env, capture_output=True, timeout=300, check=False)
        assert r.returncode == 1 and b"trigger" in r.stderr, r.stderr.decode()
        assert not has_landlock() or not os.path.exists(f"{other}/made"), f"user {user} wrote"


def other_build(top):
    """One line, and nothing is read by it."""
    shutil.copy(U, top)
    with open(os.path.join(os.path.dirname(U), "uniscope-opener"), "rb") as f:
        opener = re.sub(rb"id-\d{10}", b"id-0000000000", f.read())
    with open(f"{top}/uniscope-opener", "wb") as f:
        f.write(opener)
    os.chmod(f"{top}/uniscope-opener", 0o755)
    os.chown(top, 0, 0)
    r = subprocess.run([f"{top}/uniscope", "report", session(top)], capture_output=True, timeout=300, check=False, text=True)
    assert r.returncode == 1 and not r.stdout and re.fullmatch(r"uniscope: .*is of another build.*\n", r.stderr), r


def leaves_nothing(top):
    """A worker unpacks a pipe into a folder, which is gone afterwards, also if the worker was killed."""
    name, temporary = session(top), f"{top}/tmp"
    os.mkdir(temporary)
    os.chmod(temporary, 0o1777)
    packed = subprocess.run(["tar", "-c", "-C", os.path.dirname(name), os.path.basename(name)], capture_output=True, check=True).stdout
    with open(f"{top}/tar", "wb") as f:
        f.write(packed)
    fifo, more = f"{top}/fifo", {"stdout": subprocess.PIPE, "env": {**os.environ, "TMPDIR": temporary}}
    with open(f"{top}/tar", "rb") as f:
        r = subprocess.run([U, "report", "-"], stdin=f, check=False, timeout=300, **more)
    assert r.returncode == 0 and b"SELF" in r.stdout and not os.listdir(temporary), f"{r}: {os.listdir(temporary)}"
    os.mkfifo(fifo)
    with subprocess.Popen([U, "trace", "syscalls", "-"], stdin=subprocess.PIPE, **more) as p:
        p.stdin.write(packed[:len(packed) // 2])
        p.stdin.flush()
        wait_for(lambda: os.listdir(temporary) or p.poll() is not None)
        p.kill()
    wait_for(lambda: not os.listdir(temporary))


def opener_ends(top):
    """With its worker, whatever it does."""
    fifo = f"{top}/fifo"
    os.mkfifo(fifo)
    # pylint: disable=consider-using-with
    p = subprocess.Popen([U, "report", fifo], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    opener = wait_for(lambda: children(p.pid))[0]
    p.kill()
    p.wait()

    def ended():
        try:
            with open(f"/proc/{opener}/stat", encoding="utf-8") as f:
                return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return True

    wait_for(ended)


if os.geteuid() != 0:
    print("1..0 # SKIP only root can be two users")
    sys.exit(0)
check("a command that reads files has no right but its user's", rights)
check("root's outputs are complete and root's, also among another user's files", root_reads_and_writes)
check("other system calls end it with one line", calls)
check("it writes only where its outputs are", writes, where="/var/tmp")
check("what it unpacks is gone afterwards", leaves_nothing, where="/var/tmp")
check("the opener ends with its worker", opener_ends)
check("an opener of another build is refused in one line", other_build, where="/var/tmp")
finish()
