// SPDX-License-Identifier: BSD-2-Clause
// All about one function, beside every view: how much, who calls it, what it calls, where it ran.
import { type App } from './app';
import { codeOf } from './code';
import { button, fill, h } from './dom';
import { percent, value } from './text';
import { holds } from './overview';
import { doubt } from './tree';

export class Card {
    readonly root = h('aside', { class: 'card', label: 'The chosen function' });

    constructor(private app: App, private go: (view: string) => void) {
        app.listen((c) => { if (c === 'data' || c === 'func') this.draw(); });
    }

    private list(title: string, values: Map<string, [number, number]>, all: number): HTMLElement | false {
        const rows = [...values].sort((a, b) => b[1][1] - a[1][1]).slice(0, 7);

        return rows.length > 0 && h('div', {}, h('h3', { text: title }), ...rows.map(([name, [func, v]]) =>
            h(func > 0 ? 'button' : 'div', { class: 'line', title: name, ...(func > 0 ? { type: 'button', click: () => this.app.setFunc(func) } : {}) } as object,
                h('i', { class: 'fillbar', style: { width: Math.min(100, 100 * v / all) + '%', background: func > 0 ? this.app.css(func) : 'var(--accent)' } }),
                h('span', { class: 'name', text: name }), h('span', { class: 'pc', text: percent(v, all) }))));
    }

    draw(): void {
        const { app } = this, g = app.graph(), source = app.source;
        const rows = app.table();

        if (!g || !source || rows.length === 0) { this.root.hidden = true; return; }
        this.root.hidden = false;
        const func = app.state.func || app.hottest;
        if (func === 0) { this.root.hidden = true; return; }
        const row = rows.find((r) => r.func === func);
        const f = app.model.funcs.list[func]!, { tree } = g, name = (n: number): string => app.model.funcs.name(tree.func[n]!);
        const callers = new Map<string, [number, number]>(), callees = new Map<string, [number, number]>();
        const add = (m: typeof callers, key: string, id: number, v: number): void => { m.set(key, [id, (m.get(key)?.[1] ?? 0) + v]); };
        const val = g.total2 ?? g.total;
        const self = row ? (g.total2 ? row.self2 : row.self) : 0, total = row ? (g.total2 ? row.total2 : row.total) : 0;
        const first = app.hottest === func;
        const two = (now: number, old: number): string => (g.total2 ? `${percent(old, g.total[0]!)} before` : value(now, source.unit));
        const sure = source.sure?.[func] ?? 0;

        for (let i = 1; i < tree.nr; i++) {
            const up = tree.parent[i]!;
            if (val[i] === 0) continue;
            if (tree.func[i] === func && tree.func[up] !== func) add(callers, up === 0 ? '(outermost)' : name(up), up === 0 ? 0 : tree.func[up]!, val[i]!);
            if (tree.func[up] === func && up > 0 && tree.func[i] !== func) add(callees, name(i), tree.func[i]!, val[i]!);
        }
        fill(this.root,
            h('p', { class: 'kicker', text: first ? 'Hottest function' : 'Function' }),
            h('h2', {}, h('i', { class: 'dot', style: { background: app.css(func) } }), h('span', { class: 'name', text: f.name })),
            (f.image || f.place) && h('p', { class: 'dim', text: [f.image, f.place].filter(Boolean).join('  ') }),
            f.unsure > 0 && h('p', { class: 'dim', text: doubt(f) }),
            h('div', { class: 'two' },
                h('div', {}, h('b', { text: percent(self, val[0]!) }), h('span', { text: 'self' }), h('span', { class: 'dim', text: two(self, row?.self ?? 0) })),
                h('div', {}, h('b', { text: percent(total, val[0]!) }), h('span', { text: 'with callees' }), h('span', { class: 'dim', text: two(total, row?.total ?? 0) }))),
            source.sure && h('p', { class: 'dim', text: sure > 0 ? 'It takes more than before.' : sure < 0 ? 'It takes less than before.' : 'No change of it was found.' }),
            this.list('Called by', callers, Math.max(total, 1e-9)),
            this.list('Calls', callees, Math.max(total, 1e-9)),
            ...this.places(func),
            h('div', { class: 'bar' }, codeOf(app, func).length > 0 && button('Code', 'Its source lines and instructions', () => this.go('code')), button('Callers & callees', 'Opens both sides', () => this.go('sandwich')),
                button('Hide', 'Leaves out its own part, or gives it to its callers: each view says which', () => { app.state.hidden.add(func); app.state.path = []; app.tell('data'); })));
    }

    // Which vCPUs and threads it was on.
    private places(func: number): (HTMLElement | false)[] {
        const { app } = this, source = app.source!;
        const cpus = new Map<string, [number, number]>(), threads = new Map<string, [number, number]>();
        const { cpus: cpuNames, threads: threadNames } = app.model;
        let sum = 0;

        if (!source.timed || (cpuNames.list.length < 2 && threadNames.list.length < 2)) return [];
        const inside = new Uint8Array(holds(app, func)), { tree } = source;
        if (app.searching) for (let i = 1; i < tree.nr; i++) inside[i] = tree.func[i] === func || inside[tree.parent[i]!] ? 1 : 0;
        const outermost = source.key === 'calls';
        for (const [by, to, names] of [['cpu', cpus, cpuNames], ['thread', threads, threadNames]] as const) {
            if (!source.outline || !source.places) break;
            for (const [k, values] of source.places(app.selection, by)) {
                const own = values.reduce((a, v, i) => a + (inside[i] ? v : 0), 0);
                if (own > 0) to.set(names.list[k]!, [0, own]);
                if (by === 'thread') sum += own;
            }
        }
        if (!source.outline) source.each(app.selection, (_t, _d, v, node, cpu, thread) => {
            if (!inside[node] || (outermost && inside[tree.parent[node]!])) return;
            sum += v;
            const c = cpu < 0 ? '(on no vCPU)' : cpuNames.list[cpu]!, t = thread < 0 ? '(no thread known)' : threadNames.list[thread]!;
            cpus.set(c, [0, (cpus.get(c)?.[1] ?? 0) + v]);
            threads.set(t, [0, (threads.get(t)?.[1] ?? 0) + v]);
        });
        if (sum === 0) return [];
        return [threadNames.list.length > 0 && this.list('Ran on thread', threads, sum), cpuNames.list.length > 1 && this.list('Ran on vCPU', cpus, sum)];
    }
}
