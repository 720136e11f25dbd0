// SPDX-License-Identifier: BSD-2-Clause
// Flame graph or icicle of the selection; zoomed by clicks, and by range.
import { type App, type Change, type View } from './app';
import { ofDelta, hit } from './colours';
import { button, fill, h } from './dom';
import { hiddenTools } from './hidden';
import { layout, type Layout } from './layout';
import { Stack } from './stack';
import { count, nothing, percent, value } from './text';
import { callers, doubt, type Graph } from './tree';
import { Tip } from './tip';
import { Twin } from './twin';

// Sides of a difference: both, each alone, and frames that only the first one has.
const sides = ['both', 'before', 'after', 'gone'] as const;
type Side = typeof sides[number];
const sideText: Record<Side, [string, string]> = { both: ['Both', 'As wide as the larger share'], before: ['Before', 'As wide as the share before'],
    after: ['After', 'As wide as the share after'], gone: ['Only before', 'Frames that are gone'] };

const NONE: Layout = { nr: 0, first: new Uint32Array(1), start: new Float64Array(0), dur: new Float64Array(0), id: new Uint32Array(0), of: new Int32Array(0), total: 1 };

export class Flame implements View {
    root: HTMLElement;
    plot: Stack;
    private bar = h('div', { class: 'bar' });
    private found = h('span', { class: 'found' });
    private none = h('p', { class: 'dim bar', text: nothing });
    private g: Graph | null = null;
    private rows: Layout = NONE;
    private zoomed = 0;
    private most = 0; // largest difference
    private twin: Twin;

    constructor(private app: App, private tip: Tip) {
        this.plot = new Stack('Flame graph: arrow keys go from frame to frame, Enter zooms', {
            colour: (n) => this.colour(n),
            text: (n) => this.name(n),
            hover: (i, x, y) => this.hover(i, x, y),
            press: (i, ev) => this.press(i, ev),
            double: () => this.zoomTo(0),
        });
        this.twin = new Twin((n) => this.focus(n));
        this.root = h('section', { class: 'view' }, this.bar, this.none, this.plot.canvas, this.twin.root);
    }

    open(): void {
        this.plot.onRange = (x0, x1) => this.app.setOpt('part', x1 - x0 < this.rows.total ? `${(x0 / this.rows.total).toFixed(6)},${(x1 / this.rows.total).toFixed(6)}` : '');
        this.rebuild();
        this.plot.resize();
    }

    update(c: Change): void {
        const was = this.rows.total;

        if (c === 'data' || c === 'look') this.rebuild();
        if (this.rows.total !== was) this.whole(); // what was zoomed to is of something else
        else if (c === 'search') this.say();
        this.plot.redraw();
    }

    private func(n: number): number { return this.g!.tree.func[n]!; }
    private name(n: number): string { return this.app.model.funcs.name(this.func(n)); }

    private colour(n: number): number {
        const { app, g } = this;

        if (!g!.total2) return app.colour(this.func(n));
        if (app.searching && app.match[this.func(n)]) return hit;
        const scale = g!.total2[0]! > 0 && g!.total[0]! > 0 ? g!.total2[0]! / g!.total[0]! : 1;
        const moved = g!.total2[n]! - g!.total[n]! * scale;
        // Only frames that moved in the direction in which their function is known to have changed.
        if (app.source!.sure && app.source!.sure[this.func(n)]! * moved <= 0) return ofDelta(0, app.state.safe);
        return ofDelta(this.most > 0 ? moved / this.most : 0, app.state.safe);
    }

    private get side(): Side { return sides.find((s) => s === this.app.opt('side')) ?? 'both'; }

    // The values of that side alone, which give the widths.
    private wide(g: Graph): Graph {
        const { tree, self, total, total2 } = g;

        if (!total2 || this.side === 'both') return g;
        if (this.side === 'gone') return { tree, self, total: tree.totals(self.map((v, i) => (total2[i]! === 0 ? v : 0))) };
        return { tree, self, total: this.side === 'before' ? total : total2 };
    }

    private turn(side: Side): void {
        this.app.state.path = [];
        this.app.state.opt.delete('part');
        this.app.setOpt('side', side, 'both');
        this.app.tell('look');
    }

