#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plants defects in a copy of the tree, and looks whether the tests named for each see it.

run.py --check [BUILD]     does each plant apply exactly once, and is there each test? Changes nothing.
run.py [NAME...]           plants them (all, or those whose name has one of the words), one after the
                           other, in build-plant/: builds what its tests need, and runs these until
                           the first that fails. Ends with those that stayed green: exit status 1.
  --list                   name, promise and tests of each, as a table
  --green                  first runs each test once without a defect: it must pass
"""
import argparse
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plants  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(ROOT, "build-plant")
# As in the tree itself, so that ccache knows what is compiled.
TREE, BUILD = WORK, os.path.join(WORK, "build")
LANE = os.path.join(ROOT, "tests", "lane.py")


def tests_of(build):
    """{SUITE/NAME: what meson knows of it}"""
    with open(os.path.join(build, "meson-info", "intro-tests.json"), encoding="utf-8") as f:
        return {"%s/%s" % (t["suite"][0].split(":")[1], t["name"]): t for t in json.load(f)}


def row_of(p):
    return "| %s | %s | %s |" % (p.promise, p.plant, ", ".join(p.tests))


def check(build):
    """Prints what does not fit; True if nothing."""
    known = tests_of(build) if build else None
    texts, wrong = plants.sources(ROOT), []
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
        rows = f.read().splitlines()
    every = plants.read_all(HERE)
    for p in every:
        try:
            path, text = plants.planted(p, texts)
            if text == texts[path]:
                wrong.append("%s: %s changes nothing" % (p.where, p.plant))
        except plants.Bad as e:
            wrong.append(str(e))
        if row_of(p) not in rows:
            wrong.append("README.md: its table (run.py --list) does not have: %s" % row_of(p))
        # A build without the lab, or of another compiler, has fewer tests.
        if known and "e2e/truth_tcg" in known:
            wrong += ["%s: %s: there is no test %s" % (p.where, p.plant, t) for t in p.tests if t not in known]
    print("\n".join(wrong + ["%d plants, %d do not fit" % (len(every), len(wrong))]))
    return not wrong


def write_if_other(path, data):
    try:
        with open(path, "rb") as f:
            if f.read() == data:
                return
    except OSError:
        pass
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def copy_tree():
    """The tree as it is, in build-plant/tree; what did not change keeps its time."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"],
                            capture_output=True, text=True, check=True).stdout.splitlines()
    there = {os.path.relpath(os.path.join(d, f), TREE) for d, _, names in os.walk(TREE) for f in names
             if not os.path.join(d, "").startswith(os.path.join(BUILD, ""))}
    for path in listed:
        full = os.path.join(ROOT, path)
        if os.path.isfile(full):
            with open(full, "rb") as f:
                write_if_other(os.path.join(TREE, path), f.read())
            shutil.copymode(full, os.path.join(TREE, path))
    for path in there - set(listed):
        os.unlink(os.path.join(TREE, path))


