# SPDX-License-Identifier: BSD-2-Clause
"""What tests of attacks have in common: each check has a folder of its own, and its result is a line of TAP."""
import os
import re
import shutil
import subprocess
import tempfile
import time

done = 0


def check(what, attack, *args, where="/tmp"):
    """attack(FOLDER, ...) returns what is wrong, or nothing."""
    global done
    done += 1
    top = tempfile.mkdtemp(prefix="uniscope-attack-", dir=where)
    os.chmod(top, 0o755)
    try:
        why = attack(top, *args)
    except (AssertionError, OSError) as e:
        why = str(e) or "assertion"
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(("not ok" if why else "ok") + f" {done} - {what}" + (f"\n# {why}" if why else ""), flush=True)


def skip(what, why):
    global done
    done += 1
    print(f"ok {done} - {what} # SKIP {why}", flush=True)


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        words = dict(line.split(":", 1) for line in f)
    r = {k: int(words[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp")}
    return r | {"Uid": set(words["Uid"].split()), "Gid": set(words["Gid"].split()), "Groups": words["Groups"].split()}


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return [int(w) for w in f.read().split()]


def tree(pid):
    return [pid] + [p for c in children(pid) for p in tree(c)]


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
        return f.read().strip()


def confined(s):
    return s["NoNewPrivs"] == 1 and s["Seccomp"] == 2 and s["CapPrm"] == s["CapEff"] and s["CapInh"] == s["CapAmb"] == 0


def has_no_rights(status):
    return all(status[c] == 0 for c in ("CapInh", "CapPrm", "CapEff", "CapAmb")) and status["NoNewPrivs"] == 1 and status["Seccomp"] == 2


def parses_nothing(pid):
    """Is it the small program that links no library which parses?"""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        files = {os.path.basename(line.split()[-1]) for line in f if "/" in line}
    return "uniscope-opener" in files and not [f for f in files if f.startswith(("libelf", "libdw", "libjansson", "libz", "liblzma"))]


def whole_calls(lines):
    """Each system call of a log of strace, with its number of the process. One that was interrupted has two lines."""
    begun = {}
    for line in lines:
        pid, call = line.rstrip("\n").split(None, 1)
        if call.endswith("<unfinished ...>"):
            begun[pid] = call[:-len("<unfinished ...>")]
        else:
            yield pid, re.sub(r"^<\.\.\. \w+ resumed>", lambda _, pid=pid: begun.pop(pid, ""), call)


def threads_of_bare(lines, gives_up):
    """Threads and children that were begun after their maker had given its rights up."""
    bare, inherit, begun = set(), set(), {}
    for line in lines:
        pid, call = line.rstrip("\n").split(None, 1)
        if call.startswith("clone") and pid in bare | inherit:
            begun[pid] = True
        if begun.get(pid) and re.search(r"clone.*\) += \d+$", call):
            inherit.add(call.split()[-1])
        if re.search(r"clone.*\) += -?\d+", call):
            begun.pop(pid, None)
        if gives_up(call):
            bare.add(pid)
    return inherit


def is_parsed(image, call):
    """Is it the image that is read or mapped, and more of it than the number of its format? Or the reply of a gdb stub?"""
    return re.match(r'recv\w*\(.*"(\+?\$|\+")', call) or (
        image in call.split('"')[0] and re.search(r"<[^>]*/%s(\.elf)?>" % re.escape(image), call) and
        not re.search(r", (8|20)\) += (8|20)$", call))


def reads_bare(program, image, log, args, others=(), status=0):
    """others: programs that are not uniscope's."""
    r = subprocess.run(["strace", "-f", "-y", "-qq", "-o", log,
                        "-e", "trace=read,pread64,readv,preadv,mmap,seccomp,copy_file_range,sendfile,recvfrom,recvmsg,execve,clone,clone3", program, *args],
                       check=False, timeout=300, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert r.returncode == status, r

    def gives_up(call):
        return re.match(r"seccomp\(SECCOMP_SET_MODE_FILTER, .*\{len=.* = 0$", call) or \
            re.match(r'execve\("[^"]*/(%s)"' % "|".join(others or "-"), call)

    with open(log, encoding="utf-8", errors="replace") as f:
        lines = f.readlines()
    bare, readers = threads_of_bare(lines, gives_up), set()
    for pid, call in whole_calls(lines):
        if gives_up(call):
            bare.add(pid)
        elif is_parsed(image, call):
            assert pid in bare, f"with all rights: {pid} {call}"
            readers.add(pid)
    assert len(readers) >= 1, f"{args}: nothing has read the image"


def finish():
    print(f"1..{done}")


def wait_for(what, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        v = what()
        if v:
            return v
        time.sleep(0.02)
    raise AssertionError("it did not happen")
