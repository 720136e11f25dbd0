// SPDX-License-Identifier: BSD-2-Clause
// Flame chart: time goes to the right. Of calls each is drawn; of samples, neighbours of the same
// stack are one.
import { type App, type Change, type View } from './app';
import { fill, h, select } from './dom';
import type { Rows } from './rows';
import type { Points, Spans } from './source';
import { Stack, type Lane } from './stack';
import { moment, step, time } from './text';
import { Tip } from './tip';

// Until when a sample stands for what ran: the next one of its lane, if that is near.
function gapOf(times: number[]): number {
    const d: number[] = [];

    for (let i = 1; i < times.length; i += Math.max(1, times.length / 2000 | 0)) d.push(times[i]! - times[i - 1]!);
    d.sort((a, b) => a - b);
    return (d[d.length >> 1] ?? 1e6) * 2.5 || 1e6;
}

interface Row { start: ArrayLike<number>; dur: ArrayLike<number>; id: ArrayLike<number> }
interface Growing { start: number[]; dur: number[]; id: number[] }

function lane(p: Points, items: number[]): Growing[] {
    const gap = gapOf(items.map((i) => p.time[i]!));
    const rows: Growing[] = [], open: { node: number; start: number }[] = [];
    const { parent } = p.tree;
    let last = 0; // until when the one before is known to have lasted
    const close = (to: number, t: number): void => {
        while (open.length > to) {
            const o = open.pop()!, r = rows[open.length] ??= { start: [], dur: [], id: [] };
            r.start.push(o.start);
            r.dur.push(Math.max(0, t - o.start));
            r.id.push(o.node);
        }
    };

    items.forEach((i, k) => {
        const t = Math.max(last, p.time[i]! - (p.weight[i]! > 1 ? p.weight[i]! * p.period : 0)), path: number[] = [];
        for (let n = p.node[i]!; n > 0; n = parent[n]!) path.push(n);
        path.reverse();
        if (k > 0 && t - last > gap) close(0, last + gap / 2.5);
        let same = 0;
        while (same < open.length && same < path.length && open[same]!.node === path[same]) same++;
        close(same, t);
        for (; same < path.length; same++) open.push({ node: path[same]!, start: t });
        last = Math.max(last, p.time[i]!);
    });
    close(0, last + gap / 2.5);
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
    });
    return out;
}

export class Chart implements View {
    id = 'chart';
    title = 'Flame chart';
    root: HTMLElement;
    plot: Stack;
    private bar = h('div', { class: 'bar' });
    private by = 'cpu';
    private range = [0, 0];

    constructor(private app: App, private tip: Tip) {
        const tree = (): Points['tree'] => app.source!.tree;

        if (!app.model.cpus.list.length && app.model.threads.list.length) this.by = 'thread';
        this.plot = new Stack('Flame chart over time: W and S zoom, A and D pan', {
            colour: (n) => app.colour(tree().func[n]!),
            text: (n) => app.model.funcs.name(tree().func[n]!),
            hover: (i, x, y) => this.hover(i, x, y),
            press: (i) => {
                this.plot.focus = i;
                if (i >= 0) app.setFunc(tree().func[this.plot.rows.id[i]!]!);
                this.plot.redraw();
            },
            double: (i) => {
                const { start, dur } = this.plot.rows;
                this.plot.show(start[i]! - dur[i]! * 0.05, start[i]! + dur[i]! * 1.05);
            },
        });
        this.plot.ruler = true;
        this.plot.rulerStep = step;
        this.plot.rulerText = moment;
        this.root = h('section', { class: 'view' }, this.bar, this.plot.canvas);
    }

    open(): void {
        this.rebuild();
        this.plot.resize();
    }

    update(c: Change): void {
        if (c === 'data') this.rebuild();
        this.plot.redraw();
    }

    private hover(i: number, x: number, y: number): void {
        const { app, plot } = this, { rows } = plot;

        if (i < 0) { this.tip.hide(); return; }
        const s = app.source!;
        this.tip.show(plot.canvas, x, y, [app.model.funcs.name(s.tree.func[rows.id[i]!]!),
            rows.dur[i]! > 0 || s.key !== 'calls' ? time(rows.dur[i]!) : 'its end is not known',
            'from ' + moment(rows.start[i]!, (plot.x1 - plot.x0) / plot.w)]);
    }

    private rebuild(): void {
        const { app, plot } = this, s = app.source, { t0, t1, cpu, thread } = app.state;

        if (!s?.timed) return;
        if (s.key === 'calls') this.calls(s as Spans);
        else this.samples(s as Points);
        const range = t1 > t0 ? [t0, t1] : [0, app.model.end];
        if (plot.max === 1 || range[0] !== this.range[0] || range[1] !== this.range[1]) {
            plot.bounds(0, app.model.end);
            plot.jump(range[0]!, range[1]!);
            this.range = range;
        }
        fill(this.bar, s.key !== 'calls' && app.model.threads.list.length > 0 && app.model.cpus.list.length > 0 &&
            select('Lanes', [['cpu', 'a lane for each vCPU'], ['thread', 'a lane for each thread']], this.by, (v) => { this.by = v; this.rebuild(); }),
            h('span', { class: 'dim', text: s.key === 'calls' ? 'every call, by thread' : 'neighbouring samples of the same stack are one' }),
            h('span', { class: 'dim', text: cpu >= 0 || thread >= 0 ? '(filtered)' : '' }));
    }

    private calls(s: Spans): void {
        const { app } = this, { threads } = app.model, lanes: Lane[] = [];
        const keep: number[] = [];

        // Rows of a thread are not always neighbours: it grew deeper when others had begun.
        const order = [...s.rowThread.keys()].sort((a, b) => s.rowThread[a]! - s.rowThread[b]! || s.rowDepth[a]! - s.rowDepth[b]!);
        for (const r of order) {
            if (app.state.thread >= 0 && s.rowThread[r] !== app.state.thread) continue;
            const label = threads.list[s.rowThread[r]!]!;
            if (lanes[lanes.length - 1]?.label !== label) lanes.push({ label, firstRow: keep.length, nrRows: 0 });
            lanes[lanes.length - 1]!.nrRows++;
            keep.push(r);
        }
        const sorted = keep.every((r, i) => i === 0 || r === keep[i - 1]! + 1);
        if (sorted && keep.length === s.rows.nr) {
            this.plot.set(s.rows, lanes);
            return;
        }
        this.plot.set(pack(keep.map((r) => ({ start: s.rows.start.subarray(s.rows.first[r]!, s.rows.first[r + 1]!),
            dur: s.rows.dur.subarray(s.rows.first[r]!, s.rows.first[r + 1]!),
            id: s.rows.id.subarray(s.rows.first[r]!, s.rows.first[r + 1]!) }))), lanes);
    }

    private samples(p: Points): void {
        const { app } = this, by = this.by === 'thread' ? p.thread : p.cpu;
        const names = this.by === 'thread' ? app.model.threads.list : app.model.cpus.list;
        const items = new Map<number, number[]>();
        const all: Row[] = [], lanes: Lane[] = [];

        for (let i = 0; i < p.time.length; i++) {
            if ((app.state.cpu >= 0 && p.cpu[i] !== app.state.cpu) || (app.state.thread >= 0 && p.thread[i] !== app.state.thread)) continue;
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
