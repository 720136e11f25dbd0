// SPDX-License-Identifier: BSD-2-Clause
// Threads and promises as the page has them, and where each is drawn. Times are the page's.
import { sums, type Finding, type PromisesHead } from './data';
import type { Rows } from './rows';
import type { Model } from './source';

export const NONE = 0xffffffff;
export const fates = ['open', 'resolved', 'failed', 'became'];
export enum Fate { Open, Resolved, Failed, Became }

export interface Wait { on: number; waker: number; begin: number; ready: number; end: number } // -1: never
export interface Counter { name: string; time: number[]; value: number[] }
export interface Band { begin: number; end: number; gc: boolean }

export function idText(low: number, high: number): string {
    return high === 0 && low < 65536 ? String(low) : '0x' + (high ? high.toString(16) + low.toString(16).padStart(8, '0') : low.toString(16));
}

// Nothing is found. That proves nothing where something is not known.
export function allClear(p: { fate: ArrayLike<number>; doubts: unknown[] }, head: PromisesHead): string {
    const failed = Array.from(p.fate).filter((f) => f === Fate.Failed).length, unknown = [...(head.unknown ?? [])];

    if (!head.unknown && head.begin_known === false) unknown.push('what waited already when it began, and for what');
    if (!head.unknown && head.lost > 0) unknown.push('what the missing events told');
    const fate = failed > 0 ? `${failed} ${failed === 1 ? 'promise' : 'promises'} failed (red). ` : '';
    if (unknown.length > 0) return fate + 'No finding in what is known. Not known: ' + unknown.join('; ') + '.';
    if (p.doubts.length > 0) return fate + 'No certain finding.';
    return (failed > 0 ? fate.slice(0, -2) + '; else nothing' : 'Nothing') + ' is wrong with the threads of this trace, as far as it tells.';
}

// Events between two promises: arrows, creations, and one becoming another.
export interface Edges { nr: number; time: Float64Array; from: Uint32Array; to: Uint32Array; kind: Uint8Array }

export class Promises {
    nr: number;
    id: { low: Uint32Array; high: Uint32Array }; type: Uint32Array; fate: Uint32Array;
    begin: Float64Array; end: Float64Array; run: Float64Array; wait: Float64Array;
    creator: Uint32Array; resolver: Uint32Array; other: Uint32Array;
    unresolved: Uint8Array; // should have been, and is not
    stuck: Uint8Array;      // what a finding is about
    edges: Edges;
    bands: Band[] = [];
    counters: Counter[] = [];
    findings: Finding[];
    doubts: Finding[];
    first: number;
    last: number;
    kinds: string[];
    runs: { who: Uint32Array; begin: Float64Array; dur: Float64Array };
    private label: Uint32Array;
    private shares: Uint8Array; // its label, with another one
    private failure: Uint32Array;
    private strings: string[];
    private types: string[];
    private labelTimes: Map<number, [number, string][]> = new Map();
    private waitsOf: Map<number, number[]> | null = null;
    private waitColumns: { who: Uint32Array; on: Uint32Array; waker: Uint32Array; begin: Float64Array; ready: Float64Array; end: Float64Array };

