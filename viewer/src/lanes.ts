// SPDX-License-Identifier: BSD-2-Clause
// The state of a vCPU or thread at each moment, as its samples tell it.
import type { Points } from './source';

interface Piece { i: number; from: number; to: number }

// Samples of a lane in the order of time, each with the time that it stands for. Samples further apart than `gap` have a hole
// between them. If no sample stands for several periods, each stands for the time until the next sample. A sample of several
// periods stands for the free time before it, as far back as it needs: a busy host delivers it late.
export function pieces(p: Points, items: number[], gap: number): Piece[] {
    const out: Piece[] = [], free: [number, number][] = [];
    let at = 0;

    if (!items.some((i) => p.durOf(i) > 0))
        return items.map((i, k) => {
            const from = p.time[i]!, next = p.time[items[k + 1] ?? -1] ?? Infinity;
            return { i, from, to: next - from <= gap ? next : from + gap / 2.5 };
        });
    for (const i of items) {
        const t = p.time[i]!, dur = p.durOf(i);
        if (t > at) free.push([at, at = t]);
        for (let need = dur || p.period; need > 0 && free.length > 0;) {
            const last = free[free.length - 1]!, from = Math.max(last[0], last[1] - need);
            out.push({ i, from, to: last[1] });
            need -= last[1] - from;
            if (from > last[0]) { last[1] = from; break; }
            free.pop();
            if (dur === 0) break;
        }
    }
    return out.sort((a, b) => a.from - b.from);
}
