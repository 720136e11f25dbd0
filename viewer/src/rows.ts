// SPDX-License-Identifier: BSD-2-Clause
// Draws rows of intervals, sorted and without overlap, by level of detail. The work depends on
// pixels, not on intervals.
import { gridOf, type Grid } from './grid';

export interface Rows {
    nr: number;
    first: Uint32Array; // nr + 1
    start: Float64Array;
    dur: Float64Array;
    id: Uint32Array;
    count?: Uint32Array; // how many calls each stands for, where it may be several
    index?: Index;
    grids?: (Grid | null | undefined)[]; // of rows that were drawn
}

const BLOCK = 32, WAYS = 64;
const MANY = 3 * BLOCK; // in a pixel, from which on it may end with a block

// For each 32 intervals, and each 64 of those, their sum and the longest of them.
export class Index {
    private sum: Float32Array; // exact enough for a screen
    private max: Uint16Array; // rounded as rank() does
    private at: Uint8Array;   // which of the 32
    private sums: Float32Array;
    private maxs: Uint32Array; // which block

    constructor(private dur: Float64Array) {
        const { length } = dur, n = Math.ceil(length / BLOCK), m = Math.ceil(n / WAYS);

        this.sum = new Float32Array(n);
        this.max = new Uint16Array(n);
        this.at = new Uint8Array(n);
        this.sums = new Float32Array(m);
        this.maxs = new Uint32Array(m);
        for (let b = 0; b < n; b++) {
            const from = b * BLOCK, to = Math.min(length, from + BLOCK), up = b / WAYS | 0;
            let sum = 0, best = from, most = -1;
            for (let i = from; i < to; i++) {
                const d = dur[i]!;
                sum += d;
                if (d > most) { most = d; best = i; }
            }
            this.sum[b] = sum;
            this.max[b] = rank(most);
            this.at[b] = best - from;
            this.sums[up]! += sum;
            if (b % WAYS === 0 || this.longer(b, this.maxs[up]!)) this.maxs[up] = b;
        }
    }

    private most(block: number): number { return this.dur[block * BLOCK + this.at[block]!]!; }
    // The intervals themselves are looked at where the ranks do not tell.
    private longer(a: number, b: number): boolean {
        return this.max[a]! > this.max[b]! || (this.max[a] === this.max[b] && this.most(a) > this.most(b));
    }

    longest = 0;

    // Sum over from <= i < to; the longest of them is in `longest`.
    query(from: number, to: number): number {
        const { dur, sum } = this, head = Math.min(to, (from + BLOCK - 1 & -BLOCK) >>> 0), tail = Math.max(head, (to & -BLOCK) >>> 0);
        let total = 0, best = -1, most = -1;

        // First and last, what no whole block covers.
        for (let i = from; i < head; i++) {
            const d = dur[i]!;
            total += d;
            if (d > most) { most = d; best = i; }
        }
        for (let i = tail; i < to; i++) {
            const d = dur[i]!;
            total += d;
            if (d > most) { most = d; best = i; }
        }
        const last = tail / BLOCK;
        let b = head / BLOCK, block = b;
        while (b < last) {
            let m = b;
            if (b % WAYS === 0 && b + WAYS <= last) {
                m = this.maxs[b / WAYS]!;
                total += this.sums[b / WAYS]!;
                b += WAYS;
            }
            else total += sum[b++]!;
            if (this.longer(m, block)) block = m;
        }
        // If several intervals are equally long, take the first.
        const inBlocks = head < tail ? this.most(block) : -1, at = block * BLOCK + (head < tail ? this.at[block]! : 0);
        this.longest = best < 0 || inBlocks > most || (inBlocks === most && at < best) ? at : best;
        return total;
    }
}

// A float's upper half: greater if the number is, by a hundredth or so.
const float = new Float32Array(1), bits = new Uint32Array(float.buffer);
function rank(v: number): number {
    float[0] = v;
    return bits[0]! >>> 16;
}

