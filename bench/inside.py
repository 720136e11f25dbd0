# SPDX-License-Identifier: BSD-2-Clause
"""The sampler that guests link: what a tick and a sample cost."""
import re
import subprocess

from common import ROOT, Skip, bench, need


@bench
def inside(args):
    """Three runs of a native program that links it."""
    for _ in range(3):
        subprocess.run([f"{args.build}/bench/inside"], check=True)


# The parts that run in the guest. Only the last asks for samples.
STATES = (
    ("no timer, sampler linked", ""),
    ("a timer's ticks alone", "tick=%d bare=1"),
    ("ticks tell the sampler, off", "tick=%d"),
    ("and a port that nobody uses", "tick=%d port=1"),
    ("samples, a tenth of the ticks", "tick=%d sample=%d"),
)
TICK = 10000


def instructions(image, rounds, words):
    """That the guest needed for its work: with -icount they are its clock's ns."""
    out = subprocess.run([f"{ROOT}/lab/boot", "--accel", "tcg", "--append", f"rounds={rounds} {words}", image,
                          "-icount", "shift=0,sleep=off"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         check=False, timeout=600).stdout
    found = re.search(r"^truth \(root\) 1 \d+ (\d+)", out, re.MULTILINE)
    if not found:
        raise Skip("the guest did not end: " + out[-200:])
    return int(found[1])


@bench
def off(args):
    """A guest with the sampler, the same work in instructions: -icount repeats to the last one."""
    need("qemu-system-x86_64")
    rounds = 2000
    image, plain = (f"{args.build}/lab/{name}.elf" for name in ("trace/trace-shares-gcc-fp", "shares-gcc-fp"))
    base = None
    print(f"{'instructions for ' + str(rounds) + ' rounds':<34} {'all':>12} {'of a tick':>10} {'at 1000 Hz':>11}")
    print(f"{'nothing linked':<34} {instructions(plain, rounds, ''):>12}")
    for what, words in STATES:
        words = words.replace("%d", str(TICK), 1).replace("%d", str(TICK // 10))
        count = instructions(image, rounds, words)
        line = f"{what:<34} {count:>12}"
        if "bare" in words:
            base = count
        elif base is not None:
            # The clock is 10^9 instructions a second.
            tick = (count - base) / (count * TICK / 1e9)
            line += f" {tick:>10.1f} {tick * 1000 / 1e7:>9.4f} %"
        print(line)
