# SPDX-License-Identifier: BSD-2-Clause
"""What tests of attacks have in common: each check has a folder of its own, and its result is a line of TAP."""
import os
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
