#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does the referee (judge.py) see what is wrong, and only that?"""
import io
import json
import os
import random
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judge  # noqa: E402

GRAPH = """
# by hand
lab_entry kmain
kmain app_main
app_main burn_a
app_main burn_b
app_main recurse
recurse recurse
recurse burn_d
burn_a helper
app_main counted
entry lab_entry
entry lab_trap
lab_trap handler
"""
NAMES = ('(root)', 'burn_a', 'burn_b', 'burn_d', 'counted', 'never')
TOP = ('lab_entry', 'kmain', 'app_main')
STACKS = {  # chain: true share in percent
    TOP: 1,
    TOP + ('burn_a',): 40,
    TOP + ('burn_a', 'helper'): 10,
    TOP + ('burn_b',): 30,
    TOP + ('recurse',) * 31 + ('burn_d',): 19,
}
SHARES = {'(root)': 1, 'burn_a': 50, 'burn_b': 30, 'burn_d': 19}
BEGIN, CYCLES = 10 ** 9, 10 ** 10


class Cpu:
    """A vCPU's books, to be packed."""

    def __init__(self, last, shares=None, scale=0, seq=0, online=1):
        shares = shares or SHARES
        self.head = (seq, online, 1000, last, 0, 0, 0)
        self.fns = []
        for name in NAMES:
            cycles = shares.get(name, 0) * scale // 100
            self.fns.append([5 if cycles else 0, cycles, cycles, 1000 if cycles else 0, 0])
        self.fns[0] = [1, self.fns[0][1], 0, 1000, 1]
        self.fns[NAMES.index('counted')] = [77, 0, 0, 0, 0]

    def pack(self):
        fns = b''.join(judge.FN.pack(*f) for f in self.fns)
        return judge.CPU.pack(*self.head) + fns.ljust(judge.MAX_FNS * judge.FN.size, b'\0')


def pack_books(cpus, state=2, magic=judge.MAGIC):
    header = judge.HEADER.pack(magic, 1, judge.HEADER.size, judge.TRUTH_SIZE, judge.CPU_SIZE,
                               judge.FN.size, len(cpus), len(NAMES), state, 1, 0, 0, 10 ** 9, 0)
    names = b''.join(n.encode().ljust(judge.NAME_SIZE, b'\0') for n in NAMES)
    names = names.ljust(judge.MAX_FNS * judge.NAME_SIZE, b'\0')
    data = header + names + b''.join(c.pack() for c in cpus)
    return data.ljust(judge.TRUTH_SIZE, b'\0')


def books(first=None, last=None):
    first = first or [Cpu(BEGIN, scale=10 ** 6)]
    last = last or [Cpu(BEGIN + CYCLES, scale=10 ** 6 + CYCLES)]
    return pack_books(first), pack_books(last)


def drawn(nr=4000, stacks=None, seed=7):
    """nr samples drawn by their shares."""
    stacks = stacks or STACKS
    ret = {}
    for chain in random.Random(seed).choices(list(stacks), list(stacks.values()), k=nr):
        ret[chain] = ret.get(chain, 0) + 1
    return ret


def moved(stacks, source, dest, nr):
    ret = dict(stacks)
    ret[source] -= nr
    ret[dest] = ret.get(dest, 0) + nr
    return ret


class JudgeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, text=None):
        path = os.path.join(self.folder.name, name)
        if text is not None:
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
        return path

    def put_streams(self, samples):
        """Streams with these samples, (time, vCPU, thread, weight); `babeltrace2` prints them."""
        os.makedirs(self.path('guest-0'), exist_ok=True)
        self.path('printed', ''.join('[%d] (+0) stack: { cpu_id = 0 }, { id = 0, nr = 0, pc = [ ], flags = [ ] }\n'
                                     '[%d] (+0) sample: { cpu_id = %d }, { stack = 0, weight = %d, thread = %d, pause_ns = 0 }\n'
                                     % (t, t, vcpu, weight, thread) for t, vcpu, thread, weight in samples))
        os.makedirs(self.path('bin'), exist_ok=True)
        os.chmod(self.path('bin/babeltrace2', '#!/bin/sh\n[ -e "$2/guest-0" ] && cat "${0%/bin/*}/printed"\n'), 0o700)

    def run_judge(self, stacks, truth=None, taken=None, as_json=False, graph=GRAPH, args=(), streams=None):
        """(exit status, what was printed)"""
        if streams is not None:
            self.put_streams(streams)
            os.environ['PATH'], path = self.path('bin') + ':' + os.environ['PATH'], os.environ['PATH']
            self.addCleanup(os.environ.__setitem__, 'PATH', path)
        first, last = truth or books()
        doc = {'guests': [{'watches': [{'name': 'lab_truth', 'first': {'bytes': first.hex()},
                                        'last': {'bytes': last.hex()}}]}]}
        if taken is not None:
            doc['statistics'] = {'samples': taken}
        self.path('session.json', json.dumps(doc))
        out = io.StringIO()
        argv = ['--session', self.folder.name, '--graph', self.path('graph', graph), '--stacks',
                self.path('json', to_json(stacks)) if as_json
                else self.path('folded', to_folded(stacks)), *args]
        err, sys.stderr = sys.stderr, io.StringIO()
        try:
            status = judge.main(argv, out)
            said = out.getvalue() + sys.stderr.getvalue()
        finally:
            sys.stderr = err
        return status, said

    def expect(self, status, text, *args, **kwargs):
        got, said = self.run_judge(*args, **kwargs)
        self.assertEqual(got, status, said)
        self.assertIn(text, said)
        return said

    def test_frames_of_states_are_no_calls(self):
        stacks = {}
        for i, (chain, count) in enumerate(sorted(drawn().items())):
            stacks[chain + (judge.VCPU_STATES[i % 4],)] = count
        for as_json in (False, True):
            self.expect(0, 'verdict: held', stacks, as_json=as_json)
        unknown = {chain + ('[other]',): count for chain, count in drawn().items()}
        self.expect(1, 'does not call [other]', unknown)

    def test_true_profiles_hold(self):
        for seed in range(20):
            self.expect(0, 'verdict: held', drawn(2000, seed=seed))
        self.expect(0, 'verdict: held', drawn(), as_json=True)
        self.expect(0, '4000 of 4000 complete', drawn(), taken=4000)

    def test_wrong_shares_do_not(self):
        bad = moved(drawn(), TOP + ('burn_a',), TOP + ('burn_b',), 400)
        said = self.expect(1, 'DID NOT HOLD', bad)
        self.assertEqual(sum('BAD' in line for line in said.splitlines()), 2, said)
        self.expect(1, 'DID NOT HOLD', bad, as_json=True)

    def test_the_tolerance_is_what_is_promised(self):
        # p = 0.5, n = 10000: a standard error is 0.5 points, so 2 points are allowed.
        exact = {chain: share * 100 for chain, share in STACKS.items()}
        a, b = TOP + ('burn_a',), TOP + ('burn_b',)
        self.expect(0, 'held', moved(exact, b, a, 180))
        self.expect(3, 'UNDECIDED', moved(exact, b, a, 220))
        self.expect(1, 'DID NOT', moved(exact, b, a, 420))
        # At a million samples the floor of one point decides.
        exact = {chain: share * 10000 for chain, share in STACKS.items()}
        self.expect(0, 'held', moved(exact, b, a, 9900))
        self.expect(3, 'UNDECIDED', moved(exact, b, a, 10100))
        self.expect(1, 'DID NOT', moved(exact, b, a, 12100))

    def test_weight_is_no_observation(self):
        # A quarter of the weight is samples: the standard error doubles.
        exact = {chain: share * 100 for chain, share in STACKS.items()}
        a, b = TOP + ('burn_a',), TOP + ('burn_b',)
        heavy = [(i, i % 2, 0, 4) for i in range(2500)]
        for off, status in ((350, 0), (420, 1)):
            self.expect(3 * status, '2500 that stand for 10000', moved(exact, b, a, off), streams=heavy)
        # They are too few, however much they weigh.
        few = [(i, 0, 0, 100) for i in range(100)]
        self.expect(3, '100 that stand for 10000 (want 2000): BAD', exact, streams=few)
        self.expect(3, 'UNDECIDED', moved(exact, b, a, 2000), streams=few)
        # Many at one instant are one; of two vCPUs or threads they are two.
        for vcpu, thread, nr in ((0, 0, 2500), (1, 0, 5000), (0, 1, 5000)):
            self.expect(0, '%d that stand for 10000' % nr, exact, streams=[
                (i // 4, i % 2 * vcpu, i % 2 * thread, 1) for i in range(10000)])

    def test_uneven_weights(self):
        # One sample is half of the weight: together they count as fewer than four.
        exact = {chain: share * 100 for chain, share in STACKS.items()}
        one_is_half = [(0, 0, 0, 5000)] + [(i + 1, 0, 0, 1) for i in range(5000)]
        self.expect(0, '5001 that stand for 10000', exact, streams=one_is_half)
        self.expect(3, '3 that stand for 10000 (want 2000): BAD', exact, streams=one_is_half, args=['--uneven'])

    def test_counts_of_the_accused(self):
        exact = {chain: share * 100 for chain, share in STACKS.items()}
        whole, half = ([(i, 0, 0, 10000 // nr) for i in range(nr)] for nr in (10000, 5000))
        self.expect(0, 'held', exact, streams=whole, taken=10000)
        # Few samples that weigh much would be judged with wider bounds.
        for said, streams in ((5000, whole), (9999, whole), (10000, half)):
            self.expect(1, 'the session states %d samples' % said, exact, streams=streams, taken=said)
        self.expect(1, 'taken, but not in the export', exact, streams=whole + [(10000 + i, 0, 0, 1) for i in range(60)])

    def test_streams_that_cannot_be_read(self):
        self.path('bin')
        self.put_streams([])
        os.unlink(self.path('bin/babeltrace2'))
        os.chmod(self.path('bin/babeltrace2', '#!/bin/sh\nexit 1\n'), 0o700)
        os.environ['PATH'], path = self.path('bin') + ':' + os.environ['PATH'], os.environ['PATH']
        self.addCleanup(os.environ.__setitem__, 'PATH', path)
        self.expect(2, 'cannot read', drawn())

    def test_weights_fill_the_time(self):
        # 10 s by the guest's clock.
        self.expect(0, "by the guest's clock 4000: ok", drawn(4000), args=['--rate', '400'])
        self.expect(0, 'clock 4100: ok', drawn(4000), args=['--rate', '410'])
        for rate in ('420', '380'):
            self.expect(1, "clock %s0: BAD" % rate, drawn(4000), args=['--rate', rate])
        # A third of a second may be missing at the ends.
        self.expect(3, 'clock 4150: BAD', drawn(4000), args=['--rate', '415'])

    def test_a_function_that_never_ran(self):
        graph = GRAPH + 'app_main never\n'
        self.expect(1, 'DID NOT', moved(drawn(), TOP + ('burn_b',), TOP + ('never',), 60),
                    graph=graph)

    def test_total_is_judged_apart_from_self(self):
        # All of burn_a's self is right, but burn_d is drawn as if burn_a had called it.
        stacks = drawn()
        count = stacks.pop(TOP + ('recurse',) * 31 + ('burn_d',))
        stacks[TOP + ('burn_a', 'burn_d')] = count
        said = self.expect(1, 'DID NOT', stacks, graph=GRAPH + 'burn_a burn_d\n')
        row = next(line for line in said.splitlines() if line.split()[:1] == ['burn_a'])
        self.assertEqual([w for w in row.split() if w in ('ok', 'BAD')], ['ok', 'BAD'])

    def test_self_includes_helpers_without_books(self):
        # Without the helper's frame the shares are still right: it is burn_a's time.
        stacks = drawn()
        count = stacks.pop(TOP + ('burn_a', 'helper'))
        self.expect(0, 'held', moved({**stacks, TOP: stacks[TOP] + count}, TOP,
                                     TOP + ('burn_a',), count))

    def test_a_function_begins_when_its_books_do(self):
        # Detained in lab_enter, where the clock is read: still the caller's time.
        graph = GRAPH + 'burn_b lab_enter\nlab_enter lab_tsc\nburn_b lab_leave\n'
        stacks, inside = drawn(), TOP + ('burn_b',)
        count = stacks[TOP]
        close = {'graph': graph, 'args': ('--floor', '0.001')}
        for way in (('lab_enter',), ('lab_enter', 'lab_tsc')):
            self.expect(0, 'held', moved(stacks, TOP, inside + way, count), **close)
        for way in ((), ('lab_leave',)):
            self.expect(3, 'UNDECIDED', moved(stacks, TOP, inside + way, count), **close)

    def test_chains_are_judged_by_the_graph(self):
        stacks = drawn(2000)
        whole, count = TOP + ('burn_b',), 11
        lost_caller = ('lab_entry', 'kmain', 'burn_b')
        self.expect(0, 'kmain does not call burn_b', moved(stacks, whole, lost_caller, count - 1))
        self.expect(1, 'kmain does not call burn_b', moved(stacks, whole, lost_caller, count))
        self.expect(1, 'begins in app_main, which is no entry',
                    moved(stacks, whole, ('app_main', 'burn_b'), count))
        self.expect(1, 'begins in [truncated]',
                    moved(stacks, whole, ('[truncated]',) + whole, count))
        # Any entry will do, and so will recursion of any depth.
        deep = TOP + ('recurse',) * 31 + ('burn_d',)
        self.expect(0, '2000 of 2000', moved(stacks, deep, TOP + ('recurse', 'burn_d'), 50))
        self.expect(0, '2000 of 2000', moved(stacks, TOP, ('lab_trap', 'handler'), 1))

    def test_callees_that_are_not_known(self):
        stacks, whole = drawn(2000), TOP + ('burn_b',)
        self.expect(0, '2000 of 2000', moved(stacks, whole, TOP + (judge.UNKNOWN_CALLEE,), 10))
        self.expect(1, 'too many callees', moved(stacks, whole, TOP + (judge.UNKNOWN_CALLEE,), 101))
        self.expect(1, 'burn_b does not call', moved(stacks, whole, whole + (judge.UNKNOWN_CALLEE,), 11))
        self.expect(1, 'does not call burn_b', moved(stacks, whole, TOP + (judge.UNKNOWN_CALLEE, 'burn_b'), 11))

    def test_few_broken_chains_want_more_samples(self):
        whole, lost_caller = TOP + ('burn_b',), ('lab_entry', 'kmain', 'burn_b')
        for nr, status in ((0, 0), (1, 3), (4, 3), (5, 1)):
            self.expect(status, 'complete', moved(drawn(150), whole, lost_caller, nr), args=['--min-samples', '150'])

    def test_samples_that_are_missing(self):
        self.expect(3, 'want 2000): BAD', drawn(1999))
        self.expect(0, 'want 2000): ok', drawn(2000))
        self.expect(1, 'taken, but not in the export', drawn(2000), taken=2011)
        self.expect(0, 'taken, but not in the export', drawn(2000), taken=2010)
        self.expect(3, 'UNDECIDED', {})

    def test_functions_that_only_count(self):
        graph = GRAPH + 'burn_b counted\n'
        stacks = drawn()
        b = TOP + ('burn_b',)
        stacks = moved(stacks, b, b + ('counted',), stacks[b] // 2)
        self.expect(0, 'held', stacks, graph=graph)
        self.expect(0, 'held', stacks, graph=graph, args=['--inside', 'counted=0.5*burn_b'])
        self.expect(1, 'DID NOT', stacks, graph=graph, args=['--inside', 'counted=burn_b'])
        self.expect(2, '--inside', stacks, args=['--inside', 'counted=nobody'])

    def test_two_vcpus_add_up(self):
        half = {'(root)': 0, 'burn_a': 100}
        rest = {'(root)': 2, 'burn_b': 60, 'burn_d': 38}
        first = [Cpu(BEGIN, half, 10 ** 6), Cpu(0, rest, 0, online=0)]
        last = [Cpu(BEGIN + CYCLES, half, 10 ** 6 + CYCLES), Cpu(1000 + CYCLES, rest, CYCLES)]
        self.expect(0, 'held', drawn(), truth=books(first, last))

    def test_activations_that_have_not_ended(self):
        # burn_b has run since before the first copy: what has ended says nothing yet.
        def cpu(last, scale):
            c = Cpu(last, {'burn_b': 100}, scale)
            c.fns[NAMES.index('burn_b')] = [1, scale, 0, 5000, 1]
            return [c]
        truth = books(cpu(BEGIN, 10 ** 6), cpu(BEGIN + CYCLES, 10 ** 6 + CYCLES))
        self.expect(0, 'held', {TOP + ('burn_b',): 3000}, truth=truth)

    def test_torn_books(self):
        last = Cpu(BEGIN + CYCLES, scale=10 ** 6 + CYCLES, seq=3)
        last.fns[NAMES.index('never')] = [1, 0, 0, 0, 1]  # counted, but its start is not there
        self.expect(0, 'books torn', drawn(), truth=books(None, [last]))

    def test_clones_and_inlined_functions(self):
        a = TOP + ('burn_a.constprop.0',)
        graph = GRAPH + 'app_main burn_a.constprop.0\n'
        stacks = drawn()
        self.expect(0, 'held', moved(stacks, TOP + ('burn_a',), a, 500), graph=graph)
        doc = json.loads(to_json(stacks))
        for f in doc['functions']:
            f['kind'] = 'inlined' if f['name'] == 'helper' else 'guest'
        path = self.path('inlined', json.dumps(doc))
        self.assertNotIn('helper', {f for c in judge.read_stacks(path, 0) for f in c})

    def test_roots_that_are_no_functions(self):
        stacks = {('vcpu0',) + chain: count for chain, count in drawn().items()}
        self.expect(1, 'begins in vcpu0', stacks)
        self.expect(0, 'held', stacks, args=['--drop-roots', '1'])

    def test_input_without_sense(self):
        first, last = books()
        self.expect(2, 'still waiting', drawn(), truth=(pack_books([Cpu(0)], state=1), last))
        self.expect(2, 'no time passed', drawn(), truth=(last, last))
        self.expect(2, 'magic', drawn(), truth=(pack_books([Cpu(0)], magic=1), last))
        self.expect(2, 'bytes, want', drawn(), truth=(first[:100], last))
        self.expect(2, 'do not add up', drawn(),
                    truth=books(None, [Cpu(BEGIN + CYCLES, scale=CYCLES // 2)]))
        self.expect(2, 'without calls', drawn(), graph='')
        self.expect(2, 'want two words', drawn(), graph='one\n')
        self.expect(2, 'no watch', drawn(), args=['--watch', 'other'])
        self.expect(2, 'cannot read', drawn(), args=['--graph', self.path('absent')])
        self.expect(2, 'not a folded', drawn(), args=['--stacks', self.path('x', 'a;b\n')])
        self.expect(2, 'malformed profile', drawn(), args=[
            '--stacks', self.path('y', '{"format": "uniscope-profile", "functions": []}')])


def to_folded(stacks):
    return ''.join('%s %d\n' % (';'.join(c), n) for c, n in stacks.items())


def to_json(stacks):
    names = sorted({f for chain in stacks for f in chain})
    return json.dumps({
        'format': 'uniscope-profile', 'version': 1, 'functions': [{'name': n} for n in names],
        'stacks': [{'frames': [names.index(f) for f in c], 'value': n}
                   for c, n in stacks.items()]})


if __name__ == '__main__':
    unittest.main()
