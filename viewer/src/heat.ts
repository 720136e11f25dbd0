// SPDX-License-Identifier: BSD-2-Clause
// Heat map as FlameScope has it. A column is a second (less for short recordings), a row a fiftieth of that (more if samples are
// few). A range is picked from cell to cell.
import { type App, type Change, type View } from './app';
import { fill, h, select } from './dom';
import { holds } from './overview';
import { Plot, sans, type Theme } from './plot';
import { count, moment, time } from './text';
import { Tip } from './tip';

const most = 50, fewest = 10; // cells of a column
const left = 54, bottom = 20;

function ramp(v: number, dark: boolean): string {
    // From the background to yellow, red and black (or white): monotonous in lightness.
    const stops = dark ? [[26, 29, 36], [96, 40, 60], [214, 84, 44], [255, 190, 70], [255, 252, 215]] : [[246, 247, 249], [255, 222, 120], [246, 132, 48], [188, 32, 50], [64, 8, 46]];
    const x = Math.min(0.9999, v) * (stops.length - 1), i = Math.floor(x), f = x - i;

    return `rgb(${stops[i]!.map((c, k) => Math.round(c + (stops[i + 1]![k]! - c) * f)).join(',')})`;
}

export class Heat extends Plot implements View {
    root: HTMLElement;
    private cells = new Float64Array(0);
    private columns = 1;
    private calls = false; // how many began, not how long they took
    column = 1e9; // ns
    rows = most;
    private cursor = -1; // cell that the keyboard is at
    private full = 1; // what the darkest cell has
    private picking: [number, number] | null = null;
    private bar = h('div', { class: 'bar' });
    private live = h('div', { role: 'status', class: 'quiet' });

    constructor(private app: App, private tip: Tip) {
        super('Heat map: drag from cell to cell to choose a range');
        this.root = h('section', { class: 'view' }, this.bar, this.canvas, this.live);
    }

    open(): void {
        this.gather();
        this.resize();
    }

    update(c: Change): void {
        if (c !== 'look') this.gather();
        this.redraw();
    }

    // Columns are long enough, and there are a few of them. A cell holds two periods of the sampler or more: less is noise.
    private scale(end: number, period: number): void {
        const least = Math.max(1e3, 2 * fewest * period), steps = [1, 2, 5];
        let k = 27; // 1 s

        const length = (i: number): number => steps[i % 3]! * 10 ** Math.floor(i / 3);
        while (end / length(k) < 12 && length(k - 1) >= least) k--;
        while (end / length(k) > 1200) k++;
        this.column = length(k);
        this.rows = period > 0 ? Math.max(1, Math.min(most, Math.floor(this.column / (2 * period)))) : most;
    }

