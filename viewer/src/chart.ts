// SPDX-License-Identifier: BSD-2-Clause
// Flame chart: time goes to the right. It draws each call. It draws neighbouring samples of the
// same stack together.
import { type App, type Change, type View } from './app';
import { fill, h, select } from './dom';
import { pieces } from './lanes';
import type { Rows } from './rows';
import { Parts } from './parts';
import { lowerBound, type Points, type Spans } from './source';
import { Stack, type Lane } from './stack';
import { count, moment, step, time } from './text';
import { Tip } from './tip';

// Until when a sample stands for what ran: the next one of its lane, if that is near.
function gapOf(times: number[]): number {
    const d: number[] = [];

    for (let i = 1; i < times.length; i += Math.max(1, times.length / 2000 | 0)) d.push(times[i]! - times[i - 1]!);
    d.sort((a, b) => a - b);
    return (d[d.length >> 1] ?? 1e6) * 2.5 || 1e6;
}

// As many frames of samples as a chart may have before it draws only each so many-th of a lane.
const FRAMES = 8e6;

interface Row { start: ArrayLike<number>; dur: ArrayLike<number>; id: ArrayLike<number>; count?: ArrayLike<number> | undefined }
interface Growing { start: number[]; dur: number[]; id: number[] }

function lane(p: Points, items: number[]): Growing[] {
    const gap = gapOf(items.map((i) => p.time[i]!));
    const rows: Growing[] = [], open: { node: number; start: number }[] = [];
    const { parent } = p.tree;
    let last = 0;
    const close = (to: number, t: number): void => {
        while (open.length > to) {
            const o = open.pop()!, r = rows[open.length] ??= { start: [], dur: [], id: [] };
            r.start.push(o.start);
            r.dur.push(Math.max(0, t - o.start));
            r.id.push(o.node);
        }
    };

    for (const piece of pieces(p, items, gap)) {
        const path: number[] = [];
        for (let n = p.node[piece.i]!; n > 0; n = parent[n]!) path.push(n);
        path.reverse();
        if (piece.from - last > gap) close(0, last);
        let same = 0;
        while (same < open.length && same < path.length && open[same]!.node === path[same]) same++;
        close(same, piece.from);
        for (; same < path.length; same++) open.push({ node: path[same]!, start: piece.from });
        last = piece.to;
    }
    close(0, last);
    return rows;
}

export function pack(all: Row[]): Rows {
    const first = new Uint32Array(all.length + 1);

    all.forEach((r, i) => { first[i + 1] = first[i]! + r.start.length; });
    const nr = first[all.length]!, out: Rows = { nr: all.length, first, start: new Float64Array(nr), dur: new Float64Array(nr), id: new Uint32Array(nr) };
    all.forEach((r, i) => {
        out.start.set(r.start, first[i]!);
        out.dur.set(r.dur, first[i]!);
        out.id.set(r.id, first[i]!);
        if (r.count) (out.count ??= new Uint32Array(nr)).set(r.count, first[i]!);
    });
    return out;
}

// One row.
export function part(all: Rows, r: number): Row {
    const [a, b] = [all.first[r]!, all.first[r + 1]!];

    return { start: all.start.subarray(a, b), dur: all.dur.subarray(a, b), id: all.id.subarray(a, b), count: all.count?.subarray(a, b) };
}

function chosen(all: Rows, r: number, is: (i: number) => boolean): Row {
    const out: Growing = { start: [], dur: [], id: [] };

    for (let i = all.first[r]!; i < all.first[r + 1]!; i++) {
        if (!is(i)) continue;
        out.start.push(all.start[i]!);
        out.dur.push(all.dur[i]!);
        out.id.push(all.id[i]!);
    }
    return out;
}

// Rows of one thread on several vCPUs, which take turns: what stands for several may seem to overlap, and is cut.
function together(rows: Row[]): Row {
    const out: Growing & { count: number[] } = { start: [], dur: [], id: [], count: [] }, at = rows.map(() => 0);

    for (let end = 0; ;) {
        let k = -1;
        rows.forEach((r, i) => { if (at[i]! < r.start.length && (k < 0 || r.start[at[i]!]! < rows[k]!.start[at[k]!]!)) k = i; });
        if (k < 0) return out;
        const r = rows[k]!, i = at[k]!++, start = Math.max(end, r.start[i]!);
        out.start.push(start);
        out.dur.push(Math.max(0, Math.min(r.dur[i]!, r.start[i]! + r.dur[i]! - start)));
        out.id.push(r.id[i]!);
        out.count.push(r.count?.[i] ?? 1);
        end = start + out.dur[out.dur.length - 1]!;
    }
}

