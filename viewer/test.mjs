// SPDX-License-Identifier: BSD-2-Clause
// Tests that need no browser: the index against plain sums, and the tree functions.
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

await build({ absWorkingDir: here, entryPoints: ['src/rows.ts', 'src/tree.ts', 'src/source.ts', 'src/lanes.ts', 'src/promises.ts', 'src/quality.ts', 'src/search.ts', 'src/raster.ts', 'src/data.ts'], outdir: out, bundle: true, format: 'esm', logLevel: 'error', outExtension: { '.js': '.mjs' } });
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
same(merged(g, funcs, true, new Set(), false).tree.nr, 6, 'merged: f in f is one');
same(rows(merged(g, funcs, false, new Set([ids[2]]), true)), [['f', 38, 38], ['main', 1, 39]], 'hidden: its own part is left out');
same(rows(merged(g, funcs, false, new Set([ids[2]]), false)), [['f', 62 - 16, 62 - 16], ['main', 17, 63]], 'hidden: its own part goes to its callers');
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
// Rows: an event narrower than a pixel is in the pixel that it begins in. If very many are merged by pieces of time, it may
// be a sixth of a pixel beside it. A wide event is where it belongs. The gap before 0.4 of the time has no pieces with anything in it.
const { strip } = await import(join(out, 'rows.mjs'));
function made(n, wideAt) {
    const start = new Float64Array(n), dur = new Float64Array(n), id = new Uint32Array(n);
    for (let i = 0, t = 1000; i < n; i++) {
        if (i === Math.floor(n * 0.4)) t += 100 * n / 5;
        start[i] = t += random(60);
        dur[i] = wideAt.has(i) ? wideAt.get(i) : random(80);
        t += dur[i];
        id[i] = i;
    }
    return { nr: 1, first: Uint32Array.of(0, n), start, dur, id };
}
for (const n of [20000, 100000, 300000]) {
    const wide = new Map([[0, 4e4], [1, 7e4], [n / 2, 9e5], [n / 2 + 1, 3e4], [n - 1, 5e5]]), r = made(n, wide), end = r.start[n - 1] + r.dur[n - 1];
    for (const [zoom, at] of [[1, 0], [1.3, 0.1], [2.9, 0.5], [3.7, 0.3], [40, 0.4999]]) {
        const width = 1600, span = end / zoom, x0 = at * (end - span), scale = width / span, what = `strip of ${n}, ${zoom} times`;
        // Black on which all are white: how much of each pixel is covered.
        const pixels = new Uint32Array(width).fill(0xff000000), low = new Float64Array(width + 2), high = new Float64Array(width + 2), near = new Uint8Array(width);
        strip(r, 0, { pixels, width, x0, scale }, () => 0xffffffff, 0xff000000, 1e9, () => {});
        for (let i = 0; i < n; i++) {
            const left = (r.start[i] - x0) * scale, w = r.dur[i] * scale, px = Math.floor(left), part = left - px;
            if (left + w < -1 || left > width + 1) continue;
            if (w >= 1) for (let p = Math.max(0, Math.floor(left) - 1); p < Math.min(width, left + w + 2); p++) near[p] = 1;
            else {
                if (px < 0) near[0] = 1;
                high[px] += w;
                if (part > 0.17 && part < 0.83) low[px] += w;
                if (part < 0.17 && px > 0) high[px - 1] += w;
                if (part > 0.83) high[px + 1] += w;
            }
        }
        let bad = 0;
        for (let p = 0; p < width; p++) {
            const v = (pixels[p] & 255) / 255, least = low[p] > 0 ? Math.min(1, Math.max(0.35, low[p])) : 0, most = high[p] > 0 ? Math.min(1, Math.max(0.35, high[p])) : 0;
            if (!near[p] && (v < least - 0.01 || v > most + 0.01)) bad++;
        }
        same(bad, 0, `${what}: pixels with too little or too much`);
        // Wide ones, by their labels.
        const got = [], want = [];
        strip(r, 0, { pixels, width, x0, scale }, () => 0, 0, 1, (i, a, b) => got.push([i, a, b]));
        for (let i = 0; i < n; i++) {
            const left = (r.start[i] - x0) * scale, right = left + r.dur[i] * scale, a = Math.max(0, Math.round(left));
            if (right - left >= 1 && right > 0 && left < width) want.push([i, a, Math.min(width, Math.max(a + 1, Math.round(right)))]);
        }
        same(got, want, `${what}: wide ones`);
    }
    // Each 40 pixels one is longer than all of its pixel.
    const width = 1600, marks = new Map();
    for (let k = 1; k < 40; k++) marks.set(Math.floor(n * k / 40), 300);
    const m = made(n, marks), last = m.start[n - 1] + m.dur[n - 1], pixels = new Uint32Array(width).fill(0xff000000);
    if (300 * width / last < 1) {
        strip(m, 0, { pixels, width, x0: 0, scale: width / last }, (i) => (marks.has(i) ? 0xffffffff : 0xff000000), 0xff000000, 1e9, () => {});
        same(pixels.reduce((k, p) => k + (p !== 0xff000000), 0), 39, `strip of ${n}: the longest of a pixel gives its colour`);
    }
}