    private rebuild(): void {
        const { app } = this, base = app.graph();

        this.g = base && app.state.inverted ? callers(base, app.model.funcs) : base;
        this.rows = this.g ? layout(this.wide(this.g), app.state.byWeight) : NONE;
        this.most = 0;
        if (this.g?.total2) {
            const scale = this.g.total[0]! > 0 ? this.g.total2[0]! / this.g.total[0]! : 1;
            for (let i = 1; i < this.g.tree.nr; i++) this.most = Math.max(this.most, Math.abs(this.g.total2[i]! - this.g.total[i]! * scale));
        }
        this.plot.up = app.state.up;
        this.plot.set(this.rows);
        this.plot.bounds(0, this.rows.total);
        this.zoomed = this.g ? this.g.tree.find(app.state.path) : 0;
        this.jump();
        this.toolbar();
    }

    private whole(): void {
        this.app.state.opt.delete('part');
        this.plot.bounds(0, this.rows.total);
        this.jump();
    }

    private jump(): void {
        const i = this.rows.of[this.zoomed] ?? -1, [from, to] = this.app.opt('part').split(',').map((x) => Number(x) * this.rows.total);

        if (to! > from! && from! >= 0 && to! <= this.rows.total) this.plot.jump(from!, to!);
        else if (this.zoomed > 0 && i >= 0) this.plot.jump(this.rows.start[i]!, this.rows.start[i]! + this.rows.dur[i]!);
    }

    private zoomTo(n: number): void {
        const { app, g, rows } = this;
        const i = rows.of[n] ?? -1;

        if (!g || i < 0) return;
        this.zoomed = n;
        app.state.path = g.tree.path(n).map((f) => app.model.funcs.name(f));
        this.plot.show(rows.start[i]!, rows.start[i]! + rows.dur[i]!);
        app.tell('zoom');
        this.toolbar();
    }

    private describe(n: number): string[] {
        const g = this.g!, unit = this.app.source!.unit;
        const lines = [this.name(n)];
        const f = this.app.model.funcs.list[this.func(n)]!;

        if (g.total2 && this.app.source!.sure) {
            const sure = this.app.source!.sure[this.func(n)]!;
            lines.push(`before ${percent(g.total[n]!, g.total[0]!)}, after ${percent(g.total2[n]!, g.total2[0]!)}`,
                sure > 0 ? 'the function takes more' : sure < 0 ? 'the function takes less' : 'no change of the function was found');
        } else if (g.total2) {
            lines.push(`before ${value(g.total[n]!, unit)} (${percent(g.total[n]!, g.total[0]!)})`,
                `after ${value(g.total2[n]!, unit)} (${percent(g.total2[n]!, g.total2[0]!)})`);
        } else {
            lines.push(`${value(g.total[n]!, unit)}, ${percent(g.total[n]!, g.total[0]!)} of all`,
                `self ${value(g.self[n]!, unit)}, ${percent(g.self[n]!, g.total[0]!)}`);
        }
        if (f.place || f.image) lines.push([f.image, f.place].filter(Boolean).join('  '));
        if (f.unsure > 0) lines.push(doubt(f));
        return lines;
    }

    private hover(i: number, x: number, y: number): void {
        if (i < 0) this.tip.hide();
        else this.tip.show(this.plot.canvas, x, y, this.describe(this.rows.id[i]!));
    }

    private focus(n: number): void {
        const i = this.rows.of[n] ?? -1;

        if (i < 0 || !this.g) return;
        this.plot.focus = i;
        this.plot.reveal(i);
        this.app.setFunc(this.func(n));
        this.twin.show(this.g, n, (m) => this.describe(m).join(', '));
    }

    private press(i: number, ev: MouseEvent): void {
        if (i < 0) return;
        const n = this.rows.id[i]!;
        this.focus(n);
        if (!ev.ctrlKey && !ev.metaKey) this.zoomTo(n);
    }

