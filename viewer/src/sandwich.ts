// SPDX-License-Identifier: BSD-2-Clause
// One function between its callers (above) and its callees (below).
import { type App, type Change, type View } from './app';
import { hit, ofDelta } from './colours';
import { fill, h } from './dom';
import { hiddenTools } from './hidden';
import { layout, type Layout } from './layout';
import { Stack } from './stack';
import { nothing, percent, value } from './text';
import { callees, callers, type Graph } from './tree';
import { Tip } from './tip';

class Half {
    rows!: Layout;
    g!: Graph;
    plot: Stack;

    constructor(private app: App, tip: Tip, label: string, up: boolean) {
        this.plot = new Stack(label, {
            colour: (n) => this.colour(n),
            text: (n) => app.model.funcs.name(this.g.tree.func[n]!),
            hover: (i, x, y) => {
                if (i < 0) { tip.hide(); return; }
                const n = this.rows.id[i]!, { unit } = app.source!, { total, total2 } = this.g;
                const part = (t: Float64Array): string => `${value(t[n]!, unit)}, ${percent(t[n]!, t[0]!)} of the function's`;
                tip.show(this.plot.canvas, x, y, [app.model.funcs.name(this.g.tree.func[n]!), ...(total2 ? ['before ' + part(total), 'after ' + part(total2)] : [part(total)])]);
            },
            press: (i) => { if (i >= 0) app.setFunc(this.g.tree.func[this.rows.id[i]!]!); },
        });
        this.plot.up = up;
    }

    // The colour of a difference: more or less of the whole recording, as in the flame graph.
    private colour(n: number): number {
        const { app, g } = this, func = g.tree.func[n]!, all = app.graph();

        if (!g.total2 || !all?.total2) return app.colour(func);
        if (app.searching && app.match[func]) return hit;
        const scale = all.total[0]! > 0 && all.total2[0]! > 0 ? all.total2[0]! / all.total[0]! : 1;
        return ofDelta((g.total2[n]! - g.total[n]! * scale) / Math.max(this.rows.total, 1e-9), app.state.safe);
    }

    set(g: Graph, byWeight: boolean): void {
        const whole = layout(g, byWeight);

        // Without the root: its one child is the function.
        this.g = g;
        this.rows = { ...whole, nr: whole.nr - 1, first: whole.first.subarray(1) };
        this.plot.set(this.rows);
        this.plot.bounds(0, Math.max(whole.total, 1e-9));
    }
}

export class Sandwich implements View {
    root: HTMLElement;
    private up: Half;
    private down: Half;
    private head = h('div', { class: 'bar', role: 'status' });
    private hiding = h('div', { class: 'bar' });

    constructor(private app: App, tip: Tip) {
        this.up = new Half(app, tip, 'Callers of the function', true);
        this.down = new Half(app, tip, 'Callees of the function', false);
        for (const [a, b] of [[this.up, this.down], [this.down, this.up]] as const) a.plot.onRange = (x0, x1) => b.plot.jump(x0, x1);
        this.root = h('section', { class: 'view sandwich' }, this.head, this.hiding,
            h('div', { class: 'half' }, h('span', { class: 'side', text: 'callers' }), this.up.plot.canvas),
            h('div', { class: 'half' }, h('span', { class: 'side', text: 'callees' }), this.down.plot.canvas));
    }

    open(): void {
        this.rebuild();
        this.up.plot.resize();
        this.down.plot.resize();
    }

    update(c: Change): void {
        if (c === 'data' || c === 'look' || c === 'func') this.rebuild();
        this.up.plot.redraw();
        this.down.plot.redraw();
    }

    private rebuild(): void {
        const { app } = this, g = app.graph();
        const func = app.state.func || app.hottest;

        if (!g) return;
        this.hiding.hidden = app.state.hidden.size === 0;
        fill(this.hiding, ...hiddenTools(app, app.leftOut));
        const below = callees(g, app.model.funcs, func), unit = app.source!.unit;
        this.up.set(callers(g, app.model.funcs, func), app.state.byWeight);
        this.down.set(below, app.state.byWeight);
        if (func === 0) { // both are empty then
            fill(this.head, h('span', { class: 'dim', text: nothing }));
            return;
        }
        const row = app.table().find((r) => r.func === func);
        const said = (total: number, self: number, all: number): string => `total ${value(total, unit)} (${percent(total, all)}), self ${value(self, unit)} (${percent(self, all)})`;
        const now = said(below.total[0]!, row?.self ?? 0, g.total[0]!);
        fill(this.head, h('b', { class: 'name', text: app.model.funcs.name(func) }),
            h('span', { class: 'dim', text: below.total2 && g.total2 ? `before: ${now}; after: ${said(below.total2[0]!, row?.self2 ?? 0, g.total2[0]!)}` : now }));
    }

    keyDown(ev: KeyboardEvent): boolean {
        const used = this.up.plot.key(ev);

        if (used) this.down.plot.jump(this.up.plot.x0, this.up.plot.x1);
        return used;
    }
}