def build(targets=()):
    """None, or what the compiler said."""
    done = subprocess.run(["ninja", "-C", BUILD, "-j", os.environ.get("PLANT_JOBS", "2"), *targets],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return None if done.returncode == 0 else done.stdout[-3000:]


def files_of_targets():
    with open(os.path.join(BUILD, "meson-info", "intro-targets.json"), encoding="utf-8") as f:
        return {t["id"]: [os.path.relpath(file, BUILD) for file in t["filename"]] for t in json.load(f)}


def lab_images():
    return sorted(f for some in files_of_targets().values() for f in some if f.startswith("lab/"))


def targets_of(name, known):
    """The files that the test runs and depends on; without lab images, which no plant changes."""
    files = files_of_targets()
    words = {os.path.relpath(os.path.join(BUILD, w), BUILD) for w in known[name]["cmd"]}
    wanted = {f for some in files.values() for f in some if f in words}
    wanted |= {f for target in known[name]["depends"] for f in files.get(target, ())}
    if "src/cli/uniscope" in wanted:  # it starts the other, and refuses one of other files
        wanted.add("src/cli/uniscope-opener")
    return sorted(f for f in wanted if not f.startswith("lab/"))


def lines_of(p):
    """Its lines until it ends. A process that it left behind may keep the pipe open."""
    rest = b""
    while True:
        ended = p.poll() is not None
        if not select.select([p.stdout], [], [], 0.5)[0]:
            if ended:
                break
            continue
        data = os.read(p.stdout.fileno(), 1 << 16)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
    yield rest.decode(errors="replace")


def run_one(t, more=None, limit=None, front=()):
    """How the test ends: OK, SKIP or FAIL; the lines that tell of failures; its CPU seconds. It is ended at the first check that
    fails. front: a command in front of it."""
    env = dict(os.environ, **t["env"], **(more or {}))
    for name, value in (("UNISCOPE_MUST", "kvm bpf perf browser"), ("MALLOC_PERTURB_", "165")):  # the latter as Meson does
        env.setdefault(name, value)
    tap, said, cpu, skips = t["protocol"] == "tap", [], 0.0, False
    words = [*front, "timeout", "--foreground", "%.0f" % (limit or t["timeout"]), LANE, "-", *t["cmd"]]
    with subprocess.Popen(words, cwd=BUILD, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0,
                          stderr=subprocess.DEVNULL if tap else subprocess.STDOUT, start_new_session=True) as p:
        for line in lines_of(p):
            cost = re.match(r"# cpu ([0-9.]+) s$", line)
            cpu = float(cost.group(1)) if cost else cpu
            skips |= tap and line.startswith("1..0 # SKIP")
            if line.startswith(("not ok", "Bail", "[  ERROR")) or (not tap and ("error:" in line or "FAIL" in line)):
                said.append(line.strip())
                if tap and len(said) == 1:
                    os.killpg(p.pid, signal.SIGTERM)
    red = p.returncode not in (0, 77) or (tap and said)
    return "FAIL" if red else "SKIP" if skips or p.returncode == 77 else "OK", said, cpu


def run_test(name, known, more=None):
    """The result, and the first line that tells of a failure."""
    # A defect may hang a test: unit tests take seconds.
    result, said, _ = run_one(known[name], more, limit=known[name]["timeout"] * (0.2 if name.startswith("unit/") else 1))
    return result, said[:1]


def first_red(p, known):
    """red, green or broken (it does not compile), and a remark: of the first test that is not green. First each test as the default
    run has it; then those of programs with the checks that only `sh test.sh all` has."""
    runs = [(name, {}) for name in p.tests]
    if not os.environ.get("UNISCOPE_ALL"):
        runs += [(name, {"UNISCOPE_ALL": "1"}) for name in p.tests if name.startswith("e2e/")]
    for name, more in runs:
        targets = targets_of(name, known)
        said = build(targets) if targets else None  # without any, ninja would build all
        if said:
            return "broken", said
        result, said = run_test(name, known, more)
        if result == "FAIL":
            return "red", "%s%s: %s" % (name, ", only in all" if more else "", " ".join(said)[:110])
        if result != "OK":
            print("  %s: %s" % (name, result), flush=True)
    return "green", "not seen by " + " ".join(p.tests)


def plant_one(p, texts, known):
    """As first_red()."""
    path, text = plants.planted(p, texts)
    full = os.path.join(TREE, path)
    with open(full, "w", encoding="utf-8", errors="surrogateescape") as f:
        f.write(text)
    try:
        return first_red(p, known)
    finally:
        with open(full, "w", encoding="utf-8", errors="surrogateescape") as f:
            f.write(texts[path])


def configure(*options):
    """The copy, and its build folder; False if that was there."""
    copy_tree()
    if os.path.exists(os.path.join(BUILD, "build.ninja")):
        return False
    subprocess.run(["meson", "setup", BUILD, TREE, *options], check=True, stdout=subprocess.DEVNULL)
    return True


def set_up():
    """A first build of all, later ones of lab images. The rest is built as a test needs it."""
    said = build(() if configure() else lab_images())
    if said:
        os.unlink(os.path.join(BUILD, "build.ninja"))
        sys.exit("the tree does not build:\n" + said)


def plant_all(chosen, green_first):
    set_up()
    build(["build.ninja"])  # what the copy brought
    texts, known, ends = plants.sources(ROOT), tests_of(BUILD), {"red": 0, "green": [], "broken": []}
    for name in sorted({t for p in chosen for t in p.tests}) if green_first else ():
        result, said = run_test(name, known)
        if result != "OK":
            sys.exit("%s is no judge: %s without a defect: %s" % (name, result, " ".join(said)))
    for p in chosen:
        begin = time.monotonic()
        how, remark = plant_one(p, texts, known)
        print("%-6s %s (%d s): %s" % (how, p.plant, time.monotonic() - begin, remark), flush=True)
        if how == "red":
            ends["red"] += 1
        else:
            ends[how].append(p)
    print("\n%d planted, %d seen" % (len(chosen), ends["red"]))
    for how in ("green", "broken"):
        for p in ends[how]:
            print("%s: %s: %s" % (how, p.plant, p.promise))
    return ends["red"] == len(chosen)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--green", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    try:
        if args.check:
            return 0 if check(args.names[0] if args.names else None) else 1
        chosen = [p for p in plants.read_all(HERE)
                  if not args.names or any(n in p.plant for n in args.names)]
        if args.list:
            for p in chosen:
                print(row_of(p))
            return 0
        return 0 if plant_all(chosen, args.green) else 1
    except plants.Bad as e:
        print("plant: %s" % e, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
