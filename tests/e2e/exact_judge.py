#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Judges exact counts by what others count.

exact_judge.py known REPORT CONSOLE [ARCH] what lab/apps/exact.c says that it does
exact_judge.py callgrind REPORT CALLGRIND EXPORT  valgrind, of the same functions in a Linux process;
                                           EXPORT: ours in its format
exact_judge.py annotated ELF NATIVE CALLGRIND JSON...  executions of each instruction, by valgrind; the code, by objdump
exact_judge.py calls COUNTS CONSOLE        calls as the guest has counted them, and by arithmetic
exact_judge.py trace COUNTS REPORT [GLOB]  `trace report --json` of recorded calls: those of the counts, with their instructions
exact_judge.py calls-of COUNTS REPORT VCPUS   the same of a guest that was killed: its calls alone
exact_judge.py part REPORT CALLS           the first of so many calls of exact_fib, and the others lost
exact_judge.py diff BEFORE AFTER DIFF      `diff --json` against the counts of both sides
exact_judge.py modes TREE COUNTS          --exact=counts against --exact=tree, which counts by other means
exact_judge.py moved CONSOLE COUNTS...     lab/apps/deep.c wherever it was: the guest's own counts of calls, the same in each run, and
                                           no function without a name
exact_judge.py range COUNTS               where the functions of lab/apps/exact.c lie, for QEMU's -dfilter
exact_judge.py steps COUNTS LOG            each of their instructions as often as QEMU has logged it, one a block
exact_judge.py parts MIDDLE BEFORE REPORT  between fib and ack, and before main
exact_judge.py lines INFO GCOV             lines of lcov's format against gcov's text
exact_judge.py preempted COUNTS FOLDED     lab/apps/preempt.c
exact_judge.py faults COUNTS ROUNDS         lab/apps/faults.c
exact_judge.py blocks REPORT SAMPLES       samples of lab/apps/blocks.c, against its instructions
exact_judge.py jumps REPORT SAMPLES        the same with jumps=1
exact_judge.py quarters SAMPLES            the same without a count: four parts have the same instructions
exact_judge.py basic EXACT SAMPLES         `annotate --json` of a function, by basic block: samples against exact counts
REPORT is `uniscope report --json`, CALLGRIND callgrind's file.
"""
import fnmatch
import itertools
import json
import re
import subprocess
import sys


def self_of(report):
    with open(report) as f:
        data = json.load(f)
    assert data['unit'] == 'instructions', data['unit']
    return {f['name']: int(f['self']) for f in data['functions']}


def same(what, have, want):
    if have == want:
        return 0
    print(f'{what}: counted {have}, it is {want}')
    return 1


INSTRUCTIONS = {'exact_touch': 2000, 'exact_device': 30001, 'exact_devices': 1400, 'exact_tail_a': 1500, 'exact_tail_b': 1500, 'exact_throw': 400,
                'exact_catch': 1900, 'exact_page_fault': 22000, 'exact_split': 5002, 'exact_note': 1,
                'exact_patched': 158, 'exact_hook': 1, 'exact_late': 22, 'exact_called': 7, 'exact_interrupt': 84}
ON_AARCH64 = {'exact_throw': 600, 'exact_page_fault': 24000, 'exact_vectors': 1000, 'exact_split': None, 'exact_note': 3, 'exact_patched': None, 'exact_hook': None,
                             'exact_late': None, 'exact_called': None, 'exact_interrupt': None}


def known(report, console, arch='x86_64'):
    own = self_of(report)
    text = open(console, errors='replace').read()
    bad = 'exact: done' not in text
    # Instructions that the assembler code has; a tail call of b by a and the other way round.
    for name, insns in (INSTRUCTIONS if arch == 'x86_64' else INSTRUCTIONS | ON_AARCH64).items():
        bad += same(name, own.get(name), insns)
    return bad


def own_of_samples(path, names):
    with open(path) as f:
        seen = [(f['name'], f['self']) for f in json.load(f)['functions']]
    return {n: sum(own for name, own in seen if name == n) for n in names}, sum(own for _, own in seen)


def shares_fit(seen, nr, want, points):
    """No share is off by more than that, and four standard errors; and none above a tenth is nearly missing."""
    bad = nr < 80
    print(nr, 'samples')
    for n, share in want.items():
        likely = min(max(share, 0.1), 0.9)
        got, allowed = seen[n] / nr, points + 4 * (likely * (1 - likely) / nr) ** 0.5
        print('%s: %.1f %% by instructions, %.1f +- %.1f %% of the samples' % (n, share * 100, got * 100, allowed * 100))
        few = share / 4  # less than that is missing, by two standard errors
        bad |= abs(got - share) > allowed or (share > 0.1 and got + 2 * (few * (1 - few) / nr) ** 0.5 < few)
    return bad


def blocks(report, samples):
    """Instructions differ in time: QEMU looks up where a return leads, and on a quiet host `empty` has 17 % of the time with 0.3 % of the
    instructions. A function that is called by a pointer has no name: it is above `both` and `points`."""
    own = self_of(report)
    own['[unknown callee]'] = own['pointed'] + own['empty'] // 2
    own['empty'] -= own['empty'] // 2
    names = ('returns', 'calls', 'points', '[unknown callee]', 'forks', 'both', 'empty')
    all_of = sum(own[n] for n in names)
    seen, nr = own_of_samples(samples, names + ('pointed',))
    return shares_fit(seen, nr, {n: own[n] / all_of for n in names} | {'pointed': 0}, 0.1)


def jumps(report, samples):
    """To which function a stop behind a call belongs is not certain where a jump leads there: it is on the side of `parts`. The
    return of `thunk` is a jump, so `through` has called nobody knows whom. `return_thunk` returns for functions that jump there."""
    own = self_of(report)
    own['[unknown callee]'] = own.pop('reached')
    own['parts'] += own.pop('parts.cold')
    names = ('interprets', 'parts', '[unknown callee]', 'direct', 'blocks_empty', 'thunk', 'return_thunk')
    all_of = sum(own[n] for n in names)
    return shares_fit(*own_of_samples(samples, names), {n: own[n] / all_of for n in names}, 0.1)


def quarters(samples):
    """The same without a count: 60 of 285 parts each."""
    want = dict.fromkeys(('returns', 'calls', 'points', '[unknown callee]'), 60 / 285) | {'forks': 45 / 285}
    return shares_fit(*own_of_samples(samples, want), want, 0.1)


# QEMU looks up where a return leads, before the next block begins. Host perf: 5.4 % of QEMU's time in `forks`, as much as this
# number of its instructions.
RETURN = 8


class Flow:
    """A function's way through its code, from the exact number of executions of each instruction."""

    def __init__(self, doc):
        self.insns = doc['instructions']
        self.at = {int(i['address'], 16): n for n, i in enumerate(self.insns)}
        self.first, self.calls = 0, self.insns[0]['self']
        self.jump = {n: self.at.get(int(i['target'], 16)) for n, i in enumerate(self.insns) if i['kind'] == 'jump' and 'target' in i}

    def goes(self, last, turn, nth):
        """Does forks(turn) jump at its nth execution of this branch? `turn & 3` is 0 to 3 in turn, and so many loops follow."""
        often, to = self.insns[last]['self'] * 4 // self.calls, self.jump[last]
        jumps = often - self.insns[last + 1]['self'] * 4 // self.calls
        if self.insns[last]['text'].split()[0] in ('jmp', 'b'):
            return True
        if often == 4:
            return (turn == 0) == (jumps == 1)
        assert often in (6, 10), f'{often} executions in four calls of ' + self.insns[last]['text']
        again = nth < (turn - 1 if often == 6 else turn)
        return again == (to < last)

    def end_of(self, first):
        """QEMU's block: to the next branch, also over the target of another one."""
        while self.insns[first]['kind'] not in ('jump', 'return'):
            first += 1
        return first

    def stops(self):
        """TCG stops at these: {the block that is next: the instructions of the blocks before}; None: the function has returned."""
        stops = {}
        for turn in range(4):
            first, seen = self.first, {}
            while first is not None:
                last = self.end_of(first)
                seen[last] = nth = seen.get(last, -1) + 1
                if self.insns[last]['kind'] == 'return':
                    to, more = None, RETURN
                else:
                    to, more = self.jump[last] if self.goes(last, turn, nth) else last + 1, 0
                stops[to] = stops.get(to, 0) + last + 1 - first + more
                first = to
        return stops

    def basic_blocks(self):
        """[first, behind the last]: between targets and branches."""
        ends = [n for n, i in enumerate(self.insns) if i['kind'] in ('jump', 'return')]
        cuts = sorted({0, len(self.insns)} | {n for n in self.jump.values() if n is not None} | {n + 1 for n in ends})
        return list(zip(cuts, cuts[1:]))


