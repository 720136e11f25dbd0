// SPDX-License-Identifier: BSD-2-Clause
// What can be tested without a browser: the index against plain sums, and the tree functions.
import { build } from 'esbuild';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';

const here = dirname(fileURLToPath(import.meta.url)), out = mkdtempSync(join(tmpdir(), 'viewer-'));
let failed = 0;

function same(got, want, what) {
    if (JSON.stringify(got) === JSON.stringify(want)) return;
    failed++;
    console.log(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);
}

await build({ absWorkingDir: here, entryPoints: ['src/rows.ts', 'src/tree.ts', 'src/source.ts', 'src/lanes.ts', 'src/search.ts'], outdir: out, bundle: true, format: 'esm', logLevel: 'error', outExtension: { '.js': '.mjs' } });
const { Index } = await import(join(out, 'rows.mjs'));
const { Funcs, Tree, graph, callers, callees, merged, table } = await import(join(out, 'tree.mjs'));

let seed = 1;
const random = (n) => (seed = seed * 48271 % 2147483647) % n;
for (const n of [1, 63, 64, 65, 4096, 4097, 300000]) {
    const dur = Float64Array.from({ length: n }, () => random(1000)), index = new Index(dur);
    for (let k = 0; k < 300; k++) {
        const a = random(n), b = a + 1 + random(k % 3 ? n - a : Math.min(n - a, 200));
        let sum = 0, most = -1;
        for (let i = a; i < b; i++) { sum += dur[i]; most = Math.max(most, dur[i]); }
        const got = index.query(a, b);
        same([got, dur[index.longest], index.longest >= a && index.longest < b], [sum, most, true], `index of ${n}, ${a} to ${b}`);
    }
}

// main -> f -> f -> g, main -> g -> f
const funcs = new Funcs();
const ids = funcs.add(['main', 'f', 'g'].map((name) => [name, 'guest', '', '', 0]));
const tree = new Tree(Uint32Array.of(0, 0, 1, 2, 3, 1, 5), Uint32Array.of(0, ids[0], ids[1], ids[1], ids[2], ids[2], ids[1]), funcs);
const g = graph(tree, Float64Array.of(0, 1, 2, 4, 8, 16, 32));
const rows = (x) => table(x, 4).map((r) => [funcs.name(r.func), r.self, r.total]).sort();
same(rows(g), [['f', 38, 46], ['g', 24, 56], ['main', 1, 63]], 'table: recursion counts once');
same(rows(callees(g, funcs, ids[1])), [['f', 38, 46], ['g', 8, 8]], 'callees: all of f, its recursion below it');
same(callers(g, funcs, ids[1]).total[0], 46, 'callers: as much as f in all');
same(callers(g, funcs).total[0], 63, 'leaves first: nothing is lost');
same(merged(g, funcs, true, new Set()).tree.nr, 6, 'merged: f in f is one');
same(rows(merged(g, funcs, false, new Set([ids[2]]))), [['f', 62 - 16, 62 - 16], ['main', 17, 63]], 'hidden: its own part goes to its callers');
// Samples of one vCPU, 10 ns apart: of weight 4 at 50, which stands for 10 to 50, although one was made at 30.
const { Points } = await import(join(out, 'source.mjs'));
const { pieces } = await import(join(out, 'lanes.mjs'));
const p = new Points(tree, Float64Array.of(10, 30, 50, 60, 500), Uint32Array.of(1, 2, 3, 1, 1), [1, 1, 4, 1, 1], new Int32Array(5), new Int32Array(5));
p.period = 10;
const all = { t0: 0, t1: 0, cpu: -1, thread: -1, on: false };
for (const [t0, t1] of [[0, 0], [0, 30], [10, 50], [20, 40], [45, 70], [500, 501], [60, 500]]) {
    const sel = { ...all, t0, t1 }, sum = [0, 0, 0, 0, 0, 0, 0];
    p.each(sel, (t, dur, v, node) => { sum[node] += v; if (t1 > 0) same([t >= t0, t + dur <= t1], [true, true], `a value within ${t0} to ${t1}`); });
    same([...p.self(sel)], sum, `self and each agree on ${t0} to ${t1}`);
}
same([...p.self({ ...all, t0: 20, t1: 40 })], [0, 0, 1, 2, 0, 0, 0], 'a part of what a sample stands for');
const drawn = pieces(p, [0, 1, 2, 3, 4], 25).map(({ i, from, to }) => [i, from, to]);
// 10 and 30 tell of a period each, 50 of the 40 before it that are left, also those before 10; 500 of the last 10.
same(drawn, [[0, 0, 10], [2, 10, 20], [1, 20, 30], [2, 30, 50], [3, 50, 60], [4, 490, 500]], 'each moment has one sample');
p.period = 0;
same(pieces(p, [0, 1, 2, 3, 4], 25).map(({ from, to }) => [from, to]), [[10, 30], [30, 50], [50, 60], [60, 70], [500, 510]], 'moments last until the next one');
// Our matcher says what the browser's says, and gives up where that never ends.
const { finder } = await import(join(out, 'search.mjs'));
const names = ['', 'main', 'a::b<c, d>::e', 'foo_bar_baz', 'FooBar', 'aaaa', 'aXbXc', '[exit hlt]', 'x.y.z', '\u00fcber', '\ud83d\udd25fire', 'a\\b', '12ab34', 'a b  c', 'lab_thread_yield'];
for (const text of ['(foo|bar)+', '^(a|b)*$', '(?:a+)+$', 'a.*b.*c', '\\bbar\\b', '[a-z]+_[a-z]+_', '(\\w+)::(\\w+)', '^.{4}$|^.{6}$|x?y?z+', '(?=.*bar)foo', '^(?!foo)(.*)r$', 'a*?b+?', '(a{2}){2}', '(a|ab)(c|bcd)*X',
    '\\d+[^0-9]+\\d+', '\\[exit (hlt|wfi)\\]', '\\u{1f525}+f+', '(x\\.|y\\.)+z', '[\\]\\\\]+b*', '\\s+\\S+$', '(?<n>a)(b)?', '()*', '(a*)*b?', '(|a)+$', 'LAB_(thread|x)+', '(\\p{L}|_)+$', '.+r.+'])
    for (const insensitive of [true, false]) {
        const f = finder(text, insensitive), re = new RegExp(text, insensitive ? 'iu' : 'u');
        same(names.map((n) => f.test(n)), names.map((n) => re.test(n)), `search for ${text}`);
        same(f.hard, 0, `search for ${text} gives nothing up`);
    }
for (const [text, name] of [['(a+)+$', 'a'.repeat(60) + '!'], ['(a|a)*$', 'a'.repeat(60) + '!'], ['(a|aa)+$', 'a'.repeat(60) + '!'], ['a*a*a*a*a*b', 'a'.repeat(3000)], ['(.*)(.*)(.*)x', 'y'.repeat(4000)],
    ['a?'.repeat(40) + 'a{40}b', 'a'.repeat(40)], ['(a+)\\1+$', 'a'.repeat(60) + '!'], ['(?<=(a+)+)b', 'a'.repeat(60)], ['(ab)+c', 'ab'.repeat(100000)], ['a+b', 'a'.repeat(200000)]]) {
    const f = finder(text, true);
    same([f.test(name), f.hard], [false, 1], `search for ${text} ends`);
}
rmSync(out, { recursive: true });
process.exit(failed === 0 ? 0 : 1);
