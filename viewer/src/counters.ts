// SPDX-License-Identifier: BSD-2-Clause
// Values over time, as lines with steps.
import type { Pen } from './pen';
import type { Counter } from './promises';

export const counterColours = ['#f06a6a', '#f08c00', '#4fb8b8', '#b06ae0'];

function lowerBound(a: number[], v: number): number {
    let from = 0, to = a.length;

    while (from < to) {
        const mid = (from + to) >>> 1;
        if (a[mid]! < v) from = mid + 1;
        else to = mid;
    }
    return from;
}

interface Place { x0: number; x1: number; w: number; last: number; base: number; high: number } // last: the trace's end

// Those whose names are alike up to a '#' have one scale.
export function drawCounters(pen: Pen, counters: Counter[], hidden: Set<string>, at: Place): void {
    const group = (n: string): string => n.split('#')[0]!, scale = new Map<string, number>();
    const px = (x: number): number => (x - at.x0) / (at.x1 - at.x0) * at.w;

    for (const c of counters) scale.set(group(c.name), c.value.reduce((a, v) => Math.max(a, v), Math.max(10, scale.get(group(c.name)) ?? 0)));
    counters.forEach((c, k) => {
        if (hidden.has(c.name)) return;
        const top = scale.get(group(c.name))!, begin = Math.max(0, lowerBound(c.time, at.x0) - 1);
        let last = -1, y = at.base;
        pen.strokeStyle = counterColours[k % 4]!;
        pen.lineWidth = 2;
        pen.beginPath();
        for (let i = begin; i < c.time.length; i++) {
            const x = Math.max(-2, px(c.time[i]!)), next = at.base - c.value[i]! / top * at.high;
            if (i > begin && x - last < 0.5 && i + 1 < c.time.length) { y = next; continue; }
            if (last < 0 && i === begin) pen.moveTo(x, next);
            else { pen.lineTo(x, y); pen.lineTo(x, next); }
            y = next;
            last = x;
            if (x > at.w) break;
        }
        pen.lineTo(Math.max(last, Math.min(at.w, px(at.last))), y);
        pen.stroke();
    });
}
