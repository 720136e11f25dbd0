#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ocaml_chains.py UNISCOPE SRCROOT [OCAMLOPT]: an OCaml program as a process. It works in C below each kind of call that OCaml has:
with and without allocation, with more arguments than registers, unboxed, callbacks, exceptions, closures. Each chain must be a path
of the program's call graph, from the process's first function. Then the same program takes samples of itself,
with a copy of its stack. OCaml has no frame pointers. TAP."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(sys.argv[2], 'tests/support'))
import can  # noqa: E402  pylint: disable=wrong-import-position

U, SRC = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
OCAMLOPT = sys.argv[3] if len(sys.argv) > 3 else 'ocamlopt'
WANT = 300  # samples
with open(os.path.join(SRC, 'tests/e2e/ocaml_work.ml'), encoding='ascii') as source:
    LINE = next(i for i, line in enumerate(source, 1) if '(fun m' in line)
# The callers that these functions may have. caml_c_call and its like only jump in OCaml 4, so both have to be allowed.
RUNTIME = {'caml_c_call', 'caml_c_call_stack_args'}
CALLERS = {
    'burn': {'c_alloc', 'c_direct', 'c_unboxed', 'c_many', 'c_calls', 'c_back', 'c_raises'},
    'c_alloc': {'by_alloc'}, 'c_unboxed': {'by_unboxed'}, 'c_many': {'by_many'}, 'c_calls': {'by_callback'},
    'c_direct': {'by_direct'}, 'c_raises': {'by_failure'}, 'c_back': {'called', 'by_exception', 'by_failure'},
    'by_direct': {'turn', 'deeper'}, 'deeper': {'turn', 'deeper'}, 'by_many': {'turn', 'fun'},
    'by_alloc': {'turn'}, 'by_unboxed': {'turn'}, 'by_callback': {'turn'}, 'by_exception': {'turn'},
    'by_failure': {'turn'}, 'by_closure': {'turn'}, 'turn': {'work'}, 'work': {'entry'},
    'called': {'caml_start_program', 'caml_callback_exn', 'caml_callback_asm'},
    'fun': {'Stdlib.List.iter'}, 'Stdlib.List.iter': {'by_closure', 'Stdlib.List.iter'},
}
LEAVES = ('c_alloc', 'c_unboxed', 'c_many', 'c_calls', 'c_direct', 'c_raises', 'c_back')


def bare(name):
    return re.sub(r'^Ocaml_work\.', '', re.sub(r'_\d+( \(.*\))?$', '', name))


def build(folder):
    for name in ('ocaml_work.ml', 'ocaml_work_stubs.c'):
        shutil.copy(os.path.join(SRC, 'tests/e2e', name), folder)
    subprocess.run([OCAMLOPT, '-g', 'ocaml_work_stubs.c', 'ocaml_work.ml', '-ccopt', '-O2', '-o', 'work'], cwd=folder,
                   check=True)