export class Chart implements View {
    root: HTMLElement;
    plot: Stack;
    private bar = h('div', { class: 'bar' });
    private usual = 'cpu';
    private range = [0, 0];
    private tree!: Points['tree'];
    private keep: number[][] = []; // the rows that are shown: those of an outline have one for each vCPU
    private every = 1;
    private live = h('div', { role: 'status', class: 'quiet' }); // a canvas is silent

    constructor(private app: App, private tip: Tip) {
        if (!app.model.cpus.list.length && app.model.threads.list.length) this.usual = 'thread';
        this.plot = new Stack('Flame chart over time: W and S zoom, A and D pan', {
            colour: (n) => app.colour(this.tree.func[n]!),
            text: (n) => app.model.funcs.name(this.tree.func[n]!),
            hover: (i, x, y) => this.hover(i, x, y),
            press: (i) => {
                this.plot.focus = i;
                this.live.textContent = i < 0 ? '' : this.describe(i).join(', ');
                if (i >= 0) app.setFunc(this.tree.func[this.plot.rows.id[i]!]!);
                this.plot.redraw();
            },
            double: (i) => {
                const { start, dur } = this.plot.rows;
                this.plot.show(start[i]! - dur[i]! * 0.05, start[i]! + dur[i]! * 1.05);
            },
        });
        this.plot.onRange = (x0, x1) => app.set({ z0: x0, z1: x1 }, 'zoom');
        this.plot.onMove = (x0, x1) => this.ask(x0, x1);
        this.plot.ruler = true;
        this.plot.rulerStep = step;
        this.plot.rulerText = moment;
        this.root = h('section', { class: 'view' }, this.bar, this.plot.canvas, this.live);
    }

    private get by(): string { return this.app.opt('lanes', this.usual); }

    open(): void {
        const { z0, z1 } = this.app.state;

        this.rebuild();
        if (z1 > z0) this.plot.jump(z0, z1);
        this.plot.resize();
    }

    update(c: Change): void {
        if (c === 'data') this.rebuild();
        this.plot.redraw();
    }

    private hover(i: number, x: number, y: number): void {
        const { plot } = this;

        if (i < 0) { this.tip.hide(); return; }
        this.tip.show(plot.canvas, x, y, this.describe(i));
    }

    private describe(i: number): string[] {
        const { app, plot } = this, { rows } = plot, s = app.source!;

        return [app.model.funcs.name(s.tree.func[rows.id[i]!]!),
            (rows.count?.[i] ?? 1) > 1 ? `and others: ${count(rows.count![i]!)} calls, ${time(rows.dur[i]!)}`
                : rows.dur[i]! > 0 || s.key !== 'calls' ? time(rows.dur[i]!) : 'its end is not known',
            'from ' + moment(rows.start[i]!, (plot.x1 - plot.x0) / plot.w)];
    }

    private rebuild(): void {
        const { app, plot } = this, s = app.source, { t0, t1, z0, z1, cpu, thread } = app.state;

        if (!s?.timed) return;
        this.tree = s.tree;
        if (s.key === 'calls') this.calls(s as Spans);
        else this.samples(s as Points);
        const range = t1 > t0 ? [t0, t1] : [0, app.model.end];
        if (plot.max === 1 || range[0] !== this.range[0] || range[1] !== this.range[1]) {
            plot.bounds(0, app.model.end);
            if (z1 > z0) plot.jump(z0, z1);
            else plot.jump(range[0]!, range[1]!);
            this.range = range;
        }
        fill(this.bar, s.key !== 'calls' && app.model.threads.list.length > 0 && app.model.cpus.list.length > 0 &&
            select('Lanes', [['cpu', 'a lane for each vCPU'], ['thread', 'a lane for each thread']], this.by, (v) => { app.setOpt('lanes', v, this.usual); this.rebuild(); }),
            h('span', { class: 'dim', text: s.key === 'calls' ? 'every call, by thread' : 'neighbouring samples of the same stack are one' }),
            s.key !== 'calls' && this.every > 1 && h('b', { text: `one of ${this.every} samples is drawn: a shorter range has more of them` }),
            h('span', { class: 'dim', text: cpu >= 0 || thread >= 0 ? '(filtered)' : '' }));
    }

