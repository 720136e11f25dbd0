#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""screens.py UNISCOPE SRCROOT [update]: `top` on a terminal, after each key: what it shows.

tests/golden/sweep/keys lists runs and keys, pictures.txt what is on the screen then. A line "ROWSxCOLUMNS OPTIONS" begins a run on
a replay file. Each of the lines below it is typed, and its picture is waited for. The file has ended, so nothing but keys and the
window of time changes the picture. "update" writes pictures.txt anew: read each change before you commit it. TAP: a test for each
run."""
import concurrent.futures
import itertools
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile

from screen import Terminal

UNISCOPE, ROOT = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
UPDATE = sys.argv[3:] == ["update"]
GOLDEN = ROOT / "tests/golden/sweep"
RUN = re.compile(r"([0-9]+)x([0-9]+) (.*)")
SETTLES = 7  # seconds: longer than the longest window in `keys`
WAITS = 60
# The clock changes this.
CLOCKED = ((r"(since the start,) [0-9]+ s", r"\1 T s"), (r"\b[0-9.,]+ samples/s", "N samples/s"), (r"host [0-9.]+ (ns|us|ms)/sample", "host T/sample"))


def runs_of(text):
    """[(line of the run, [keys])]"""
    ret = []
    for line in text.splitlines():
        if RUN.match(line):
            ret.append((line, []))
        elif line and not line.startswith("#"):
            ret[-1][1].append(line)
    return ret


def picture(screen):
    """The lines of the screen."""
    text = screen.text().rstrip("\n")
    for old, new in CLOCKED:
        text = re.sub(old, new, text)
    # In a narrow title, the digits of the time decide how much else has room.
    return re.sub(r"\A(.*?) +(ENDED|PAUSED)  ", lambda m: f"{m[1][:7] if screen.columns < 80 else m[1]}  {m[2]}  ", text)


def play(run, keys, folder, golden):
    """As play_once(), again if the host stood still for so long that samples were skipped."""
    for nr in range(3):
        make(folder / str(nr))
        ret = play_once(run, keys, folder / str(nr), golden)
        if not any(" skipped" in text for _, text in ret):
            break
        print(f"# retry: samples were skipped: {run}", flush=True)
    return ret


def play_once(run, keys, folder, golden):
    """[(keys, picture)]: what it shows in the end, or as soon as it is the golden one."""
    rows, columns, options = RUN.match(run).groups()
    words = [UNISCOPE, "top", *options.split(), "-e", "demo.elf", "-i", "0.2", "-F", "100"]
    ret = []
    with Terminal(words, rows=int(rows), columns=int(columns), cwd=folder) as t:
        t.see("ENDED")
        for key in ["", *keys]:
            t.type(key.encode().decode("unicode_escape"))
            wanted = golden.get((run, len(ret)))
            try:
                t.wait(lambda s, w=wanted: not UPDATE and (picture(s) == w or " skipped" in s.text()), key, SETTLES if UPDATE else WAITS)
            except AssertionError:
                pass
            ret.append((key, picture(t.screen)))
            if ret[-1][1] != wanted and not UPDATE:
                break
        else:
            t.type("q")
            t.end()
            t.assert_restored()
    return ret


def read_golden():
    """{(run, number of the key): picture}"""
    ret = {}
    for part in re.split(r"(?m)^# ", (GOLDEN / "pictures.txt").read_text())[1:]:
        run, *pictures = re.split(r"(?m)^## .*\n", part)
        lines = {}
        for nr, text in enumerate(pictures):
            lines |= {int(n): words for n, _, words in (line.partition("|") for line in text.splitlines())}
            ret[run.strip(), nr] = "\n".join(lines.get(n, "") for n in range(max(lines) + 1)).rstrip("\n")
    return ret


def write_golden(said):
    """The lines of each picture that are not as in the one before."""
    with (GOLDEN / "pictures.txt").open("w") as f:
        for run, some in said:
            f.write(f"# {run}\n")
            before = []
            for key, text in some:
                lines = text.split("\n")
                f.write(f"## {key}\n")
                f.write("".join(f"{n}|{new}\n" for n, (old, new) in enumerate(itertools.zip_longest(before, lines, fillvalue="")) if old != new))
                before = lines


def make(folder):
    folder.mkdir(parents=True)
    with tarfile.open(ROOT / "tests/golden/recorded/recorded.tar.xz") as tar:
        for name in ("demo.replay", "demo.elf"):
            tar.extract(name, folder)
    shutil.copy(folder / "demo.replay", folder / "two.replay")


def difference(old, new):
    for a, b in itertools.zip_longest((old or "").splitlines(), new.splitlines(), fillvalue="(nothing)"):
        if a != b:
            return f"was: {a}\n# is:  {b}"
    return None


def main():
    runs = runs_of((GOLDEN / "keys").read_text())
    golden = {} if UPDATE else read_golden()
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(len(runs) if UPDATE else 2) as pool:
        folders = [pathlib.Path(name) / str(nr) for nr in range(len(runs))]
        said = list(pool.map(lambda run, folder: play(*run, folder, golden), runs, folders))
    if UPDATE:
        write_golden([(run, some) for (run, _), some in zip(runs, said)])
        return
    for nr, ((run, keys), some) in enumerate(zip(runs, said), 1):
        wrong = [f"after {key!r}: {difference(golden.get((run, n)), text)}" for n, (key, text) in enumerate(some) if golden.get((run, n)) != text]
        print(f"{'not ok' if wrong or len(some) <= len(keys) else 'ok'} {nr} - {run}")
        for text in wrong:
            print("# " + text)
    print(f"1..{len(runs)}")


if __name__ == "__main__":
    main()
