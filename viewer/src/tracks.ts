// SPDX-License-Identifier: BSD-2-Clause
// The calls of each thread, below its line in the timeline: a row for each depth.
import type { App } from './app';
import { css } from './colours';
import type { Pen } from './pen';
import { Parts } from './parts';
import { NONE, type Promises } from './promises';
import { at, strip, type Rows } from './rows';
import type { Model, Spans } from './source';
import { fitted } from './stack';
import { count, moment, time } from './text';

export const trackPx = 13;
const DEPTHS = 24; // that are drawn: the flame chart has all
const mono = '10px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace';

interface Seen { rows: number[]; y: number }

export class Tracks {
    // By thread or promise its rows by depth; those of an outline have one for each vCPU.
    private of = new Map<number, number[][]>();
    others: { name: string; rows: number[][] }[] = []; // threads that the trace tells nothing else of
    asked: number[] = []; // rows that are on the screen
    private image: ImageData | null = null;
    private buffer = document.createElement('canvas');

    constructor(private app: App, private spans: Spans, m: Model, p: Promises) {
        const rows = new Map<number, number[][]>();
        const order = [...spans.rowThread.keys()].sort((a, b) => spans.rowDepth[a]! - spans.rowDepth[b]!);
        for (const r of order) {
            const t = spans.rowThread[r]!, d = spans.rowDepth[r]!;
            let list = rows.get(t);
            if (!list) rows.set(t, list = []);
            if (d < DEPTHS) (list[d] ??= []).push(r);
        }
        const byNumber = new Map<string, number[]>(), byName = new Map<string, number[]>();
        const put = (map: Map<string, number[]>, key: string, q: number): void => { const l = map.get(key); if (l) l.push(q); else map.set(key, [q]); };
        for (let q = 0; q < p.nr; q++) {
            if (!(p.run[q]! > 0)) continue; // who has no CPU calls nothing
            put(byNumber, (BigInt(p.id.high[q]!) << 32n | BigInt(p.id.low[q]!)).toString(), q);
            put(byName, p.name(q), q);
        }
        for (const c of m.callers) {
            const depths = rows.get(c.thread), named = byName.get(c.name) ?? [];
            if (!depths) continue;
            rows.delete(c.thread);
            // Its number, or where those are of another kind its name, if only one has it.
            const alive = named.length > 1 && !spans.outline ? this.alive(named, depths.flat(), p) : named;
            const q = named.find((x) => byNumber.get(c.number)?.includes(x)) ?? (alive.length === 1 ? alive[0] : byNumber.get(c.number)?.[0]);
            if (q !== undefined && !this.of.has(q)) this.of.set(q, [...depths].map((x) => x ?? []));
            else this.others.push({ name: m.threads.list[c.thread]!, rows: [...depths].map((x) => x ?? []) });
        }
    }

    // The promises among `named` that were alive when the first call of the rows began.
    private alive(named: number[], rows: number[], p: Promises): number[] {
        const { first, start } = this.spans.rows, full = rows.filter((r) => first[r + 1]! > first[r]!);
        const at = Math.min(...full.map((r) => start[first[r]!]!));

        return named.filter((q) => p.begin[q]! <= at && p.end[q]! >= at);
    }

    who(): number[] { return [...this.of.keys()]; }
    holds(row: number, i: number): boolean { return i >= this.rows.first[row]! && i < this.rows.first[row + 1]!; }
    // The promise whose calls are that thread's; NONE: there is none.
    ofThread(thread: number): number {
        for (const [q, rows] of this.of) if (rows.some((r) => r.length > 0 && this.spans.rowThread[r[0]!] === thread)) return q;
        return NONE;
    }
    rowsOf(q: number): number[][] { return this.of.get(q) ?? []; }
    private get rows(): Rows { return this.spans instanceof Parts ? this.spans.detail : this.spans.rows; }
    private func(node: number): number { return this.spans.tree.func[node]!; }
    private name(node: number): string { return this.app.model.funcs.name(this.func(node)); }