    private calls(s: Spans): void {
        const { app } = this, { threads } = app.model, lanes: Lane[] = [];
        const keep: number[][] = [];
        let last = -1;

        // Rows of a thread are not always neighbours: it grew deeper when others had begun.
        const order = [...s.rowThread.keys()].sort((a, b) => s.rowThread[a]! - s.rowThread[b]! || s.rowDepth[a]! - s.rowDepth[b]!);
        for (const r of order) {
            if (app.state.thread >= 0 && s.rowThread[r] !== app.state.thread) continue;
            if (app.state.cpu >= 0 && !s.isOn(r, app.state.cpu)) continue;
            if (last >= 0 && s.rowThread[r] === s.rowThread[last] && s.rowDepth[r] === s.rowDepth[last]) { keep[keep.length - 1]!.push(r); continue; }
            last = r;
            const label = threads.list[s.rowThread[r]!]!;
            if (lanes[lanes.length - 1]?.label !== label) lanes.push({ label, firstRow: keep.length, nrRows: 0 });
            lanes[lanes.length - 1]!.nrRows++;
            keep.push([r]);
        }
        this.keep = keep;
        this.plot.set(this.kept(s instanceof Parts ? s.detail : s.rows), lanes);
    }

    private kept(all: Rows): Rows {
        const { keep } = this;

        const { cpu } = this.app.state, of = this.app.model.spans!.cpu, some = cpu >= 0 && of.length > 0;
        if (!some && keep.length === all.nr && keep.every(([r], i) => i === 0 || r === keep[i - 1]![0]! + 1)) return all;
        return pack(keep.map((rows) => rows.length > 1 ? together(rows.map((r) => part(all, r))) : some ? chosen(all, rows[0]!, (i) => of[i] === cpu) : part(all, rows[0]!)));
    }

    // Asks for the part on the screen, of calls that were not sent whole.
    private ask(x0: number, x1: number): void {
        const { app, keep, plot } = this, s = app.source, [a, b] = plot.visible();

        if (!(s instanceof Parts) || keep.length === 0 || b <= a) return;
        const rows = keep.slice(Math.max(0, a - 8), b + 8).flat();
        s.look(x0, x1, plot.w, Math.min(...rows), Math.max(...rows), () => plot.swap(this.kept(s.detail)));
    }

    // Draws every n-th sample; returns n.
    private thin(p: Points, from = 0, to = p.time.length): number {
        const { parent } = p.tree, step = Math.max(1, (to - from) / 2000 | 0);
        let frames = 0;

        for (let i = from; i < to; i += step) for (let n = p.node[i]!; n > 0; n = parent[n]!) frames++;
        return Math.max(1, Math.ceil(frames * step / FRAMES));
    }

    private samples(p: Points): void {
        const { app } = this, by = this.by === 'thread' ? p.thread : p.cpu;
        const names = this.by === 'thread' ? app.model.threads.list : app.model.cpus.list;
        const items = new Map<number, number[]>();
        const all: Row[] = [], lanes: Lane[] = [];

        this.every = this.thin(p);
        // Too many for one look: those of the range, so that a narrow one has them all.
        const { t0, t1 } = app.state, part = this.every > 1 && t1 > t0, seen = new Map<number, number>();
        if (part) this.every = this.thin(p, lowerBound(p.time, t0), lowerBound(p.time, t1));
        for (let i = 0; i < p.time.length; i++) {
            if (part && (p.time[i]! < t0 || p.time[i]! >= t1)) continue;
            if ((app.state.cpu >= 0 && p.cpu[i] !== app.state.cpu) || (app.state.thread >= 0 && p.thread[i] !== app.state.thread)) continue;
            if (this.every > 1) {
                const n = seen.get(by[i]!) ?? 0;
                seen.set(by[i]!, n + 1);
                if (n % this.every !== 0) continue;
            }
            let list = items.get(by[i]!);
            if (!list) items.set(by[i]!, list = []);
            list.push(i);
        }
        for (const k of [...items.keys()].sort((a, b) => a - b)) {
            const rows = lane(p, items.get(k)!);
            lanes.push({ label: names[k] ?? (this.by === 'thread' ? 'no thread known' : 'on no vCPU'), firstRow: all.length, nrRows: rows.length });
            all.push(...rows);
        }
        this.plot.set(pack(all), lanes);
    }

    keyDown(ev: KeyboardEvent): boolean {
        const side = ev.key === 'ArrowLeft' ? -1 : ev.key === 'ArrowRight' ? 1 : 0;

        if (side !== 0) this.plot.pan(0.15 * side);
        else if (ev.key === 'ArrowUp') this.plot.scroll(-54);
        else if (ev.key === 'ArrowDown') this.plot.scroll(54);
        else if (ev.key === 'm') this.app.setRange(this.plot.x0, this.plot.x1);
        else return this.plot.key(ev);
        return true;
    }
}
