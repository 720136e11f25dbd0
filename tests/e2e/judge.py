#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The referee: a recorded profile of a lab guest against what the guest itself kept as the truth.

usage: judge.py --stacks FILE --session DIR --graph FILE [options]

FILE of --stacks is the recording exported as json or folded. DIR holds session.json with the watch `lab_truth`: the guest's books
(lab/include/lab_truth.h), copied at the first and the last sample. --graph is the image's call graph: lines `caller callee` and
`entry SYMBOL` (lab/callgraph.py).

Judged are:
 1. each function's share of the time, self and total, against the cycles in the guest's books over
    the same interval: within max(4 standard errors, 1 percentage point);
 2. call chains: at least 99.5 % complete, that is, a path of the call graph from an entry down to
    the sampled function. The unwinder's own opinion is not asked;
 3. samples: at least 2000 that were taken. A sample may stand for several deadlines (its weight), as
    where the host ran something else for long. These are one observation, not several: the standard
    error goes by the samples that were taken. babeltrace2 counts them in the session's streams; what the recorder
    states must be the same number;
 4. with --rate, that the weights add up to as many deadlines as the guest's clock leaves room for.

`Self` has the meaning of the books: time in which a function was the innermost one *with books*. Its time in helpers without books
is its own. A function's time begins when its LAB_ENTER has read the clock, so a sample in lab_enter below f is not f's but its
caller's. That matters if reading the clock takes long. QEMU's aarch64 reads it under a lock that its main loop holds while it is
asked to stop, so that stops gather behind the reading. The guest's clock runs on while its vCPU waits or the host runs something
else. So samples of such moments (`[idle]`, `[stolen]` below a function) count like any other. Functions that only count their calls
have no cycles; --inside gives them a truth. `--inside f=g` says that all of g's time is spent in f, `f=0.5*g` half of it. This is
total time; a function that keeps cycles is judged by its own.

