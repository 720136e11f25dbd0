// SPDX-License-Identifier: BSD-2-Clause
// Timeline of threads and promises: the lines, what was found wrong, and the one that was chosen.
import { type App, type Change, type View } from './app';
import { button, download, fill, h } from './dom';
import { counterColours } from './counters';
import { Lines } from './lines';
import { theme } from './plot';
import { allClear, Fate, NONE, Promises } from './promises';
import type { Finding } from './data';
import type { Model } from './source';
import { finder } from './search';
import { moment, time } from './text';
import { Tip } from './tip';
import { tracks } from './tracks';

const words: Record<string, string> = { lost_wakeup: 'Lost wake-up', unresolved: 'Never resolved', deadlock: 'Deadlock', starved: 'Starved', never_given_back: 'Never given back' };
const inDoubt: Record<string, string> = { lost_wakeup: 'missed a wake-up, or has nothing to do', starved: 'starved by a thread, or the host took the CPU meanwhile', deadlock: 'a deadlock, or has given up', never_given_back: 'waits for ever, or has given up' };
const DOUBTS = 5; // of a kind that are told

export class Timeline implements View {
    root: HTMLElement;
    plot: Lines;
    p: Promises;
    private bar = h('div', { class: 'bar' });
    private side = h('div', { class: 'card inner' });
    private live = h('div', { role: 'status', class: 'quiet' });
    private found: number[] = [];
    private history: number[] = [];
    onMove?: (x0: number, x1: number) => void; // what is seen, at each step
    onChoose?: (q: number) => void;
    name = ''; // where there are several
    private chosen = -1; // of the page's threads
    private of = NONE;    // who that is here
    private many: boolean;

    constructor(private app: App, tip: Tip, readonly m: Model = app.model) {
        this.p = new Promises(m);
        this.plot = new Lines(this.p, tracks(app, m, this.p));
        this.plot.onPick = (q) => this.choose(q);
        this.plot.onChain = (q) => { this.plot.lit = this.p.chain(q); this.choose(q); };
        this.plot.onHover = (x, y, lines) => { if (lines) tip.show(this.plot.canvas, x, y, lines); else tip.hide(); };
        this.many = this.plot.places.nrRows > 400;
        this.plot.onCall = (i) => app.setFunc(this.plot.tracks!.funcOf(i));
        this.plot.onMove = (x0, x1) => this.moved(x0, x1);
        this.plot.onRange = (x0, x1) => app.set({ z0: x0, z1: x1 }, 'zoom');
        this.root = h('section', { class: 'view' }, this.bar, h('div', { class: 'body' }, h('div', { class: 'view' }, this.plot.canvas), this.side), this.live);
    }

    // An option in the address. The second of two timelines has names of its own.
    private opt(key: string): string { return this.app.opt(this.own ? key : key + '2'); }
    private turn(key: string): void {
        this.app.setOpt(this.own ? key : key + '2', this.opt(key) ? '' : '1');
        this.take();
        this.toolbar();
    }

    private get only(): boolean { return this.opt('only') === '1'; }

    // As the options say.
    private take(): void {
        const { plot } = this, grouped = this.opt('mixed') !== '1', hidden = new Set(this.opt('nocount').split('\n'));

        plot.fisheye = (this.opt('eye') === '1') !== this.many;
        plot.showCalls = this.opt('nocalls') !== '1';
        plot.hiddenCounters = new Set(this.p.counters.map((c) => c.name).filter((x) => hidden.has(x)));
        plot.grouped = grouped;
        this.pack();
    }

    private get own(): boolean { return this.m === this.app.model; }

    private moved(x0: number, x1: number): void {
        this.plot.tracks?.look(x0, x1, this.plot.w, () => this.plot.redraw());
        this.onMove?.(x0, x1);
    }

    open(): void {
        const { z0, z1, who } = this.app.state;

        this.take();
        this.search();
        if (z1 > z0) this.plot.jump(z0, z1);
        if (this.plot.selected === NONE && this.own && who >= 0 && who < this.p.nr) this.plot.selected = who;
        this.panel();
        this.plot.resize();
    }

    update(c: Change): void {
        const { t0, t1 } = this.app.state;

        if (c === 'data' && t1 > t0) this.plot.jump(t0, t1);
        if (c === 'data' && this.app.state.thread !== this.chosen) {
            this.pack();
            this.toolbar();
        }
        if (c === 'search') this.search();
        this.plot.redraw();
    }

