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

await build({ absWorkingDir: here, entryPoints: ['src/rows.ts', 'src/tree.ts'], outdir: out, bundle: true, format: 'esm', logLevel: 'error', outExtension: { '.js': '.mjs' } });
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
rmSync(out, { recursive: true });
process.exit(failed === 0 ? 0 : 1);