def basic(exact, samples):
    """Samples of each basic block of a function, as `annotate` shows them, against exact counts."""
    with open(exact) as f:
        flow = Flow(json.load(f))
    with open(samples) as f:
        doc = json.load(f)
    nr, self = doc['self'], [i['self'] for i in doc['instructions']]
    if doc['skid'] == 'block':
        want = flow.stops()
        want = {n: v for n, v in want.items() if v}
        seen = {n: doc['somewhere'] if n is None else self[n] for n in want}
    else:
        want = {b: sum(flow.insns[n]['self'] for n in range(*b)) for b in flow.basic_blocks()}
        seen = {b: sum(self[slice(*b)]) for b in want}
    whole = sum(want.values())
    print(doc['function'], 'skid', doc['skid'], '- elsewhere', nr - sum(seen.values()), 'of', nr)
    points = 0.07 if doc['skid'] == 'block' else 0.05
    return shares_fit(seen, nr, {n: v / whole for n, v in want.items()}, points) or nr - sum(seen.values()) > 0.05 * nr


def callgrind_read(path):
    """Self cost by function, and calls by (caller, callee). The line behind calls= is no self cost."""
    own, pairs, names, fn, callee = {}, {}, {}, None, None
    for line in open(path):
        m = re.match(r'(c?fn)=\((\d+)\)(?: (.*))?$', line.rstrip())
        if m:
            if m[3]:
                names[m[2]] = m[3].split("'")[0]  # recursion has names of its own
            if m[1] == 'fn':
                fn = names[m[2]]
            else:
                callee = names[m[2]]
        elif line.startswith('calls='):
            pairs[fn, callee] = pairs.get((fn, callee), 0) + int(line[6:].split()[0])
        elif re.match(r'[+\-*\d]', line) and fn:
            if callee is None:
                own[fn] = own.get(fn, 0) + int(line.split()[-1])
            callee = None
    return own, pairs