    private search(): void {
        const { search, ignoreCase } = this.app.state;
        const re = search === '' ? null : finder(search, ignoreCase);

        this.found = [];
        if (re) for (let i = 0; i < this.p.nr; i++) if (re.test(this.p.name(i)) || re.test(this.p.typeName(i))) this.found.push(i);
        this.plot.lit = new Set(this.found);
        if (this.only) this.pack();
        this.toolbar();
        this.plot.redraw();
    }

    // Chooses the promises to show: those that the chosen thread made, or those that match. Their creators are shown as well, so
    // that one sees where they come from.
    private pack(): void {
        const { p, plot } = this, only = this.only && this.found.length > 0, matches = new Set(this.found);
        const keep = new Set<number>();

        this.chosen = this.app.state.thread;
        this.of = this.own && this.chosen >= 0 ? plot.tracks?.ofThread(this.chosen) ?? NONE : NONE;
        const some = only || this.of !== NONE, made = some ? this.made() : null;
        for (let q = 0; q < p.nr && made; q++)
            if ((!only || matches.has(q)) && made[q] === 1) for (let up = q; up !== NONE && !keep.has(up); up = p.creator[up]!) keep.add(up);
        if (some) plot.pack((q) => keep.has(q), false);
        else plot.pack(() => true, true);
        plot.keepInSight(plot.selected);
    }

    // 1: `of` itself, or made by it, directly or through promises of no other thread; else 2.
    private made(): Uint8Array {
        const { p } = this, out = new Uint8Array(p.nr).fill(this.of === NONE ? 1 : 0);

        for (let q = 0; q < p.nr && this.of !== NONE; q++) if (p.run[q]! > 0 || p.typeName(q) === 'thread') out[q] = 2;
        if (this.of !== NONE) out[this.of] = 1;
        for (let q = 0; q < p.nr; q++) {
            const way: number[] = [];
            let up = q;
            for (; up !== NONE && out[up] === 0; up = p.creator[up]!) {
                out[up] = 2;
                way.push(up);
            }
            if (up !== NONE && out[up] === 1) for (const x of way) out[x] = 1;
        }
        return out;
    }

    private toolbar(): void {
        const { p, plot } = this;

        fill(this.bar, this.name !== '' && h('b', { class: 'which', text: this.name }),
            button('Fit', 'Shows the whole trace (0)', () => plot.fit()),
            button('+', 'Zooms in (w)', () => plot.zoom(1 / 1.4)), button('−', 'Zooms out (s)', () => plot.zoom(1.4)),
            button('Fisheye', 'All rows at once, those around the chosen one large (z)', () => this.turn('eye'), plot.fisheye),
            this.found.length > 0 && button('Only matches', 'Hides all other threads but those that made them', () => this.turn('only'), this.only),
            button('Runners first', 'Those that ran or are stuck above all others; else all by who made them', () => this.turn('mixed'), plot.grouped),
            plot.tracks !== null && button('Calls', 'What each thread called, below its line', () => this.turn('nocalls'), plot.showCalls),
            button('Range', 'Makes what is seen the range of all views (m)', () => this.app.setRange(plot.x0, plot.x1)),
            button('Save SVG', 'What is seen, as a picture', () => download('timeline.svg', 'image/svg+xml', plot.svg(document.title, theme()))),
            ...p.counters.map((c, k) => {
                const b = button(c.name, 'Counter: shows or hides it', () => {
                    const hidden = plot.hiddenCounters;
                    if (!hidden.delete(c.name)) hidden.add(c.name);
                    this.app.setOpt(this.own ? 'nocount' : 'nocount2', [...hidden].join('\n'));
                    this.toolbar();
                    plot.redraw();
                }, !plot.hiddenCounters.has(c.name));
                b.prepend(h('i', { class: 'dot', style: { background: counterColours[k % 4]! } }));
                return b;
            }),
            h('span', { class: 'grow' }), h('span', { class: 'key' }, ...([['create', '#8a93a0'], ['read', '#2463d6'], ['resolve', '#14883b'], ['try', '#b3a012'], ['signal', '#f08a00'], ['failed, or stuck', '#cc0000']] as const)
                .flatMap(([text, colour]) => [h('i', { style: { background: colour } }), text])),
            this.chosen >= 0 && this.own && h('span', { class: 'dim', text: this.of !== NONE ? `${p.name(this.of)} and what it made` : 'the chosen thread is not told apart here' }),
            h('span', { class: 'found apart', text: this.found.length > 0 ? `${this.found.length} of ${p.nr}` : `${p.nr} thread${p.nr === 1 ? '' : 's'} in all` }));
    }

