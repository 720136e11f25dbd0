// SPDX-License-Identifier: BSD-2-Clause
// The recorded values: each has a time, a vCPU, a thread and a node of a call tree. Times are
// nanoseconds since the page's beginning.
import { sums, type Data } from './data';
import type { Rows } from './rows';
import { idText } from './promises';
import { Funcs, Tree } from './tree';

// -1: all; t1 0: no range; on: without idle, stolen and waiting time.
export interface Selection { t0: number; t1: number; cpu: number; thread: number; on: boolean }

export interface Source {
    key: string;
    title: string;
    unit: string;
    tree: Tree;
    timed: boolean;
    second?: Float64Array;
    sure?: Int8Array; // by function, of a comparison: what is known to take more (1) or less (-1)
    // Value that ended at each node.
    self(sel: Selection): Float64Array;
    hasOff: boolean;
    outline?: boolean; // each() tells of what shares a pixel as if it were one
    places?(sel: Selection, by: 'cpu' | 'thread'): Map<number, Float64Array>; // of an outline, by vCPU or thread
    // Calls fn for each value; if `outer`, of calls only those without a caller. dur 0: a moment.
    each(sel: Selection, fn: (t: number, dur: number, v: number, node: number, cpu: number, thread: number) => void, outer?: boolean): void;
}

export function lowerBound(a: Float64Array, v: number, from = 0, to = a.length): number {
    while (from < to) {
        const mid = (from + to) >>> 1;
        if (a[mid]! < v) from = mid + 1;
        else to = mid;
    }
    return from;
}

// Names with numbers, in the order in which they came.
export class Names {
    readonly list: string[] = [];
    private known = new Map<string, number>();

    id(name: string): number {
        let i = this.known.get(name);

        if (i === undefined) {
            i = this.list.length;
            this.known.set(name, i);
            this.list.push(name);
        }
        return i;
    }
}

export class Points implements Source {
    timed = true;
    hasOff = false;
    period = 0; // of samples: one of weight 3 stands for three periods, which end with it
    tree: Tree;
    private off: Uint8Array;
    key = ''; title = ''; unit = '';
    private longest = -1; // of what the samples stand for
    constructor(tree: Tree, readonly time: Float64Array, readonly node: Uint32Array, readonly weight: ArrayLike<number>,
        readonly cpu: Int32Array, readonly thread: Int32Array) {
        this.tree = tree;
        this.off = offCpu(tree);
        this.hasOff = this.off.includes(1);
    }

    named(key: string, title: string, unit: string): this {
        return Object.assign(this, { key, title, unit });
    }

    // Also what ends later and began in the range.
    private span(sel: Selection): [number, number] {
        if (!(sel.t1 > sel.t0)) return [0, this.time.length];
        if (this.longest < 0) {
            this.longest = 0;
            for (let i = 0; i < this.time.length; i++) this.longest = Math.max(this.longest, this.durOf(i));
        }
        return [lowerBound(this.time, sel.t0), lowerBound(this.time, sel.t1 + this.longest)];
    }

    durOf(i: number): number {
        return this.weight[i]! > 1 ? this.weight[i]! * this.period : 0;
    }

    // How much of it is in the range.
    private share(i: number, sel: Selection): number {
        const dur = this.durOf(i), end = this.time[i]!;

        if (!(sel.t1 > sel.t0)) return 1;
        return dur > 0 ? Math.max(0, Math.min(end, sel.t1) - Math.max(end - dur, sel.t0 > 0 ? sel.t0 : -Infinity)) / dur : end < sel.t1 ? 1 : 0;
    }

    self(sel: Selection): Float64Array {
        const out = new Float64Array(this.tree.nr);
        const [from, to] = this.span(sel);
        const { node, weight, cpu, thread, off } = this;

        for (let i = from; i < to; i++)
            if ((sel.cpu < 0 || cpu[i] === sel.cpu) && (sel.thread < 0 || thread[i] === sel.thread) && !(sel.on && off[node[i]!]))
                out[node[i]!]! += weight[i]! * this.share(i, sel);
        return out;
    }

    each(sel: Selection, fn: Parameters<Source['each']>[1]): void {
        const [from, to] = this.span(sel);
        const { time, node, weight, cpu, thread, off } = this, ranged = sel.t1 > sel.t0;

        for (let i = from; i < to; i++) {
            if ((sel.cpu >= 0 && cpu[i] !== sel.cpu) || (sel.thread >= 0 && thread[i] !== sel.thread) || (sel.on && off[node[i]!])) continue;
            const dur = this.durOf(i), part = this.share(i, sel);
            if (part === 0) continue;
            const a = Math.max(0, time[i]! - dur, ranged ? sel.t0 : 0), b = dur > 0 && ranged ? Math.min(time[i]!, sel.t1) : time[i]!;
            fn(a, dur > 0 ? b - a : 0, weight[i]! * part, node[i]!, cpu[i]!, thread[i]!);
        }
    }
}

