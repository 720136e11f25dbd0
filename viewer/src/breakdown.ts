// SPDX-License-Identifier: BSD-2-Clause
// Where the time of each vCPU or thread went: a stacked bar each, of functions by self time.
import { type App, type Change, type View } from './app';
import { button, fill, h, select } from './dom';
import { percent, value } from './text';
import { Tip } from './tip';

const most = 24;

export class Breakdown implements View {
    id = 'breakdown';
    title = 'Breakdown';
    root: HTMLElement;
    private bar = h('div', { class: 'bar' });
    private body = h('div', { class: 'scroll pad' });
    private by = 'cpu';
    private log = false;

    constructor(private app: App, private tip: Tip) {
        if (app.model.cpus.list.length === 0) this.by = app.model.threads.list.length > 0 ? 'thread' : 'all';
        this.root = h('section', { class: 'view' }, this.bar, this.body);
    }

    open(): void { this.update('data'); }
    update(c: Change): void { if (c !== 'zoom') this.draw(); }

    // Of each place the value by function. What was hidden belongs to its caller.
    private gather(): Map<string, Map<number, number>> {
        const { app } = this, s = app.source!, { tree } = s, { hidden } = app.state;
        const out = new Map<string, Map<number, number>>();
        const names = this.by === 'cpu' ? app.model.cpus.list : app.model.threads.list;
        const owner = Uint32Array.from(tree.func);

        for (let i = 1; i < tree.nr; i++) if (hidden.has(owner[i]!)) owner[i] = owner[tree.parent[i]!]!;
        if (!s.timed || this.by === 'all') {
            const all = new Map<number, number>();
            s.self(app.selection).forEach((v, i) => { if (v > 0) all.set(owner[i]!, (all.get(owner[i]!) ?? 0) + v); });
            return out.set('all', all);
        }
        s.each(app.selection, (_t, dur, v, node, cpu, thread) => {
            const k = this.by === 'cpu' ? cpu : thread;
            const name = k < 0 ? (this.by === 'cpu' ? 'on no vCPU' : 'no thread known') : names[k]!;
            let m = out.get(name);
            if (!m) out.set(name, m = new Map());
            m.set(owner[node]!, (m.get(owner[node]!) ?? 0) + v);
            // Of calls: what is in it is not its own.
            const up = tree.parent[node]!;
            if (s.key === 'calls' && up !== 0) m.set(owner[up]!, (m.get(owner[up]!) ?? 0) - dur);
        });
        return out;
    }

    private draw(): void {
        const { app } = this, s = app.source;

        if (!s) return;
        const places = this.gather(), sums = new Map<number, number>();
        for (const m of places.values()) for (const [f, v] of m) sums.set(f, (sums.get(f) ?? 0) + Math.max(0, v));
        const order = [...sums].sort((a, b) => b[1] - a[1]), top = order.slice(0, most);
        const all = order.reduce((a, [, v]) => a + v, 0);
        const longest = Math.max(1e-9, ...[...places.values()].map((m) => [...m.values()].reduce((a, v) => a + Math.max(0, v), 0)));
        fill(this.bar, s.timed && select('Bars', [['cpu', 'a bar for each vCPU'], ['thread', 'a bar for each thread'], ['all', 'one bar']], this.by, (v) => { this.by = v; this.draw(); }),
            button('Logarithmic', 'Small parts become visible', () => { this.log = !this.log; this.draw(); }, this.log),
            app.state.hidden.size > 0 && button(`Show ${app.state.hidden.size} hidden`, 'Shows all functions again', () => { app.state.hidden.clear(); app.tell('data'); }),
            h('span', { class: 'grow' }), h('span', { class: 'dim', text: 'a click on a bar hides its function: its time goes to its callers' }));
        fill(this.body, ...[...places].sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([name, m]) => this.stack(name, m, top, longest)),
            h('h3', { text: 'Self time by function' }), ...top.map(([f, v]) => this.one(f, v, all, top[0]![1])));
    }

    private stack(name: string, m: Map<number, number>, top: [number, number][], longest: number): HTMLElement {
        const { app } = this, unit = app.source!.unit;
        const sum = [...m.values()].reduce((a, v) => a + Math.max(0, v), 0);
        const parts = top.map(([f]) => [f, Math.max(0, m.get(f) ?? 0)] as const).filter(([, v]) => v > 0);
        const rest = sum - parts.reduce((a, [, v]) => a + v, 0);
        const segment = (f: number, v: number, label: string): HTMLElement => {
            const el = h('button', { type: 'button', label: `${label} ${percent(v, sum)}`, class: 'segment', style: { 'flex-grow': String(v), background: f > 0 ? app.css(f) : '#bbb' },
                click: () => { if (f > 0) this.hide(f); } }, v / longest > 0.06 && h('span', { text: label }));
            el.addEventListener('mousemove', (ev) => this.tip.show(document.body, ev.clientX, ev.clientY + scrollY, [label, `${value(v, unit)}, ${percent(v, sum)} of ${name}`]));
            el.addEventListener('mouseleave', () => this.tip.hide());
            return el;
        };

        return h('div', { class: 'stacked' }, h('span', { class: 'who', text: name, title: name }),
            h('div', { class: 'track' }, h('div', { class: 'segments', style: { width: 100 * sum / longest + '%' } },
                ...parts.map(([f, v]) => segment(f, v, app.model.funcs.name(f))), rest > sum * 1e-6 && segment(0, rest, 'others'))),
            h('span', { class: 'pc', text: value(sum, unit) }));
    }

    private one(f: number, v: number, all: number, first: number): HTMLElement {
        const { app } = this;
        const width = this.log ? Math.max(0, 1 + Math.log10(v / first) / 5) : v / first;

        return h('button', { class: 'line wide' + (f === app.state.func ? ' on' : ''), type: 'button', title: 'hides ' + app.model.funcs.name(f), click: () => this.hide(f) },
            h('span', { class: 'who', text: app.model.funcs.name(f) }), h('span', { class: 'track' }, h('i', { style: { width: 100 * width + '%', background: app.css(f) } })),
            h('span', { class: 'pc', text: percent(v, all) }));
    }

    private hide(f: number): void {
        this.tip.hide();
        this.app.state.hidden.add(f);
        this.app.state.path = [];
        this.app.tell('data');
    }
}