    // Arrows go from frame to frame, once one has the focus.
    keyDown(ev: KeyboardEvent): boolean {
        const { g, rows } = this;
        const now = this.plot.focus >= 0 ? rows.id[this.plot.focus]! : 0;
        const side = ev.key === 'ArrowLeft' ? -1 : ev.key === 'ArrowRight' ? 1 : 0;

        if (!g) return false;
        const { first, list } = g.tree.children;
        if (ev.key === (this.app.state.up ? 'ArrowUp' : 'ArrowDown')) {
            let best = -1;
            for (let k = first[now]!; k < first[now + 1]!; k++)
                if (rows.of[list[k]!]! >= 0 && (best < 0 || g.total[list[k]!]! > g.total[best]!)) best = list[k]!;
            if (best >= 0) this.focus(best);
        } else if (ev.key === (this.app.state.up ? 'ArrowDown' : 'ArrowUp')) {
            this.focus(g.tree.parent[now]!);
        } else if (side !== 0) {
            const i = rows.of[now]! + side;
            if (rows.id[i] !== undefined && this.sameRow(rows.of[now]!, i)) this.focus(rows.id[i]!);
        } else if (ev.key === 'Enter') {
            this.zoomTo(now);
        } else if (ev.key === 'Escape' && this.zoomed > 0) {
            this.zoomTo(0);
        } else if (ev.key === 'i') {
            this.app.set({ up: !this.app.state.up }, 'look');
        } else if (ev.key === 'v') {
            this.app.state.opt.delete('part');
            this.app.set({ inverted: !this.app.state.inverted, path: [] }, 'look');
        } else if (ev.key === 'x' && g.total2) {
            this.turn(sides[(sides.indexOf(this.side) + 1) % sides.length]!);
        } else if (ev.key === 'r') {
            this.app.state.path = [];
            this.app.set({ recursion: !this.app.state.recursion }, 'data');
        } else {
            return this.plot.key(ev);
        }
        return true;
    }

    private sameRow(i: number, j: number): boolean {
        const row = (k: number): number => this.rows.first.findIndex((f) => f > k);

        return row(i) === row(j);
    }

    private toolbar(): void {
        const { app } = this, s = app.state;
        const flip = (part: Partial<typeof s>, c: Change = 'look') => (): void => { s.path = []; s.opt.delete('part'); app.set(part, c); };

        fill(this.bar,
            button(s.up ? 'Root below' : 'Root above', 'Flame graph or icicle (i)', () => app.set({ up: !s.up }, 'look')),
            button('Leaves first', 'Turns stacks over: callers grow from what ran (v)', flip({ inverted: !s.inverted }), s.inverted),
            button('Merge recursion', 'A function that calls itself is one frame (r)', flip({ recursion: !s.recursion }, 'data'), s.recursion),
            button('Widest first', 'Orders callees by value, not by name', () => app.set({ byWeight: !s.byWeight }, 'look'), s.byWeight),
            this.g?.total2 !== undefined && button('Colour-blind-safe', 'Blue and orange instead of blue and red', () => app.set({ safe: !s.safe }, 'look'), s.safe),
            this.zoomed > 0 && button('Reset zoom', 'Shows all again (Esc)', () => this.zoomTo(0)),
            ...hiddenTools(app, app.leftOut),
            this.g?.total2 !== undefined && h('span', { class: 'key' }, h('i', { style: { background: s.safe ? '#5d8fe0' : '#6a86e8' } }), 'less',
                h('i', { style: { background: s.safe ? '#ec9a4b' : '#e8645c' } }), 'more'),
            this.g?.total2 !== undefined && h('span', { class: 'bar' }, ...sides.map((side) => button(sideText[side][0], sideText[side][1] + ' (x: the next one)', () => this.turn(side), side === this.side))),
            h('span', { class: 'grow' }), this.found);
        this.none.hidden = this.g !== null && this.rows.total > 0;
        this.say();
    }

    private say(): void {
        const { app, g } = this;

        if (!g) return;
        if (app.badPattern) this.found.textContent = 'not a regular expression';
        else if (app.searching) this.found.textContent = `matched ${percent(app.matchedShare(g, this.zoomed), 1)} of what is visible`;
        else this.found.textContent = `${value(g.total2 ? g.total2[0]! : g.total[this.zoomed]!, app.source!.unit)}, ${count(this.rows.start.length - 1)} frames`;
    }
}