Exit status: 0 all held, 1 something did not, 2 the input makes no sense, 3 more samples are needed. 3: there are too few samples,
or chance may explain all that is wrong. Then a share is off by 4 to 8 standard errors, or one or two more chains are broken than so
few samples allow. Only then may the test ask again, with more samples.
"""
import argparse
import json
import math
import os
import re
import struct
import subprocess
import sys

MAGIC = 0x687475725462616c  # "labTruth"
VERSION = 1
MAX_CPUS, MAX_FNS, NAME_SIZE = 4, 64, 32
HEADER = struct.Struct('<QIIIIIIIIIIQQQ56x')
CPU = struct.Struct('<QQQQQII512x')
FN = struct.Struct('<QQQQQ')
CPU_SIZE = CPU.size + MAX_FNS * FN.size
TRUTH_SIZE = HEADER.size + MAX_FNS * NAME_SIZE + MAX_CPUS * CPU_SIZE
STATES = ('booting', 'waiting', 'running', 'done')
# Leaf frames that say where the vCPU was, not what the guest called.
# TCG: a call of a function that may end in a jump to another one, or by a pointer, has just returned. At most so many samples:
UNKNOWN_CALLEE, UNKNOWN_MAX = '[unknown callee]', 0.05
VCPU_STATES = ('[idle]', '[kvm]', '[vmm]', '[stolen]')
# time, vCPU, weight, thread
SAMPLE = re.compile(r'^\[(\d+)\].* sample: \{ cpu_id = (\d+) \}, \{ stack = \d+, weight = (\d+), thread = (\d+),', re.M)
CLONE = re.compile(r'\.(constprop|isra|part|cold|lto_priv|llvm)(\.\d+)*$')


HELD, UNDECIDED, FAILED = 0, 1, 2  # by weight
LATE_BOOKS_S = 0.4
STATUS = {HELD: 0, FAILED: 1, UNDECIDED: 3}
VERDICT = {HELD: 'held', FAILED: 'DID NOT HOLD', UNDECIDED: 'UNDECIDED: more samples are needed'}


class BadInput(Exception):
    """Input that cannot be judged: exit status 2."""


class Books:
    """One copy of struct lab_truth."""

    def __init__(self, data):
        if len(data) < TRUTH_SIZE:
            raise BadInput('lab_truth has %d bytes, want %d' % (len(data), TRUTH_SIZE))
        (magic, version, header_size, total_size, cpu_size, fn_size, self.nr_cpus, nr_fns,
         state, _, _, _, self.tsc_hz, _) = HEADER.unpack_from(data, 0)
        if magic != MAGIC or version != VERSION:
            raise BadInput('lab_truth has magic %#x version %d' % (magic, version))
        if (header_size, total_size, cpu_size, fn_size) != (HEADER.size, TRUTH_SIZE, CPU_SIZE,
                                                            FN.size):
            raise BadInput('lab_truth is laid out otherwise than this script knows')
        if nr_fns > MAX_FNS or self.nr_cpus > MAX_CPUS or state >= len(STATES):
            raise BadInput('lab_truth holds nonsense')
        self.state = STATES[state]
        self.names = []
        for i in range(nr_fns):
            raw = struct.unpack_from('%ds' % NAME_SIZE, data, HEADER.size + i * NAME_SIZE)[0]
            self.names.append(raw.split(b'\0')[0].decode('ascii', 'replace'))
        start = HEADER.size + MAX_FNS * NAME_SIZE
        self.cpus = [CpuBooks(data, start + i * CPU_SIZE, nr_fns) for i in range(self.nr_cpus)]


class CpuBooks:
    """The books of one vCPU."""

    def __init__(self, data, at, nr_fns):
        (seq, self.online, self.start, self.last, _, _, _) = CPU.unpack_from(data, at)
        # The guest was stopped between two instructions of its book-keeping. At most the time since
        # the event before is missing; total() shows which time is not.
        self.torn = seq % 2 != 0
        self.fns = [FN.unpack_from(data, at + CPU.size + i * FN.size) for i in range(nr_fns)]

    def self_cycles(self, fn):
        return self.fns[fn][1]

    def total(self, fn):
        _, _, ended, since, active = self.fns[fn]
        # A torn entry may count an activation whose start is not there yet.
        if active and since >= self.start:
            return ended + self.last - since
        return ended

    def keeps_time(self, fn):
        _, cycles, ended, since, _ = self.fns[fn]
        return bool(cycles or ended or since)


class Truth:
    """The guest's work between two copies of its books, all vCPUs together."""

    def __init__(self, first, last):
        if first.names != last.names:
            raise BadInput('the two copies of lab_truth are of different guests')
        if first.state not in ('running', 'done'):
            raise BadInput('at the first sample the guest was still %s: start recording later'
                           % first.state)
        self.names = last.names
        self.torn = any(c.torn for c in first.cpus + last.cpus)
        self.tsc_hz = last.tsc_hz
        self.cycles = 0
        self.self_cycles = [0] * len(self.names)
        self.total_cycles = [0] * len(self.names)
        self.timed = set()
        self.counted = set()
        for i, cpu in enumerate(last.cpus):
            if cpu.online:
                self.add_cpu(first.cpus[i] if i < len(first.cpus) else None, cpu)
        if self.cycles <= 0:
            raise BadInput('no time passed between the two copies of lab_truth')
        off = abs(sum(self.self_cycles) - self.cycles)
        if off > 0.01 * self.cycles and not self.torn:
            raise BadInput("the guest's books do not add up: %d cycles of %d" % (off, self.cycles))

    def add_cpu(self, before, after):
        if before is not None and not before.online:
            before = None
        self.cycles += after.last - (before.last if before else after.start)
        for fn in range(len(self.names)):
            self.self_cycles[fn] += after.self_cycles(fn)
            self.total_cycles[fn] += after.total(fn)
            if before:
                self.self_cycles[fn] -= before.self_cycles(fn)
                self.total_cycles[fn] -= before.total(fn)
            if after.keeps_time(fn):
                self.timed.add(fn)
            elif after.fns[fn][0]:
                self.counted.add(fn)

    def judged(self):
        """Functions whose cycles are kept, the root first. Never run is a truth, too: 0 %."""
        return [fn for fn in range(len(self.names)) if fn in self.timed or fn not in self.counted]


class Graph:
    """The call graph that chains are judged by."""

    def __init__(self, lines):
        self.edges, self.entries = set(), set()
        for line in lines:
            words = line.split('#')[0].split()
            if not words:
                continue
            if len(words) != 2:
                raise BadInput('call graph: want two words: ' + line.strip())
            if words[0] == 'entry':
                self.entries.add(words[1])
            else:
                self.edges.add((words[0], words[1]))
        if not self.edges or not self.entries:
            raise BadInput('call graph without calls or without entries')
        self.callers = {caller for caller, _ in self.edges}

    def fault(self, chain):
        """None for a complete chain, else what is wrong with it."""
        if not chain:
            return 'empty chain'
        if chain[0] not in self.entries:
            return 'begins in %s, which is no entry' % chain[0]
        for caller, callee in zip(chain, chain[1:]):
            if callee == UNKNOWN_CALLEE and caller in self.callers:
                continue
            if (caller, callee) not in self.edges:
                return '%s does not call %s' % (caller, callee)
        return None