def build_inside(folder):
    """The program with guest/'s sampler, and without shared libraries: those would not be known inside."""
    shutil.copy(os.path.join(SRC, 'tests/e2e/ocaml_inside.c'), folder)
    guest = os.path.join(SRC, 'guest')
    sources = [os.path.join(guest, name) for name in ('ring.c', 'promise.c', 'sample.c', 'stream.c', 'stream_code.c', 'stream_memory.c',
                                                      'conditions.c', 'x86_64/machine.c', 'x86_64/hooks.S')]
    subprocess.run(['gcc', '-c', '-O2', '-g', '-fno-pie', '-mgeneral-regs-only', '-I' + os.path.join(SRC, 'include'), '-I' + guest,
                    '-I' + os.path.join(guest, 'x86_64'), *sources], cwd=folder, check=True)
    where = subprocess.run([OCAMLOPT, '-where'], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    subprocess.run(['gcc', '-c', '-O2', '-fno-pie', '-D_GNU_SOURCE', '-I' + where, '-I' + os.path.join(SRC, 'include'),
                    'ocaml_inside.c'], cwd=folder, check=True)
    objects = [os.path.basename(name).rsplit('.', 1)[0] + '.o' for name in sources]
    subprocess.run([OCAMLOPT, '-g', 'ocaml_work_stubs.c', *objects, 'ocaml_inside.o', 'ocaml_work.ml', '-ccopt',
                    '-O2 -static -no-pie', '-o', 'inside'], cwd=folder, check=True)


def record(folder, target):
    """Until there are enough samples to tell: the folded stacks, and what the recording says of itself."""
    session = os.path.join(folder, 's.uniscope')
    for seconds in (3, 12, 50):
        subprocess.run([U, 'record', *target, '-q', '-F', '499', '-d', str(seconds), '-o', session, '--overwrite'],
                       check=True, timeout=120)
        out = subprocess.run([U, 'export', '--no-inline', session, '-f', 'folded'], check=True, stdout=subprocess.PIPE, text=True).stdout
        stacks = [(line.rsplit(' ', 1)[0].split(';'), int(line.rsplit(' ', 1)[1])) for line in out.splitlines()]
        if sum(n for _, n in stacks) >= WANT:
            break
        print('# retry: fewer than %d samples in %d s' % (WANT, seconds))
    said = subprocess.run([U, 'export', '--no-inline', session, '-f', 'json'], check=True, stdout=subprocess.PIPE, text=True).stdout
    return stacks, json.loads(said)['recording']['guests'][0]


def wrong_callers(stacks):
    wrong = {}
    for frames, n in stacks:
        for caller, callee in zip(frames, frames[1:]):
            allowed = CALLERS.get(bare(callee))
            if allowed is None or bare(caller) in allowed:
                continue
            if bare(callee) in LEAVES and bare(caller) in RUNTIME:
                continue
            wrong[caller, callee] = wrong.get((caller, callee), 0) + n
    return wrong


def doubtful(stacks):
    """Samples with a guess, or a caller without a name. The leaf may lie in a linkage table, which has no names."""
    return sum(n for frames, n in stacks if any(f.endswith('?') for f in frames) or any(f.startswith('0x') for f in frames[:-1]))


def judge(stacks, about):
    total = sum(n for _, n in stacks)
    seen = {bare(name) for frames, _ in stacks for name in frames}
    return (('enough samples', total >= WANT, total),
            ('no caller is impossible', not wrong_callers(stacks), wrong_callers(stacks)),
            ('callers have names and are not guessed', doubtful(stacks) <= 0.02 * total, doubtful(stacks)),
            ('chains are complete', about['complete'] >= 0.98, about['complete']),
            ('a function without a name has its line', any(re.fullmatch(r'Ocaml_work\.fun_\d+ \(ocaml_work\.ml:%d\)' % LINE, f)
                                                          for frames, _ in stacks for f in frames), sorted(seen)),
            ('every kind of call is there', set(LEAVES) | {'called', 'deeper', 'fun', 'by_exception'} <= seen, sorted(seen)))


def main():
    if shutil.which(OCAMLOPT) is None:
        can.absent('%s is not installed' % OCAMLOPT)
    with tempfile.TemporaryDirectory() as folder:
        build(folder)
        with subprocess.Popen([os.path.join(folder, 'work')]) as program:
            try:
                stacks, about = record(folder, ['proc:pid=%d' % program.pid])
                # perf events do not copy the return address that OCaml pops when it calls C.
                results = judge(stacks, about) + (('it is stopped for its samples', about['method'] == 'pause', about['method']),)
            finally:
                program.kill()
        build_inside(folder)
        port, image = os.path.join(folder, 'port'), os.path.join(folder, 'inside')
        with subprocess.Popen([image], env={**os.environ, 'PORT': port, 'COPY': '8192'}) as program:
            try:
                while not os.path.exists(port) and program.poll() is None:
                    time.sleep(0.1)
                inside = judge(*record(folder, ['stream:unix=' + port, '-e', image]))
            finally:
                program.kill()
    results += tuple(('inside: ' + what, ok, why) for what, ok, why in inside)
    for i, (what, ok, why) in enumerate(results, 1):
        print('%sok %d - %s' % ('' if ok else 'not ', i, what) + ('' if ok else '\n# %s' % (why,)))
    print('1..%d' % len(results))


main()
