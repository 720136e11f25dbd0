// SPDX-License-Identifier: BSD-2-Clause
// Divides one row's intervals into pieces of equal length. If a pixel has very many intervals, a few pieces have its contents. They
// follow each other in memory, so that nothing has to be searched for.
const FEW = 30000;    // in a row, which are found as fast without
const EACH = 8;       // in a piece, about
const MOST = 1 << 16; // pieces

export class Grid {
    readonly first: Uint32Array; // of each piece, and behind the last
    readonly sum: Float32Array;
    readonly max: Float32Array;
    readonly which: Uint32Array; // the longest
    readonly from: number;
    readonly length: number;     // of a piece

    constructor(start: Float64Array, dur: Float64Array, a: number, b: number) {
        const n = 2 ** Math.floor(Math.log2(Math.min(MOST, (b - a) / EACH))), last = start[b - 1]!;
        const from = this.from = start[a]!, length = this.length = Math.max(1, (last - from) / n * (1 + 1e-9));
        const first = this.first = new Uint32Array(n + 1).fill(b), sum = this.sum = new Float32Array(n), max = this.max = new Float32Array(n).fill(-1);
        const which = this.which = new Uint32Array(n);
        let k = -1, until = -Infinity, total = 0, most = -1, best = a;
        const close = (): void => { if (k >= 0) { sum[k] = total; max[k] = most; which[k] = best; } };

        for (let i = a; i < b; i++) {
            const d = dur[i]!;
            if (start[i]! >= until) {
                close();
                const to = Math.min(n - 1, Math.floor((start[i]! - from) / length));
                for (let p = k + 1; p <= to; p++) first[p] = i;
                k = to;
                until = k === n - 1 ? Infinity : from + (k + 1) * length;
                total = 0;
                most = -1;
            }
            total += d;
            if (d > most) { most = d; best = i; }
        }
        close();
    }

    // The piece whose first interval that is, which begins at t; -1: none.
    begin(i: number, t: number): number {
        const { first } = this, n = this.sum.length;
        let b = Math.max(0, Math.min(n - 1, Math.floor((t - this.from) / this.length)));

        // An interval on an edge may be in either piece.
        if (first[b]! > i) b--;
        else if (first[b + 1]! <= i) b++;
        return b >= 0 && b < n && first[b] === i ? b : -1;
    }

    // The piece that begins nearest to x.
    near(x: number): number { return Math.max(0, Math.min(this.sum.length, Math.round((x - this.from) / this.length))); }
}

export function gridOf(start: Float64Array, dur: Float64Array, a: number, b: number): Grid | null {
    return b - a < FEW ? null : new Grid(start, dur, a, b);
}
