#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""attack_endless.py UNISCOPE SRCROOT PROCESS ENDLESS KILL_AT: guests, stubs, sockets and files that have no end. A command that is
interrupted ends, with less than 2 s of CPU time. It may wait as long as a busy host needs. TAP."""
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from attack import check, finish  # noqa: E402

U, SRC, PROCESS, ENDLESS, KILL_AT = sys.argv[1:6]
CPU_S = 2.0
ALL = bool(os.environ.get("UNISCOPE_ALL"))  # else some of each kind
WALL_S = 15.0  # a busy host waits longer; an idle one needs less than 2 s
TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICK


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


class Guest:
    def __init__(self, *argv):
        self.argv = argv

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.p = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        while os.readlink(f"/proc/{self.p.pid}/exe") != os.path.realpath(self.argv[0]):
            time.sleep(0.01)
        return self.p.pid

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()


def is_busy(p, log, words):
    """Begun with what has no end: it says so, or has worked for a while."""
    with open(log, encoding="utf-8", errors="replace") as f:
        if words and words in f.read():
            return True
    return not words and (cpu_of(p.pid) > 0.3 or time.monotonic() - p.began > 3)


def interrupt(top, args, words="", again=False, stdin=subprocess.DEVNULL, ends_itself=False):
    log = f"{top}/log"
    with open(log, "wb") as out:
        # pylint: disable=consider-using-with
        p = subprocess.Popen([U, *args], stdin=stdin, stdout=out, stderr=out)
    p.began = time.monotonic()
    try:
        while p.poll() is None and not is_busy(p, log, words) and time.monotonic() - p.began < 60:
            time.sleep(0.02)
        if p.poll() is not None:
            with open(log, encoding="utf-8", errors="replace") as f:
                text = f.read()
            assert ends_itself, f"{args} ended by itself, {p.returncode}: {text}"
            assert p.returncode == 1 and len(text) > 10, f"{args}: {p.returncode}, {text}"
            return ""
        cpu = cpu_of(p.pid)
        begin = time.monotonic()
        p.send_signal(signal.SIGINT)
        if again:
            time.sleep(0.5)
            if p.poll() is None:
                p.send_signal(signal.SIGINT)
        while True:
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if pid != 0:
                break
            assert time.monotonic() - begin < WALL_S, f"{args} goes on {WALL_S} s after SIGINT"
            time.sleep(0.01)
        p.returncode = os.waitstatus_to_exitcode(status)
        spent = usage.ru_utime + usage.ru_stime - cpu
        assert spent < CPU_S, f"{args} took {spent:.1f} s of CPU time after SIGINT"
        print(f"# {' '.join(args[:2])}: {time.monotonic() - begin:.2f} s, {spent:.2f} s of CPU", flush=True)
    finally:
        if p.returncode is None:
            p.kill()
            p.wait()
    return ""


def rings(top, *args):
    with Guest(ENDLESS) as pid:
        why = interrupt(top, [*args, f"proc:pid={pid},via=stop", "-e", ENDLESS, "-o", f"{top}/s.uniscope"])
        assert state_of(pid) in "SR", f"the guest is left in the state {state_of(pid)}"
        return why


def ring_server(top):
    with Guest(ENDLESS) as pid:
        return interrupt(top, ["serve", "--ftrace", f"proc:pid={pid},via=stop", "-e", ENDLESS], words="serving http")


class Server:
    """A socket at which every client gets this."""

    def __init__(self, path, talk):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.bind(path)
        self.s.listen(8)
        self.talk, self.over = talk, False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.over:
            try:
                c, _ = self.s.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        try:
            self.talk(self, c)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        self.s.close()


def flood(data):
    def talk(server, c):
        while not server.over:
            c.sendall(data)
    return talk


def trickle(data):
    def talk(server, c):
        while not server.over:
            for byte in data:
                c.sendall(bytes([byte]))
                time.sleep(0.01)
    return talk


def echo_stub(then):
    """Answers as a stub would at first, so that the attach succeeds; then it never stops talking."""
    def frame(text):
        return b"$" + text + b"#%02x" % (sum(text) & 255)

    def talk(server, c):
        nr = 0
        while not server.over:
            data = c.recv(4096)
            if not data:
                return
            for packet in data.split(b"$")[1:]:
                text = packet.split(b"#")[0]
                nr += 1
                if nr > then:
                    flood(frame(b"O41") * 4000)(server, c)
                c.sendall(b"+" + frame({b"qS": b"PacketSize=1000", b"qC": b"QC1", b"qf": b"m1", b"qs": b"l"}.get(
                    text[:2], b"0" * 1216 if text[:1] == b"g" else b"T05thread:01;" if text[:1] == b"?" else
                    b"00" * 8 if text[:1] == b"m" else b"")))
    return talk


def options(top, command):
    return {"record": ["-d", "60", "-o", f"{top}/s.uniscope"], "top": ["--batch", "--count", "0"], "trace": ["-o", f"{top}/s.uniscope"],
            "serve": ["-p", "0"]}.get(command, [])


def talker(top, talk, scheme, *args):
    """A stub or a stream; `serve` goes on without its recorder, until it is interrupted."""
    with Server(f"{top}/socket", talk):
        return interrupt(top, [*args, f"{scheme}:unix={top}/socket", "-e", PROCESS, *options(top, args[0])],
                         words="serving http" if args[0] == "serve" else "", ends_itself=True)


def stub(top, talk, *args):
    return talker(top, talk, "gdb", *args)


def stream(top, talk, *args):
    return talker(top, talk, "stream", *args)


def watched(top, *args):
    """A process that never ends."""
    with Guest(PROCESS) as pid:
        return interrupt(top, [*args, f"proc:pid={pid}", *options(top, args[0])], words="serving http" if args[0] == "serve" else "")


def pipe(top, data, *args):
    r, w = os.pipe()

    def write():
        try:
            while True:
                os.write(w, data)
        except OSError:
            pass
        os.close(w)

    t = threading.Thread(target=write, daemon=True)
    t.start()
    try:
        return interrupt(top, list(args), stdin=r, ends_itself=True)
    finally:
        os.close(r)
        t.join()


def second_interrupt(top):
    """The first signal comes while the rings are read, the second at the first call with the guest held. The guest then stands for
    0.5 s more, unless the program ends."""
    with Guest(ENDLESS) as pid:
        log = f"{top}/log"
        with open(log, "wb") as out:
            status = subprocess.call([
                KILL_AT, "-s", str(int(signal.SIGINT)), "-f", "3000", "-p", str(pid), "1", U, "trace", "dump",
                f"proc:pid={pid},via=stop", "-e", ENDLESS, "-o", f"{top}/s.uniscope"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        with open(log, encoding="utf-8", errors="replace") as f:
            assert status == 0, f"it went on: {status}, {f.read()}"
        assert state_of(pid) in "SR", f"the guest is left in the state {state_of(pid)}"
    return ""


def bomb(top, *args):
    """256 KB that unpack to 256 MB."""
    path = f"{top}/x.pb.gz"
    with open(path, "wb") as f:
        pack = zlib.compressobj(6, zlib.DEFLATED, 31)
        for _ in range(256):
            f.write(pack.compress(bytes(1 << 20)))
        f.write(pack.flush())
    refuses(top, 150, "unpacks to more than", *args, path)


def refuses(top, megabytes, why, *args):
    log = f"{top}/log"
    with open(log, "wb") as out:
        # pylint: disable=consider-using-with
        p = subprocess.Popen([U, *args], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    with open(log, encoding="utf-8") as f:
        text = f.read()
    assert p.returncode == 1 and why in text and text.count("\n") == 1, f"{p.returncode}: {text}"
    assert usage.ru_maxrss < megabytes << 10, f"it took {usage.ru_maxrss >> 10} MB"
    assert usage.ru_utime + usage.ru_stime < 5, f"it took {usage.ru_utime + usage.ru_stime} s"


def json_bomb(top, value, *args):
    """3 MB of JSON whose values would take 60 to 240 MB."""
    text = '{"format": "uniscope-session", "version": 1, "shared": [' + value + f",{value}" * (3000000 // (len(value) + 1)) + "]}"
    path = f"{top}/x.speedscope.json" if "speedscope" in args else f"{top}/session.json"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    refuses(top, 140, "in memory, its values take more than", *args, path if "speedscope" in args else top)


if ALL:
    check("trace dump of rings without end", rings, "trace", "dump")
check("trace record of rings without end", rings, "trace", "record", "--as-is")
if ALL:
    check("trace record -d of rings without end", rings, "trace", "record", "--as-is", "-d", "300")
check("serve --ftrace of rings without end", ring_server)
JUNK = {"a packet without end": b"$" + b"A" * 65536, "output packets": b"$O41#c0" * 9000,
        "stop packets": b"$T05#b9" * 9000, "acknowledgements": b"+" * 65536, "noise": bytes(range(256)) * 256}
for name, junk in JUNK.items() if ALL else list(JUNK.items())[:2]:
    check(f"record through a stub that sends {name}", stub, flood(junk), "record")
check("stacks through a stub that sends stop packets", stub, flood(JUNK["stop packets"]), "stacks")
for command in ("top", "serve"):
    check(f"{command} through a stub that sends output packets", stub, flood(JUNK["output packets"]), command)
    check(f"{command} through a stub that floods after 9 questions", stub, echo_stub(9), command)
    check(f"{command} of a stream of noise", stream, flood(JUNK["noise"]), command)
    if ALL or command == "serve":
        check(f"{command} of a process without end", watched, command)
check("record through a stub that sends a byte now and then", stub, trickle(b"$O41#c0"), "record")
for nr in (3, 6, 9, 12, 20) if ALL else (6,):
    check(f"record through a stub that floods after {nr} questions", stub, echo_stub(nr), "record")
for name, junk in JUNK.items() if ALL else [("noise", JUNK["noise"])]:
    check(f"a stream of {name}", stream, flood(junk), "record")
check("a trace of a stream without end", stream, flood(bytes(65536)), "trace", "record", "--as-is")
READERS = [("report", "-"), ("export", "-f", "folded", "-"), ("import", "-", "-o", "/nonexistent/s"), ("trace", "report", "-"),
           ("trace", "why", "-", "1"), ("uk-trace", "list", "-"), ("parse-trace", "-")]
if ALL:  # these read by the same functions
    READERS += [("trace", c, "-") for c in ("replay", "graph", "breakdown", "findings", "threads", "wakeups", "syscalls")]
    READERS += [("summarize-trace", "-"), ("parse-trace-fg", "-"), ("runtime-breakdown", "-")]
for args in READERS:
    check(f"{' '.join(args[:2])}: a file without end", pipe, b"a;b;c 1\n" * 8192, *args)
ENDLESS_FILES = {
    "folded": b"a;b;c 1\n", "perf": b"app 1 1.0: 1 cpu-clock:\n\t401000 f+0x1 (/bin/app)\n\n", "uniprof": b"f+0x1\ng+0x2\n1\n\n",
    "ftrace": b" 0)   0.100 us    |  f();\n 0)               |  g() {\n", "csv": b"1,2,f,3,4\n", "pprof": b"\x12\x06\x0a\x01\x01\x12\x01\x01",
    "speedscope": b'{"shared":{"frames":[', "mirage": bytes(range(64)), "uktrace": b"\x80\x04]q\x00(K\x01K\x02K\x03"}
for name, junk in ENDLESS_FILES.items() if ALL else list(ENDLESS_FILES.items())[1::3]:
    check(f"import --input-format {name}: a file without end", pipe, junk * (65536 // len(junk)), "import", "--input-format", name, "-",
          "-o", "/nonexistent/s")
for command in (["report"], ["import", "-o", "/nonexistent/s"], ["export", "-f", "folded"]) if ALL else (["report"],):
    check(f"{command[0]}: a gzip that unpacks to a thousand times its size", bomb, *command)
for value in ("{}", "[]", '{"":0}', "1") if ALL else ("{}",):
    check(f"report: a session of 3 MB of {value}", json_bomb, value, "report")
    if value != "1":  # a file of numbers alone is no bomb
        check(f"import: a speedscope file of 3 MB of {value}", json_bomb, value, "import", "--input-format", "speedscope", "-o", "/nonexistent/s")
check("a second interrupt ends it at once, and the guest runs on", second_interrupt)
finish()
