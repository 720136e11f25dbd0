# SPDX-License-Identifier: BSD-2-Clause
"""What tests of attacks have in common: each check has a folder of its own, and its result is a line of TAP."""
import os
import re
import shutil
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


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        words = dict(line.split(":", 1) for line in f)
    r = {k: int(words[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp")}
    return r | {"Uid": set(words["Uid"].split()), "Gid": set(words["Gid"].split()), "Groups": words["Groups"].split()}


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return [int(w) for w in f.read().split()]


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
