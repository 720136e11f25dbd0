// SPDX-License-Identifier: BSD-2-Clause
// Shows how each vCPU or thread spent its time: a stacked bar each, of functions by self time.
import { type App, type Change, type View } from './app';
import { button, fill, h, select } from './dom';
import { hiddenTools } from './hidden';
import { percent, value } from './text';
import { Tip } from './tip';

const most = 24;
const signed = (v: number): string => (v > 0 ? '+' : '') + v.toFixed(2);

export class Breakdown implements View {
    root: HTMLElement;
    private bar = h('div', { class: 'bar' });
    private body = h('div', { class: 'scroll pad' });
    private usual = 'cpu';

    constructor(private app: App, private tip: Tip) {
        if (app.model.cpus.list.length === 0) this.usual = app.model.threads.list.length > 0 ? 'thread' : this.flat() ? 'root' : 'all';
        this.root = h('section', { class: 'view' }, this.bar, this.body);
    }

    // A table of functions below each thread, without a call tree: no chain has more than two frames.
    private flat(): boolean {
        const tree = this.app.source?.tree;

        if (!tree || this.app.source!.timed || this.app.source!.second || tree.nr < 3) return false;
        for (let i = 1; i < tree.nr; i++) if (tree.parent[i] !== 0 && tree.parent[tree.parent[i]!] !== 0) return false;
        return tree.func.slice(1).some((_f, i) => tree.parent[i + 1] !== 0);
    }

    private get by(): string { return this.app.opt('bars', this.usual); }
    private get log(): boolean { return this.app.opt('log') === '1'; }

    open(): void { this.update('data'); }
    update(c: Change): void { if (c !== 'zoom') this.draw(); }

    // Returns the value by function for each place, and the part of all that is left out.
    private gather(): [Map<string, Map<number, number>>, number] {
        const { hidden } = this.app.state, places = this.places();
        let out = 0, all = 0;

        for (const m of places.values()) {
            for (const [f, v] of m) {
                all += Math.max(0, v);
                if (!this.app.drop || !hidden.has(f)) continue;
                out += Math.max(0, v);
                m.delete(f);
            }
        }
        return [places, all > 0 ? out / all : 0];
    }

    private places(): Map<string, Map<number, number>> {
        const { app } = this, s = app.source!, { tree } = s, { hidden } = app.state;
        const out = new Map<string, Map<number, number>>();
        const names = this.by === 'cpu' ? app.model.cpus.list : app.model.threads.list;
        const owner = Uint32Array.from(tree.func);

        for (let i = 1; !this.app.drop && i < tree.nr; i++) if (hidden.has(owner[i]!)) owner[i] = owner[tree.parent[i]!]!;
        if (!s.timed && !s.second && this.by === 'root') {
            const roots = Uint32Array.from(tree.func);

            s.self(app.selection).forEach((v, i) => {
                if (i > 0 && tree.parent[i] !== 0) roots[i] = roots[tree.parent[i]!]!;
                if (v <= 0) return;
                const name = app.model.funcs.name(roots[i]!), m = out.get(name) ?? new Map<number, number>();
                m.set(owner[i]!, (m.get(owner[i]!) ?? 0) + v);
                out.set(name, m);
            });
            return out;
        }
        if (!s.timed || s.outline || this.by === 'all') {
            const all = (values: Float64Array): Map<number, number> => {
                const m = new Map<number, number>();
                values.forEach((v, i) => { if (v > 0) m.set(owner[i]!, (m.get(owner[i]!) ?? 0) + v); });
                return m;
            };
            if (s.outline && s.places && this.by !== 'all') {
                for (const [k, values] of s.places(app.selection, this.by === 'cpu' ? 'cpu' : 'thread')) out.set(names[k]!, all(values));
                return out.size > 0 ? out : out.set('all', all(s.self(app.selection)));
            }
            if (s.second) return out.set('before', all(s.self(app.selection))).set('after', all(s.second));
            return out.set('all', all(s.self(app.selection)));
        }
        s.each(app.selection, (_t, dur, v, node, cpu, thread) => {
            const k = this.by === 'cpu' ? cpu : thread;
            const name = k < 0 ? (this.by === 'cpu' ? 'on no vCPU' : 'no thread known') : names[k]!;
            let m = out.get(name);
            if (!m) out.set(name, m = new Map());
            m.set(owner[node]!, (m.get(owner[node]!) ?? 0) + v);
            // The time of a nested call is not its caller's own time.
            const up = tree.parent[node]!;
            if (s.key === 'calls' && up !== 0) m.set(owner[up]!, (m.get(owner[up]!) ?? 0) - dur);
        });
        return out;
    }

