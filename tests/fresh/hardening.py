#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hardening.py FORTIFIED PROGRAM MODULE...: reads with readelf how they are protected. FORTIFIED is
0 where the build has no optimization, or sanitizers. TAP."""
import re
import subprocess
import sys


def readelf(*args):
    return subprocess.run(["readelf", "-W", *args], check=True, capture_output=True, text=True).stdout


def checks(elf):
    dynamic, headers = readelf("-d", elf), readelf("-lh", elf)
    yield "position-independent", bool(re.search(r"Type:\s+DYN", headers)) and "TEXTREL" not in dynamic
    yield "full RELRO", "GNU_RELRO" in headers and bool(re.search(r"FLAGS.*\bBIND_NOW|FLAGS_1.*\bNOW\b", dynamic))
    yield "no executable stack", bool(re.search(r"GNU_STACK.* RW +0x", headers))
    yield "no segment is writable and executable", not re.search(r"LOAD.* RWE ", headers)


def code(program, fortify):
    """By the instructions of our own functions: the libraries that are linked statically have them, too."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True,
                          text=True).stdout
    ours = re.findall(r"^[0-9a-f]+ <(?:uni_\w+|main)>:\n(.*?)\n\n", text, re.M | re.S)
    guarded = sum("<__stack_chk_fail@" in f for f in ours)
    yield f"stack protector: in {guarded} of {len(ours)} functions", guarded * 20 > len(ours)
    if fortify:
        checked = sum(bool(re.search(r"<__(?!stack)\w+_chk@", f)) for f in ours)
        yield f"FORTIFY: in {checked} of {len(ours)} functions", checked * 50 > len(ours)
    if "X86-64" in readelf("-h", program):
        marked = sum("endbr64" in f.split("\n", 1)[0] for f in ours)
        yield f"-fcf-protection: {marked} of {len(ours)} functions begin with ENDBR64", marked * 10 > len(ours) * 9


def main(fortify, program, *modules):
    found = [(elf, *c) for elf in (program, *modules) for c in checks(elf)]
    found += [(program, *c) for c in code(program, fortify != "0")]
    for n, (elf, what, good) in enumerate(found, 1):
        print(f"{'ok' if good else 'not ok'} {n} - {elf.rsplit('/', 1)[-1]}: {what}")
    print(f"1..{len(found)}")


main(*sys.argv[1:])
