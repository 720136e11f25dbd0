#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""places_oracle.py PLACES LAB-FOLDER: inlined functions and lines of each instruction of each lab image that has debug data, as
uniscope, eu-addr2line and llvm-symbolizer tell them. TAP. A function that is the same in several images of one compiler and its
options is asked for in the first of them.

eu-addr2line is asked about GCC's images only: it finds units by .debug_aranges, which clang does not write. If GCC gives one
instruction to two inlined functions that lie beside each other, it takes the other one. Then llvm-symbolizer decides, for at most
one instruction of a thousand. Padding between functions is left out: it belongs to nobody."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import can  # noqa: E402

PEERS = {
    "eu-addr2line": (["eu-addr2line", "-a", "-f", "-i", "-e"], lambda image: "-clang-" not in image),
    "llvm-symbolizer": (["llvm-symbolizer", "-a", "--inlines", "--no-demangle", "-e"], lambda image: True),
}
PADDING = re.compile(r"\bnop|xchg +%ax,%ax|data16|^cs ")
INSTRUCTION = re.compile(r"^ *([0-9a-f]+):\t([a-z][a-z0-9,]*(?: .*)?)$")  # data among code is shown as text


def run(argv, text=None):
    return subprocess.run(argv, input=text, capture_output=True, text=True, check=False).stdout


def addresses(image, known):
    """Looks only at instructions of functions that are not known yet; they become known."""
    functions = []
    for line in run(["objdump", "-d", "--no-show-raw-insn", image]).splitlines():
        m = INSTRUCTION.match(line)
        if line.endswith(">:"):
            functions.append((line.split()[1], []))
        elif m and functions and not PADDING.search(m.group(2)):
            functions[-1][1].append(m.groups())
    found = []
    for name, instructions in functions:
        # Operands hold addresses, which differ.
        same = name, tuple(text.split()[0] for _, text in instructions)
        if same not in known:
            known.add(same)
            found += ["0x" + at for at, _ in instructions]
    return found


def flavour(name):
    """How it was compiled: what is before and behind the app's name."""
    return name.startswith("xen-"), "-pie-" in name, name.startswith("program-"), name.split("-")[-2:]


SCOPES = re.compile(r"^(?:(?:\w+(?:\([^()]*\)(?: const)?)?|\(anonymous \w+\))::)+")
# Labels inside of functions, which llvm-symbolizer takes for functions of their own.
LABELS = {"lab_switch_resume": "lab_switch"}


def norm(line):
    """Without columns, discriminators, folders, and the endings that compilers give to parts of functions. A function without a
    linkage name has its namespaces, classes and functions by us alone (unit debug)."""
    line = re.sub(r" inlined at .*| \(discriminator.*", "", line)
    line = re.sub(r"\.(cold|constprop|isra|part)(\.\d+)?", "", line)
    line = SCOPES.sub("", LABELS.get(line, line))
    m = re.match(r"^(.*?):(\d+|\?)(:\d+)?$", line)
    return f"{m.group(1).split('/')[-1]}:{m.group(2).replace('?', '0')}" if m else line


def blocks(text):
    """{address: [function, file:line, ...]}, innermost first."""
    ret, at = {}, None
    for line in text.splitlines():
        if re.match(r"0x[0-9a-f]+$", line):
            at = int(line, 16)
            ret[at] = []
        elif line and at is not None:
            ret[at].append(norm(line))
    return ret


def compare(name, ours, theirs, arbiter):
    """The addresses at which they differ, as TAP comments. A peer that knows nothing has no say."""
    differ = [a for a in ours if theirs.get(a) != ours[a]]
    contested = [a for a in differ if arbiter.get(a) == ours[a]]
    if len(contested) <= max(1, len(ours) / 1000):
        differ = [a for a in differ if a not in contested]
    return [f"# {name} {a:#x}: {ours[a]} against {theirs.get(a)}" for a in differ]


def main():
    places, folder = sys.argv[1:]
    images = sorted(str(p) for p in pathlib.Path(folder).glob("*.elf"))
    if not os.environ.get("UNISCOPE_ALL"):  # one way for each compiler
        images = [i for i in images if i.endswith(("-gcc-nofp.elf", "-clang-fp.elf"))]
    images = [i for i in images if ".debug_info" in run(["objdump", "-h", i])]
    peers = {n: p for n, p in PEERS.items() if shutil.which(n)}
    for peer in PEERS.keys() - peers.keys():
        print(f"# {peer} is not installed: not asked")
    if not images or not peers or not shutil.which("objdump"):
        can.absent("no lab images, or neither eu-addr2line nor llvm-symbolizer")
    nr, known = 0, {}
    for image in images:
        name = pathlib.Path(image).stem
        first = str(flavour(name)) not in known
        asked = addresses(image, known.setdefault(str(flavour(name)), set()))
        if not asked and not first:
            print(f"# {name}: its functions were asked for in another image")
            continue
        text = "".join(a + "\n" for a in asked)
        ours = blocks(run([places, image], text))
        inlined = sum(len(b) > 2 for b in ours.values())
        said = {peer: blocks(run([*argv, image], text)) for peer, (argv, fits) in peers.items() if fits(name)}
        for peer, theirs in said.items():
            nr += 1
            bad = compare(name, ours, theirs, said.get("llvm-symbolizer", {}) if peer != "llvm-symbolizer" else {})
            ok = not bad and len(ours) == len(asked) > 20 and (inlined > 0 or not first)
            print(f"{'ok' if ok else 'not ok'} {nr} - {name}: {len(asked)} instructions, {inlined} of "
                  f"inlined functions, as {peer}")
            print("\n".join(bad[:8]) + "\n" if bad else "", end="")
    print(f"1..{nr}")


main()
