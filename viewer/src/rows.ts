// SPDX-License-Identifier: BSD-2-Clause
// Rows of intervals that are sorted and do not overlap, drawn by level of detail: the work depends
// on pixels, not on how many there are.

export interface Rows {
    nr: number;
    first: Uint32Array; // nr + 1
    start: Float64Array;
    dur: Float64Array;
    id: Uint32Array;
    count?: Uint32Array; // how many calls each stands for, where it may be several
    index?: Index;
}

const WAYS = 64;

// For each 64, 4096, ... intervals their sum and the longest of them.
export class Index {
    private sum: Float64Array[] = [];
    private max: Uint32Array[] = [];

    constructor(private dur: Float64Array) {
        const { length } = dur;
        let n = Math.ceil(length / WAYS);
        let sum = new Float64Array(n), max = new Uint32Array(n);

        for (let i = 0; i < length; i++) {
            const b = i / WAYS | 0;
            sum[b]! += dur[i]!;
            if (i % WAYS === 0 || dur[i]! > dur[max[b]!]!) max[b] = i;
        }
        for (;;) {
            this.sum.push(sum);
            this.max.push(max);
            if (n <= WAYS) return;
            const m = Math.ceil(n / WAYS), s = new Float64Array(m), x = new Uint32Array(m);
            for (let i = 0; i < n; i++) {
                const b = i / WAYS | 0;
                s[b]! += sum[i]!;
                if (i % WAYS === 0 || dur[max[i]!]! > dur[x[b]!]!) x[b] = max[i]!;
            }
            [n, sum, max] = [m, s, x];
        }
    }

    longest = 0;

    // Sum over from <= i < to; the longest of them is in `longest`.
    query(from: number, to: number): number {
        const { dur } = this;
        let total = 0, best = from;

        let most = dur[from]!;

        // First and last, what no whole block covers.
        const head = Math.min(to, Math.ceil(from / WAYS) * WAYS), tail = Math.max(head, Math.floor(to / WAYS) * WAYS);
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
        for (let level = 0, a = head / WAYS, b = tail / WAYS; a < b; level++) {
            const sum = this.sum[level]!, max = this.max[level]!;
            const up = level + 1 >= this.sum.length ? b : Math.min(b, Math.ceil(a / WAYS) * WAYS), down = Math.max(up, Math.floor(b / WAYS) * WAYS);
            for (let i = a === up ? down : a; i < b; i = i + 1 === up ? down : i + 1) {
                total += sum[i]!;
                if (dur[max[i]!]! > most) { best = max[i]!; most = dur[best]!; }
            }
            if (level + 1 >= this.sum.length) break;
            a = up / WAYS;
            b = down / WAYS;
        }
        this.longest = best;
        return total;
    }
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

// First interval from i on that starts at x or later: mostly a near one.
function gallop(start: Float64Array, i: number, end: number, x: number): number {
    let width = 1;

    while (i + width < end && start[i + width]! < x) width *= 2;
    let from = i + (width >> 1), to = Math.min(i + width, end);
    while (from < to) {
        const mid = (from + to) >>> 1;
        if (start[mid]! < x) from = mid + 1;
        else to = mid;
    }
    return from;
}

export interface Strip {
    pixels: Uint32Array; // of one row
    width: number;
    x0: number;
    scale: number; // pixels a unit
}

// Colours of a row's pixels, and for each interval that is wide enough its label by `text`.
export function strip(r: Rows, row: number, s: Strip, colour: (id: number) => number, back: number,
    wide: number, text: (i: number, left: number, right: number) => void): void {
    const { start, dur, id } = r;
    const { pixels, width, x0, scale } = s;
    const index = indexOf(r);
    const end = r.first[row + 1]!;
    let i = seek(r, row, x0);

    while (i < end) {
        const left = (start[i]! - x0) * scale;
        if (left >= width) break;
        const right = left + dur[i]! * scale;
        if (right - left >= 1) {
            const a = Math.max(0, Math.round(left)), b = Math.min(width, Math.max(a + 1, Math.round(right)));
            pixels.fill(colour(id[i]!), a, b);
            // A gap tells neighbours of the same colour apart.
            if (b - a > 2 && left >= 0) pixels[a] = mix(back, pixels[a]!, 0.35);
            if (b - a >= wide) text(i, a, b);
            i++;
            continue;
        }
        // All that begin in this pixel become one.
        const px = Math.max(0, Math.floor(left));
        let next = gallop(start, i, end, x0 + (px + 1) / scale);
        // The last of them may be wide.
        if (next - 1 > i && dur[next - 1]! * scale >= 1) next--;
        const covered = index.query(i, Math.max(next, i + 1)) * scale;
        if (px < width)
            pixels[px] = mix(colour(id[index.longest]!), pixels[px]!, Math.min(1, Math.max(0.35, covered)));
        i = Math.max(next, i + 1);
    }
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
    // Of a width that no pointer meets.
    if (i < r.first[row + 1]! && r.start[i]! - x <= slack) return i;
    if (i > r.first[row]! && x - r.start[i - 1]! - r.dur[i - 1]! <= slack) return i - 1;
    return -1;
}