// Nodes that are not the guest's time on a CPU.
function offCpu(tree: Tree): Uint8Array {
    return Uint8Array.from(tree.func, (f) => (/^\[(idle|sleeping|blocked|ready|stolen|kvm|vmm|waiting)\]/.test(tree.funcs.name(f)) ? 1 : 0));
}

// Calls: rows of one thread and depth each, which hold them in order. In an outline, a row is also of one vCPU.
export class Spans implements Source {
    key = 'calls'; title = 'Calls'; unit = 'ns'; timed = true; hasOff = false;
    outline = false;
    protected waits: Uint8Array; // by node
    private made: Rows | null = null;
    // rows: made when somebody looks at them.
    constructor(readonly tree: Tree, private make: () => Rows, readonly rowThread: Int32Array, readonly rowDepth: Uint32Array,
        readonly cpu: Uint32Array, readonly off: Float64Array, readonly rowCpu: Uint32Array) {
        this.waits = offCpu(tree);
        this.hasOff = this.waits.includes(1);
        for (let i = 0; i < off.length && !this.hasOff; i++) this.hasOff = off[i]! > 0;
    }

    get rows(): Rows { return this.made ??= this.make(); }

    // Is any call of a row on that vCPU?
    isOn(row: number, cpu: number): boolean {
        return this.rowCpu.length > 0 ? this.rowCpu[row] === cpu : this.cpu.subarray(this.rows.first[row]!, this.rows.first[row + 1]!).includes(cpu);
    }

    // A call's time in the range, less that of the calls in it.
    self(sel: Selection): Float64Array {
        const out = new Float64Array(this.tree.nr);
        const parent = this.tree.parent;

        this.each(sel, (_t, dur, v, node) => {
            out[node]! += v;
            if (node !== 0 && parent[node] !== 0) out[parent[node]!]! -= dur;
        });
        for (let i = 0; i < out.length; i++) if (out[i]! < 0) out[i] = 0;
        return out;
    }

    each(sel: Selection, fn: Parameters<Source['each']>[1], outer = false): void {
        const { first, start, dur, id } = this.rows;
        const whole = !(sel.t1 > sel.t0);

        for (let r = 0; r < this.rows.nr; r++) {
            const thread = this.rowThread[r]!;
            const on = this.rowCpu[r];
            if ((sel.thread >= 0 && thread !== sel.thread) || (sel.cpu >= 0 && on !== undefined && on !== sel.cpu) || (outer && this.rowDepth[r] !== 0)) continue;
            let i = first[r]!;
            const end = first[r + 1]!;
            if (!whole) i = Math.max(i, lowerBound(start, sel.t0, i, end) - 1);
            for (; i < end && (whole || start[i]! < sel.t1); i++) {
                if (sel.cpu >= 0 && on === undefined && this.cpu[i] !== sel.cpu) continue;
                const a = whole ? start[i]! : Math.max(start[i]!, sel.t0);
                const b = whole ? start[i]! + dur[i]! : Math.min(start[i]! + dur[i]!, sel.t1);
                if (b < a) continue;
                // Waiting time is on no vCPU. The rest of the time off CPU may be anywhere in the call.
                const away = (sel.on || sel.cpu >= 0) && this.waits[id[i]!] ? b - a : sel.on && this.off[i]! > 0 && dur[i]! > 0 ? this.off[i]! * (b - a) / dur[i]! : 0;
                fn(a, b - a, b - a - away, id[i]!, on ?? this.cpu[i]!, thread);
            }
        }
    }
}

class Fixed implements Source {
    key = 'samples'; title = 'Stacks'; timed = false; hasOff = false;
    constructor(readonly tree: Tree, readonly unit: string, private values: Float64Array, readonly second?: Float64Array, readonly sure?: Int8Array) {}
    self(): Float64Array {
        return this.values;
    }
    each(): void {}
}

export interface ExitColumns { host: Float64Array; asleep: Float64Array; stolen: Float64Array; user: Uint32Array }

export interface Model {
    data: Data;
    funcs: Funcs;
    sources: Source[];
    cpus: Names;
    threads: Names;
    begin: bigint; // of the page's time, host's clock
    end: number;   // ns since then
    callers: { name: string; number: string; thread: number }[]; // threads that made calls, as the trace has them
    exits?: Points & { columns: ExitColumns };
    spans?: Spans;
    samples?: Points;
    changed?: () => void; // what a source says now is other than before
    beside?: Model; // another trace, whose timeline goes beside this one; its functions are this one's
}

