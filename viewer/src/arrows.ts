// SPDX-License-Identifier: BSD-2-Clause
// Arrows from one line of the timeline to another. If they are too many, only how far they reach is drawn.
import { arrow } from './marks';
import type { Pen } from './pen';
import type { Theme } from './plot';
import { Fate, NONE, type Promises } from './promises';
import { lowerBound } from './source';

const WAYS = 64;
const most = 4000; // arrows that are drawn one by one

const colours: Record<string, [string, string]> = { // light, dark
    read: ['#2463d6', '#6aa5ff'], resolve: ['#14883b', '#4fd07f'], fail: ['#cc0000', '#ff6060'], try_read: ['#b3a012', '#e0d060'],
    signal: ['#f08a00', '#ffa940'], notify: ['#f08a00', '#ffa940'], read_later: ['#b3a012', '#e0d060'], create: ['#8a93a0', '#67707e'], become: ['#8a93a0', '#67707e'],
};

// Positions on the screen; row -1: the promise has none.
interface Place { x0: number; x1: number; w: number; px(x: number): number; y(row: number): number; rowOf(p: number): number }

export class Arrows {
    private low = new Int32Array(0); // least and greatest row of each 64 edges
    private high = new Int32Array(0);

    constructor(private p: Promises, private v: Place) {}

    // Rows are other ones now.
    pack(): void {
        const { p: { edges }, v } = this, n = Math.ceil(edges.nr / WAYS);

        this.low = new Int32Array(n).fill(0x7fffffff);
        this.high = new Int32Array(n).fill(-1);
        for (let i = 0; i < edges.nr; i++) {
            const b = i / WAYS | 0, a = v.rowOf(edges.from[i]!), c = v.rowOf(edges.to[i]!);
            if (a < 0 || c < 0) continue;
            this.low[b] = Math.min(this.low[b]!, a, c);
            this.high[b] = Math.max(this.high[b]!, a, c);
        }
    }

    private colour(kind: string, t: Theme): string { return (colours[kind] ?? colours.create!)[t.dark ? 1 : 0]; }

    draw(pen: Pen, t: Theme, a: number, b: number): void {
        const { p: { edges, kinds, fate }, v } = this;
        const from = lowerBound(edges.time, v.x0), to = lowerBound(edges.time, v.x1);

        if (to - from > most) { this.density(pen, t, from, to); return; }
        for (let i = from; i < to; i++) {
            const r0 = v.rowOf(edges.from[i]!), r1 = v.rowOf(edges.to[i]!);
            if (r0 < 0 || r1 < 0 || r0 === r1 || (r0 < a && r1 < a) || (r0 > b && r1 > b)) continue;
            const kind = kinds[edges.kind[i]!]!;
            // A value that is taken comes from the one that has it; a failure's is red.
            arrow(pen, v.px(edges.time[i]!), v.y(r0), v.y(r1), kind === 'create' || kind === 'become' ? 0 : 8,
                kind === 'read' && fate[edges.from[i]!] === Fate.Failed ? this.colour('fail', t) : this.colour(kind, t));
        }
        pen.globalAlpha = 1;
    }

    // A signal that nobody waited for, and the wait that it came too early for.
    findings(pen: Pen, t: Theme): void {
        const { p, v } = this;

        for (const f of p.findings) {
            const [who, other, by] = [f.who, f.other, f.by].map((x) => v.rowOf(x > 0 ? x - 1 : NONE)) as [number, number, number];
            if (f.kind !== 'lost_wakeup' || other < 0) continue;
            if (by >= 0 && f.signal) arrow(pen, v.px(p.first + f.signal - 1), v.y(by), v.y(other), 8, this.colour('signal', t));
            pen.setLineDash([4, 3]);
            if (who >= 0) arrow(pen, v.px(p.first + f.time), v.y(who), v.y(other), 8, this.colour('fail', t));
            pen.setLineDash([]);
        }
        pen.globalAlpha = 1;
    }

    // Too many to be told apart: how far those of each pixel reach.
    private density(pen: Pen, t: Theme, from: number, to: number): void {
        const { p: { edges }, v } = this, scale = (v.x1 - v.x0) / v.w;

        pen.fillStyle = this.colour('resolve', t);
        for (let px = 0, i = from; px < v.w && i < to; px++) {
            const end = lowerBound(edges.time, v.x0 + (px + 1) * scale, i, to);
            let low = 0x7fffffff, high = -1;
            const one = (k: number): void => {
                const r0 = v.rowOf(edges.from[k]!), r1 = v.rowOf(edges.to[k]!);
                if (r0 < 0 || r1 < 0) return;
                low = Math.min(low, r0, r1);
                high = Math.max(high, r0, r1);
            };
            const n = end - i;
            while (i < end && i % WAYS !== 0) one(i++);
            for (; i + WAYS <= end; i += WAYS) {
                low = Math.min(low, this.low[i / WAYS]!);
                high = Math.max(high, this.high[i / WAYS]!);
            }
            while (i < end) one(i++);
            if (high < 0) continue;
            pen.globalAlpha = Math.min(0.5, 0.12 + 0.08 * Math.log2(n));
            pen.fillRect(px, v.y(low), 1, Math.max(1, v.y(high) - v.y(low)));
        }
        pen.globalAlpha = 1;
    }
}