    // Asks for what is on the screen, of calls that were not sent whole.
    look(x0: number, x1: number, px: number, done: () => void): void {
        if (this.spans instanceof Parts && this.asked.length > 0)
            this.spans.look(x0, x1, px, Math.min(...this.asked), Math.max(...this.asked), done);
    }

    // seen: rows and where they are. On a canvas they go by pixels, since they may be millions.
    draw(pen: Pen, ctx: CanvasRenderingContext2D, seen: Seen[], w: number, x0: number, x1: number, back: number): void {
        const { rows, app } = this, width = Math.max(1, Math.round(w)), scale = w / (x1 - x0);
        const labels: [number, number, number, number][] = [];
        const colour = (n: number): number => app.colour(this.func(n));

        this.asked = seen.flatMap((s) => s.rows);
        if (seen.length === 0) return;
        if (this.image === null || this.image.width !== width || this.image.height < seen.length)
            this.image = new ImageData(width, Math.max(32, seen.length));
        const all = new Uint32Array(this.image.data.buffer, 0, width * seen.length);
        all.fill(back);
        seen.forEach((s, k) => {
            for (const r of s.rows)
                strip(rows, r, { pixels: all.subarray(k * width, (k + 1) * width), width, x0, scale }, colour, back, 30, (i, a, b) => labels.push([i, a, b, s.y]));
        });
        if (pen === ctx) this.blit(ctx, all, seen, width, w, back);
        else this.rectangles(pen, all, seen, width, back);
        pen.font = mono;
        pen.fillStyle = '#16130d';
        for (const [i, a, b, y] of labels) {
            const room = Math.floor((b - a - 6) / 6.1);
            if (room >= 3) pen.fillText(fitted(this.name(rows.id[i]!), room), a + 3, y + trackPx / 2);
        }
    }

    private blit(ctx: CanvasRenderingContext2D, all: Uint32Array, seen: Seen[], width: number, w: number, back: number): void {
        const { buffer } = this;

        // The grid behind them stays visible.
        for (let i = 0; i < all.length; i++) if (all[i] === back) all[i] = 0;
        if (buffer.width !== width || buffer.height < seen.length) {
            buffer.width = width;
            buffer.height = Math.max(32, seen.length);
        }
        buffer.getContext('2d')!.putImageData(this.image!, 0, 0, 0, 0, width, seen.length);
        ctx.imageSmoothingEnabled = false;
        seen.forEach((s, k) => ctx.drawImage(buffer, 0, k, width, 1, 0, s.y, w, trackPx - 1));
    }

    private rectangles(pen: Pen, all: Uint32Array, seen: Seen[], width: number, back: number): void {
        seen.forEach((s, k) => {
            for (let a = 0; a < width;) {
                const c = all[k * width + a]!;
                let b = a + 1;
                while (b < width && all[k * width + b] === c) b++;
                if (c !== back) {
                    pen.fillStyle = css(c);
                    pen.fillRect(a, s.y, b - a, trackPx - 1);
                }
                a = b;
            }
        });
    }

    // The call at a time in these rows, or -1.
    pick(list: number[], x: number, slack: number): number {
        for (const r of list) {
            const i = at(this.rows, r, x, slack);
            if (i >= 0) return i;
        }
        return -1;
    }

    describe(i: number, step: number): string[] {
        const { rows } = this, n = rows.count?.[i] ?? 1, dur = time(rows.dur[i]!);

        return [this.name(rows.id[i]!), n > 1 ? `and others: ${count(n)} calls, ${dur}` : rows.dur[i]! > 0 ? dur : 'its end is not known',
            'from ' + moment(rows.start[i]!, step)];
    }

    funcOf(i: number): number { return this.func(this.rows.id[i]!); }
}

export function tracks(app: App, m: Model, p: Promises): Tracks | null {
    return m.spans && p.nr > 0 ? new Tracks(app, m.spans, m, p) : null;
}