    constructor(m: Model) {
        const d = m.data, h = d.head.promises!;
        const zero = Number(BigInt(h.begin) - m.begin);
        const shift = (a: Float64Array): Float64Array => { for (let i = 0; i < a.length; i++) a[i]! += zero; return a; };
        const index = (name: string): Uint32Array => d.u32(name).map((v) => v - 1); // 0 becomes NONE

        this.first = zero;
        this.last = zero + h.duration;
        this.kinds = [...h.kinds, 'create', 'become'];
        this.strings = h.strings;
        this.types = h.types;
        this.findings = h.findings;
        this.doubts = h.doubts ?? [];
        this.id = d.u64('p.id');
        this.nr = this.id.low.length;
        this.type = d.u32('p.type');
        this.fate = d.u32('p.fate');
        this.begin = shift(d.f64('p.begin'));
        this.end = d.f64('p.life');
        this.run = d.f64('p.run');
        this.wait = d.f64('p.wait');
        [this.creator, this.resolver, this.other] = [index('p.creator'), index('p.resolver'), index('p.other')];
        [this.label, this.failure] = [d.u32('p.label'), d.u32('p.failure')];
        this.unresolved = new Uint8Array(this.nr);
        this.stuck = new Uint8Array(this.nr);
        this.shares = new Uint8Array(this.nr);
        const flags = d.u32('p.flags');
        for (let i = 0; i < this.nr; i++) {
            this.end[i]! += this.begin[i]!;
            this.shares[i] = flags[i]! & 4;
            if (this.fate[i] === Fate.Open && (flags[i]! & 2) !== 0) this.unresolved[i] = 1;
            // Nothing happens to what is open any more: probably it is garbage.
            if (this.fate[i] === Fate.Open) this.end[i] = this.unresolved[i] ? this.last : Math.min(this.last, this.end[i]! + 1000);
        }
        for (const f of h.findings) {
            if (f.kind === 'starved' || f.who === 0) continue;
            this.stuck[f.who - 1] = 1;
            this.end[f.who - 1] = this.last;
        }
        this.runs = { who: d.u32('run.who'), begin: shift(sums(d.signed('run.begin'))), dur: d.f64('run.dur') };
        this.waitColumns = { who: d.u32('wait.who'), on: d.u32('wait.on'), waker: index('wait.waker'), begin: shift(d.f64('wait.begin')),
            ready: shift(d.f64('wait.ready')), end: shift(d.f64('wait.end')) };
        const gc = h.kinds.indexOf('gc'), pauseKind = d.u32('pause.kind'), pauseBegin = shift(d.f64('pause.begin')), pauseDur = d.f64('pause.dur');
        pauseKind.forEach((k, i) => this.bands.push({ begin: pauseBegin[i]!, end: pauseBegin[i]! + pauseDur[i]!, gc: k === gc }));
        this.edges = this.gather(d.u32('edge.kind'), index('edge.from'), index('edge.to'), shift(d.f64('edge.time')), h.kinds.length);
        this.gatherLabels(d.u32('label.who'), shift(d.f64('label.time')), d.u32('label.text'));
        const what = d.u32('count.what'), at = shift(d.f64('count.time')), value = d.signed('count.value');
        const byName = new Map<number, Counter>();
        what.forEach((w, i) => {
            let c = byName.get(w);
            if (!c) byName.set(w, c = { name: this.strings[w] ?? '?', time: [], value: [] });
            c.time.push(at[i]!);
            c.value.push(value[i]!);
        });
        this.counters = [...byName.values()];
    }

    private gather(kind: Uint32Array, from: Uint32Array, to: Uint32Array, time: Float64Array, create: number): Edges {
        const more: number[] = [];

        for (let i = 0; i < this.nr; i++) {
            if (this.creator[i]! !== NONE) more.push(i);
            if (this.other[i]! !== NONE) more.push(i + this.nr);
        }
        const nr = kind.length + more.length;
        const t = new Float64Array(nr), order = new Uint32Array(nr);
        t.set(time);
        more.forEach((m, k) => { t[kind.length + k] = m < this.nr ? this.begin[m]! : this.end[m - this.nr]!; });
        for (let i = 0; i < nr; i++) order[i] = i;
        order.sort((a, b) => t[a]! - t[b]!);
        const e: Edges = { nr, time: new Float64Array(nr), from: new Uint32Array(nr), to: new Uint32Array(nr), kind: new Uint8Array(nr) };
        order.forEach((o, i) => {
            const m = more[o - kind.length];
            e.time[i] = t[o]!;
            if (m === undefined) [e.from[i], e.to[i], e.kind[i]] = [from[o]!, to[o]!, kind[o]!];
            else if (m < this.nr) [e.from[i], e.to[i], e.kind[i]] = [this.creator[m]!, m, create];
            else [e.from[i], e.to[i], e.kind[i]] = [m - this.nr, this.other[m - this.nr]!, create + 1];
        });
        return e;
    }