// Numbers of one to ten bytes, whose upper bits a column of 32 does not have.
const { Data } = await import(join(out, 'data.mjs'));
const numbers = [0, 1, 127, 128, 16383, 16384, 2097151, 2097152, 268435455, 268435456, 4294967295, 2 ** 40 + 5, 2 ** 52], packed = [];
for (const v of numbers) {
    let x = BigInt(v);
    for (; x > 127n; x >>= 7n) packed.push(Number(x & 127n) | 128);
    packed.push(Number(x));
}
const column = new Data({ columns: [{ name: 'v', nr: numbers.length, bytes: packed.length }] }, Uint8Array.from(packed), 0);
same([...column.f64('v')], numbers, 'numbers');
same([...column.u32('v')], numbers.map((v) => v % 2 ** 32), 'numbers of 32 bits');
// Cut off, and without an end.
same([...new Data({ columns: [{ name: 'v', nr: 2, bytes: 3 }] }, Uint8Array.of(5, 200, 200), 0).u32('v')], [5, 9288], 'a number that is cut off');

// Rectangles: few go to the canvas as they are; of many a picture is made, later ones over earlier ones.
globalThis.ImageData = class { constructor(width, height) { Object.assign(this, { width, height, data: new Uint8ClampedArray(4 * width * height) }); } };
let picture = null;
const element = { width: 0, height: 0, getContext: () => ({ putImageData: (image) => { picture = image; } }) };
globalThis.document = { createElement: () => element };
const { Raster } = await import(join(out, 'raster.mjs'));
const raster = new Raster(), W = 90, H = 60, told = [];
const ctx = { fillStyle: '', fillRect(...r) { told.push([this.fillStyle, ...r]); }, drawImage: (...a) => told.push(['image', ...a.slice(1)]) };
raster.fillStyle = '#102030';
raster.fillRect(1, 2, 3.5, 4);
raster.fillStyle = '#ff0000';
raster.fillRect(2, 2, 0.1, 9);
raster.put(ctx, W, H);
same(told.splice(0), [['#102030', 1, 2, 3.5, 4], ['#ff0000', 2, 2, 0.1, 9]], 'few rectangles');
raster.put(ctx, W, H);
same(told, [], 'none');
for (const n of [3001, 20000]) {
    const plain = new Uint32Array(W * H);
    for (let i = 0; i < n; i++) {
        const c = random(0x1000000), x = random(4000) / 40 - 5, y = random(2800) / 40 - 5, w = random(100) < 90 ? random(300) / 100 : random(120), h = random(500) / 100;
        raster.fillStyle = '#' + c.toString(16).padStart(6, '0');
        raster.fillRect(x, y, w, h);
        for (let q = Math.round(y); q < Math.max(Math.round(y) + 1, Math.round(y + h)); q++)
            for (let p = Math.round(x); p < Math.max(Math.round(x) + 1, Math.round(x + w)); p++)
                if (p >= 0 && p < W && q >= 0 && q < H) plain[q * W + p] = (0xff000000 | (c & 255) << 16 | (c >> 8 & 255) << 8 | c >> 16) >>> 0;
    }
    raster.put(ctx, W + 0.3, H - 0.2);
    same(told.splice(0), [['image', 0, 0]], `${n} rectangles are one picture`);
    const pixels = new Uint32Array(picture.data.buffer), other = plain.findIndex((v, i) => v !== pixels[i]);
    same([other, picture.width, picture.height], [-1, W, H], `${n} rectangles: the first pixel that is another`);
}
// Threads of one name have their numbers behind it.
const { allClear, Promises } = await import(join(out, 'promises.mjs'));
const columns = { 'p.label': [1, 1, 2], 'p.flags': [5, 5, 1], 'p.type': [0, 0, 0] };
const head = { begin: '0', duration: 9, kinds: [], strings: ['', 'worker', 'main'], types: ['thread'], findings: [] };
const of = (name) => (columns[name] ?? (name.startsWith('p.') ? [0, 0, 0] : []));
const threads = new Promises({ begin: 0n, data: { head: { promises: head }, u32: (n) => Uint32Array.from(of(n)), f64: (n) => Float64Array.from(of(n)), signed: (n) => Float64Array.from(of(n)), u64: () => ({ low: Uint32Array.of(4097, 0x1234, 7), high: Uint32Array.of(0, 0xffff8000, 0) }) } });
same([0, 1, 2].map((i) => threads.name(i)), ['worker 4097', 'worker 0xffff800000001234', 'main'], 'names of threads');
const clear = (unknown, doubts, fate) => allClear({ fate, doubts }, { lost: 0, unknown });
same(clear([], [], [0]), 'Nothing is wrong with the threads of this trace, as far as it tells.', 'all is known');
same(clear(['what waits'], [], [0]), 'No finding in what is known. Not known: what waits.', 'something is not known');
same(clear([], [1], [0]), 'No certain finding.', 'something is in doubt');
// Each view has above it why names or times are doubtful.
globalThis.document = { documentElement: { dataset: {} } };
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
const { doubtful } = await import(join(out, 'quality.mjs'));
same(doubtful({ quality: 'image      a\nNOT EXACTLY THAT IMAGE  f differs\nUNSURE     g\n' }), 'f differs; g', 'the banner of a page');
rmSync(out, { recursive: true });
process.exit(failed === 0 ? 0 : 1);
