// SPDX-License-Identifier: BSD-2-Clause
// One function between its callers (above) and its callees (below).
import { type App, type Change, type View } from './app';
import { fill, h } from './dom';
import { layout, type Layout } from './layout';
import { Stack } from './stack';
import { percent, value } from './text';
import { callees, callers, type Graph } from './tree';
import { Tip } from './tip';

class Half {
    rows!: Layout;
    g!: Graph;
    plot: Stack;

    constructor(app: App, tip: Tip, label: string, up: boolean) {
        this.plot = new Stack(label, {
            colour: (n) => app.colour(this.g.tree.func[n]!),
            text: (n) => app.model.funcs.name(this.g.tree.func[n]!),
            hover: (i, x, y) => {
                if (i < 0) { tip.hide(); return; }
                const n = this.rows.id[i]!, unit = app.source!.unit;
                tip.show(this.plot.canvas, x, y, [app.model.funcs.name(this.g.tree.func[n]!),
                    `${value(this.g.total[n]!, unit)}, ${percent(this.g.total[n]!, this.g.total[0]!)} of the function's`]);
            },
            press: (i) => { if (i >= 0) app.setFunc(this.g.tree.func[this.rows.id[i]!]!); },
        });
        this.plot.up = up;
    }

    set(g: Graph, byWeight: boolean): void {
        const whole = layout(g, byWeight);

        // Without the root: its one child is the function.
        this.g = g;
        this.rows = { ...whole, nr: whole.nr - 1, first: whole.first.subarray(1) };
        this.plot.set(this.rows);
        this.plot.bounds(0, Math.max(g.total[0]!, 1e-9));
    }
}

export class Sandwich implements View {
    id = 'sandwich';
    title = 'Callers & callees';
    root: HTMLElement;
    private up: Half;
    private down: Half;
    private head = h('div', { class: 'bar' });

    constructor(private app: App, tip: Tip) {
        this.up = new Half(app, tip, 'Callers of the function', true);
        this.down = new Half(app, tip, 'Callees of the function', false);
        for (const [a, b] of [[this.up, this.down], [this.down, this.up]] as const) a.plot.onRange = (x0, x1) => b.plot.jump(x0, x1);
        this.root = h('section', { class: 'view sandwich' }, this.head,
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

        if (!g || func === 0) return;
        const below = callees(g, app.model.funcs, func), unit = app.source!.unit;
        this.up.set(callers(g, app.model.funcs, func), app.state.byWeight);
        this.down.set(below, app.state.byWeight);
        const self = app.table().find((r) => r.func === func)?.self ?? 0;
        fill(this.head, h('b', { class: 'name', text: app.model.funcs.name(func) }),
            h('span', { class: 'dim', text: `total ${value(below.total[0]!, unit)} (${percent(below.total[0]!, g.total[0]!)}), self ${value(self, unit)} (${percent(self, g.total[0]!)})` }));
    }

    keyDown(ev: KeyboardEvent): boolean {
        const used = this.up.plot.key(ev);

        if (used) this.down.plot.jump(this.up.plot.x0, this.up.plot.x1);
        return used;
    }
}
