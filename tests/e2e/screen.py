# SPDX-License-Identifier: BSD-2-Clause
"""A program in a terminal of its own, and what a user would see there.

Knows the control sequences of TERM=xterm that ncurses uses, and no others. An unknown one, or a
control byte in text, is an error, so that nothing slips through to a real terminal.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

CSI = re.compile(rb"\x1b\[([?>]?)([0-9;]*)([@A-Za-z`])")
OTHER = re.compile(rb"\x1b(?:[()][0AB]|[=>78DM]|c)")
PARTIAL = re.compile(rb"\x1b(?:\[[?>]?[0-9;]*|[()])?$")


class Screen:
    def __init__(self, rows, columns):
        self.alt = False
        self.cursor_shown = True
        self.colours = set()
        self.rest = b""
        self.size(rows, columns)

    def size(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.y = self.x = 0
        self.top, self.bottom = 0, rows - 1
        self.last = " "

    def text(self):
        return "\n".join("".join(r).rstrip() for r in self.cells)

    def line(self, i):
        return "".join(self.cells[i]).rstrip()

    def feed(self, data):
        data = self.rest + data
        self.rest = b""
        while data:
            data = self.step(data)
            if data is None:
                return

    def step(self, data):
        if data[0] == 0x1B:
            m = CSI.match(data)
            if m:
                self.csi(m[1], [int(n) if n else 0 for n in m[2].split(b";")], m[3])
                return data[m.end() :]
            m = OTHER.match(data)
            if m:
                if m[0] == b"\x1bM":
                    self.reverse_index()
                return data[m.end() :]
            if PARTIAL.match(data):
                self.rest = data
                return None
            raise ValueError("unknown sequence %r" % data[:16])
        if data[0] < 0x20 or data[0] == 0x7F:
            self.control(data[0])
            return data[1:]
        n = 1 if data[0] < 0x80 else 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4
        if len(data) < n:
            self.rest = data
            return None
        self.put(data[:n].decode())
        return data[n:]

    def put(self, c):
        if self.x >= self.columns:
            self.x = 0
            self.line_feed()
        self.cells[self.y][self.x] = self.last = c
        self.x += 1

    def control(self, c):
        if c == 0x0D:
            self.x = 0
        elif c == 0x0A:
            self.line_feed()
        elif c == 0x08:
            self.x = max(self.x - 1, 0)
        elif c == 0x09:
            self.x = min(self.x // 8 * 8 + 8, self.columns - 1)
        elif c not in (0x07, 0x0F):
            raise ValueError("control byte %#x" % c)

    def line_feed(self):
        if self.y == self.bottom:
            self.scroll(1)
        else:
            self.y = min(self.y + 1, self.rows - 1)

    def reverse_index(self):
        if self.y == self.top:
            self.scroll(-1)
        else:
            self.y = max(self.y - 1, 0)

    def scroll(self, n, top=None):
        top = self.top if top is None else top
        for _ in range(abs(n)):
            if n > 0:
                del self.cells[top]
                self.cells.insert(self.bottom, [" "] * self.columns)
            else:
                del self.cells[self.bottom]
                self.cells.insert(top, [" "] * self.columns)

    def erase(self, y, a, b):
        self.cells[y][a:b] = [" "] * (b - a)

    def csi(self, mark, args, end):
        n = max(args[0], 1)
        if mark == b"?":
            for a in args:
                if a == 1049:
                    self.alt = end == b"h"
                    self.size(self.rows, self.columns)
                elif a == 25:
                    self.cursor_shown = end == b"h"
        elif mark == b">" or end in b"htl":
            pass
        elif end == b"m":
            self.colours.update(a for a in args if 30 <= a <= 37 or 40 <= a <= 47 or a >= 90)
        elif end in b"Hf":
            self.y = min(n, self.rows) - 1
            self.x = min(max(args[1] if len(args) > 1 else 1, 1), self.columns) - 1
        elif end == b"A":
            self.y = max(self.y - n, 0)
        elif end == b"B":
            self.y = min(self.y + n, self.rows - 1)
        elif end == b"C":
            self.x = min(self.x + n, self.columns - 1)
        elif end == b"D":
            self.x = max(self.x - n, 0)
        elif end in b"G`":
            self.x = min(n, self.columns) - 1
        elif end == b"d":
            self.y = min(n, self.rows) - 1
        elif end == b"J":
            self.erase_screen(args[0])
        elif end == b"K":
            self.erase(self.y, *((self.x, self.columns), (0, self.x + 1), (0, self.columns))[args[0]])
        elif end == b"X":
            self.erase(self.y, self.x, min(self.x + n, self.columns))
        elif end == b"b":
            for _ in range(n):
                self.put(self.last)
        elif end == b"P":
            row = self.cells[self.y]
            del row[self.x : self.x + n]
            row += [" "] * (self.columns - len(row))
        elif end == b"@":
            row = self.cells[self.y]
            row[self.x : self.x] = [" "] * n
            del row[self.columns :]
        elif end in b"LM":
            self.scroll(-n if end == b"L" else n, self.y)
        elif end in b"ST":
            self.scroll(n if end == b"S" else -n)
        elif end == b"r":
            self.top = n - 1
            self.bottom = min(args[1] if len(args) > 1 and args[1] else self.rows, self.rows) - 1
            self.y = self.x = 0
        else:
            raise ValueError("unknown sequence CSI %r %r %r" % (mark, args, end))

    def erase_screen(self, how):
        first, last = {0: (self.y, self.rows), 1: (0, self.y), 2: (0, self.rows)}[how]
        for y in range(first, last):
            a, b = 0, self.columns
            if y == self.y and how != 2:
                a, b = (self.x, b) if how == 0 else (a, self.x + 1)
            self.erase(y, a, b)


class Terminal:
    """argv in a terminal of that size; with: ends it."""

    def __init__(self, argv, rows=24, columns=80, env=None, cwd="."):
        self.screen = Screen(rows, columns)
        self.raw = b""
        self.status = None
        master, slave = pty.openpty()
        self.fd, self.slave = master, slave
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        environment = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8")
        environment.pop("NO_COLOR", None)
        environment.update(env or {})
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in 0, 1, 2:
                os.dup2(slave, fd)
            os.closerange(3, 64)
            os.chdir(cwd)
            os.execvpe(argv[0], argv, environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
        os.close(self.slave)

    def resize(self, rows, columns):
        """Forgets the screen: the program has to draw all of it again."""
        self.screen.size(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        """Returns the output of that time."""
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            ready, _, _ = select.select([self.fd], [], [], max(left, 0))
            if not ready:
                return
            data = os.read(self.fd, 65536)
            self.raw += data
            self.screen.feed(data)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def wait(self, what, why, seconds=60):
        """Until what(screen) is true."""
        until = time.monotonic() + seconds
        while not what(self.screen):
            if time.monotonic() > until or (self.poll() is not None and not what(self.screen)):
                raise AssertionError("never seen: %s\n%s" % (why, self.screen.text()))
            self.read(0.05)

    def see(self, text, seconds=60):
        self.wait(lambda s: text in s.text(), text, seconds)

    def poll(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid != 0 and not os.WIFSTOPPED(status):
                self.read(0.2)
                self.status = status
        return self.status

    def end(self, seconds=60):
        """Waits for its end: its wait status."""
        until = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > until:
                raise AssertionError("it does not end\n" + self.screen.text())
            self.read(0.05)
        return self.status

    def assert_restored(self):
        """The terminal is as it was."""
        assert termios.tcgetattr(self.slave) == self.before, "the terminal's modes changed"
        assert not self.screen.alt, "the alternate screen is still there"
        assert self.screen.cursor_shown, "the cursor is hidden"