    private gatherLabels(who: Uint32Array, time: Float64Array, text: Uint32Array): void {
        who.forEach((w, i) => {
            let list = this.labelTimes.get(w);
            if (!list) this.labelTimes.set(w, list = []);
            list.push([time[i]!, this.strings[text[i]!] ?? '']);
        });
    }

    typeName(p: number): string { return this.types[this.type[p]!] ?? '?'; }
    labels(p: number): [number, string][] { return this.labelTimes.get(p) ?? []; }
    failed(p: number): string { return this.strings[this.failure[p]!] ?? ''; }

    name(p: number): string {
        if (p === NONE) return 'nobody';
        const label = this.strings[this.label[p]!];

        if (label) return this.shares[p] ? `${label} ${idText(this.id.low[p]!, this.id.high[p]!)}` : label;
        return `${this.typeName(p)} ${idText(this.id.low[p]!, this.id.high[p]!)}`;
    }

    waits(p: number): Wait[] {
        const w = this.waitColumns, never = this.first;

        if (this.waitsOf === null) {
            this.waitsOf = new Map();
            w.who.forEach((x, i) => { const l = this.waitsOf!.get(x); if (l) l.push(i); else this.waitsOf!.set(x, [i]); });
        }
        return (this.waitsOf.get(p) ?? []).map((i) => ({ on: w.on[i]!, waker: w.waker[i]!, begin: w.begin[i]!,
            ready: w.ready[i] === never ? -1 : w.ready[i]! - 1, end: w.end[i] === never ? -1 : w.end[i]! - 1 }));
    }

    // All promises that became p, or that p became.
    chain(p: number): Set<number> {
        const out = new Set<number>([p]), todo = [p];

        while (todo.length > 0) {
            const x = todo.pop()!;
            const next = this.other[x]! !== NONE ? [this.other[x]!] : [];
            for (let i = 0; i < this.nr; i++) if (this.other[i] === x) next.push(i);
            for (const n of next) if (!out.has(n)) { out.add(n); todo.push(n); }
        }
        return out;
    }
}

// First row at or below `from` that is free at a time: a tree of the earliest end in each half.
class FreeRows {
    private size: number;
    private end: Float64Array;

    constructor(nr: number) {
        this.size = 1;
        while (this.size < nr) this.size *= 2;
        this.end = new Float64Array(2 * this.size).fill(-Infinity);
    }

    // -1: none above `limit`.
    take(from: number, at: number, until: number, limit: number): number {
        let i = Math.min(from, this.size - 1) + this.size;

        // Up to a half that has one, then down to it.
        while (this.end[i]! > at) {
            while ((i & 1) === 1 && i > 1) i >>= 1;
            if (i <= 1) return -1;
            i++;
        }
        while (i < this.size) i = this.end[2 * i]! <= at ? 2 * i : 2 * i + 1;
        const row = i - this.size;
        if (row >= limit) return -1;
        this.end[i] = until;
        for (i >>= 1; i >= 1; i >>= 1) this.end[i] = Math.min(this.end[2 * i]!, this.end[2 * i + 1]!);
        return row;
    }

    extend(row: number, until: number): void {
        let i = row + this.size;

        this.end[i] = Math.max(this.end[i]!, until);
        for (i >>= 1; i >= 1; i >>= 1) this.end[i] = Math.min(this.end[2 * i]!, this.end[2 * i + 1]!);
    }

    ends(row: number): number { return this.end[row + this.size]!; }
}

export interface Places { row: Int32Array; nrRows: number; lives: Rows; runs: Rows } // row -1: not shown