export function indexOf(r: Rows): Index {
    return r.index ??= new Index(r.dur);
}

// First interval of a row that ends after x.
export function seek(r: Rows, row: number, x: number): number {
    let from = r.first[row]!, to = r.first[row + 1]!;

    while (from < to) {
        const mid = (from + to) >>> 1;
        if (r.start[mid]! + r.dur[mid]! <= x) from = mid + 1;
        else to = mid;
    }
    return from;
}

// First of from <= i < end that starts at x or later: `step` after it or so.
export function next(start: Float64Array, from: number, end: number, x: number, step: number): number {
    let width = step > 2 * BLOCK ? BLOCK : 2, to = Math.min(end, from + step);

    // The last one known to be earlier is from - 1.
    while (to < end && start[to]! < x) {
        from = to + 1;
        to = Math.min(end, to + width);
        width *= 2;
    }
    width = step > 2 * BLOCK ? BLOCK : 2;
    while (to - width > from && start[to - width]! >= x) {
        to -= width;
        width *= 2;
    }
    from = Math.max(from, to - width);
    while (from < to) {
        const mid = (from + to) >>> 1;
        if (start[mid]! < x) from = mid + 1;
        else to = mid;
    }
    return from;
}

// The same where very many are in a pixel, which ends with the block that it ends in if that is much shorter. 0: it is not.
function nextBlock(start: Float64Array, from: number, end: number, x: number, step: number, pixel: number): number {
    let to = (from + step & -BLOCK) >>> 0;

    if (to <= from || to >= end) return 0;
    while (to - BLOCK > from && start[to - BLOCK]! >= x) to -= BLOCK;
    while (to < end && start[to]! < x) to += BLOCK;
    return to < end && start[to]! - x < pixel / 3 ? to : 0;
}

export interface Strip {
    pixels: Uint32Array; // of one row
    width: number;
    x0: number;
    scale: number; // pixels a unit
}

// The intervals that a row shows, from left to right: first pixel, last pixel, and the part that is covered. They are painted when
// all are found: memory is slow, and independent waits overlap.
const LIST = 4096;
const which = new Uint32Array(LIST), ids = new Uint32Array(LIST), from = new Uint32Array(LIST), until = new Uint32Array(LIST), cover = new Float32Array(LIST);

function flush(nr: number, r: Rows, pixels: Uint32Array, colour: (id: number) => number, back: number): void {
    const { id } = r;

    for (let k = 0; k < nr; k++) ids[k] = id[which[k]!]!;
    for (let k = 0; k < nr; k++) ids[k] = colour(ids[k]!);
    for (let k = 0; k < nr; k++) {
        const a = from[k]!, c = ids[k]!, b = until[k]!;
        if (b === a) { pixels[a] = mix(c, pixels[a]!, cover[k]!); continue; }
        pixels.fill(c, a, b);
        // A gap tells neighbours of the same colour apart.
        if (cover[k]! < 1) pixels[a] = mix(back, c, 0.35);
    }
}

// Pieces of a row that are short enough to make pixels of them.
function usable(r: Rows, row: number, scale: number): Grid | null {
    let g = (r.grids ??= [])[row];

    if (g === undefined) r.grids[row] = g = gridOf(r.start, r.dur, r.first[row]!, r.first[row + 1]!);
    return g && g.length * scale < 1 / 3 ? g : null;
}

