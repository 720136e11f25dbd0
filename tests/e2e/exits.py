#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""exits.py FOLDER EVERY [chains] [ROUNDS]: judges exits.json, count.folded and time.folded of the lab
guest `ports` (lab/README.md says what it does). One exit in EVERY was looked at: numbers are exact
all the same, times are estimates then."""
import json
import sys

# Function, exit, number, callers.
DOES = (
    ('out_often', 'io out 0x80', 10000, 'use_ports'),
    ('out_seldom', 'io out 0x84', 1000, 'use_ports'),
    ('in_some', 'io in 0x85', 500, 'use_ports'),
    ('mmio_store', 'mmio write 0xd0000010', 400, 'use_device'),
    ('mmio_load', 'mmio read 0xd0000024', 200, 'use_device'),
)
# CPUs with VMX and SVM use these reasons for mmio.
MMIO = ('mmio', 'ept-misconfig', 'npf')


def fail(text):
    print(text)
    sys.exit(1)


def folded(path):
    stacks = {}
    with open(path, encoding='utf-8') as lines:
        for line in lines:
            stack, count = line.rsplit(' ', 1)
            stacks[stack] = int(count)
    return stacks


def same_exit(seen, want):
    if seen == want:
        return True
    return want.startswith('mmio') and seen.split()[0] in MMIO and seen.split()[-1] == want.split()[-1]


def judge_rows(rows, rounds):
    for function, label, number, _ in DOES:
        mine = [r for r in rows if r['function'] == function]
        hits = [r for r in mine if same_exit(r['exit'], label)]
        if sum(r['exits'] for r in hits) != number * rounds:
            fail('%s, %s: not %d: %s' % (function, label, number * rounds, mine))
        # QEMU has none of these devices, so each goes there, and takes a microsecond at least.
        if any(r['to_vmm'] != r['exits'] or r['host_ns'] < 1000 * r['exits'] for r in hits):
            fail('%s: %s' % (function, hits))
        others = [r['exit'] for r in mine if r not in hits and 'signal' not in r['exit'] and
                  'interrupt' not in r['exit'] and 'preemption' not in r['exit']]
        if others:
            fail('%s also exits by %s' % (function, others))


def judge_chains(counts, times, rounds):
    for function, label, number, caller in DOES:
        head = 'lab_entry;kmain;run_app;app_main;%s;%s;[exit ' % (caller, function)
        got = sum(n for stack, n in counts.items()
                  if stack.startswith(head) and same_exit(stack[len(head):-1], label))
        if got != number * rounds:
            fail('%s%s]: %d, not %d' % (head, label, got, number * rounds))
        if not any(stack.startswith(head) for stack in times):
            fail('no time in %s' % head)


def main():
    folder, every = sys.argv[1], int(sys.argv[2])
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    with open(folder + '/exits.json', encoding='utf-8') as file:
        table = json.load(file)
    counts, times = folded(folder + '/count.folded'), folded(folder + '/time.folded')
    judge_rows(table['rows'], rounds)
    if len(sys.argv) > 3:
        judge_chains(counts, times, rounds)
    total = sum(r['exits'] for r in table['rows'])
    if total != table['total']['exits'] or total != sum(counts.values()):
        fail('sums differ: %d, %d, %d' % (total, table['total']['exits'], sum(counts.values())))
    print('%d exits, one in %d looked at' % (total, every))


main()
