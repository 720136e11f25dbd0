#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""attack_files.py UNISCOPE SRCROOT PROCESS: root writes into and reads from folders of another user, who
plants links and renames folders meanwhile. No file of root's changes, and nothing is readable to all. TAP."""
import ctypes
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from attack import check, finish  # noqa: E402

U, SRC, PROCESS = sys.argv[1:4]
OTHER = 65534
GOLDEN = f"{SRC}/tests/golden/shop.folded"
SECRET = b"root's own\n"
WATCHED = 0x100 | 0x80 | 0x40  # IN_CREATE, IN_MOVED_TO, IN_MOVED_FROM


def run(*args, **more):
    return subprocess.run([U, *args], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **more)


def victim(top):
    path = f"{top}/secret"
    with open(path, "wb") as f:
        f.write(SECRET)
    os.chmod(path, 0o600)
    return path


def theirs(path):
    os.mkdir(path)
    os.chown(path, OTHER, OTHER)
    return path


def unchanged(path):
    with open(path, "rb") as f:
        assert f.read() == SECRET, f"{path} was overwritten"


def refused(r, words):
    assert r.returncode == 1, f"status {r.returncode}: {r.stderr}"
    assert re.search(words, r.stderr), f"says: {r.stderr}"
    assert r.stderr.count("\n") == 1, f"more than one line: {r.stderr}"


class Attacker:
    """A process of the other user that does something to each name that appears in a folder."""

    def __init__(self, folder, do):
        ready_r, ready_w = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setgroups([])
                os.setgid(OTHER)
                os.setuid(OTHER)
                libc = ctypes.CDLL(None)
                fd = libc.inotify_init()
                libc.inotify_add_watch(fd, folder.encode(), WATCHED)
                os.write(ready_w, b"x")
                while True:
                    data = os.read(fd, 65536)
                    at = 0
                    while at < len(data):
                        n = int.from_bytes(data[at + 12:at + 16], "little")
                        name = data[at + 16:at + 16 + n].rstrip(b"\0").decode()
                        at += 16 + n
                        try:
                            do(f"{folder}/{name}")
                        except OSError:
                            pass
            finally:
                os._exit(1)
        os.close(ready_w)
        os.read(ready_r, 1)
        os.close(ready_r)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def planted_temporary_names(top):
    """The names that a process id makes, as the writer had them once, and each new name at once."""
    secret, folder = victim(top), theirs(f"{top}/theirs")

    def swap(path):
        if ".tmp-" in path and not os.path.islink(path):
            os.rename(path, path + ".away")
            os.symlink(secret, path)

    first = int(open("/proc/loadavg").read().split()[-1])
    for pid in range(first, first + 3000):
        os.symlink(secret, f"{folder}/x.svg.tmp-{pid}")
    with Attacker(folder, swap):
        for _ in range(20):
            r = run("export", GOLDEN, "-f", "svg", "-o", f"{folder}/x.svg")
            if os.path.islink(f"{folder}/x.svg"):
                os.unlink(f"{folder}/x.svg")
    unchanged(secret)
    shutil.rmtree(folder)
    theirs(folder)
    r = run("export", GOLDEN, "-f", "svg", "-o", f"{folder}/x.svg")
    assert r.returncode == 0, r.stderr
    assert stat.S_IMODE(os.stat(f"{folder}/x.svg").st_mode) == 0o600, "readable to others"
    assert os.listdir(folder) == ["x.svg"], os.listdir(folder)


def last_name_is_a_link(top):
    secret, folder = victim(top), theirs(f"{top}/theirs")
    os.symlink(secret, f"{folder}/x.svg")
    refused(run("export", GOLDEN, "-f", "svg", "-o", f"{folder}/x.svg"), "x.svg is a link in a folder that")
    unchanged(secret)
    assert os.path.islink(f"{folder}/x.svg")


def folder_is_a_link(top):
    folder = theirs(f"{top}/theirs")
    os.mkdir(f"{top}/roots")
    os.symlink(f"{top}/roots", f"{folder}/sub")
    for args in (("export", GOLDEN, "-f", "folded", "-o", f"{folder}/sub/x.svg"),
                 ("import", GOLDEN, "-o", f"{folder}/sub/s.uniscope"),
                 ("export", GOLDEN, "--all", f"{folder}/sub/all")):
        refused(run(*args), "sub is a link in a folder that")
    assert os.listdir(f"{top}/roots") == [], os.listdir(f"{top}/roots")