    private gather(): void {
        const { app } = this, s = app.source;
        const end = app.model.end;

        this.scale(end, s === app.model.samples ? app.model.samples?.period ?? 0 : 0);
        this.columns = Math.max(1, Math.ceil(end / this.column));
        this.cells = new Float64Array(this.columns * this.rows);
        this.full = 0;
        if (!s?.timed) return;
        const only = app.searching || app.state.func > 0, inside = only ? holds(app, app.searching ? -1 : app.state.func) : null;
        const per = this.rows / this.column, depth1 = s.key === 'calls', nested = depth1 && app.state.on && s.hasOff;
        s.each({ ...app.selection, t0: 0, t1: 0 }, (t, dur, v, node) => {
            const { parent } = s.tree;
            const outer = inside ? inside[node] && !(depth1 && inside[parent[node]!]) : !depth1 || parent[node] === 0;
            // A call's time off CPU is no part of the calls around it.
            if (!outer && !(nested && v < dur && (!inside || inside[node]))) return;
            if (!outer) v -= dur;
            const to = Math.min(this.cells.length - 1, Math.floor((t + dur) * per));
            for (let i = Math.floor(t * per); i <= to; i++)
                this.cells[i]! += dur > 0 ? v * Math.max(0, Math.min(t + dur, (i + 1) / per) - Math.max(t, i / per)) / dur : v;
        }, inside === null && !nested);
        // A guest that is always busy is as dark everywhere: then how often it called tells one time from another.
        const choice = depth1 && !s.outline && !inside, how = app.opt('heat');
        this.calls = choice && (how === 'calls' || (how !== 'time' && this.uniform()));
        if (this.calls) {
            this.cells.fill(0);
            s.each({ ...app.selection, t0: 0, t1: 0 }, (t) => { this.cells[Math.min(this.cells.length - 1, Math.floor(t * per))]!++; });
        }
        // One cell that stands out must not make all others pale.
        const sorted = this.cells.filter((v) => v > 0).sort();
        this.full = Math.min(sorted[sorted.length - 1] ?? 0, 1.5 * (sorted[Math.floor(sorted.length * 0.99)] ?? 0));
        fill(this.bar, choice && select('What a cell shows', [['time', 'time on CPU'], ['calls', 'calls that began']], this.calls ? 'calls' : 'time', (v) => { app.setOpt('heat', v); this.gather(); this.redraw(); }),
            h('span', { class: 'dim', text: `each column is ${time(this.column)}, from below; each cell ${time(this.column / this.rows)}` }),
            only && h('b', { class: 'name', text: app.searching ? 'what was searched for' : app.model.funcs.name(app.state.func) }),
            h('span', { class: 'grow' }),
            h('span', { class: 'key' }, 'none', ...[0.1, 0.35, 0.6, 0.99].map((v) => h('i', { style: { background: ramp(v, document.documentElement.dataset.dark === '1') } })), 'most'));
    }

    // Are nearly all cells about as full?
    private uniform(): boolean {
        const whole = Math.floor(this.app.model.end / this.column * this.rows), sorted = this.cells.slice(0, whole).sort();

        return whole > 9 && sorted[Math.floor(whole * 0.1)]! > 0.8 * sorted[Math.floor(whole * 0.9)]!;
    }

    private size(): [number, number] {
        return [Math.min(40, (this.w - left - 8) / this.columns), (this.h - bottom - 6) / this.rows];
    }

    override paint(t: Theme): void {
        const { ctx, app } = this, [cw, ch] = this.size();
        const range = this.picking ?? (app.state.t1 > app.state.t0 ? [app.state.t0 / this.column * this.rows, app.state.t1 / this.column * this.rows - 1] : null);

        for (let i = 0; i < this.cells.length; i++) {
            const c = Math.floor(i / this.rows), r = i % this.rows;
            if ((i + 0.5) * this.column / this.rows > app.model.end) continue;
            ctx.fillStyle = ramp(this.full > 0 ? this.cells[i]! / this.full : 0, t.dark);
            ctx.fillRect(left + c * cw, 2 + (this.rows - 1 - r) * ch, cw > 3 ? cw - 0.6 : cw, ch > 3 ? ch - 0.6 : ch);
            if (range && i >= Math.floor(range[0]!) && i <= Math.ceil(range[1]!)) {
                ctx.fillStyle = t.dark ? 'rgba(90,170,255,.38)' : 'rgba(20,110,255,.28)';
                ctx.fillRect(left + c * cw, 2 + (this.rows - 1 - r) * ch, cw, ch);
            }
        }
        if (this.cursor >= 0) {
            ctx.strokeStyle = t.text;
            ctx.lineWidth = 2;
            ctx.strokeRect(left + Math.floor(this.cursor / this.rows) * cw, 2 + (this.rows - 1 - this.cursor % this.rows) * ch, cw, ch);
        }
        ctx.font = sans;
        ctx.fillStyle = t.dim;
        ctx.textBaseline = 'middle';
        for (let r = 0; r <= this.rows; r += Math.max(1, Math.floor(this.rows / 5))) ctx.fillText(time(r / this.rows * this.column), 4, Math.min(this.h - bottom - 6, Math.max(8, 2 + (this.rows - r) * ch)));
        const every = Math.max(1, Math.ceil(70 / cw));
        for (let c = 0; c < this.columns; c += every) ctx.fillText(moment(c * this.column, this.column), left + c * cw, this.h - bottom / 2);
    }