def read_text(path):
    try:
        with open(path, encoding='utf-8') as f:
            return f.read()
    except (OSError, UnicodeDecodeError) as e:
        raise BadInput('cannot read %s: %s' % (path, e)) from e


def parse_json(text, what):
    try:
        return json.loads(text)
    except ValueError as e:
        raise BadInput('%s: %s' % (what, e)) from e


def whole(value):
    if value != int(value) or value < 0:
        raise BadInput('%s is not a number of samples' % value)
    return int(value)


def stacks_of_json(doc):
    if doc.get('format') != 'uniscope-profile':
        raise BadInput('not a profile in JSON')
    functions = doc['functions']
    for stack in doc['stacks']:
        # Inlined functions are no calls, so the call graph does not have them. Time of the kernel below a process is in the
        # books as that of the function that it interrupted.
        frames = [functions[i] for i in stack['frames']]
        chain = tuple(f['name'] for f in frames if f.get('kind') not in ('inlined', 'kernel') and f['name'] != '[interrupted]')
        yield chain, whole(stack['value'])


def stacks_of_folded(text):
    for line in text.splitlines():
        if not line.strip():
            continue
        path, _, count = line.rpartition(' ')
        if not path or not count.isdigit():
            raise BadInput('not a folded stack: ' + line)
        yield tuple(f for f in path.split(';') if f != '[interrupted]'), int(count)