def link_in_a_shared_folder(top):
    secret, folder = victim(top), f"{top}/shared"
    os.mkdir(folder)
    os.chmod(folder, 0o1777)
    os.symlink(secret, f"{folder}/x.svg")
    os.lchown(f"{folder}/x.svg", OTHER, OTHER)
    refused(run("export", GOLDEN, "-f", "svg", "-o", f"{folder}/x.svg"), "is a link in a folder that")
    unchanged(secret)


def link_of_ones_own(top):
    os.mkdir(f"{top}/mine")
    os.symlink(f"{top}/mine/real.svg", f"{top}/x.svg")
    os.symlink("mine", f"{top}/sub")
    for path in (f"{top}/x.svg", f"{top}/sub/y.svg"):
        r = run("export", GOLDEN, "-f", "svg", "-o", path)
        assert r.returncode == 0, r.stderr
    assert os.path.islink(f"{top}/x.svg"), "the link is gone"
    assert sorted(os.listdir(f"{top}/mine")) == ["real.svg", "y.svg"], os.listdir(f"{top}/mine")


def pipe_of_theirs(top):
    folder = theirs(f"{top}/theirs")
    os.mkfifo(f"{folder}/x.svg")
    os.chown(f"{folder}/x.svg", OTHER, OTHER)
    reader = os.open(f"{folder}/x.svg", os.O_RDWR | os.O_NONBLOCK)
    refused(run("export", GOLDEN, "-f", "svg", "-o", f"{folder}/x.svg"), "belongs to another user")
    os.close(reader)


def standard_output_by_its_name(top):
    r = run("export", GOLDEN, "-f", "folded", "-o", "/dev/stdout")
    assert r.returncode == 0 and "\n" in r.stdout, r.stderr
    with open(f"{top}/out", "wb") as out:
        assert subprocess.run([U, "export", GOLDEN, "-f", "folded", "-o", "/dev/stdout"], stdout=out).returncode == 0
    with open(f"{top}/out", encoding="utf-8") as f:
        assert f.read() == r.stdout


