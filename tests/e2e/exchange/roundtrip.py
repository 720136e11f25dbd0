# SPDX-License-Identifier: BSD-2-Clause
"""roundtrip.py UNISCOPE: each format has the stacks and values of `export -f folded`, for sessions with weights, vCPUs, guests,
threads, calls and promises. read.py and our own import read the formats. TAP."""
import collections
import functools
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import read  # noqa: E402  pylint: disable=wrong-import-position

PERIOD_NS = 1000
SAMPLES, NS, COUNT, EXITS, PROMISES = range(5)
# How much larger a value of each kind is than in folded stacks; None: not there, or not as stacks.
READ_AS = {"pprof": (1, 1, 1, 1, 1), "perfetto": (1, None, None, 1, 1), "callgrind": (1, 1, 1, 1, 1),
           "perf": (PERIOD_NS, 1, 1, 1, 1), "speedscope": (PERIOD_NS, 1, 1, 1, 1),
           "firefox": (1, 1e-6, 1, 1, 1e-6), "chrome": (PERIOD_NS, None, None, 1000, None),
           "fxt": (PERIOD_NS, None, None, 1000, 1)}
IMPORT_AS = {"folded": (1, 1, 1, 1, 1), "pprof": (PERIOD_NS, 1, 1, 1, 1), "speedscope": (PERIOD_NS, 1, 1, 1, 1),
             "perf": (PERIOD_NS, 1, 1, 1, 1), "uniprof": (1, None, None, None, None),
             "nanos": (None, 1, None, None, None), "uftrace": (None, 1, None, None, None),
             "mirage": (None, None, None, None, 1)}
SOURCES = [  # of what kind, which file, options
    (SAMPLES, "s.uniscope", []), (SAMPLES, "s.uniscope", ["--per-vcpu"]), (SAMPLES, "s.uniscope", ["--vcpu", "1"]),
    (SAMPLES, "s.uniscope", ["--per-thread"]), (SAMPLES, "s.uniscope", ["--on-cpu"]),
    (SAMPLES, "s.uniscope", ["--no-marks"]), (SAMPLES, "guests.uniscope", []),
    (SAMPLES, "guests.uniscope", ["--guest", "1"]), (SAMPLES, "both.uniscope", []),
    (NS, "both.uniscope", ["--calls"]), (NS, "calls.uniscope", []), (COUNT, "calls.uniscope", ["--calls=count"]),
    (EXITS, "s.uniscope", ["--exits"]), (EXITS, "s.uniscope", ["--exits", "--per-vcpu"]), (PROMISES, "ring", []),
]


def run(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


@functools.cache
def as_folded(source, *options):
    return run(U, "export", source, *options, "-f", "folded")


def stacks(text, rename=lambda s: s):
    sums = collections.Counter()
    for line in text.splitlines():
        name, value = line.rsplit(" ", 1)
        sums[rename(name)] += float(value)
    return sums


def plain(stack):
    """Removes the parts of folded stacks that uniprof's text does not have: marks of guessed frames, and states of a vCPU."""
    frames = [f[:-2] if f.endswith(" ?") else f for f in stack.split(";") if f not in ("[truncated]", "[idle]")]
    return ";".join(f for f in frames if f[:1] != "[" and f[:5] != "vcpu ")


def below_root(stack):
    return stack.split(";", 1)[-1]


def same(what, want, got, factor):
    assert want, what
    assert abs(sum(want.values()) * factor / max(1, sum(got.values())) - 1) < 1e-6 or factor < 1, what
    for name in set(want) | set(got):
        mine, theirs = want[name] * factor, got[name]
        # Three decimals are enough.
        assert abs(mine - theirs) <= 1e-6 * mine + 0.0006 * max(1, len(got) * (factor < 1)), (what, name, mine, theirs)


def check(kind, source, options, fmt, imports):
    factor = (IMPORT_AS if imports else READ_AS)[fmt][kind]
    rename = plain if fmt == "uniprof" else lambda s: s
    if source.startswith("guests") and not options and fmt != "folded":
        # Guests are processes, machines or labels.
        rename = lambda s: plain(below_root(s)) if fmt == "uniprof" else below_root(s)
    if factor is None:
        return False
    want = stacks(as_folded(source, *options), rename)
    if fmt == "callgrind":
        want = stacks("\n".join(f"{k.rsplit(';', 1)[-1]} {v}" for k, v in want.items()))
    shutil.rmtree("out", ignore_errors=True)
    if os.path.exists("out"):
        os.unlink("out")
    run(U, "export", source, *options, "-f", fmt, "-o", "out")
    if imports:
        # The first frame of perf's is the thread's name, and uniprof's are as they came.
        back = {"perf": below_root, "uniprof": plain}.get(fmt, lambda s: s)
        got = stacks(run(U, "export", "out", "-f", "folded"), back)
    else:
        got = collections.Counter({k: v for k, v in read.read(fmt, "out").items() if not k.startswith("slice ")})
    same((source, options, fmt, "imported" if imports else "read"), want, got, factor)
    return True


U = sys.argv[1]
cases = [(fmt, imports) for table, imports in ((READ_AS, False), (IMPORT_AS, True)) for fmt in table]
for n, (fmt, imports) in enumerate(cases, 1):
    done, bad = 0, []
    needed = {"pprof": "protoc", "perfetto": "protoc", "callgrind": "callgrind_annotate"}.get(fmt)
    skip = not imports and needed is not None and shutil.which(needed) is None
    for source in SOURCES if not skip else []:
        try:
            done += check(*source, fmt, imports)
        except (AssertionError, LookupError, ValueError, TypeError, subprocess.CalledProcessError) as e:
            bad.append((e, getattr(e, "stderr", "")))
    how = f"{fmt}, {'imported again' if imports else 'read by its description'}"
    if skip:
        print(f"ok {n} - {how} # SKIP no {needed} on this machine")
        continue
    print("not ok" if bad or not done else "ok", n, f"- {how}: {done} exports")
    for b in bad:
        print("#", str(b)[:300].replace("\n", " "))
    sys.stdout.flush()
print(f"1..{len(cases)}")
