// SPDX-License-Identifier: BSD-2-Clause
// Calls that are too many to be sent: here is an outline, and what is looked at is asked for
// (docs/formats/live.md).
import { sums, type Data } from './data';
import type { Rows } from './rows';
import { Spans, type Model, type Selection } from './source';

// Fetches a part of the data that the model was made of; null: they are no longer served.
export type Ask = (path: string) => Promise<Data | null>;

const keepSums = 64, all = '0/0/all/all';
const mostPlaces = 16; // vCPUs, or threads, that are told apart
const mostPixels = 8192;

interface Look { x0: number; x1: number; ns: number; first: number; last: number } // ns: a pixel's

export class Parts extends Spans {
    override outline = true;
    private finer: Rows | null = null;
    private begin: number;
    private threads = new Map<number, number>(); // theirs by ours
    private cpus = new Map<number, number>();
    private known = new Map<string, Float64Array>();
    private newest: Float64Array;
    private asked = '';
    private seen: Look;
    private wanted: (Look & { done: () => void }) | null = null;
    private busy = false;
    private missing: string[] = [];
    private filling = false;

    constructor(base: Spans, private m: Model, private ask: Ask) {
        super(base.tree, () => base.rows, base.rowThread, base.rowDepth, base.cpu, base.off, base.rowCpu);
        const d = m.data, thread = d.u32('r.thread'), cpu = d.u32('r.cpu');

        this.begin = Number(BigInt(d.head.calls!.begin) - m.begin);
        base.rowThread.forEach((id, r) => this.threads.set(id, thread[r]!));
        base.rowCpu.forEach((id, r) => this.cpus.set(id, cpu[r]!));
        this.known.set(all, this.newest = this.values(d));
        this.seen = { x0: -Infinity, x1: Infinity, ns: (m.end - this.begin) / 2048, first: 0, last: Infinity };
    }

    get detail(): Rows { return this.finer ?? this.rows; }

    private values(d: Data): Float64Array {
        const out = new Float64Array(this.tree.nr), node = sums(d.f64('n.gap')), self = d.f64('n.self');

        node.forEach((n, i) => { out[n] = self[i]!; });
        return out;
    }

    // The path that the server is asked for sums; '': it has none for this selection.
    private path(sel: Selection): string {
        const t0 = Math.max(0, Math.floor(sel.t0 - this.begin)), t1 = Math.ceil(sel.t1 - this.begin);
        const whole = !(sel.t1 > sel.t0), who = sel.thread < 0 ? 'all' : this.threads.get(sel.thread), on = sel.cpu < 0 ? 'all' : this.cpus.get(sel.cpu);

        return (!whole && t1 <= t0) || who === undefined || on === undefined ? '' : `${whole ? '0/0' : `${t0}/${t1}`}/${who}/${on}`;
    }

    private keep(path: string, d: Data): void {
        this.known.set(path, this.values(d));
        if (this.known.size > keepSums) this.known.delete([...this.known.keys()].find((k) => k !== all)!);
    }

    // By the numbers of vCPUs or threads, the first ones of them: what each has. Those that are not here yet come later.
    places(sel: Selection, by: 'cpu' | 'thread'): Map<number, Float64Array> {
        const out = new Map<number, Float64Array>(), one = sel[by];
        const ids = one >= 0 ? [one] : [...(by === 'cpu' ? this.cpus : this.threads).keys()].filter((i) => i >= 0).sort((a, b) => a - b).slice(0, mostPlaces);
        const paths = ids.map((id) => this.path({ ...sel, [by]: id }));

        paths.forEach((path, i) => { const got = this.known.get(path); if (got) out.set(ids[i]!, this.less(got, { ...sel, [by]: ids[i]! })); });
        this.missing = [...new Set([...paths.filter((path) => path !== '' && !this.known.has(path)), ...this.missing])].slice(0, 3 * mostPlaces);
        if (this.missing.length > 0 && !this.filling) void this.fill();
        return out;
    }

    private async fill(): Promise<void> {
        this.filling = true;
        try {
            for (let path = this.missing.shift(); path !== undefined; path = this.missing.shift()) {
                if (this.known.has(path)) continue;
                const d = await this.ask('sums/' + path);
                if (!d) return; // this page is over
                this.keep(path, d);
            }
            this.filling = false;
            this.m.changed?.();
        } catch {
            this.missing = []; // they stay unknown, until something else is looked at
            this.filling = false;
        }
    }