def callgrind(report, path, export):
    own, (theirs, calls_theirs) = self_of(report), callgrind_read(path)
    own_again, calls_own = callgrind_read(export)
    names = [n for n in theirs if n.startswith('exact_')]
    pairs = [p for p in calls_theirs if p[0] in names and p[1] in names]
    if len(names) < 11 or len(pairs) < 60:
        print('callgrind saw only', names, pairs)
        return 1
    bad = sum(same(n, own.get(n), theirs[n]) + same(n, own_again.get(n), theirs[n]) for n in names)
    return bad + sum(same(p, calls_own.get(p), calls_theirs[p]) for p in pairs)


def callgrind_insns(path, native):
    """{function: {offset: executions}}"""
    begin = {f[2]: int(f[0], 16) for f in map(str.split, subprocess.check_output(['nm', native], text=True).splitlines()) if len(f) == 3}
    ret, names, fn, after_calls = {}, {}, None, False
    for line in open(path):
        m = re.match(r'fn=\((\d+)\)(?: (.*))?$', line.rstrip())
        if m:
            if m[2]:
                names[m[1]] = m[2].split("'")[0]
            fn = names[m[1]]
        elif (m := re.match(r'cfn=\((\d+)\) (.*)$', line.rstrip())):
            names[m[1]] = m[2].split("'")[0]
        elif re.match('0x', line) and not after_calls and fn in begin:
            at, n = int(line.split()[0], 16) - begin[fn], int(line.split()[-1])
            of = ret.setdefault(fn, {})
            of[at] = of.get(at, 0) + n
        after_calls = line.startswith('calls=')
    return ret