    private cell(x: number, y: number): number {
        const [cw, ch] = this.size();
        const c = Math.max(0, Math.min(this.columns - 1, Math.floor((x - left) / cw)));
        const r = Math.max(0, Math.min(this.rows - 1, this.rows - 1 - Math.floor((y - 2) / ch)));

        return c * this.rows + r;
    }

    private choose(a: number, b: number): void {
        const [from, to] = a <= b ? [a, b] : [b, a];

        this.app.setRange(from * this.column / this.rows, (to + 1) * this.column / this.rows);
    }

    override dragBegins(x: number, y: number): (x: number, y: number, done: boolean) => void {
        const from = this.cell(x, y);

        return (px, py, done) => {
            const to = this.cell(px, py);
            this.picking = from <= to ? [from, to] : [to, from];
            if (done) {
                this.picking = null;
                this.choose(from, to);
            }
            this.redraw();
        };
    }

    // Click and click is a range, too; Shift extends the one that is there.
    private pressed = -1;
    override press(x: number, y: number, ev: MouseEvent): void {
        this.cursor = -1;
        this.pick(this.cell(x, y), ev.shiftKey);
    }

    private pick(i: number, extend: boolean): void {
        const { t0, t1 } = this.app.state;

        if (extend && t1 > t0) {
            const a = Math.round(t0 / this.column * this.rows), b = Math.round(t1 / this.column * this.rows) - 1;
            this.choose(Math.min(a, i), Math.max(b, i));
        } else if (this.pressed >= 0) {
            const from = this.pressed;
            this.pressed = -1;
            this.choose(from, i);
        } else {
            this.pressed = i;
            this.picking = [i, i];
            this.redraw();
        }
    }

    override double(): void {}
    override hover(x: number, y: number): void {
        if (x < left || x > left + this.size()[0] * this.columns) { this.tip.hide(); return; }
        const i = this.cell(x, y);
        if (this.pressed >= 0) {
            this.picking = this.pressed < i ? [this.pressed, i] : [i, this.pressed];
            this.redraw();
        }
        this.tip.show(this.canvas, x, y, this.told(i));
    }

    private told(i: number): string[] {
        const { unit } = this.app.source!, v = this.cells[i]!;

        return [moment(i * this.column / this.rows, this.column / this.rows), this.calls ? count(v) + ' calls' : unit === 'ns' ? time(v) : count(v) + ' ' + unit];
    }

    override zoom(): void {}
    override pan(): void {}

    // Arrows go from cell to cell; Enter begins a range, and again ends it.
    keyDown(ev: KeyboardEvent): boolean {
        const step = ({ ArrowUp: 1, ArrowDown: -1, ArrowRight: this.rows, ArrowLeft: -this.rows } as Record<string, number>)[ev.key];

        if (step !== undefined) {
            const to = this.cursor < 0 ? 0 : this.cursor + step;
            if (to >= 0 && to < this.cells.length) this.cursor = to;
            if (this.pressed >= 0) this.picking = [Math.min(this.pressed, this.cursor), Math.max(this.pressed, this.cursor)];
            this.live.textContent = this.told(this.cursor).join(', ');
        } else if (ev.key === 'Enter' && this.cursor >= 0) this.pick(this.cursor, ev.shiftKey);
        else if (ev.key === 'Escape' && (this.pressed >= 0 || this.cursor >= 0)) {
            this.pressed = this.cursor = -1;
            this.picking = null;
        } else return false;
        this.redraw();
        return true;
    }
}