    // Waiting time is on no vCPU.
    private less(values: Float64Array, sel: Selection): Float64Array {
        return this.hasOff && (sel.on || sel.cpu >= 0) ? values.map((v, n) => (this.waits[n] ? 0 : v)) : values;
    }

    override self(sel: Selection): Float64Array { return this.less(this.sums(sel), sel); }

    // Until the answer is there, what was asked for before.
    private sums(sel: Selection): Float64Array {
        const path = this.path(sel), got = this.known.get(path);

        if (path === '') return new Float64Array(this.tree.nr);
        if (got) return this.newest = got;
        if (this.asked !== path) {
            this.asked = path;
            this.ask('sums/' + path).then((d) => {
                if (!d) return;
                this.keep(path, d);
                if (this.asked === path) this.m.changed?.();
            }).catch(() => { this.asked = ''; });
        }
        return this.newest;
    }

    private covers(l: Look): boolean {
        const s = this.seen;

        return l.x0 >= s.x0 && l.x1 <= s.x1 && l.first >= s.first && l.last <= s.last && l.ns >= s.ns * 0.99;
    }

    // `done` when there is more detail of these rows than before.
    look(x0: number, x1: number, px: number, first: number, last: number, done: () => void): void {
        const want = { x0: Math.max(x0, this.begin), x1: Math.min(x1, this.m.end), ns: (x1 - x0) / px, first, last, done };

        if (want.x1 <= want.x0 || this.covers(want)) return;
        this.wanted = want;
        void this.next();
    }

    private async next(): Promise<void> {
        const { wanted: w } = this;

        if (this.busy || !w) return;
        this.wanted = null;
        this.busy = true;
        try {
            // Half a screen more at each side, so that it can be panned.
            const wide = Math.max(1, w.x1 - w.x0), a = Math.max(this.begin, w.x0 - wide / 2), b = Math.min(this.m.end, w.x1 + wide / 2);
            const t0 = Math.floor(a - this.begin), t1 = Math.max(t0 + 1, Math.ceil(b - this.begin));
            const px = Math.min(mostPixels, Math.max(1, Math.ceil((t1 - t0) / w.ns)));
            const d = await this.ask(`rows/${t0}/${t1}/${px}/${w.first}/${Math.min(512, w.last - w.first + 1)}`);
            if (d) {
                this.take(d, w.first);
                this.seen = { x0: a, x1: b, ns: Math.max(w.ns, (t1 - t0) / px), first: w.first, last: w.first + 511 };
                this.seen.last = Math.min(w.last, this.seen.last);
                w.done();
            }
        } catch {
            // It stays coarse; the next move asks again.
        }
        this.busy = false;
        void this.next();
    }

    private take(d: Data, at: number): void {
        const nr = d.u32('r.nr'), start = d.f64('c.gap'), dur = d.f64('c.dur'), id = d.u32('c.node'), count = d.u32('c.nr');
        const base = this.rows, first = new Uint32Array(base.nr + 1), from = new Uint32Array(nr.length + 1);

        for (let r = 0; r < nr.length; r++) {
            from[r + 1] = from[r]! + nr[r]!;
            for (let i = from[r]!, t = this.begin; i < from[r + 1]!; i++) {
                start[i]! += t;
                t = start[i]! + dur[i]!;
            }
        }
        const inside = (r: number): boolean => r >= at && r < at + nr.length;
        for (let r = 0; r < base.nr; r++) first[r + 1] = first[r]! + (inside(r) ? nr[r - at]! : base.first[r + 1]! - base.first[r]!);
        const n = first[base.nr]!, out = { nr: base.nr, first, start: new Float64Array(n), dur: new Float64Array(n), id: new Uint32Array(n), count: new Uint32Array(n) };
        for (let r = 0; r < base.nr; r++) {
            const s = inside(r) ? { start, dur, id, count } : { ...base, count: base.count! };
            const [a, b] = inside(r) ? [from[r - at]!, from[r - at + 1]!] : [base.first[r]!, base.first[r + 1]!];
            out.start.set(s.start.subarray(a, b), first[r]!);
            out.dur.set(s.dur.subarray(a, b), first[r]!);
            out.id.set(s.id.subarray(a, b), first[r]!);
            out.count.set(s.count.subarray(a, b), first[r]!);
        }
        this.finer = out;
    }
}

// The model, with calls that are asked for where they were not sent whole.
export function withParts(m: Model, ask: Ask): Model {
    if (m.spans && m.data.head.calls?.outline) {
        const i = m.sources.indexOf(m.spans);
        m.sources[i] = m.spans = new Parts(m.spans, m, ask);
    }
    return m;
}