def annotated(elf, native, path, *documents):
    theirs, bad = callgrind_insns(path, native), 0
    for document in documents:
        with open(document) as f:
            doc = json.load(f)
        name, begin, insns = doc['function'], int(doc['address'], 16), doc['instructions']
        bad += same(name + ': skid', doc['skid'], 'none')
        bad += same(name + ': executions', {int(i['address'], 16) - begin: i['self'] for i in insns if i['self']}, theirs.get(name))
        bad += same(name + ': sum', sum(i['self'] for i in insns), doc['self'])
        code = subprocess.check_output(['objdump', '-d', '--no-show-raw-insn', '--disassemble=' + name, elf], text=True)
        code = re.findall(r'^ *([0-9a-f]+):\t(\w+)(?:.*<(\w+)>)?', code, re.M)[:len(insns)]
        bad += same(name + ': addresses', [int(i['address'], 16) for i in insns], [int(c[0], 16) for c in code])
        bad += same(name + ': callees', [i.get('callee') for i in insns if i['kind'] == 'call'], [c[2] or None for c in code if c[1] == 'call'])
        for c in doc['callees']:
            at = [i for i in insns if i.get('callee') == c['name'] and 'calls' in i]
            bad += same(name + ': calls of ' + c['name'], sum(i['calls'] for i in at) if c['sites'] else c['calls'], c['calls'])
            bad += same(name + ': places that call ' + c['name'], len(at), c['sites'])
    return bad


def calls(counts, console):
    with open(counts) as f:
        data = json.load(f)
    own = {f['name']: f['calls'] for f in data['functions']}
    text = open(console, errors='replace').read()
    bad = same('exact_fib', own['exact_fib'], 21891)  # 2 fib(21) - 1
    nodes = re.findall(r'exact: node_(\d) (\d+)', text)
    bad += len(nodes) != 8
    for i, n in nodes:
        bad += same(f'exact_node_{i}', own[f'exact_node_{i}'], int(n))
    for name, n in {'exact_touch': 1000, 'exact_page_fault': 1000, 'exact_map': 1000, 'dive': 800,
                    'exact_tail_a': 500, 'exact_tail_b': 500, 'exact_throw': 100, 'exact_catch': 100,
                    'after_throw': 100, 'exact_bounce': 8, 'exact_note': 1, 'exact_device': 1, 'exact_devices': 100, 'exact_choose': 10}.items():
        bad += same(name, own[name], n)
    bad += same('calls', data['calls'], data['returns'] + data['frames_dropped'] +
                data['frames_open'] + data['tail_calls'])
    bad += same('frames dropped', data['frames_dropped'], 904)  # nine a throw, four by exact_bounce
    if 'exact_late' in own:  # x86_64: four interrupts, each behind a call; and a stack between one of theirs and the handler's
        for name, n in {'exact_late': 2, 'exact_called': 7, 'exact_interrupt': 4, 'exact_served': 4, 'exact_patched': 2, 'exact_higher': 1,
                        'exact_lower': 1}.items():
            bad += same(name, own[name], n)
        bad += same('stacks', data['stacks'], 5)
    bad += same('interrupts', data['interrupts'], 1000 + 2 * own.get('exact_late', 0))
    for key in ('returns_unmatched', 'blocks_cut_anywhere', 'calls_folded', 'blocks_uncounted'):
        bad += same(key, data[key], 0)
    return bad + same('executions', sum(n for _, n in data['executions']),
                      data['instructions'] + data['instructions_before_image'])


def of_app(counts):
    with open(counts) as f:
        data = json.load(f)
    own = [f for f in data['functions'] if re.match('exact_|(app_main|dive|after_throw|throw_often)$', f['name'] or '')]
    return data, [(int(f['address'], 16), int(f['address'], 16) + f['size']) for f in own]


def range_of(counts):
    places = of_app(counts)[1]
    low = min(p[0] for p in places)
    print('%#x+%#x' % (low, max(p[1] for p in places) - low))


def steps(counts, log):
    data, places = of_app(counts)
    seen = {}
    for line in open(log, errors='replace'):
        # A block that is logged and then not begun, because QEMU was asked for something else: on a busy host.
        m = re.match(r'(Trace) \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/|(Stopped) execution of TB chain before \S+ \[([0-9a-f]+)\]', line)
        if m:
            pc = int(m[2] or m[4], 16)
            seen[pc] = seen.get(pc, 0) + (1 if m[1] else -1)
    own = {int(a, 16): n for a, n in data['executions']}
    inside = {pc for p in places for pc in set(own) | set(seen) if p[0] <= pc < p[1]}
    print(len(inside), 'instructions in', len(places), 'functions,', sum(own.get(pc, 0) for pc in inside), 'executions')
    return sum(same(hex(pc), own.get(pc, 0), seen.get(pc, 0)) for pc in sorted(inside)) or len(inside) < 200