    choose(q: number, back = false): void {
        if (!back && q !== NONE && this.plot.selected !== NONE && this.plot.selected !== q) this.history.push(this.plot.selected);
        this.plot.selected = q;
        if (q === NONE) this.plot.lit = new Set(this.found);
        else {
            this.plot.reveal(q);
            this.live.textContent = this.plot.describe(q).join(', ');
        }
        this.panel();
        this.plot.redraw();
        if (this.own) this.app.set({ who: q === NONE ? -1 : q }, 'zoom');
        this.onChoose?.(q);
    }

    private link(q: number, before: string): HTMLElement | false {
        return q !== NONE && h('button', { class: 'line', type: 'button', click: () => this.choose(q) },
            h('span', { class: 'dim', text: before }), h('span', { class: 'name', text: this.p.name(q) }));
    }

    private panel(): void {
        const { p, plot } = this, q = plot.selected;
        const serious = p.findings.filter((f) => f.kind !== 'starved'), rest = p.findings.filter((f) => f.kind === 'starved');
        const one = (f: (typeof p.findings)[number]): HTMLElement => {
            const who = f.who - 1, other = f.other - 1, by = f.by - 1;
            return h('button', { class: 'finding' + (f.kind === 'starved' ? '' : ' bad'), type: 'button', click: () => this.show(f) },
                h('b', { text: words[f.kind] ?? f.kind }), h('span', { class: 'name', text: who >= 0 ? p.name(who) : '' }),
                h('span', { class: 'dim', text: f.kind === 'lost_wakeup' ? `waits for ${p.name(other)}${by >= 0 ? ', which ' + p.name(by) + ' had signalled before' : ''}; ${time(f.ns)} until the end`
                    : f.kind === 'unresolved' ? `should have been; open for ${time(f.ns)}`
                    : f.kind === 'never_given_back' ? `waits for ${p.name(other)}, which ${p.name(by)} had when it ended; ${time(f.ns)} until the end`
                    : f.kind === 'deadlock' ? who === other ? 'waits for itself' : `waits for ${p.name(other)}, and that for it` : `was ready for ${time(f.ns)}, while ${p.name(other)} ran` }));
        };

        fill(this.side, q !== NONE && this.about(q),
            serious.length + rest.length > 0 ? h('h3', { text: 'What is wrong' }) : h('p', { class: 'dim', text: allClear(p, this.m.data.head.promises!) }),
            ...serious.slice(0, 50).map(one), ...rest.slice(0, 3).map(one),
            rest.length > 3 && h('p', { class: 'dim', text: `and ${rest.length - 3} times more that something starved: see trace findings` }),
            ...this.doubts('deadlock'), ...this.doubts('never_given_back'), ...this.doubts('lost_wakeup'), ...this.doubts('starved'));
    }

    // In the words of `trace findings`.
    private doubts(kind: string): HTMLElement[] {
        const { p } = this, all = p.doubts.filter((f) => f.kind === kind), name = (i: number): string => p.name(i > 0 ? i - 1 : NONE);
        const one = (f: Finding): HTMLElement => h('button', { class: 'finding doubt', type: 'button', click: () => this.show(f) },
            h('span', { class: 'name', text: name(f.who) }),
            h('span', { class: 'dim', text: kind === 'starved' ? `could run, and waited ${time(f.ns)}; ${name(f.other)} had the CPU, and nothing was heard of it for ${time(f.silent ?? 0)} in all, 2 ms or more at a time`
                : kind === 'deadlock' ? `${name(f.who)} waits for ${name(f.other)}, and that for it; but ${name(f.by)} had a CPU since and has not told that it still waits`
                : kind === 'never_given_back' ? `waits for ${name(f.other)}, which ${name(f.by)} had when it ended; but it had a CPU since`
                : `began to wait for ${name(f.other)}, which ${f.by === 0 ? 'had been signalled before,' : `${name(f.by)} had signalled${f.signal ? ' at ' + moment(p.first + f.signal - 1, 1e3) : ''}`} when nobody waited for it` }));

        return all.length === 0 ? [] : [h('h3', { text: 'In doubt: ' + inDoubt[kind]! }), ...all.slice(0, DOUBTS).map(one),
            ...(all.length > DOUBTS ? [h('p', { class: 'dim', text: `and ${all.length - DOUBTS} more` })] : [])];
    }