    private draw(): void {
        const { app } = this, s = app.source;

        if (!s) return;
        const [places, left] = this.gather(), sums = new Map<number, number>();
        const before = s.second ? places.get('before') : undefined;
        // A difference compares shares, because runs differ in length.
        for (const m of before ? [places.get('after')!] : places.values()) for (const [f, v] of m) sums.set(f, (sums.get(f) ?? 0) + Math.max(0, v));
        const all = [...sums.values()].reduce((a, v) => a + v, 0), old = [...before?.values() ?? []].reduce((a, v) => a + v, 0);
        // Functions that are gone are shown as well.
        for (const f of before?.keys() ?? []) if (!sums.has(f)) sums.set(f, 0);
        const weight = ([f, v]: [number, number]): number => Math.max(v / (all || 1), (before?.get(f) ?? 0) / (old || 1));
        const order = [...sums].sort((a, b) => weight(b) - weight(a)), top = order.slice(0, most), first = Math.max(...top.map(([, v]) => v), 1e-9);
        const longest = Math.max(1e-9, ...[...places.values()].map((m) => [...m.values()].reduce((a, v) => a + Math.max(0, v), 0)));
        fill(this.bar, s.timed && select('Bars', [['cpu', 'a bar for each vCPU'], ['thread', 'a bar for each thread'], ['all', 'one bar']], this.by, (v) => { app.setOpt('bars', v, this.usual); this.draw(); }),
            button('Logarithmic', 'Small parts become visible', () => { app.setOpt('log', this.log ? '' : '1'); this.draw(); }, this.log),
            !s.timed && !s.second && select('Bars', [['root', 'a bar for each outermost function'], ['all', 'one bar']], this.by === 'root' ? 'root' : 'all', (v) => { app.setOpt('bars', v, this.usual); this.draw(); }),
            ...hiddenTools(app, left),
            h('span', { class: 'grow' }), h('span', { class: 'dim', text: this.app.drop ? 'a click on a bar leaves out its function' : 'a click on a bar hides its function: its time goes to its callers' }));
        const change = (f: number, v: number): string => (before ? ` (${signed(100 * (v / Math.max(all, 1e-9) - (before.get(f) ?? 0) / Math.max(old, 1e-9)))})` : '');
        fill(this.body, ...(before ? [...places] : [...places].sort((a, b) => (a[0] < b[0] ? -1 : 1))).map(([name, m]) => this.stack(name, m, top, before ? 0 : longest)),
            h('h2', { class: 'small', text: before ? 'Self time by function after, and the change of its share' : 'Self time by function' }), ...top.map(([f, v]) => this.one(f, v, all, first, change(f, v))));
    }

    private stack(name: string, m: Map<number, number>, top: [number, number][], longest: number): HTMLElement {
        const { app } = this, unit = app.source!.unit;
        const sum = [...m.values()].reduce((a, v) => a + Math.max(0, v), 0);

        longest ||= sum || 1;
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

    private one(f: number, v: number, all: number, first: number, change: string): HTMLElement {
        const { app } = this;
        const width = this.log ? Math.max(0, 1 + Math.log10(v / first) / 5) : v / first;

        return h('button', { class: 'line wide' + (f === app.state.func ? ' on' : ''), type: 'button', title: 'hides ' + app.model.funcs.name(f), click: () => this.hide(f) },
            h('span', { class: 'who', text: app.model.funcs.name(f) }), h('span', { class: 'track' }, h('i', { style: { width: 100 * width + '%', background: app.css(f) } })),
            h('span', { class: 'pc', text: percent(v, all) + change }));
    }

    private hide(f: number): void {
        this.tip.hide();
        this.app.state.hidden.add(f);
        this.app.state.path = [];
        this.app.tell('data');
    }
}