def parts(middle, before, report):
    data = [json.load(open(path)) for path in (middle, before)]
    a, b = ({f['name']: f for f in d['functions']} for d in data)
    whole = self_of(report)
    bad = same('executions between', sum(n for _, n in data[0]['executions']), data[0]['instructions'])
    bad += same('fib', (a['exact_fib']['calls'], a['exact_fib']['instructions']),
               (21891, whole['exact_fib']))
    for name in ('exact_ack', 'kmain', 'exact_graph'):
        bad += same(name + ' between', a.get(name), None)
    for name in ('app_main', 'exact_fib'):
        bad += same(name + ' before', b.get(name), None)
    return bad + sum(same(name + ' before', b[name]['calls'], 1) for name in ('lab_entry', 'kmain', 'run_app'))


# lab/apps/faults.c: executions of each instruction a round, of which each second one has a division that faults.
FAULTS = {
    'faults_left': (1, 1, 1, .5, .5), 'faults_fixed': (1, 1, 1, .5, .5, 1, 1), 'faults_skipped': (1, 1, 1, .5, 1, 1), 'faults_undefined': (1, 0, 1),
    'faults_on_stack': (1,) * 7, 'faults_leaf': (1,), 'faults_place': (1, 1, 1), 'faults_page': (2,) * 22,
}


def faults(counts, rounds):
    with open(counts) as f:
        data = json.load(f)
    bad, rounds = same('cut anywhere', data['blocks_cut_anywhere'], 0), int(rounds)
    at = {f['name']: (int(f['address'], 16), f['size'], f['calls'], f['instructions']) for f in data['functions']}
    for name, each in FAULTS.items():
        start, size, calls, insns = at[name]
        got = [n for a, n in data['executions'] if start <= int(a, 16) < start + size]
        wanted = [int(n * rounds) for n in each]
        bad += same(name, got, wanted) + same(name, insns, sum(wanted)) + same(name, calls, wanted[0])
    return bad


def preempted(counts, folded):
    """lab/apps/preempt.c: three threads of 10 rounds have frames of their own."""
    with open(counts) as f:
        data = json.load(f)
    of = {f['name']: f['calls'] for f in data['functions']}
    with open(folded) as f:
        callers = {a for line in f for a, b in itertools.pairwise(line.rsplit(' ', 1)[0].split(';')) if b == 'preempt_rec'}
    bad = same('calls', of['preempt_rec'], 3 * 10 * 63) + same('dropped', data['frames_dropped'], 0)
    # One that is left in the middle, and the frames of the other two.
    bad += same('few are open', data['frames_open'] < 20, True) + same('stacks', data['stacks'] <= 5, True)
    return bad + same('callers', callers, {'preempt_rec', 'preempt_work'})


def trace(counts, report, glob='*'):
    """Each call is in the trace, and none twice; a function's own time there is the instructions that it executed."""
    with open(counts) as f:
        data = json.load(f)
    with open(report) as f:
        seen = json.load(f)
    bad = same('lost', seen['lost'], 0) + same('returns without a call', seen['returns_without_call'], 0)
    of = {f['function']: f for f in seen['functions']}
    chosen = {f['name']: f for f in data['functions'] if fnmatch.fnmatch(f['name'], glob)}
    for name, f in chosen.items():
        bad += same('calls of ' + name, of.get(name, {}).get('calls', 0), f['calls'])
        if glob == '*':
            bad += same('instructions of ' + name, of.get(name, {}).get('self_ns', 0), f['instructions'])
    bad += same('functions besides', sorted(set(of) - set(chosen)), [])
    if glob == '*':
        bad += same('instructions', seen['end_ns'], data['instructions'])
    print(len(chosen), 'functions,', seen['events'], 'events')
    return bad or not chosen


