// SPDX-License-Identifier: BSD-2-Clause
// Timeline of threads and promises: the lines, what was found wrong, and the one that was chosen.
import { type App, type Change, type View } from './app';
import { button, download, fill, h } from './dom';
import { counterColours, Lines } from './lines';
import { theme } from './plot';
import { pack } from './chart';
import { Stack } from './stack';
import { Fate, NONE, Promises } from './promises';
import type { Model } from './source';
import { moment, pattern, time } from './text';
import { Tip } from './tip';

const words: Record<string, string> = { lost_wakeup: 'Lost wake-up', unresolved: 'Never resolved', deadlock: 'Deadlock', starved: 'Starved' };

export class Timeline implements View {
    id = 'timeline';
    title = 'Threads & promises';
    root: HTMLElement;
    plot: Lines;
    p: Promises;
    private bar = h('div', { class: 'bar' });
    private side = h('div', { class: 'card inner' });
    private live = h('div', { role: 'status', class: 'quiet' });
    private only = false;
    private found: number[] = [];
    private history: number[] = [];
    private calls: Stack | null = null;
    private callsHead = h('div', { class: 'paneHead' });
    private pane: HTMLElement;

    constructor(private app: App, tip: Tip, m: Model = app.model) {
        this.p = new Promises(m);
        this.plot = new Lines(this.p);
        this.plot.onPick = (q) => this.choose(q);
        this.plot.onChain = (q) => { this.plot.lit = this.p.chain(q); this.choose(q); };
        this.plot.onHover = (x, y, lines) => { if (lines) tip.show(this.plot.canvas, x, y, lines); else tip.hide(); };
        this.plot.fisheye = this.plot.places.nrRows > 400;
        this.pane = h('div', { class: 'pane', hidden: true }, this.callsHead);
        if (m.spans) this.makeCalls(tip);
        this.root = h('section', { class: 'view' }, this.bar, h('div', { class: 'body' }, h('div', { class: 'view' }, this.plot.canvas, this.pane), this.side), this.live);
    }

    // Below the lines: what the chosen thread called, at the same times.
    private makeCalls(tip: Tip): void {
        const { app } = this, spans = app.model.spans!;
        const name = (n: number): string => app.model.funcs.name(spans.tree.func[n]!);
        const plot = this.calls = new Stack('Calls of the chosen thread', {
            colour: (n) => app.colour(spans.tree.func[n]!),
            text: name,
            hover: (i, x, y) => { if (i < 0) tip.hide(); else tip.show(plot.canvas, x, y, [name(plot.rows.id[i]!), time(plot.rows.dur[i]!)]); },
            press: (i) => { if (i >= 0) app.setFunc(spans.tree.func[plot.rows.id[i]!]!); },
        });

        plot.min = this.plot.min;
        plot.max = this.plot.max;
        this.plot.onMove = (x0, x1) => { if (!this.pane.hidden && (plot.x0 !== x0 || plot.x1 !== x1)) plot.jump(x0, x1); };
        plot.onRange = (x0, x1) => this.plot.jump(x0, x1);
        this.pane.append(plot.canvas);
    }

    private showCalls(q: number): void {
        const { app, calls } = this, spans = app.model.spans;
        const thread = q === NONE ? -1 : app.model.threads.list.indexOf(this.p.name(q));
        const rows = spans && calls ? [...spans.rowThread.keys()].filter((r) => spans.rowThread[r] === thread).sort((a, b) => spans.rowDepth[a]! - spans.rowDepth[b]!) : [];

        this.pane.hidden = rows.length === 0;
        if (rows.length === 0 || !spans || !calls) return;
        const { first, start, dur, id } = spans.rows;
        calls.set(pack(rows.map((r) => ({ start: start.subarray(first[r]!, first[r + 1]!), dur: dur.subarray(first[r]!, first[r + 1]!), id: id.subarray(first[r]!, first[r + 1]!) }))));
        this.callsHead.textContent = `calls of ${this.p.name(q)}`;
        calls.jump(this.plot.x0, this.plot.x1);
    }

    open(): void {
        this.toolbar();
        this.search();
        this.panel();
        this.plot.resize();
    }

    update(c: Change): void {
        const { t0, t1 } = this.app.state;

        if (c === 'data' && t1 > t0) this.plot.jump(t0, t1);
        if (c === 'search') this.search();
        this.plot.redraw();
    }