    private about(q: number): HTMLElement {
        const { p } = this, waits = p.waits(q), open = waits.find((w) => w.end < 0);
        const line = (k: string, v: string): HTMLElement => h('div', { class: 'pair' }, h('span', { class: 'dim', text: k }), h('span', { text: v }));

        return h('div', {}, h('p', { class: 'kicker', text: p.typeName(q) }), h('h2', { class: 'name', text: p.name(q) }),
            p.unresolved[q] === 1 && h('p', { class: 'badtext', text: 'should have been resolved, and never was' }),
            p.failed(q) !== '' && h('p', { class: 'badtext', text: p.failed(q) }),
            line('state', p.fate[q] === Fate.Became ? 'became another' : ['open', 'resolved', 'failed'][p.fate[q]!]!),
            line('from', moment(p.begin[q]!, 1e3)), line('life', time(p.end[q]! - p.begin[q]!)), line('ran', time(p.run[q]!)), line('waited', `${time(p.wait[q]!)} in ${waits.length}`),
            this.link(p.creator[q]!, 'made by'), this.link(p.resolver[q]!, p.fate[q] === Fate.Failed ? 'failed by' : 'resolved by'),
            this.link(p.other[q]!, 'became'), open !== undefined && this.link(open.on, 'waits for'),
            h('div', { class: 'bar' }, button('Zoom', 'Its life fills the view (Enter)', () => this.zoom()), button('Chain', 'What it became, and what became it', () => { this.plot.lit = p.chain(q); this.plot.redraw(); }),
                this.history.length > 0 && button('Back', 'The one before (b)', () => this.back())));
    }

    private back(): void {
        const q = this.history.pop();

        if (q !== undefined) this.choose(q, true);
    }

    matches(): string { return `${this.found.length} of ${this.p.nr} threads and promises`; }

    private zoom(): void {
        const { p, plot } = this, q = plot.selected;

        if (q === NONE) return;
        const life = Math.max(1000, p.end[q]! - p.begin[q]!);
        plot.show(p.begin[q]! - life * 0.05, p.end[q]! + life * 0.05);
    }

    private show(f: Promises['findings'][number]): void {
        const { plot, p } = this, at = p.first + f.time;
        // The moment of the finding, and as much time before and after. For a starvation this is its length; for a lost wake-up, a
        // signal and the wait after it.
        const from = f.kind === 'lost_wakeup' && f.signal ? Math.min(at, p.first + f.signal - 1) : at, to = f.kind === 'starved' ? at + f.ns : at;
        const around = Math.max(to - from, at - from, (p.last - p.first) / 5000, 1000);

        plot.lit = new Set([f.who, f.other, f.by].filter((x) => x > 0).map((x) => x - 1));
        this.choose(f.who - 1);
        plot.show(from - around, Math.max(at, to) + around);
    }

    // Along the chain: [ to who made it, ] to what it became or who resolved it, , to what it waits for.
    keyDown(ev: KeyboardEvent): boolean {
        const { p, plot } = this, q = plot.selected;
        const go = (to: number): boolean => { if (q !== NONE && to !== NONE) this.choose(to); return true; };

        switch (ev.key) {
        case '[': return go(p.creator[q]!);
        case ']': return go(q === NONE ? NONE : p.other[q]! !== NONE ? p.other[q]! : p.resolver[q]!);
        case ',': return go(q === NONE ? NONE : p.waits(q).find((w) => w.end < 0)?.on ?? NONE);
        case 'b': this.back(); return true;
        case 'z': this.turn('eye'); return true;
        case 'm': this.app.setRange(plot.x0, plot.x1); return true;
        case 'Enter':
            if (this.found.length > 0) this.choose(this.found[(this.found.indexOf(q) + (ev.shiftKey ? this.found.length - 1 : 1)) % this.found.length]!);
            else this.zoom();
            return true;
        case 'Escape':
            if (q === NONE && plot.lit.size === this.found.length) return false;
            this.choose(NONE);
            return true;
        case 'ArrowLeft': plot.pan(-0.15); return true;
        case 'ArrowRight': plot.pan(0.15); return true;
        case 'ArrowUp': case 'ArrowDown': {
            const { row } = plot.places, d = ev.key === 'ArrowUp' ? -1 : 1;
            let best = NONE;
            if (q === NONE) { plot.scroll(60 * d); return true; }
            // The nearest row in that direction that has something near in time.
            for (let i = 0; i < p.nr; i++) {
                const r = (row[i]! - row[q]!) * d;
                if (row[i]! < 0 || r <= 0 || p.end[i]! < plot.x0 || p.begin[i]! > plot.x1) continue;
                if (best === NONE || r < (row[best]! - row[q]!) * d) best = i;
            }
            if (best !== NONE) this.choose(best);
            return true;
        }
        default: return plot.key(ev);
        }
    }
}
