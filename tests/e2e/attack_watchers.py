#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""attack_watchers.py UNISCOPE BUILD SRCROOT PLANTED: what is left to a process that watches a guest and reads its image, once
it was taken over. PLANTED: a library that makes system calls in it. TAP."""
import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import types
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import attack  # noqa: E402
from attack import check, children, confined, finish, has_no_rights, name_of, parses_nothing, skip, state_of, status_of, tree, wait_for, whole_calls  # noqa: E402

U, BUILD, SRC, PLANTED = map(os.path.abspath, sys.argv[1:5])
ALL = bool(os.environ.get("UNISCOPE_ALL"))  # else each command and way once
OTHER = 65534
AS_OTHER = {"user": OTHER, "group": OTHER, "extra_groups": []}
IMAGE = "shares-gcc-fp"
OPENERS, OBSERVERS = 0x6, 0xc400080004  # and SYS_PTRACE, SYSLOG, PERFMON, BPF
CONNECTS = 0x6  # the guardian of a gdb stub: DAC_OVERRIDE and DAC_READ_SEARCH, for its socket
STUBS = 0x80004  # the observer of its VMM: SYS_PTRACE, DAC_READ_SEARCH
# A command that keeps rights has these at most: NICE, IPC_LOCK, KILL, SETUID, SETGID, and those of its children.
PATCHES = 0x8840e6  # whoever waits until it has to switch functions off
LOOKS = PATCHES | 0x1c400000000 | 0x1000000 | 0x200000 | 0x408  # observers', SYS_RESOURCE, SYS_ADMIN, NET_BIND_SERVICE, FOWNER
KEEPER = 0xa  # removes a folder in /tmp of another user: DAC_OVERRIDE, FOWNER
MAPPED = 0x10000000000  # CHECKPOINT_RESTORE: a process' mapped files
NICE = 0x800000  # SYS_NICE: a pause is short on a busy host
SETCAP = 0xc000080002  # no SYSLOG; DAC_OVERRIDE instead of READ_SEARCH
# Debian's kernels with perf_event_paranoid 3 want CAP_SYS_ADMIN for perf events, so the observer has it there.
ADMIN = 0x200000 if subprocess.run(["setpriv", "--bounding-set", "-sys_admin", sys.executable, f"{SRC}/tests/support/can.py", "perf"],
                                   env={**os.environ, "UNISCOPE_MUST": ""}, stdout=subprocess.DEVNULL, check=False).returncode else 0
# of x86_64: socket, execve, kill, ptrace, process_vm_readv, perf_event_open; bpf, whose command 0 makes a map
CALLS = (41, 59, 62, 101, 310, 298, 321) if ALL else (41, 62, 310)
RECORD, TOP, PAUSE = ["record", "-d", "0", "-q"], ["top", "--batch", "--count", "0"], ["--method", "pause"]
TRACE = ["trace", "record", "-d", "0", "-q"]
reads_bare = functools.partial(attack.reads_bare, U, IMAGE)
SAVE = ["--save-replay", "@/replay"]  # @: a folder
COMMANDS = {"kvm": (RECORD, RECORD + ["--exits"], TOP), "proc": (RECORD, TOP, RECORD + PAUSE, TOP + PAUSE, RECORD + SAVE),
            "gdb": (RECORD, TOP, RECORD + SAVE), "stream": (RECORD, TOP)} if ALL else {"kvm": (RECORD,), "proc": (TOP, RECORD + PAUSE), "gdb": (RECORD + SAVE,),
                                                                                                     "stream": (RECORD,)}


class Guest:
    """One of KVM, by QEMU (theirs: of the other user); one of its gdb stub; or a process, of the other user. traced: it has our tracer."""

    def __init__(self, scheme, theirs=False, traced=False):
        self.folder = tempfile.mkdtemp(prefix="uniscope-attack-")
        self.socket = f"{self.folder}/g"
        self.command = (
            [f"{SRC}/lab/boot", "--accel", "tcg", "--serial", "stdio", "--gdb", f"unix:{self.socket},server=on,wait=off", "--append", "loop=1",
             f"{BUILD}/lab/{IMAGE}.elf"] if scheme == "gdb" else
            [f"{SRC}/lab/boot", "--accel", "kvm", "--serial", "stdio", "--append", "loop=1", f"{BUILD}/lab/{IMAGE}.elf"]
                        if scheme == "kvm" else [f"{BUILD}/lab/process/{IMAGE}", "loop=1"])
        self.functions, self.one = ("work_*", "work_leaf") if scheme == "proc" else ("burn_*", "burn_a")
        if traced and scheme == "proc":
            self.command = [shutil.copy(f"{BUILD}/tests/e2e/proctraced", f"{self.folder}/{IMAGE}"), "0", "4", "1000"]
            os.chmod(self.folder, 0o755)
        elif traced or scheme == "stream":
            self.command[-1] = shutil.copy(f"{BUILD}/lab/trace/trace-{IMAGE}.elf", f"{self.folder}/{IMAGE}.elf")
            os.chmod(self.folder, 0o755)
        if scheme == "stream":  # it samples itself
            self.command = [f"{SRC}/lab/boot", "--accel", "tcg", "--serial", "stdio", "--port", f"path={self.socket}", "--append",
                            "tick=1000 port=1 ring=256 loop=1", self.command[-1]]
        self.more = AS_OTHER if scheme == "proc" or theirs else {}
        if theirs:
            self.more = AS_OTHER | {"extra_groups": [os.stat("/dev/kvm").st_gid]}
        self.image = self.command[0] if scheme == "proc" else self.command[-1]
        self.scheme = scheme

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.p = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **self.more)
        self.p.stdin.write("\n")
        self.p.stdin.flush()
        for line in self.p.stdout:
            if line.startswith(("lab: running", "ready")):
                break
        self.target = f"{self.scheme}:unix={self.socket}" if self.scheme in ("gdb", "stream") else f"{self.scheme}:pid={self.p.pid}"
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()
        self.p.stdout.close()
        self.p.stdin.close()
        shutil.rmtree(self.folder)


def sampled(command, folder, p):
    """It has all it needs, and goes on."""
    assert p.poll() is None, f"{command}: {p.stderr.read()}"
    return os.path.exists(f"{folder}/s/session.json") if "record" in command else len(p.stdout.readline()) > 0


def rights_of(program, command, guests, folder, **more):
    """The rights of each process, while the guests are sampled. It ends well after a Ctrl-C."""
    args = [program, *(w.replace("@", folder) for w in command), *(g.target for g in guests), *(["-e", guests[0].image] if len(guests) == 1 else []),
            *(["-o", f"{folder}/s"] if "record" in command else [])]
    with subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more) as p:
        try:
            wait_for(lambda: sampled(command, folder, p))
            all_of = [status_of(q) | {"Small": parses_nothing(q), "Name": name_of(q)} for q in tree(p.pid)]
            p.send_signal(signal.SIGINT)
            _, err = p.communicate(timeout=120)
            assert p.returncode == 0, f"{args}: {p.returncode} {err}"
        finally:
            p.kill()
    shutil.rmtree(f"{folder}/s", ignore_errors=True)
    return all_of


def rights(top, guest):
    """Only the children have capabilities, and few of them."""
    capable, folder = f"{top}/uniscope", f"{top}/out"
    for name in (U, f"{os.path.dirname(U)}/uniscope-opener"):
        shutil.copy(name, top)
    subprocess.run(["setcap", "cap_sys_ptrace,cap_perfmon,cap_bpf,cap_dac_override%s+ep" % (",cap_sys_admin" if ADMIN else ""), capable],
                   check=True)
    os.mkdir(folder)
    for command in COMMANDS[guest.scheme]:
        admin = 0 if "pause" in command else ADMIN
        more_caps = MAPPED | NICE if guest.scheme == "proc" else 0
        cases = [(U, {}, (0, OPENERS, OBSERVERS | admin | more_caps)), (capable, AS_OTHER, (0, SETCAP | admin))]
        if guest.scheme == "gdb":
            cases = [(U, {}, (0, CONNECTS, OPENERS, STUBS | NICE))]
        if guest.scheme == "stream":
            cases = [(U, {}, (0, OPENERS))]
        if "--exits" in command:
            cases = cases[:1]  # tracefs is root's
        if guest.scheme == "proc" and not ADMIN:
            cases.append((U, AS_OTHER, (0, 0)))
        for program, more, caps in cases:
            os.chown(folder, more.get("user", 0), -1)
            found = rights_of(program, command, [guest], folder, **more)
            assert [s["CapPrm"] for s in found] == list(caps), f"{command} {more}: {found}"
            assert all(s["Small"] or (s["Name"] == "uni-guardian" and "0" not in s["Uid"]) for s in found[1:]), f"{command} {more}: {found}"
            assert all(map(confined, found)) and has_no_rights(found[0]), f"{command} {more}: {found}"
            assert "0" not in found[0]["Uid"] | found[0]["Gid"] and (more or not found[0]["Groups"]), f"{command}: {found[0]}"


def reads(top, guest):
    """Whatever reads the image, or maps it, has given up its rights before."""
    record = ["record", guest.target, "-d", "1", "-q", "-o", f"{top}/s"]
    watch = record + ["--watch", "lab_truth:8", "--save-replay", f"{top}/r"]
    ways = {"kvm": [record], "proc": [record + PAUSE, record, watch, ["stacks", guest.target]],
            "gdb": [watch, record, ["stacks", guest.target]], "stream": [record]}[guest.scheme]
    for args in ways if ALL else ways[:1]:
        shutil.rmtree(f"{top}/s", ignore_errors=True)
        reads_bare(f"{top}/log", [*args, "-e", guest.image])


def by_terminal(top, guest):
    """A terminal device is opened before the rights go, and its settings are put back afterwards."""
    tty = f"{top}/tty"
    with subprocess.Popen([sys.executable, f"{SRC}/tests/e2e/stream_proxy.py", tty, guest.socket, "tty", "0"]) as proxy:
        try:
            wait_for(lambda: os.path.exists(tty))
            settings = subprocess.check_output(["stty", "-g", "-F", tty])
            there = types.SimpleNamespace(target=f"stream:tty={tty}", image=guest.image, scheme="stream")
            found = rights_of(U, RECORD, [there], top)
            assert [s["CapPrm"] for s in found] == [0, OPENERS] and has_no_rights(found[0]) and "0" not in found[0]["Uid"], found
            reads(top, there)
            assert subprocess.check_output(["stty", "-g", "-F", tty]) == settings
        finally:
            proxy.kill()


def dead(top):
    """A guest that is a file is read without rights, too."""
    name = f"{top}/{IMAGE}"
    subprocess.run([f"{BUILD}/tests/e2e/mkreplay", name, "1", "20"], check=True, stdout=subprocess.DEVNULL)
    for args in (["stacks"], ["top", "--batch", "--count", "1"]):
        reads_bare(f"{top}/log", [*args, f"replay:file={name}"])


def looks(top, guest):
    """So do those that only say how a guest would be sampled."""
    reads_bare(f"{top}/log", ["ls"])
    reads_bare(f"{top}/log", ["doctor", guest.target])


def finds_ram(top, guest):
    """Each piece of another process' memory costs a system call. All of a VMM, 10,000 pieces, is searched only if RAM is not its largest mapping."""
    subprocess.run(["strace", "-f", "-qq", "-o", f"{top}/log", "-e", "trace=pread64", U, "stacks", guest.target, "-e", guest.image], check=True,
                   timeout=300, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(f"{top}/log", encoding="utf-8", errors="replace") as f:
        nr = sum(1 for _ in f)
    assert nr < 2000, nr


def planted(top, guest, target, nr, *options):
    args = [U, "record", target, *options, "-e", guest.image, "-d", "1", "-q", "-o", f"{top}/s"]
    r = subprocess.run(args, capture_output=True, timeout=300, check=False,
                       env={**os.environ, "LD_PRELOAD": PLANTED, "PLANTED_CALL": str(nr)})
    text = re.sub(" +", " ", r.stderr.decode())
    assert r.returncode == 1 and text.count("\n") == 1 and not os.path.exists(f"{top}/s"), f"{nr}: {r.returncode} {text}"
    return text


def calls(top, guest):
    for nr in CALLS:
        ways = ([(guest.target, "--method", "bpf")] if guest.scheme == "kvm" else [(guest.target,)] if guest.scheme == "gdb" else
                [(f"{guest.target},via={way}",) for way in ("perf", "stop")])
        for target, *options in ways:
            text = planted(top, guest, target, nr, *options)
            assert f"system call {nr}," in text, f"{target} {nr}: {text}"


def judge(top, guest):
    """A process without rights asks first whether the image makes it necessary to stop the guest."""
    text = planted(top, guest, guest.target, CALLS[0])
    assert "without rights has ended" in text, text


def lets_go(top, guest):
    """SIGSTOP hits the worker again and again, often while it holds the guest: the guest runs on, each time."""
    def ticks():
        with open(f"/proc/{guest.p.pid}/stat", encoding="utf-8") as f:
            return int(f.read().rsplit(")", 1)[1].split()[11])

    args = [U, "record", guest.target, "-e", guest.image, "-d", "0", "-q", "-F", "1000", "-o", f"{top}/s", *PAUSE]
    with subprocess.Popen(args) as p:
        try:
            wait_for(lambda: os.path.exists(f"{top}/s/session.json"))
            for _ in range(5):
                p.send_signal(signal.SIGSTOP)
                before = ticks()
                wait_for(lambda before=before: ticks() > before)
                p.send_signal(signal.SIGCONT)
        finally:
            p.kill()


def hurries(top, guest):
    """Both sides of a pause come before others, as they did when the command itself stopped the guest."""
    def first(pid):
        return any(os.sched_getscheduler(int(tid)) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO for tid in os.listdir(f"/proc/{pid}/task"))

    with subprocess.Popen([U, "record", guest.target, "-e", guest.image, "-d", "0", "-q", "-o", f"{top}/s", *PAUSE]) as p:
        try:
            wait_for(lambda: os.path.exists(f"{top}/s/session.json"))
            wait_for(lambda: first(p.pid) and [first(c) for c in children(p.pid)] == [False, True])
        finally:
            p.kill()


def end_together(top, guest):
    """The children end with the worker, whatever ends it."""
    with subprocess.Popen([U, "record", guest.target, "-e", guest.image, "-d", "0", "-q", "-o", f"{top}/s"]) as p:
        try:
            wait_for(lambda: os.path.exists(f"{top}/s/session.json"))
            rest = children(p.pid)
            assert len(rest) == (3 if guest.scheme == "gdb" else 2), rest
        finally:
            p.kill()
    for pid in rest:
        wait_for(lambda pid=pid: not os.path.exists(f"/proc/{pid}") or
                 open(f"/proc/{pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()[0] in "ZX")


def guardian(top, guest):
    """It lets the guest go after the recorder was killed, and has no right to connect any more when it reads a reply."""
    args = ["strace", "-f", "-qq", "-o", f"{top}/log", "-e", "trace=capset,recvfrom,sendto", U, "record", guest.target, "-e", guest.image, "-d", "0",
            "-q", "-o", f"{top}/s"]
    with subprocess.Popen(args) as p:
        wait_for(lambda: os.path.exists(f"{top}/s/session.json"))
        (recorder,) = children(p.pid)
        pid = str(next(c for c in children(recorder) if name_of(c) == "uni-guardian"))
        os.kill(recorder, signal.SIGKILL)
        p.wait(timeout=120)
    with open(f"{top}/log", encoding="utf-8", errors="replace") as f:
        own = [call for who, call in whole_calls(f) if who == pid]
    gone = next((i for i, call in enumerate(own) if re.match(r"capset\(.*effective=0, permitted=0, inheritable=0.* = 0$", call)), None)
    replies = [i for i, call in enumerate(own) if attack.is_parsed(IMAGE, call)]
    assert replies and gone is not None and gone < replies[0], own
    wait_for(lambda: b"lab_" in subprocess.run([U, "stacks", guest.target, "-e", guest.image], capture_output=True, check=False).stdout)


def stopped(top, guest):
    """Whoever stops the vCPUs of another user's VMM is that user, without capabilities. It is out of that user's reach."""
    for command in (RECORD + PAUSE, TOP + PAUSE) if ALL else (RECORD + PAUSE,):
        found = rights_of(U, command, [guest], top)
        assert found[0]["Uid"] == found[0]["Gid"] == {str(OTHER)} and not found[0]["Groups"] and confined(found[0]), f"{command}: {found}"
        assert [s["CapPrm"] for s in found if s["Name"] == "uniscope-obs"] == [STUBS | NICE], f"{command}: {found}"
        assert all(s["Small"] or (has_no_rights(s) and s["Uid"] == {str(OTHER)}) for s in found), f"{command}: {found}"
    reads_bare(f"{top}/log", ["record", guest.target, *PAUSE, "-e", guest.image, "-d", "1", "-q", "-o", f"{top}/s"])
    shutil.rmtree(f"{top}/s")
    with subprocess.Popen([U, *RECORD, *PAUSE, guest.target, "-e", guest.image, "-o", f"{top}/s"]) as p:
        try:
            wait_for(lambda: os.path.exists(f"{top}/s/session.json") or p.poll() is not None)
            for pid in tree(p.pid):
                r = subprocess.run(["head", "-c", "1", f"/proc/{pid}/mem"], **AS_OTHER, capture_output=True, check=False)
                assert b"Permission denied" in r.stderr, f"{name_of(pid)}: {r}"
        finally:
            p.kill()


def traced(top, guest):
    """Whoever reads the image and the rings, and patches the code, has no rights. Its guardian has them, and reads nothing."""
    command = [*TRACE, "--filter", guest.functions]
    found = rights_of(U, command, [guest], top)
    rest = [s for s in found[1:] if s["Name"] != "uni-unpatch"]
    assert len(rest) == len(found) - (1 if guest.scheme == "stream" else 2), found
    assert confined(found[0]) and has_no_rights(found[0]) and "0" not in found[0]["Uid"] | found[0]["Gid"], found
    assert all(confined(s) and (s["Small"] or "0" not in s["Uid"]) for s in rest), found
    for args in ([*command, "-d", "1"], ["trace", "dump", "-q"], ["trace", "start", "--filter", guest.functions], ["trace", "stop"]):
        reads_bare(f"{top}/log", [*args, guest.target, "-e", guest.image, *(["-o", f"{top}/s"] if "-q" in args else [])])
        shutil.rmtree(f"{top}/s", ignore_errors=True)
    reads_bare(f"{top}/log", [*command, "-d", "1", "-w", f"{top}/s.tar", guest.target, "-e", guest.image])
    if guest.scheme != "proc":
        reads_bare(f"{top}/log", ["trace", "syscalls", guest.target, "--image", guest.image], status=1)  # it has none
    r = subprocess.run([U, "trace", "report", f"{top}/s.tar"], capture_output=True, text=True, check=False)
    assert guest.one in r.stdout, r


def others(top, guest):
    """Breakpoints and the older front ends, too."""
    image = ["-e", guest.image]
    for args, status in ((["count", "-d", "1", guest.target, guest.one, *image], 1),  # too often
                         (["compat", "uniprof", "-F", "100", "-T", "1", "-E", guest.image, f"{top}/out", guest.target], 0),
                         (["compat", "xenctx", *image, guest.target], 0),
                         (["compat", "uk-trace", "fetch", "-o", f"{top}/t", "--target", guest.target, guest.image], 1),  # it has none
                         (["trace", "mirage", "-o", f"{top}/m", guest.target], 1)):
        if guest.scheme == "gdb" or args[0] != "count":
            reads_bare(f"{top}/log", args, status=status)
    with open(f"{top}/out", encoding="utf-8") as f:
        assert "burn" in f.read()


def limited(top, guest):
    """Whoever still has rights while it reads has those only that looking at a guest takes, and makes only system calls for that."""
    trace = [*TRACE, "--filter", guest.functions]
    ways = [trace, RECORD + PAUSE] if guest.scheme == "kvm" else [trace]
    for command in ways if ALL else ways[:1]:
        found = rights_of(U, command, [guest], top)
        assert all(confined(s) and s["CapPrm"] & ~LOOKS == 0 for s in found if s["Name"] != "uni-unpatch"), f"{command}: {found}"
        guardians = [s for s in found if s["Name"] == "uni-unpatch"]
        assert len(guardians) == (command == trace) and all(s["CapPrm"] == PATCHES and s["NoNewPrivs"] == 1 and s["Seccomp"] == 2
                                                            for s in guardians), found
    for nr in (175, 272):  # init_module, unshare, which nobody is refused
        r = subprocess.run([U, "trace", "stop", guest.target, "-e", guest.image], capture_output=True, text=True, timeout=300, check=False,
                           env={**os.environ, "LD_PRELOAD": PLANTED, "PLANTED_CALL": str(nr), "PLANTED_LIMITED": "1"})
        said = set(re.findall("planted: (.*)", r.stderr))
        assert r.returncode == 0 and said == {"Operation not permitted"}, f"{nr}: {r.returncode} {r.stderr}"


def ask(url, uid):
    host, path = url.removeprefix("http://").split("/", 1)
    os.seteuid(uid)  # the socket is that user's
    try:
        s = socket.socket()
    finally:
        os.seteuid(0)
    with s:
        s.settimeout(300)
        s.connect(("127.0.0.1", int(host.split(":")[1])))
        s.sendall(f"GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return int(s.recv(4096).split()[1])


def served(_, guest):
    """serve --ftrace: neither has whoever answers requests. Only the caller may switch, not the user that the server has become."""
    with subprocess.Popen([U, "serve", "--ftrace", "-p", "0", guest.target, "-e", guest.image], stderr=subprocess.PIPE, text=True) as p:
        try:
            url = re.search("http:[^ ]*", p.stderr.readline()).group(0)
            server = status_of(p.pid)
            assert confined(server) and has_no_rights(server) and "0" not in server["Uid"], server
            assert [ask(f"{url}tracing_enable/on", uid) for uid in (OTHER, 0)] == [403, 200]
            p.send_signal(signal.SIGINT)
            assert p.wait(timeout=120) == 0, p.stderr.read()
        finally:
            p.kill()


def unpatches(top, guest):
    """The tracer without rights is killed: its guardian switches the functions off."""
    command = [w for w in TRACE if w != "-q"] + ["--filter", guest.functions]
    with subprocess.Popen([U, *command, guest.target, "-e", guest.image, "-o", f"{top}/s"], stderr=subprocess.PIPE, text=True) as p:
        try:
            assert re.search("functions at .* are traced", p.stderr.readline())
        finally:
            p.kill()
    r = subprocess.run([U, "trace", "stop", guest.target, "-e", guest.image], capture_output=True, text=True, check=False)
    assert r.returncode == 0 and ": 0 places" in r.stderr, r


def looked_at(top, guest):
    """One look at the threads or vCPUs of another user's VMM is that user's, too."""
    for more in ([], ["--registers"]) if ALL else ([],):
        reads_bare(f"{top}/log", ["stacks", *more, guest.target, "-e", guest.image])


def is_held(guest):
    return any("TracerPid:\t0\n" not in open(f"/proc/{guest.p.pid}/task/{t}/status", encoding="utf-8").read()
               for t in os.listdir(f"/proc/{guest.p.pid}/task"))


def wakes(top, guest):
    """SIGSTOP hits whoever stops the vCPUs while it holds them: its watchdog, which has no rights either, wakes it."""
    with subprocess.Popen([U, *RECORD, *PAUSE, "-F", "5000", guest.target, "-e", guest.image, "-o", f"{top}/s"]) as p:
        def stops_while_it_holds():
            p.send_signal(signal.SIGCONT)
            p.send_signal(signal.SIGSTOP)
            wait_for(lambda: state_of(p.pid) == "T")
            return is_held(guest)

        try:
            wait_for(lambda: os.path.exists(f"{top}/s/session.json"))
            wait_for(stops_while_it_holds)
            wait_for(lambda: not is_held(guest), 20)
        finally:
            p.kill()


def beside_a_command(top, guest):
    """The command of `record ... -- COMMAND` has the rights of the caller, the recorder has none. It ends with the recording."""
    script = 'grep CapEff: /proc/self/status >"$1/caps"; echo $$ >"$1/pid"; exec sleep 1000'
    with subprocess.Popen([U, "record", guest.target, "-e", guest.image, "-q", "-o", f"{top}/s", "--", "sh", "-c", script, "sh", top],
                          stderr=subprocess.PIPE, text=True) as p:
        try:
            wait_for(lambda: os.path.exists(f"{top}/pid") and os.path.getsize(f"{top}/pid") or p.poll() is not None)
            recorder = status_of(p.pid)
            with open(f"{top}/pid", encoding="utf-8") as f:
                command = int(f.read())
            p.send_signal(signal.SIGINT)
            _, err = p.communicate(timeout=120)
        finally:
            p.kill()
    assert p.returncode == 0 and "SIGTERM" in err, err
    assert confined(recorder) and has_no_rights(recorder), recorder
    with open(f"{top}/caps", encoding="utf-8") as f:
        assert int(f.read().split()[1], 16) == status_of(os.getpid())["CapEff"]
    wait_for(lambda: not os.path.exists(f"/proc/{command}"))


def server_rights(top, guest):
    """Whoever answers requests and reads the session has no rights. Its starter has, and the recorder gave its own up."""
    with subprocess.Popen([U, "serve", "-p", "0", guest.target, "-e", guest.image, "-o", f"{top}/s"], stderr=subprocess.PIPE, text=True) as p:
        try:
            url = p.stderr.readline().split()[2]
            wait_for(lambda: os.path.exists(f"{top}/s/session.json") or p.poll() is not None)
            with urllib.request.urlopen(url) as page:
                assert page.status == 200
            names = {name_of(q): status_of(q) for q in children(p.pid)}
            (starter,) = [q for q in children(p.pid) if name_of(q) == "uni-starter"]
            server, recorder = status_of(p.pid), status_of(children(starter)[0])
            p.send_signal(signal.SIGINT)
            p.stderr.read()
            assert p.wait(timeout=120) == 0, p.returncode
        finally:
            p.kill()
    assert set(names) == {"uni-starter", "uniscope-opener"} and names["uniscope-opener"]["CapPrm"] == OPENERS, names
    for s in (server, recorder):
        assert confined(s) and has_no_rights(s) and "0" not in s["Uid"], s


def run_rights(top, accel):
    """While `run` records, the process that starts QEMU has rights, and children of the one that reads."""
    with subprocess.Popen([U, "run", "--accel", accel, "-d", "0", "-q", "-o", f"{top}/s", "--append", "loop=1", f"{BUILD}/lab/{IMAGE}.elf"]) as p:
        try:
            wait_for(lambda: os.path.exists(f"{top}/s/session.json") or p.poll() is not None)
            (_, *found) = [status_of(q) | {"Name": name_of(q), "Small": parses_nothing(q)} for q in tree(p.pid)]
            p.send_signal(signal.SIGINT)
            assert p.wait(timeout=120) == 0, p.returncode
        finally:
            p.kill()
    assert sum(s["Name"] == "uniscope" and confined(s) and has_no_rights(s) for s in found) == 1, found
    assert all(s["Small"] or (s["Name"] == "uni-keeper" and s["CapPrm"] == KEEPER) or
               (s["CapPrm"] in (0, CONNECTS) and "0" not in s["Uid"]) for s in found), found


def exact_rights(top):
    """Few rights are left to whoever starts and ends QEMU, once it runs. Whoever counts has none. QEMU writes into a folder of root's."""
    def has_calls():
        return os.path.exists(f"{top}/s/guest-0/events-vcpu0") and os.path.getsize(f"{top}/s/guest-0/events-vcpu0") > 4096

    with subprocess.Popen([U, "run", "--exact=calls", "-d", "0", "-q", "-o", f"{top}/s", "--append", "loop=1", f"{BUILD}/lab/{IMAGE}.elf"]) as p:
        try:
            wait_for(lambda: has_calls() or p.poll() is not None)
            command, *found = [status_of(q) | {"Name": name_of(q)} for q in tree(p.pid)]
            p.send_signal(signal.SIGINT)
            assert p.wait(timeout=120) == 0, p.returncode
        finally:
            p.kill()
    assert confined(command) and command["CapPrm"] & ~LOOKS == 0, command
    counter = next((s for s in found if s["Name"] == "uniscope"), None)
    assert counter is not None and has_no_rights(counter) and "0" not in counter["Uid"] | counter["Gid"], found
    rest = {s["Name"].split("-system")[0]: s["CapPrm"] for s in found if s != counter}
    assert rest == {"uniscope-opener": OPENERS, "uni-keeper": KEEPER, "qemu": OPENERS}, found


def exact_reads(top):
    for more in (["--exact"], ["--exact=calls", "--filter", "burn_*", "--begin-at", "kmain"]):
        reads_bare(f"{top}/log", ["run", *more, "-d", "0", "-q", "-o", f"{top}/s", "--overwrite", "--append", "rounds=2", f"{BUILD}/lab/{IMAGE}.elf"],
                   ("qemu-system-x86_64",))


def run_reads(top, accel):
    reads_bare(f"{top}/log", ["run", "--accel", accel, "-d", "1", "-q", "-o", f"{top}/s", "--append", "loop=1", f"{BUILD}/lab/{IMAGE}.elf"],
               ("qemu-system-x86_64",))


def several(top, guests):
    """Each guest has children of its own, which look into no other. Whoever reads all images has no rights."""
    wanted = {"kvm": [OBSERVERS | ADMIN], "gdb": [CONNECTS, STUBS | NICE], "proc": [OBSERVERS | ADMIN | MAPPED | NICE]}
    found = rights_of(U, RECORD, guests, top)
    assert sorted(s["CapPrm"] for s in found) == sorted([0, OPENERS] + [c for g in guests for c in wanted[g.scheme]]), found
    assert all(map(confined, found)) and has_no_rights(found[0]) and "0" not in found[0]["Uid"] | found[0]["Gid"], found
    assert all(s["Small"] or (s["Name"] == "uni-guardian" and "0" not in s["Uid"]) for s in found[1:]), found
    reads_bare(f"{top}/log", ["record", *(g.target for g in guests), "-d", "1", "-q", "-o", f"{top}/s"])
    with open(f"{top}/s/session.json", encoding="utf-8") as f:
        told = json.load(f)["guests"]
    assert len(told) == len(guests), told


if os.geteuid() != 0:
    print("1..0 # SKIP only root can be two users")
    sys.exit(0)
schemes = ["gdb", "proc"]
for part in ("kvm", "bpf", "perf"):
    can = subprocess.run([sys.executable, f"{SRC}/tests/support/can.py", part], stdout=subprocess.PIPE, text=True, check=False)
    if can.returncode == 1 or (can.returncode and part == "perf"):
        print(f"Bail out! {can.stdout}" if can.returncode == 1 else f"1..0 # SKIP {can.stdout}")
        sys.exit(can.returncode == 1)
    if can.returncode and "kvm" in schemes:
        schemes.remove("kvm")
    elif part == "kvm" and not can.returncode:
        schemes.insert(0, "kvm")
for way in schemes:
    with Guest(way) as g:
        check(f"{way}: only the children of a command that samples have rights", rights, g)
        check(f"{way}: the image is read without rights", reads, g)
        check(f"{way}: other system calls end it with one line", calls, g)
        if way == "kvm":
            check("kvm: ls and doctor read the image without rights", looks, g)
            check("kvm: an image that ends its reader is not read again with rights", judge, g)
        elif way == "gdb":
            check("gdb: the guardian reads replies without rights", guardian, g)
            check("gdb: RAM is found without a search", finds_ram, g)
            check("gdb: serve answers requests without rights", server_rights, g)
            check("gdb: count and the older front ends read the image without rights", others, g)
        else:
            check("proc: a recorder that stands still does not hold the guest", lets_go, g)
            first = "proc: both sides of a pause have real-time priority"
            if subprocess.run(["chrt", "-f", "1", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
                skip(first, "root of this container may not take one")
            else:
                check(first, hurries, g)
            check("proc: the older front ends read the image without rights", others, g)
            check("proc: a command beside the recording has the caller's rights", beside_a_command, g)
        check(f"{way}: the children end with it", end_together, g)
check("replay: the file is read without rights", dead)
with Guest("stream") as g:
    check("stream: only the opener has rights", rights, g)
    check("stream: the image is read without rights", reads, g)
    check("stream: a terminal is read without rights", by_terminal, g)
with contextlib.ExitStack() as together:
    check("several guests: each has children of its own; whoever reads the images has no rights", several,
          [together.enter_context(Guest(way)) for way in schemes])
if "kvm" in schemes:
    with Guest("kvm", theirs=True) as g:
        check("kvm: whoever stops the guest is the user of its VMM, without rights", stopped, g)
        check("kvm: a recorder that stands still is woken", wakes, g)
        check("kvm: stacks reads the image without rights", looked_at, g)
for way in ["gdb", "proc", "stream"] + (["kvm"] if "kvm" in schemes else []):
    if not ALL and way not in ("gdb", "proc"):
        continue
    with Guest(way, theirs=way == "kvm", traced=True) as g:
        check(f"{way}: whoever traces it has no rights", traced, g)
        check(f"{way}: serve --ftrace has no rights, and obeys its caller alone", served, g)
        if way != "stream":
            check(f"{way}: a tracer without rights that is killed leaves no patch", unpatches, g)
if "kvm" in schemes:
    with Guest("kvm", traced=True) as g:
        check("kvm: root's VMM: whoever traces it has few rights, and its guardian fewer", limited, g)
        check("kvm: root's VMM: a tracer that is killed leaves no patch", unpatches, g)
for accel in ["tcg"] + (["kvm"] if "kvm" in schemes else []):
    if ALL or accel == "tcg":
        check(f"run: whoever reads the image has no rights ({accel})", run_rights, accel)
    if ALL or accel == "kvm" or "kvm" not in schemes:
        check(f"run: the image is read without rights ({accel})", run_reads, accel)
check("run --exact: whoever counts has no rights", exact_rights)
check("run --exact: the image is read without rights", exact_reads)
finish()