    private search(): void {
        const { search, ignoreCase } = this.app.state;
        const re = search === '' ? null : pattern(search, ignoreCase);

        this.found = [];
        if (re) for (let i = 0; i < this.p.nr; i++) if (re.test(this.p.name(i)) || re.test(this.p.typeName(i))) this.found.push(i);
        this.plot.lit = new Set(this.found);
        if (this.only) this.pack();
        this.toolbar();
    }

    private pack(): void {
        const keep = new Set(this.found);

        // With those who made them, so that one sees where they come from.
        for (const q of this.found) for (let up = this.p.creator[q]!; up !== NONE && !keep.has(up); up = this.p.creator[up]!) keep.add(up);
        this.plot.pack(this.only && this.found.length > 0 ? (i) => keep.has(i) : () => true);
    }

    private toolbar(): void {
        const { p, plot } = this;

        fill(this.bar,
            button('Fit', 'Shows the whole trace (0)', () => plot.fit()),
            button('Fisheye', 'All rows at once, those around the chosen one large (z)', () => { plot.fisheye = !plot.fisheye; this.toolbar(); plot.redraw(); }, plot.fisheye),
            this.found.length > 0 && button('Only matches', 'Hides all other threads but those that made them', () => { this.only = !this.only; this.pack(); this.toolbar(); }, this.only),
            button('Runners first', 'Those that ran or are stuck above all others; else all by who made them', () => { plot.grouped = !plot.grouped; plot.pack(); this.toolbar(); }, plot.grouped),
            button('Range', 'Makes what is seen the range of all views (m)', () => this.app.setRange(plot.x0, plot.x1)),
            button('Save SVG', 'What is seen, as a picture', () => download('timeline.svg', 'image/svg+xml', plot.svg(document.title, theme()))),
            ...p.counters.map((c, k) => {
                const b = button(c.name, 'Counter: shows or hides it', () => {
                    if (!plot.hiddenCounters.delete(c.name)) plot.hiddenCounters.add(c.name);
                    this.toolbar();
                    plot.redraw();
                }, !plot.hiddenCounters.has(c.name));
                b.prepend(h('i', { class: 'dot', style: { background: counterColours[k % 4]! } }));
                return b;
            }),
            h('span', { class: 'grow' }), h('span', { class: 'key' }, ...([['create', '#8a93a0'], ['read', '#2463d6'], ['resolve', '#14883b'], ['try', '#b3a012'], ['signal', '#f08a00'], ['failed', '#cc0000']] as const)
                .flatMap(([text, colour]) => [h('i', { style: { background: colour } }), text])),
            h('span', { class: 'found', text: this.found.length > 0 ? `${this.found.length} of ${p.nr}` : `${p.nr} threads` }));
    }

    choose(q: number): void {
        if (q !== NONE && this.plot.selected !== NONE && this.plot.selected !== q) this.history.push(this.plot.selected);
        this.plot.selected = q;
        if (q === NONE) this.plot.lit = new Set(this.found);
        else {
            this.plot.reveal(q);
            this.live.textContent = this.plot.describe(q).join(', ');
        }
        this.showCalls(q);
        this.panel();
        this.plot.redraw();
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
                    : f.kind === 'deadlock' ? `waits for itself, through ${p.name(other)}` : `was ready for ${time(f.ns)}, while ${p.name(other)} ran` }));
        };

        fill(this.side, q !== NONE && this.about(q),
            serious.length + rest.length > 0 ? h('h3', { text: 'What is wrong' }) : h('p', { class: 'dim', text: 'Nothing is wrong with the threads of this trace, as far as it tells.' }),
            ...serious.slice(0, 50).map(one), ...rest.slice(0, 3).map(one),
            rest.length > 3 && h('p', { class: 'dim', text: `and ${rest.length - 3} times more that something starved: see trace findings` }));
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

        if (q === undefined) return;
        this.plot.selected = q;
        this.plot.reveal(q);
        this.panel();
    }

    private zoom(): void {
        const { p, plot } = this, q = plot.selected;

        if (q === NONE) return;
        const life = Math.max(1000, p.end[q]! - p.begin[q]!);
        plot.show(p.begin[q]! - life * 0.05, p.end[q]! + life * 0.05);
    }

    private show(f: Promises['findings'][number]): void {
        const { plot, p } = this, at = p.first + f.time, around = Math.max((p.last - p.first) / 20, 1000);

        plot.lit = new Set([f.who, f.other, f.by].filter((x) => x > 0).map((x) => x - 1));
        this.choose(f.who - 1);
        plot.show(at - around, at + around);
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
        case 'z': plot.fisheye = !plot.fisheye; this.toolbar(); plot.redraw(); return true;
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