function rowsOf(nrRows: number, row: (i: number) => number, start: ArrayLike<number>, dur: (i: number) => number, ids: (i: number) => number, order: ArrayLike<number>): Rows {
    const first = new Uint32Array(nrRows + 1);
    let nr = 0;

    for (let k = 0; k < order.length; k++) if (row(order[k]!) >= 0) { first[row(order[k]!) + 1]!++; nr++; }
    for (let r = 0; r < nrRows; r++) first[r + 1]! += first[r]!;
    const next = first.slice(), out: Rows = { nr: nrRows, first, start: new Float64Array(nr), dur: new Float64Array(nr), id: new Uint32Array(nr) };
    for (let k = 0; k < order.length; k++) {
        const i = order[k]!, r = row(i);
        if (r < 0) continue;
        const at = next[r]!++;
        out.start[at] = start[i]!;
        out.dur[at] = dur(i);
        out.id[at] = ids(i);
    }
    return out;
}

// How many live at once, at most.
function atOnce(p: Promises, order: Uint32Array, slack: number): number {
    const ends = p.end.map((e) => e + slack).sort();
    let most = 0, ended = 0;

    order.forEach((i, k) => {
        while (ended < ends.length && ends[ended]! <= p.begin[i]!) ended++;
        most = Math.max(most, k + 1 - ended);
    });
    return most;
}

// Below who made it, in the first row that is free by then; what became another may share its row.
// Grouped: first those that ran or are stuck, who are few and matter most.
export function place(p: Promises, shown: (i: number) => boolean, grouped: boolean): Places {
    const matters = (i: number): number => (!grouped || p.run[i]! > 0 || p.unresolved[i] || p.stuck[i] ? 0 : 1);
    const order = new Uint32Array(p.nr).map((_, i) => i).sort((a, b) => matters(a) - matters(b) || p.begin[a]! - p.begin[b]! || a - b);
    const free = new FreeRows(Math.max(1, 2 * p.nr));
    const row = new Int32Array(p.nr).fill(-1);
    const slack = (p.last - p.first) / 2000; // so that neighbours can be told apart
    // Where each makes the next, all below the other would be a stairway without end.
    const limit = 2 * atOnce(p, order.slice().sort((a, b) => p.begin[a]! - p.begin[b]!), slack) + 16;
    let nrRows = 0, floor = 0, group = 0;

    for (const i of order) {
        if (!shown(i)) continue;
        if (matters(i) !== group) { group = 1; floor = nrRows; }
        const up = p.creator[i]! !== NONE ? row[p.creator[i]!]! : -1;
        // A promise that its creator becomes takes over its row.
        const heir = p.creator[i]! !== NONE && p.other[p.creator[i]!] === i && up >= 0 && up >= floor && free.ends(up) <= p.begin[i]! + slack;
        if (heir) { row[i] = up; free.extend(up, p.end[i]! + slack); }
        else row[i] = free.take(Math.max(floor, up + 1), p.begin[i]!, p.end[i]! + slack, floor + limit);
        if (row[i]! < 0) row[i] = free.take(floor, p.begin[i]!, p.end[i]! + slack, p.nr + 1);
        nrRows = Math.max(nrRows, row[i]! + 1);
    }
    const { who, begin, dur } = p.runs;
    order.sort((a, b) => p.begin[a]! - p.begin[b]! || a - b);
    const runOrder = new Uint32Array(who.length).map((_, i) => i);
    runOrder.sort((a, b) => begin[a]! - begin[b]!);
    return { row, nrRows, lives: rowsOf(nrRows, (i) => row[i]!, p.begin, (i) => Math.max(0, p.end[i]! - p.begin[i]!), (i) => i, order),
        runs: rowsOf(nrRows, (i) => row[who[i]!]!, begin, (i) => dur[i]!, (i) => who[i]!, runOrder) };
}
