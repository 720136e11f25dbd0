#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The call graph of a lab image, from its instructions: the oracle that call chains are judged by.

usage: callgraph.py [--objdump PROG] [--indirect FILE]... [--require FILE]... [-o FILE] ELF

Prints `caller callee` for each direct call, and for each jump from one function to another. Callers
of `lab_fail` and the like end that way in assembler. Also prints each edge of the --indirect files,
and `entry SYMBOL` for each symbol in which an outermost frame may lie. A --require file names edges
known by hand: one of them missing is an error. Both kinds of file hold lines `caller callee`; lines
of functions that an image does not have are skipped if the line starts with `?`.
"""
import argparse
import re
import subprocess
import sys

ENTRIES = ('lab_pvh_start', 'lab_entry', 'lab_ap_entry', 'lab_thread_entry', 'lab_trap_common',
           'lab_pv_start', 'lab_pv_ap_start', 'lab_pvh_ap_start')
SYMBOL = re.compile(r'^[0-9a-f]+ <([^>]+)>:$')
# x86's, and aarch64's: bl, b, b.ne, cbz x0, tbnz w0, #3,
BRANCH = re.compile(r'\t(?:call|j[a-z]+|bl?|b\.[a-z]+|cbn?z|tbn?z)q?\s+(?:[wx][0-9]+, (?:#\S+, )?)?'
                    r'(?:0x)?[0-9a-f]+ <([^+>]+)(\+0x[0-9a-f]+)?>')


def disassemble(objdump, elf):
    out = subprocess.run([objdump, '-d', '--no-show-raw-insn', elf], check=True,
                         stdout=subprocess.PIPE, universal_newlines=True)
    return out.stdout.splitlines()


def direct_edges(lines):
    edges, functions, current = set(), set(), None
    for line in lines:
        match = SYMBOL.match(line)
        if match:
            current = match.group(1)
            functions.add(current)
            continue
        match = BRANCH.search(line)
        if not match or not current:
            continue
        is_call = '\tcall' in line or '\tbl\t' in line
        target, offset = match.group(1), match.group(2)
        # A jump to an offset stays within a function, or is to a local label of the assembler. A
        # call to an offset is a hypercall: their page is one symbol.
        if (is_call and not (offset and target == current)) or (not offset and target != current):
            edges.add((current, target))
    return edges, functions


def read_edges(path, functions):
    edges = set()
    with open(path, encoding='ascii') as lines:
        for number, line in enumerate(lines, 1):
            words = line.split('#')[0].split()
            if not words:
                continue
            optional = words[0] == '?'
            words = words[1:] if optional else words
            if len(words) != 2:
                sys.exit('%s:%d: want `caller callee`' % (path, number))
            unknown = [w for w in words if w not in functions]
            if unknown and optional:
                continue
            if unknown:
                sys.exit('%s:%d: no function %s in the image' % (path, number, unknown[0]))
            edges.add(tuple(words))
    return edges


def main():
    parser = argparse.ArgumentParser(description='call graph of a lab image')
    parser.add_argument('--objdump', default='objdump')
    parser.add_argument('--indirect', action='append', default=[])
    parser.add_argument('--require', action='append', default=[])
    parser.add_argument('-o', default='/dev/stdout', dest='output')
    parser.add_argument('elf')
    args = parser.parse_args()

    edges, functions = direct_edges(disassemble(args.objdump, args.elf))
    for path in args.require:
        missing = read_edges(path, functions) - edges
        for caller, callee in sorted(missing):
            print('%s: no call %s -> %s' % (args.elf, caller, callee), file=sys.stderr)
        if missing:
            sys.exit(1)
    for path in args.indirect:
        edges |= read_edges(path, functions)
    with open(args.output, 'w', encoding='ascii') as out:
        for caller, callee in sorted(edges):
            print(caller, callee, file=out)
        for name in ENTRIES:
            if name in functions:
                print('entry', name, file=out)


if __name__ == '__main__':
    main()
