#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bpf_frames.py [--against FILE] OBJECT...: the stack that each program in the kernel needs at most, by the rule of Linux 6.1's
verifier. The frame of each function is rounded up to 32 bytes. They are summed along the deepest chain of calls and callbacks
(bpf_loop). TAP. Fails above LIMIT of the 512 bytes that the kernel gives.

A frame is as deep as the lowest address below r10 that the function's code forms. --against compares with what the verifier said
instead: lines "stack PROGRAM DEPTH...", a depth for each function. The verifier rounds up to 8 and adds 3 words if it puts bpf_loop
into the function (but not before it judges). It leaves out code that does not run in that kernel."""
import struct
import sys

LIMIT, ROUND = 448, 32
R10 = 10
LD_IMM64, CALL, MOV_X, ADD_K = 0x18, 0x85, 0xbf, 0x07
LDX, ST, STX = 1, 2, 3
PSEUDO_CALL = 1
HELPER_LOOP, LOOP_WORDS = 181, 3
SYMTAB, REL, FUNC, UNDEFINED = 2, 9, 2, 0


class Insn:
    def __init__(self, data, at):
        self.code, regs, self.off, self.imm = struct.unpack_from('<BBhi', data, at)
        self.dst, self.src = regs & 15, regs >> 4


class Object:
    """The parts of an ELF file for BPF that are needed: functions, and their calls."""

    def __init__(self, path):
        with open(path, 'rb') as f:
            self.data = f.read()
        if self.data[:6] != b'\x7fELF\x02\x01' or struct.unpack_from('<H', self.data, 18)[0] != 247:
            sys.exit('%s: no object for BPF' % path)
        offset, = struct.unpack_from('<Q', self.data, 40)
        size, count, names = struct.unpack_from('<HHH', self.data, 58)
        self.sections = [struct.unpack_from('<IIQQQQIIQQ', self.data, offset + i * size)
                         for i in range(count)]
        self.strings = self.sections[names]
        self.functions, self.symbols = {}, []
        for s in self.sections:
            if s[1] == SYMTAB:
                self.read_symbols(s)
        self.targets = {}
        for s in self.sections:
            if s[1] == REL:
                self.read_relocations(s)

    def text(self, strings, at):
        begin = strings[4] + at
        return self.data[begin:self.data.index(b'\0', begin)].decode()

    def read_symbols(self, table):
        for at in range(table[4], table[4] + table[5], 24):
            name, info, _, section, value, size = struct.unpack_from('<IBBHQQ', self.data, at)
            self.symbols.append((section, value))
            if info & 15 == FUNC:
                self.functions[section, value] = (self.text(self.sections[table[6]], name), size)

    def read_relocations(self, table):
        for at in range(table[4], table[4] + table[5], 16):
            offset, info = struct.unpack_from('<QQ', self.data, at)
            self.targets[table[7], offset] = self.symbols[info >> 32]

    def callees(self, key):
        """For the function at key: the functions that it calls or gives as callbacks, the depth of its frame, and whether it loops."""
        section, value = key
        base = self.sections[section][4]
        frames, calls, copies, loops = 0, set(), set(), False
        at, end = value, value + self.functions[key][1]
        while at < end:
            insn = Insn(self.data, base + at)
            if insn.code == LD_IMM64:
                goal = self.targets.get((section, at))
                if goal and (goal[0], goal[1] + insn.imm) in self.functions:
                    calls.add((goal[0], goal[1] + insn.imm))
                at += 8
            elif insn.code == CALL and insn.src == PSEUDO_CALL:
                goal = self.targets.get((section, at))
                # Behind a symbol, or here; in instructions, from the next one on.
                place, begin = goal or (section, at)
                if place != UNDEFINED: # one of the kernel's own
                    calls.add((place, begin + (insn.imm + 1) * 8))
            elif insn.code == CALL:
                loops = loops or (insn.src == 0 and insn.imm == HELPER_LOOP)
            elif insn.code == MOV_X and insn.src == R10:
                copies.add(insn.dst)
            elif insn.code == ADD_K and insn.dst in copies:
                frames = max(frames, -insn.imm)
                copies.discard(insn.dst)
            elif insn.code & 7 in (ST, STX) and insn.dst == R10 or insn.code & 7 == LDX and insn.src == R10:
                frames = max(frames, -insn.off)
            at += 8
        return calls, frames, loops


def deepest(obj, key, seen=()):
    """(bytes, [names]) of the deepest chain from that function on; every frame has a byte at least."""
    if key in seen:
        sys.exit('%s calls itself' % obj.functions[key][0])
    calls, frame, _ = obj.callees(key)
    below = max((deepest(obj, c, seen + (key,)) for c in calls), default=(0, []))
    rounded = (max(frame, 1) + ROUND - 1) // ROUND * ROUND
    return rounded + below[0], ['%s %d' % (obj.functions[key][0], frame)] + below[1]


def reached(obj, key, into):
    """The verifier's depth of each function that can be reached."""
    if key not in into:
        calls, frame, loops = obj.callees(key)
        into[key] = (max(frame, 0) + 7) // 8 * 8 + (8 * LOOP_WORDS if loops else 0)
        for call in calls:
            reached(obj, call, into)
    return into


def programs(obj):
    """Functions that have a section of their own, not the one that others are called from."""
    for key, (name, _) in sorted(obj.functions.items()):
        if obj.text(obj.strings, obj.sections[key[0]][0]) != '.text':
            yield key, name


def compare(obj, said):
    """False if the verifier saw more functions, or deeper frames, than were computed here."""
    good = True
    for key, name in programs(obj):
        mine = sorted(reached(obj, key, {}).values(), reverse=True)
        theirs = sorted(said.get(name, []), reverse=True)
        fits = 0 < len(theirs) <= len(mine) and all(a >= b for a, b in zip(mine, theirs))
        print('%s: computed %s, verifier %s' % (name, mine, theirs))
        good = good and fits
    return good


def main():
    args = sys.argv[1:]
    if args[0] == '--against':
        with open(args[1], encoding='ascii') as f:
            said = [line.split() for line in f if line.startswith('stack ')]
        said = {words[1]: [int(w) for w in words[2:]] for words in said}
        sys.exit(0 if said and all([compare(Object(path), said) for path in args[2:]]) else 1)
    n = 0
    for path in args:
        obj = Object(path)
        for key, name in programs(obj):
            n += 1
            depth, chain = deepest(obj, key)
            print('%sok %d - %s needs %d of %d bytes of stack, at most %d' % (
                'not ' if depth > LIMIT else '', n, name, depth, 512, LIMIT))
            print('# ' + ' > '.join(chain))
    print('1..%d' % n)


main()