def read_streams(folder, uneven):
    """A session's own samples, by babeltrace2: (samples, observations, weight), or None if it has no streams. The counts that the
    recorder states are not asked. Samples of one thread at one instant are one observation. uneven: some weigh a hundred times as
    much as others, as those of a guest's own clock on a busy host. Together they count as (sum of weights)^2 / (sum of their
    squares) equal ones."""
    if not os.path.isdir(folder) or not any(name.startswith('guest-') for name in os.listdir(folder)):
        return None
    try:
        done = subprocess.run(['babeltrace2', '--clock-cycles', folder], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        raise BadInput('babeltrace2 cannot read %s: %s' % (folder, getattr(e, 'stderr', None) or e)) from e
    found = SAMPLE.findall(done.stdout)
    weights = {}
    for time, vcpu, weight, thread in found:
        weights[time, vcpu, thread] = weights.get((time, vcpu, thread), 0) + int(weight)
    weight, squares = sum(weights.values()), sum(w * w for w in weights.values())
    return len(found), weight * weight / squares if uneven and squares else len(weights), weight


def read_stacks(path, drop_roots):
    """{chain, root first: samples}"""
    text = read_text(path)
    if text.lstrip().startswith('{'):
        try:
            pairs = list(stacks_of_json(parse_json(text, path)))
        except (KeyError, IndexError, TypeError, AttributeError) as e:
            raise BadInput('%s: malformed profile: %r' % (path, e)) from e
    else:
        pairs = list(stacks_of_folded(text))
    stacks = {}
    for chain, count in pairs:
        chain = chain[drop_roots:]
        if chain and chain[-1] in VCPU_STATES:
            chain = chain[:-1]
        stacks[chain] = stacks.get(chain, 0) + count
    return stacks


def read_session(path, watch_name):
    """First and last copy of the books, and the number of samples that it states (or None)."""
    if os.path.isdir(path):
        path = os.path.join(path, 'session.json')
    doc = parse_json(read_text(path), path)
    try:
        watches = [w for g in doc['guests'] for w in g.get('watches', [])
                   if w['name'] == watch_name]
        if len(watches) != 1 or 'first' not in watches[0] or 'last' not in watches[0]:
            raise BadInput('%s: no watch %s with a first and a last copy' % (path, watch_name))
        first, last = (bytes.fromhex(watches[0][k]['bytes']) for k in ('first', 'last'))
        said = doc.get('statistics', {}).get('samples')
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        raise BadInput('%s: malformed session: %r' % (path, e)) from e
    return Books(first), Books(last), said


def plain(name):
    """Without what compilers add to the name of a clone: books keep the name in the source."""
    return CLONE.sub('', name)


def before_entry(names, books):
    """The chain without a function that has yet to open its books."""
    if 'lab_enter' not in names[1:]:
        return names
    at = names.index('lab_enter', 1)
    return names[:at - 1] if names[at - 1] in books else names


def count_seen(stacks, books):
    """Samples by function name: self as the books mean it, and total. books: names with books."""
    self_seen, total_seen = {}, {}
    for chain, count in stacks.items():
        names = before_entry([plain(n) for n in chain], books)
        innermost = next((n for n in reversed(names) if n in books), '(root)')
        self_seen[innermost] = self_seen.get(innermost, 0) + count
        for name in set(names):
            total_seen[name] = total_seen.get(name, 0) + count
    return self_seen, total_seen


def margin(truth, nr, sigmas):
    """How far a share of nr samples may be off: Wilson's interval. It also knows that a share near
    nothing, or near all, is not certain after few samples."""
    if not nr:
        return 1.0
    z = sigmas * sigmas / nr
    return sigmas * math.sqrt(truth * (1.0 - truth) / nr + z / (4 * nr)) + z / 2


class Taken:
    """The samples that were taken: by the session's streams if there are any, else each unit of weight is one."""

    def __init__(self, streams, said, nr):
        self.samples, self.observations, self.weight = streams or (said or 0, nr, nr)
        self.said = said if said is not None else self.samples
        # Bounds are by observations; a sample may weigh more than one deadline, but none weighs less.
        self.part = min(1.0, self.observations / self.weight) if self.weight else 1.0


class Share:
    """One share of the time: the guest's against the profile's."""

    def __init__(self, cycles, all_cycles, seen, nr, rules):
        self.truth = min(max(cycles / all_cycles, 0.0), 1.0)
        self.seen = seen / nr if nr else 0.0
        chance = margin(self.truth, nr * rules.part, rules.sigmas)
        self.allowed = max(chance, rules.floor)
        off = abs(self.truth - self.seen)
        self.ok = nr > 0 and off <= self.allowed
        self.by_chance = off <= self.allowed + chance

    def __str__(self):
        return '%6.2f %6.2f %5.2f %s' % (100 * self.truth, 100 * self.seen, 100 * self.allowed,
                                         'ok ' if self.ok else 'BAD')


def parse_inside(specs, truth):
    """{function: (factor, index of the one whose time it takes)}"""
    ret = {}
    for spec in specs:
        m = re.fullmatch(r'([^=]+)=(?:([0-9.]+)\*)?(.+)', spec)
        if not m or m.group(3) not in truth.names:
            raise BadInput('--inside %s: want FUNCTION=[FACTOR*]FUNCTION_WITH_BOOKS' % spec)
        try:
            ret[m.group(1)] = (float(m.group(2) or 1), truth.names.index(m.group(3)))
        except ValueError as e:
            raise BadInput('--inside %s: %s' % (spec, e)) from e
    return ret


def judge_shares(stacks, truth, rules, out):
    nr = sum(stacks.values())
    judged = truth.judged()
    self_seen, total_seen = count_seen(stacks, {truth.names[fn] for fn in judged if fn != 0})
    worst = HELD

    def row(name, parts):
        nonlocal worst
        for p in parts:
            if p and not p.ok:
                worst = max(worst, UNDECIDED if p.by_chance else FAILED)
        print('  %-24s %-26s %s' % (name, parts[0] or '', parts[1] or ''), file=out)

    print('  %-24s %-26s %s' % ('% of the time', 'self:', 'total:'), file=out)
    print('  %-24s %-26s %s' % ('', *2 * (' guest   seen   +/-',)), file=out)
    for fn in judged:
        name = truth.names[fn]
        own = Share(truth.self_cycles[fn], truth.cycles, self_seen.get(name, 0), nr, rules)
        total = None
        if fn != 0:  # all time is the root's
            total = Share(truth.total_cycles[fn], truth.cycles, total_seen.get(name, 0), nr, rules)
        row(name, (own, total))
    for name, (factor, fn) in parse_inside(rules.inside, truth).items():
        row(name, (None, Share(factor * truth.total_cycles[fn], truth.cycles,
                               total_seen.get(name, 0), nr, rules)))
    return worst


def judge_chains(stacks, graph, taken, rules, out):
    nr = sum(stacks.values())
    # Samples that did not make it into the export are no better than broken ones.
    want, faults = max(nr, taken.said, taken.weight), {}
    for chain, count in stacks.items():
        fault = graph.fault(chain)
        if fault:
            faults[fault] = faults.get(fault, 0) + count
    if want > nr:
        faults['taken, but not in the export'] = want - nr
    unknown = sum(count for chain, count in stacks.items() if UNKNOWN_CALLEE in chain)
    if unknown > UNKNOWN_MAX * nr:
        faults['too many callees that are not known'] = unknown
    complete = max(0, want - sum(faults.values()))
    share = complete / want if want else 0.0
    ok = share >= rules.min_complete
    allowed = want * (1.0 - rules.min_complete)
    few = want < 2000 and want - complete <= allowed + 3 * math.sqrt(allowed) + 1
    print('chains: %d of %d complete, %.2f %% (want %.2f %%): %s' % (
        complete, want, 100 * share, 100 * rules.min_complete, 'ok' if ok else 'BAD'), file=out)
    for fault, count in sorted(faults.items(), key=lambda f: (-f[1], f[0]))[:rules.show]:
        print('  %6d  %s' % (count, fault), file=out)
    return HELD if ok else UNDECIDED if few else FAILED


def judge_rate(nr, truth, rules, out):
    """Do the weights fill the guest's time? Its clock says how long that was, and not the host."""
    if not rules.rate:
        return HELD
    if not truth.tsc_hz:
        raise BadInput('--rate: the guest does not say how fast its clock is')
    want = rules.rate * truth.cycles / truth.tsc_hz
    ok = abs(nr - want) <= rules.rate_off * want + 2
    # At both ends a busy host may have had the vCPU elsewhere, so that its books are late. A longer recording decides.
    late = not ok and abs(nr - want) <= rules.rate * LATE_BOOKS_S
    print('deadlines: %d, by the guest\'s clock %.0f: %s' % (nr, want, 'ok' if ok else 'BAD'), file=out)
    return HELD if ok else UNDECIDED if late else FAILED


def judge(stacks, truth, graph, taken, rules, out=sys.stdout):
    """HELD, UNDECIDED or FAILED; prints the tables."""
    nr = sum(stacks.values())
    rules.part = taken.part
    observations = int(nr * rules.part)
    enough = HELD if observations >= rules.min_samples else UNDECIDED
    seconds = ', %.2f s' % (truth.cycles / truth.tsc_hz) if truth.tsc_hz else ''
    print('guest: %d cycles of vCPU time%s%s' % (
        truth.cycles, seconds, ', books torn' if truth.torn else ''), file=out)
    print('samples: %d that stand for %d (want %d): %s' % (
        observations, nr, rules.min_samples, 'BAD' if enough else 'ok'), file=out)
    if taken.said != taken.samples:
        print('the session states %d samples, its streams have %d: BAD' % (taken.said, taken.samples), file=out)
        enough = FAILED
    verdict = max(enough, judge_rate(nr, truth, rules, out), judge_shares(stacks, truth, rules, out),
                  judge_chains(stacks, graph, taken, rules, out) if nr else UNDECIDED)
    print('verdict: %s' % VERDICT[verdict], file=out)
    return verdict


def parse_args(argv):
    parser = argparse.ArgumentParser(description='a profile against the truth of a lab guest')
    parser.add_argument('--stacks', required=True, help='the recording as json or folded')
    parser.add_argument('--session', required=True, help='the session, or its session.json')
    parser.add_argument('--graph', required=True, help='call graph of the image')
    parser.add_argument('--streams', help='the session whose streams have the samples, if --session is not it')
    parser.add_argument('--uneven', action='store_true', help='the weights of samples differ much')
    parser.add_argument('--watch', default='lab_truth', help='name of the watch')
    parser.add_argument('--inside', action='append', default=[], metavar='F=[K*]G',
                        help='function F takes all (K) of the time of G, which keeps cycles')
    parser.add_argument('--drop-roots', type=int, default=0, metavar='N',
                        help='leave out the N outermost frames (thread, vCPU) of each stack')
    parser.add_argument('--min-samples', type=int, default=2000)
    parser.add_argument('--rate', type=float, metavar='HZ',
                        help='so many deadlines a second of the guest there were')
    parser.add_argument('--rate-off', type=float, default=0.03, metavar='SHARE')
    parser.add_argument('--min-complete', type=float, default=0.995, metavar='SHARE')
    parser.add_argument('--sigmas', type=float, default=4.0, help='standard errors allowed')
    parser.add_argument('--floor', type=float, default=0.01, metavar='SHARE',
                        help='always allowed difference')
    parser.add_argument('--show', type=int, default=8, metavar='N', help='faults of chains listed')
    return parser.parse_args(argv)


def main(argv=None, out=sys.stdout):
    rules = parse_args(argv)
    try:
        first, last, said = read_session(rules.session, rules.watch)
        streams = read_streams(rules.streams or rules.session, rules.uneven)
        truth = Truth(first, last)
        graph = Graph(read_text(rules.graph).splitlines())
        stacks = read_stacks(rules.stacks, rules.drop_roots)
        return STATUS[judge(stacks, truth, graph, Taken(streams, said, sum(stacks.values())), rules, out)]
    except BadInput as e:
        print('judge: %s' % e, file=sys.stderr)
        return 2


if __name__ == '__main__':
    sys.exit(main())
