#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""attack_users.py UNISCOPE TRACED: what another user of this host can do to root's uniscope. TRACED: a process with
our tracer in it. TAP."""
import encodings.idna  # pylint: disable=unused-import  # before the uid changes: it may not read it then
import http.client
import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from attack import check, finish, wait_for  # noqa: E402

U, TRACED = sys.argv[1:3]
OTHER = 65534


def as_other(do, uid=OTHER):
    """Returns the result of do(), as text, run in a process of the other user."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(r)
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            os.write(w, str(do()).encode())
        except BaseException as e:  # pylint: disable=broad-except
            os.write(w, f"failed: {e!r}".encode())
        finally:
            os._exit(0)
    os.close(w)
    with os.fdopen(r, "rb") as f:
        text = f.read().decode()
    os.waitpid(pid, 0)
    return text


class Guest:
    def __init__(self, **more):
        self.more = more

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.p = subprocess.Popen([TRACED, "12", "4", "1000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  **self.more)
        assert b"ready" in self.p.stdout.readline()
        return f"proc:pid={self.p.pid}"

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()


class Server:
    def __init__(self, top):
        self.log, self.guest = f"{top}/log", Guest()

    def port_of(self):
        assert self.p.poll() is None, open(self.log, encoding="utf-8").read()
        m = re.search(r"127\.0\.0\.1:(\d+)", open(self.log, encoding="utf-8").read())
        return m and int(m.group(1))

    def __enter__(self):
        target = self.guest.__enter__()
        with open(self.log, "wb") as log:
            # pylint: disable=consider-using-with
            self.p = subprocess.Popen([U, "serve", "--ftrace", "--port", "0", target, "-e", TRACED], stdout=log, stderr=log)
        return wait_for(self.port_of)

    def __exit__(self, *_):
        self.p.terminate()
        self.p.wait(30)
        self.guest.__exit__()


def ask(port, method, name, body=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request(method, f"/ftrace/{name}", body)
    return c.getresponse().status


def served_to_others(top):
    with Server(top) as port:
        for method, name, body in (("PUT", "current_tracer", "function"), ("POST", "tracing_on", "1"),
                                   ("GET", "tracing_enable/on", None), ("DELETE", "trace", None)):
            got = as_other(lambda m=method, n=name, b=body: ask(port, m, n, b))
            assert got == "403", f"{method} {name}: {got}"
        assert as_other(lambda: ask(port, "GET", "trace")) == "200"
        assert as_other(lambda: ask(port, "GET", "tracing_on")) == "200"
        assert ask(port, "GET", "tracing_enable/on") == 200, "root may not either"
        assert ask(port, "PUT", "tracing_on", "0") == 200


def tracing_on(port):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request("GET", "/ftrace/tracing_on")
    return c.getresponse().read().strip()


def closed_connections(top):
    """The kernel shows a socket that was closed as root's."""
    request = b"GET /ftrace/tracing_enable/on HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def leave(port, how):
        for _ in range(100):
            s = socket.create_connection(("127.0.0.1", port))
            s.sendall(request)
            how(s)
            s.close()

    with Server(top) as port:
        for how in (lambda s: None, lambda s: s.shutdown(socket.SHUT_WR), lambda s: s.shutdown(socket.SHUT_RDWR)):
            got = as_other(lambda h=how: leave(port, h))
            assert got == "None", got
            assert tracing_on(port) == b"0", "a closed connection is taken for root's"


def in_other_forms(top):
    """From another address of the loopback, and from an IPv6 socket, it is the same user still."""
    def from_address(port):
        s = socket.socket()
        s.bind(("127.0.0.2", 0))
        s.connect(("127.0.0.1", port))
        return s

    def mapped(port):
        s = socket.socket(socket.AF_INET6)
        s.connect(("::ffff:127.0.0.1", port))
        return s

    def status(s):
        s.sendall(b"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1")
        return s.recv(12).decode().split()[1]

    with Server(top) as port:
        for make in (from_address, mapped):
            assert as_other(lambda m=make: status(m(port))) == "403", make
            assert status(make(port)) == "200", make


class Recorder:
    """Holds the lock of a guest."""

    def __init__(self, top, target):
        self.argv = [U, "trace", "record", target, "-e", TRACED, "-d", "0", "-o", f"{top}/held.uniscope", "--threads"]
        self.json = f"{top}/held.uniscope/session.json"

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.p = subprocess.Popen(self.argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: os.path.exists(self.json) or self.p.poll() is not None)
        assert self.p.poll() is None, self.p.stderr.read()
        return self.p.pid

    def __exit__(self, *_):
        self.p.terminate()
        self.p.wait(30)


def name_of_theirs(pid):
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"\0uniscope-trace-pid-{pid}")
    s.listen(1)
    return s


def lock_of_theirs(top):
    """Names that anybody can take do not keep root out."""
    guest = Guest()
    with guest as target:
        ready, go = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            held = name_of_theirs(guest.p.pid)
            os.write(ready[1], b"x" if held else b"")
            os.read(go[0], 1)
            os._exit(0)
        os.read(ready[0], 1)
        try:
            with Recorder(top, target):
                pass
        finally:
            os.write(go[1], b"x")
            os.waitpid(pid, 0)


def record_again(top, target, *before, **more):
    return subprocess.run([*before, U, "trace", "record", target, "-e", TRACED, "-d", "1", "--threads",
                           "-o", f"{top}/second.uniscope"], capture_output=True, text=True, timeout=60, check=False, **more)


def lock_in_namespaces(top):
    with Guest() as target, Recorder(top, target) as pid:
        for before in ([], ["unshare", "--net"], ["unshare", "--ipc", "--uts"]):
            r = record_again(top, target, *before)
            assert r.returncode == 1 and f"being traced by process {pid}:" in r.stderr, f"{before}: {r.stderr}"


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return [int(w) for w in f.read().split()]


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_capable(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return re.search(r"CapEff:\s*0*[1-9a-f]", f.read()) is not None


def server_with_capabilities(top):
    """The kernel forgets PR_SET_PDEATHSIG where a program gains capabilities."""
    capable = f"{top}/uniscope"
    shutil.copy(U, capable)
    subprocess.run(["setcap", "cap_sys_ptrace,cap_perfmon+ep", capable], check=True)
    os.chmod(f"{top}", 0o777)
    with Guest(user=OTHER) as target:
        def begin():
            # pylint: disable=consider-using-with
            p = subprocess.Popen([capable, "serve", "--port", "0", target, "-e", TRACED, "-o", f"{top}/s.uniscope"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return p.pid

        server = int(as_other(begin))
        try:
            wait_for(lambda: os.path.exists(f"{top}/s.uniscope/session.json"))
            (starter,) = children(server)
            (recorder,) = children(starter)
            family = [starter, recorder, *children(recorder)]
            assert any(is_capable(pid) for pid in family[1:]), "neither the recorder nor its observer has capabilities"
        finally:
            os.kill(server, 9)
        wait_for(lambda: not any(is_running(pid) for pid in family))


if os.geteuid() != 0:
    print("1..0 # SKIP only root can be two users")
    sys.exit(0)
check("serve --ftrace changes nothing for another user", served_to_others)
check("serve --ftrace takes a closed connection for nobody's", closed_connections)
check("serve --ftrace knows a user by other addresses", in_other_forms)
check("a name that another user takes keeps nobody from tracing", lock_of_theirs)
check("one trace at a time, in whatever network namespace", lock_in_namespaces)
check("a recorder with capabilities of its file ends with its server", server_with_capabilities)
finish()