def calls_of(counts, report, vcpus):
    """SIGKILL may come between the count of a call and its record: once on each vCPU, and one call each."""
    with open(counts) as f:
        own = {f['name']: f['calls'] for f in json.load(f)['functions']}
    with open(report) as f:
        seen = {f['function']: f['calls'] for f in json.load(f)['functions']}
    off = {n: abs(seen.get(n, 0) - c) for n, c in own.items() if c != 0}
    for n in off:
        same('calls of ' + str(n), seen.get(n, 0), own[n])
    return sum(off.values()) > int(vcpus) or len(off) < 20


def part(report, calls):
    with open(report) as f:
        data = json.load(f)
    fib = [f['calls'] for f in data['functions'] if f['function'] == 'exact_fib'][0]
    print(data['events'], 'events,', data['lost'], 'lost,', fib, 'calls of exact_fib')
    # Other functions have calls, too: those that wait for the clock, more on a busy host.
    return not (0 < fib < int(calls) and data['lost'] > 0 and data['events'] > 400000 and data['events'] + data['lost'] > 2 * int(calls))


def diff(before, after, result):
    def of(path):
        with open(path) as f:
            return {f['name']: (f['instructions'], f['calls']) for f in json.load(f)['functions']}
    old, new = of(before), of(after)
    with open(result) as f:
        data = json.load(f)
    changed = {n: (*old.get(n, (0, 0)), *new.get(n, (0, 0))) for n in {**old, **new} if old.get(n) != new.get(n)}
    have = {f['name']: tuple(f[k] for k in ('instructions_before', 'calls_before', 'instructions_after', 'calls_after'))
            for f in data['functions']}
    return same('functions', have, changed) + same('total', data['instructions_after'] - data['instructions_before'],
                                                   sum(n[0] for n in new.values()) - sum(o[0] for o in old.values())) or not changed


def several(one, three):
    """`diff` of three runs of each side, which are alike: the totals of one of each."""
    with open(one) as f, open(three) as g:
        a, b = json.load(f), json.load(g)
    old, new = a['instructions_before'], a['instructions_after']
    return same('counted', b['counted'], 'instructions') + same('per', b['per'], 'run') + same('unit', b['total']['unit'], 'instructions') + \
        same('before', b['total']['value_before'], old) + same('verdict', b['verdict'], 'slower') + same('words', b['text'][:18], 'more instructions:') + \
        same('change', round(b['total']['relative']['difference'] * old), new - old)


def grown(before, after):
    """Prints the function whose own instructions grew by the largest part, of those with more than 1,000."""
    def of(path):
        with open(path) as f:
            return {f['name']: f['instructions'] for f in json.load(f)['functions']}
    old, new = of(before), of(after)
    names = [n for n in old if old[n] > 1000 and n.isidentifier() and old[n] < new.get(n, 0) < 9 * old[n]]
    print(max(names, key=lambda n: new[n] / old[n]))
    return 0


def modes(tree, counts, app='exact'):
    a, b = (json.load(open(path)) for path in (tree, counts))
    bad = same('instructions', b['instructions'], a['instructions'])
    bad += same('cut anywhere', b['blocks_cut_anywhere'], 0)
    bad += app == 'exact' and b['blocks_cut'] < 11000  # 1,000 faults, 10,000 reads of a device
    own = {f['name']: f['instructions'] for f in b['functions']}
    for f in a['functions']:
        bad += same(f['name'], own.get(f['name']), f['instructions'])
    if app != 'exact':  # firmware that a vCPU waits in is not the same
        return bad
    return bad + same('executions', b['executions'] == a['executions'], True)


def nameless(tree, counts, jumped):
    """Code without a function that ran after the image's first instruction is not firmware."""
    a, b = (json.load(open(path)) for path in (tree, counts))
    own = [sum(f['instructions'] for f in d['functions'] if f['name'] is None) for d in (a, b)]
    print(own)
    bad = same('instructions', b['instructions'], a['instructions']) + same('without a name', own[1], own[0])
    bad += own[0] < 100000
    bad += same('entered by a jump', int(jumped, 16) in [int(f['address'], 16) for f in a['functions'] if f['name'] is None], True)
    bad += sum(same('executions', sum(n for _, n in d['executions']), d['instructions'] + d['instructions_before_image']) for d in (b,))
    return bad + sum(same(key, b[key], None) for key in ('calls', 'returns', 'frames_open', 'stacks'))