// The same by pieces, if a piece begins with interval i, until a piece has a wide interval. `upTo` is the interval where it
// stopped.
let upTo = 0;
function pieces(g: Grid, i: number, s: Strip, t: number, nr: number): number {
    const { first, sum, max, which: longest } = g, n = sum.length, { scale, width } = s, piece = g.length * scale, origin = (g.from - s.x0) * scale;
    let b = g.begin(i, t);

    upTo = i;
    if (b < 0) return nr;
    for (let narrow = true; narrow && b < n && nr < LIST;) {
        const px = Math.max(0, Math.floor(origin + (b + 0.5) * piece)), end = Math.min(n, Math.max(b + 1, Math.round((px + 1 - origin) / piece)));
        let covered = 0, most = -1, best = 0;
        if (px >= width) break;
        for (; b < end; b++) {
            const m = max[b]!;
            if (m * scale >= 1) { narrow = false; break; }
            if (m > most) { most = m; best = longest[b]!; }
            covered += sum[b]!;
        }
        if (most < 0) continue;
        which[nr] = best;
        from[nr] = until[nr] = px;
        cover[nr++] = Math.min(1, Math.max(0.35, covered * scale));
    }
    upTo = first[b]!;
    return nr;
}

// Colours of a row's pixels, and for each interval that is wide enough its label by `text`.
export function strip(r: Rows, row: number, s: Strip, colour: (id: number) => number, back: number,
    wide: number, text: (i: number, left: number, right: number) => void): void {
    const { start, dur } = r;
    const { pixels, width, x0, scale } = s;
    const index = indexOf(r), grid = usable(r, row, scale);
    const end = r.first[row + 1]!;
    let i = seek(r, row, x0), step = 1, nr = 0;

    while (i < end) {
        const left = (start[i]! - x0) * scale;
        if (left >= width) break;
        const right = left + dur[i]! * scale;
        if (nr === LIST) { flush(nr, r, pixels, colour, back); nr = 0; }
        if (grid) {
            nr = pieces(grid, i, s, start[i]!, nr);
            if (upTo > i) { i = upTo; continue; }
        }
        which[nr] = i;
        if (right - left >= 1) {
            const a = Math.max(0, Math.round(left)), b = Math.min(width, Math.max(a + 1, Math.round(right)));
            from[nr] = a;
            until[nr] = b;
            cover[nr++] = b - a > 2 && left >= 0 ? 0 : 1;
            if (b - a >= wide) text(i, a, b);
            i++;
            continue;
        }
        // All that begin in this pixel become one.
        const px = Math.max(0, Math.floor(left)), edge = x0 + (px + 1) / scale;
        // With a piece, if none of them is wide, so that the next pixel may go by them.
        let to = grid ? grid.first[grid.near(edge)]! : 0, sum = to > i ? index.query(i, to) : 0;
        if (to <= i || dur[index.longest]! * scale >= 1) {
            to = (step > MANY && nextBlock(start, i, end, edge, step, 1 / scale)) || next(start, i + 1, end, edge, step);
            step = to - i;
            // The last of them may be wide.
            if (step > 1 && dur[to - 1]! * scale >= 1) to--;
            sum = index.query(i, to);
        }
        const covered = sum * scale;
        if (px < width) {
            which[nr] = index.longest;
            from[nr] = until[nr] = px;
            cover[nr++] = Math.min(1, Math.max(0.35, covered));
        }
        i = to;
    }
    flush(nr, r, pixels, colour, back);
}

export function mix(a: number, b: number, part: number): number {
    if (part >= 1) return a;
    const q = 1 - part;
    const rb = ((a & 255) * part + (b & 255) * q) | 0;
    const g = ((a >> 8 & 255) * part + (b >> 8 & 255) * q) | 0;
    const bl = ((a >> 16 & 255) * part + (b >> 16 & 255) * q) | 0;

    return (0xff000000 | bl << 16 | g << 8 | rb) >>> 0;
}

// The interval at x of a row, or -1.
export function at(r: Rows, row: number, x: number, slack = 0): number {
    const i = seek(r, row, x);

    if (i < r.first[row + 1]! && r.start[i]! <= x) return i;
    // Too narrow to point at.
    if (i < r.first[row + 1]! && r.start[i]! - x <= slack) return i;
    if (i > r.first[row]! && x - r.start[i - 1]! - r.dur[i - 1]! <= slack) return i - 1;
    return -1;
}