class Subject:
    """A process that is recorded."""

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.p = subprocess.Popen([PROCESS], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        while os.readlink(f"/proc/{self.p.pid}/exe") != os.path.realpath(PROCESS):
            time.sleep(0.01)
        return f"proc:pid={self.p.pid},via=stop"

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()


def session_is_moved(top):
    folder = theirs(f"{top}/theirs")
    os.mkdir(f"{top}/roots")
    os.chmod(f"{top}/roots", 0o755)

    def move(path):
        if path.endswith("/s.uniscope") and not os.path.islink(path):
            os.rename(path, f"{folder}/moved")
            os.symlink(f"{top}/roots", path)

    # At once, the folder may not be open yet: then nothing is recorded. Later, it is.
    for late in (0, 0.3):
        with Subject() as target, Attacker(folder, lambda path, s=late: (time.sleep(s), move(path))):
            r = run("record", target, "-q", "-d", "1", "-o", f"{folder}/s.uniscope")
        assert os.path.islink(f"{folder}/s.uniscope"), "the attacker was too late"
        assert os.listdir(f"{top}/roots") == [], os.listdir(f"{top}/roots")
        if r.returncode == 0:
            with open(f"{folder}/moved/session.json", encoding="utf-8") as f:
                assert json.load(f)["state"] == "closed", "the session is not whole"
        else:
            refused(r, "cannot make the session folder")
        os.unlink(f"{folder}/s.uniscope")
        shutil.rmtree(f"{folder}/moved")


def session_of_theirs(top):
    folder = theirs(f"{top}/theirs")
    r = run("import", GOLDEN, "-o", f"{folder}/s.uniscope")
    assert r.returncode == 0, r.stderr
    for path, folders, files in os.walk(f"{folder}/s.uniscope"):
        for name in [*folders, *files]:
            os.chown(f"{path}/{name}", OTHER, OTHER)
    os.chown(f"{folder}/s.uniscope", OTHER, OTHER)
    with Subject() as target:
        refused(run("record", target, "-q", "-d", "1", "--overwrite", "-o", f"{folder}/s.uniscope"),
                "folder that another user can change")
    for args in (("report",), ("export", "-f", "folded"), ("trace", "report"), ("trace", "threads"),
                 ("export", "--all", f"{top}/b")):
        refused(run(*args, f"{folder}/s.uniscope"), "belongs to neither you nor root; --force")
    r = run("report", "--force", f"{folder}/s.uniscope")
    assert r.returncode == 0 and r.stdout, r.stderr
    # The folder may be root's and the file not.
    os.chown(f"{folder}/s.uniscope", 0, 0)
    refused(run("report", f"{folder}/s.uniscope"), "belongs to neither you nor root; --force")


def files_of_theirs(top):
    path = f"{top}/theirs.folded"
    shutil.copy(GOLDEN, path)
    os.chown(path, OTHER, OTHER)
    for args in (("report", path), ("export", "-f", "folded", path), ("import", path, "-o", f"{top}/s.uniscope"),
                 ("serve", path), ("symbolize", path, path), ("uk-trace", "list", path),
                 ("summarize-trace", path), ("trace", "replay", path)):
        refused(run(*args), "belongs to neither you nor root; --force|is no session")
    r = run("report", "--force", path)
    assert r.returncode == 0 and r.stdout, r.stderr
    r = run("report", path, env={**os.environ, "SUDO_UID": str(OTHER)})
    assert r.returncode == 0, r.stderr
    refused(run("report", path, env={**os.environ, "SUDO_UID": "1"}), "--force")


def modes(top):
    os.umask(0)
    try:
        with Subject() as target:
            r = run("record", target, "-q", "-d", "1", "-o", f"{top}/s.uniscope")
            assert r.returncode == 0, r.stderr
            r = run("record", target, "-q", "-d", "1", "-o", f"{top}/r.uniscope", "--save-replay", f"{top}/r.replay")
            assert r.returncode == 0, r.stderr
        for args in (("export", GOLDEN, "--all", f"{top}/all"), ("import", GOLDEN, "-o", f"{top}/i.uniscope"),
                     ("report", f"{top}/s.uniscope", "--html", f"{top}/x.html")):
            r = run(*args)
            assert r.returncode == 0, r.stderr
    finally:
        os.umask(0o022)
    nr = 0
    for path, folders, files in os.walk(top):
        for name in [*folders, *files]:
            mode = os.lstat(f"{path}/{name}").st_mode
            assert mode & 0o077 == 0, f"{path}/{name} has the mode {mode:o}"
            nr += 1
    assert nr > 20, f"only {nr} files were made"


def json_is_a_link(top):
    run("import", GOLDEN, "-o", f"{top}/s.uniscope")
    word = "topsecretword"
    with open(f"{top}/secret", "w", encoding="utf-8") as f:
        f.write(f"{word} x\n")
    os.unlink(f"{top}/s.uniscope/session.json")
    os.symlink(f"{top}/secret", f"{top}/s.uniscope/session.json")
    for args in (("report",), ("export", "-f", "folded"), ("trace", "report")):
        r = run(*args, f"{top}/s.uniscope")
        assert r.returncode == 1, r.stderr
        assert word not in r.stderr + r.stdout, r.stderr
        assert "not a regular file" in r.stderr or "no recording" in r.stderr, r.stderr


def by_descriptor(top):
    """The system calls of the program: it makes, renames and removes nothing by a path of more than one name."""
    with Subject() as target:
        r = subprocess.run(["strace", "-f", "-o", f"{top}/log", "-e",
                            "trace=open,openat,creat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat",
                            U, "record", target, "-q", "-d", "1", "-o", f"{top}/s.uniscope"],
                           capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
    assert r.returncode == 0, r.stderr
    made = 0
    with open(f"{top}/log", encoding="utf-8") as f:
        for line in f:
            if not re.search(r"O_CREAT|O_TMPFILE|\b(creat|rename\w*|unlink\w*|mkdir\w*)\(", line):
                continue
            made += 1
            assert "AT_FDCWD" not in line and re.search(r"\b(openat|renameat2?|unlinkat|mkdirat)\(\d", line), line
            assert "O_CREAT" not in line or ("O_EXCL" in line and "O_NOFOLLOW" in line), line
            assert not re.search(r'"[^"]*/', line) or re.search(r'"(guest-\d+|symbols)/[^"/]*"', line), line
    assert made > 5, f"strace saw {made} such calls"


if os.geteuid() != 0:
    print("1..0 # SKIP only root can be two users")
    sys.exit(0)
check("temporary names that were planted, or are swapped, lead nowhere", planted_temporary_names)
check("the output is a link in another's folder: refused", last_name_is_a_link)
check("a folder of the path is a link in another's folder: refused", folder_is_a_link)
check("the output is a link in a folder like /tmp: refused", link_in_a_shared_folder)
check("links in one's own folders are followed, and stay", link_of_ones_own)
check("the output is another's pipe in his folder: refused", pipe_of_theirs)
check("/dev/stdout works as a name, as a pipe and as a file", standard_output_by_its_name)
check("a session whose folder is replaced by a link stays in its folder", session_is_moved)
check("another's session is neither replaced nor, without --force, read", session_of_theirs)
check("another's file is not read without --force", files_of_theirs)
check("nothing that is written is readable to others, whatever the umask", modes)
check("session.json that is a link is not read", json_is_a_link)
check("a session is made below its descriptor only", by_descriptor)
finish()