function tree(d: Data, prefix: string, funcs: Funcs, frames: Uint32Array): Tree {
    const up = d.u32(prefix + '.parent'), frame = d.u32(prefix + '.frame');
    const parent = new Uint32Array(up.length + 1), func = new Uint32Array(up.length + 1);

    for (let i = 0; i < up.length; i++) {
        parent[i + 1] = Math.max(0, i - up[i]!);
        func[i + 1] = frames[frame[i]!] ?? 0;
    }
    return new Tree(parent, func, funcs);
}

function cpuOf(d: Data, prefix: string, m: Model): Int32Array {
    const vcpu = d.u32(prefix + '.vcpu'), guest = d.u32(prefix + '.guest');
    const guests = d.head.guests ?? [];
    const out = new Int32Array(vcpu.length);
    const known = new Map<number, number>();

    for (let i = 0; i < out.length; i++) {
        const key = guest[i]! * 65536 + vcpu[i]!;
        let id = known.get(key);
        if (id === undefined) {
            id = vcpu[i] === 0 ? -1 : m.cpus.id((guests.length > 1 ? guests[guest[i]!]!.name + ' ' : '') + 'vCPU ' + (vcpu[i]! - 1));
            known.set(key, id);
        }
        out[i] = id;
    }
    return out;
}

function threadOf(d: Data, m: Model, nr: number): Int32Array {
    const thread = d.u32('s.thread'), guest = d.u32('s.guest');
    const guests = d.head.guests ?? [];
    const out = new Int32Array(nr).fill(-1);
    const known = new Map<number, number>();

    for (let i = 0; i < nr; i++) {
        if (thread[i] === 0) continue;
        const key = guest[i]! * 65536 + thread[i]!;
        let id = known.get(key);
        if (id === undefined) {
            const g = guests[guest[i]!];
            id = m.threads.id((guests.length > 1 ? g?.name + ' ' : '') + (g?.threads[thread[i]!] ?? 'thread ' + thread[i]));
            known.set(key, id);
        }
        out[i] = id;
    }
    return out;
}

function sureOf(sure: number[], funcs: ArrayLike<number>, m: Model): Int8Array {
    const out = new Int8Array(m.funcs.list.length);

    sure.forEach((v, frame) => { if (v !== 0) out[funcs[frame]!] = v; });
    return out;
}

function addSamples(m: Model): void {
    const d = m.data, head = d.head.samples;

    if (!head) return;
    const funcs = m.funcs.add(head.frames);
    const t = tree(d, 's', m.funcs, funcs);
    const self = d.doubles('s.self');
    if (self) {
        m.sources.push(new Fixed(t, head.unit, self, d.doubles('s.self2') ?? undefined, d.head.diff && sureOf(d.head.diff.sure, funcs, m)));
    } else if (d.has('s.time')) {
        const time = sums(d.f64('s.time'), Number(BigInt(head.begin) - m.begin));
        m.samples = new Points(t, time, d.u32('s.node'), d.f64('s.weight'), cpuOf(d, 's', m), threadOf(d, m, time.length))
            .named('samples', 'Samples', head.unit);
        m.samples.timed = !d.head.aggregate;
        const hz = d.head.recording?.frequency_hz ?? 0;
        if (hz > 0 && !head.near_ns) m.samples.period = 1e9 / hz;
        m.sources.push(m.samples);
    }
}