def begins(counts, report, unmatched, *names):
    """The first function has its own instructions in the trace, and has returned. So do those that it jumps to."""
    d, t = json.load(open(counts)), json.load(open(report))
    own = {f['name']: (f['calls'], f['instructions']) for f in d['functions']}
    bad = same('returns without a call', d['returns_unmatched'], int(unmatched))
    for f in t['functions']:
        if f['function'] in names:
            bad += same(f['function'], (f['calls'], f['self_ns']), own[f['function']]) + same('without return', f['without_return'], 0)
    return bad + same('names', len([f for f in t['functions'] if f['function'] in names]), len(names))


def whole(counts, state):
    d = json.load(open(counts))
    print(d['state'], d['calls'], d['frames_open'], d['stacks'])
    bad = same('state', d['state'], state) + (d['stacks'] < 1)
    if state == 'running':
        return bad + same('frames open', d['frames_open'], None)
    return bad + same('calls', d['calls'], sum(d[k] for k in ('tail_calls', 'returns', 'frames_dropped', 'frames_open'))) + (d['frames_open'] < 1)


def moved(console, *counts):
    text = open(console, errors='replace').read()
    runs = [json.load(open(path)) for path in counts]
    own = [{f['name']: (f['calls'], f['instructions']) for f in r['functions']} for r in runs]
    bad = sum(same('functions without a name', [f['address'] for f in r['functions'] if f['name'] is None], []) for r in runs)
    for name in ('hot_work', 'down_c'):
        bad += same('calls of ' + name, own[0].get(name, [0])[0], int(re.search(rf'^truth {name} (\d+) ', text, re.M).group(1)))
    for name in ('hot_work', 'down_a', 'down_b', 'down_c', 'lab_stop', 'app_main', 'kmain'):
        bad += sum(same(name, o.get(name), own[0].get(name)) for o in own[1:])
    return bad


def totals_of(info):
    """The sums that a report shows of each file must be those of its lines and functions."""
    wrong, seen = 0, {}
    for line in open(info):
        key, _, rest = line.strip().partition(':')
        if key in ('FNDA', 'DA'):
            count = int(rest.split(',')[key == 'DA'])
            seen.setdefault(key, []).append(count != 0)
        elif key in ('FNF', 'LF'):
            wrong += same(key, int(rest), len(seen.get({'FNF': 'FNDA', 'LF': 'DA'}[key], [])))
        elif key in ('FNH', 'LH'):
            wrong += same(key, int(rest), sum(seen.get({'FNH': 'FNDA', 'LH': 'DA'}[key], [])))
        elif key == 'end_of_record':
            seen = {}
    return wrong


def lines(info, gcov):
    if totals_of(info):
        return 1
    own, inside = {}, False
    for line in open(info):
        if line.startswith('SF:'):
            inside = line.rstrip().endswith('/exact_work.c')
        elif inside and line.startswith('DA:'):
            n, count = line[3:].split(',')
            own[int(n)] = int(count) != 0
    theirs = {}
    for line in open(gcov):
        count, n, text = line.split(':', 2)
        # The line that a function is said to begin with is not the same one.
        if count.strip() != '-' and not text.startswith('KEEP'):
            theirs[int(n)] = '#' not in count
    both = set(own) & set(theirs)
    missing = set(theirs) - set(own)
    if missing or len(both) < 18 or all(theirs[n] for n in both):
        print('lines in both:', sorted(both), 'only in gcov:', sorted(missing))
        return 1
    return sum(same(f'line {n}', own[n], theirs[n]) for n in both)


if __name__ == '__main__':
    sys.exit(1 if {'known': known, 'callgrind': callgrind, 'annotated': annotated, 'calls': calls, 'lines': lines,
                'modes': modes, 'nameless': nameless, 'whole': whole, 'begins': begins, 'moved': moved, 'blocks': blocks, 'jumps': jumps, 'quarters': quarters, 'basic': basic, 'parts': parts, 'preempted': preempted, 'faults': faults, 'trace': trace, 'calls-of': calls_of, 'part': part, 'diff': diff, 'several': several, 'grown': grown, 'range': range_of, 'steps': steps}[sys.argv[1]](*sys.argv[2:]) else 0)