function addExits(m: Model): void {
    const d = m.data, head = d.head.exits;

    if (!head || !d.has('x.time')) return;
    const t = tree(d, 'x', m.funcs, m.funcs.add(head.frames));
    const time = sums(d.f64('x.time'), Number(BigInt(head.begin) - m.begin));
    const node = d.u32('x.node'), cpu = cpuOf(d, 'x', m), none = new Int32Array(time.length).fill(-1);
    const columns = { host: d.f64('x.host'), asleep: d.f64('x.asleep'), stolen: d.f64('x.stolen'), user: d.u32('x.user') };
    const p = new Points(t, time, node, d.f64('x.weight'), cpu, none).named('exits', 'VM exits', 'exits');
    // A halt's sleep is nobody's cost.
    const cost = columns.host.map((v, i) => v - columns.stolen[i]! - (/^\[exit (hlt|wfi|halt)\b/.test(m.funcs.name(t.func[node[i]!]!)) ? columns.asleep[i]! : 0));
    m.exits = Object.assign(p, { columns });
    m.sources.push(p, new Points(t, time, node, cost, cpu, none).named('exit-time', 'Time of VM exits', 'ns'));
}

// A thread that the guest told of has its name there, under the same number.
function threadLabels(d: Data): Map<string, string> {
    const out = new Map<string, string>(), { low, high } = d.u64('p.id'), label = d.u32('p.label');
    const strings = d.head.promises?.strings ?? [], flags = d.u32('p.flags');

    // Only those that have a CPU can make calls.
    d.f64('p.run').forEach((run, i) => {
        const text = strings[label[i]!];

        if (run > 0 && text) out.set((BigInt(high[i]!) << 32n | BigInt(low[i]!)).toString(), flags[i]! & 4 ? `${text} ${idText(low[i]!, high[i]!)}` : text);
    });
    return out;
}

// first: of each row, and where the last one ends.
function rowsOf(d: Data, first: Uint32Array, begin: number): Rows {
    const start = d.f64('c.gap'), dur = d.f64('c.dur'), nr = first.length - 1;

    for (let r = 0; r < nr; r++)
        for (let i = first[r]!, at = begin; i < first[r + 1]!; i++) {
            start[i]! += at;
            at = start[i]! + dur[i]!;
        }
    return { nr, first, start, dur, id: d.u32('c.node'), ...(d.head.calls!.outline ? { count: d.u32('c.nr') } : {}) };
}

function addCalls(m: Model): void {
    const d = m.data, head = d.head.calls;

    if (!head || !d.has('c.gap')) return;
    const t = tree(d, 'c', m.funcs, m.funcs.add(head.frames));
    const begin = Number(BigInt(head.begin) - m.begin), on = d.u32('r.cpu');
    const nr = d.u32('r.nr'), thread = d.u32('r.thread');
    const first = new Uint32Array(nr.length + 1);
    for (let r = 0; r < nr.length; r++) first[r + 1] = first[r]! + nr[r]!;
    const cpus = d.u32('c.cpu'), onCpu = new Map<number, number>();
    for (let r = nr.length - 1; r >= 0; r--) if (nr[r]! > 0) onCpu.set(thread[r]!, cpus[first[r]!] ?? on[r]!);
    const idOf: number[] = [];
    for (let i = 0; i < cpus.length; i++) cpus[i] = idOf[cpus[i]!] ??= m.cpus.id('vCPU ' + cpus[i]);
    on.forEach((v, r) => { on[r] = idOf[v] ??= m.cpus.id('vCPU ' + v); });
    const labels = threadLabels(d);
    // If nothing tells threads apart, each CPU is one thread.
    const names = head.threads.map(([name, number], i) => name === 'tid' && number === '0' && onCpu.has(i) ? `on vCPU ${onCpu.get(i)}` : labels.get(number) ?? (name && name !== 'tid' ? name + (number === '0' ? '' : ' ' + number)
        : 'thread ' + (BigInt(number) > 65535n ? '0x' + BigInt(number).toString(16) : number)));
    names.forEach((name, i) => { if (names.indexOf(name) < i) names[i] = `${name} (${i})`; });
    const rowThread = Int32Array.from(thread, (x) => m.threads.id(names[x] ?? 'thread ' + x));
    for (const x of new Set(thread)) {
        const [name, number] = head.threads[x] ?? ['', ''];
        m.callers.push({ name, number, thread: m.threads.id(names[x] ?? 'thread ' + x) });
    }
    m.spans = new Spans(t, () => rowsOf(d, first, begin), rowThread, d.u32('r.depth'), cpus, d.f64('c.off'), on);
    m.sources.push(m.spans);
}

export function model(data: Data, funcs = new Funcs()): Model {
    const h = data.head;
    const begins = [h.samples && data.has('s.time') ? h.samples.begin : '0', h.exits?.begin, h.calls?.begin, h.promises?.begin]
        .map((s) => BigInt(s ?? '0')).filter((v) => v > 0n);
    const m: Model = { data, funcs, sources: [], cpus: new Names(), threads: new Names(), callers: [], begin: begins.length ? begins.reduce((a, b) => (a < b ? a : b)) : 0n, end: 0 };

    addSamples(m);
    addCalls(m);
    addExits(m);
    for (const s of [m.samples, m.exits]) if (s?.time.length) m.end = Math.max(m.end, s.time[s.time.length - 1]! + 1);
    if (m.spans && h.calls!.end) m.end = Math.max(m.end, Number(BigInt(h.calls!.end) - m.begin));
    else if (m.spans) {
        // The last call of a row also ends last.
        const { start, dur, first } = m.spans.rows;
        for (let r = 1; r < first.length; r++) {
            const i = first[r]! - 1;
            if (i >= first[r - 1]!) m.end = Math.max(m.end, start[i]! + dur[i]!);
        }
    }
    if (h.promises) m.end = Math.max(m.end, Number(BigInt(h.promises.begin) - m.begin) + h.promises.duration);
    return m;
}
