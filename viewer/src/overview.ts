// SPDX-License-Identifier: BSD-2-Clause
// The whole recording in one strip: how much happened when, the part of the chosen function, and
// the range of all views.
import { type App } from './app';
import { fill, h } from './dom';
import { Plot, sans, type Theme } from './plot';
import { moment, step, time } from './text';
import { Tip } from './tip';

export interface Bins { all: Float64Array; idle: Float64Array; mine: Float64Array; most: number }

// Is the function at or above each node?
export function holds(app: App, func: number): Uint8Array {
    const { tree } = app.source!;
    const out = new Uint8Array(tree.nr);

    for (let i = 1; i < tree.nr; i++)
        out[i] = out[tree.parent[i]!]! || tree.func[i] === func || (app.searching && app.match[tree.func[i]!]) ? 1 : 0;
    return out;
}

export class Overview extends Plot {
    private bins: Bins | null = null;
    private picking: [number, number] | null = null;
    readonly note = h('span', { class: 'range' });
    private later = 0;
    hot = 0; // what is shown while no function was chosen

    constructor(private app: App, private tip: Tip) {
        super('Activity over time: drag to choose a range, or arrows and Enter');
        this.canvas.classList.add('overview');
        this.canvas.addEventListener('keydown', (ev) => { if (this.keyPressed(ev)) { ev.preventDefault(); ev.stopPropagation(); } });
        this.canvas.addEventListener('blur', () => { this.at = -1; this.redraw(); });
        this.min = this.x0 = 0;
        this.max = this.x1 = app.model.end;
        app.listen((c) => {
            if (c === 'zoom') return;
            if (c !== 'look') this.bins = null;
            if (c === 'data') this.lead();
            this.redraw();
        });
    }

    private gather(): Bins {
        const { app } = this, n = Math.max(20, Math.round(this.w / 3));
        const b: Bins = { all: new Float64Array(n), idle: new Float64Array(n), mine: new Float64Array(n), most: 0 };
        const source = app.source;

        if (!source?.timed) return b;
        const { cpu, thread, on } = app.state, { tree } = source, func = app.state.func || this.hot;
        const mine = func > 0 || app.searching ? holds(app, app.searching ? -1 : func) : null;
        const idle = Uint8Array.from(tree.func, (f) => (/^\[(idle|sleeping|blocked|waiting|stolen|exit hlt)/.test(app.model.funcs.name(f)) ? 1 : 0));
        const per = n / app.model.end;
        const depth1 = source.key === 'calls', nested = depth1 && on && source.hasOff;
        source.each({ t0: 0, t1: 0, cpu, thread, on }, (t, dur, v, node) => {
            const outer = !depth1 || tree.parent[node] === 0;
            const own = mine !== null && mine[node] && (!depth1 || !mine[tree.parent[node]!]);
            // A call's time off CPU is no part of the calls around it.
            const less = nested && v < dur;
            if (!outer && !own && !less) return;
            const to = Math.min(n - 1, (t + dur) * per);
            for (let i = Math.min(n - 1, Math.floor(t * per)); i <= to; i++) {
                const part = dur > 0 ? Math.max(0, Math.min((t + dur) * per, i + 1) - Math.max(t * per, i)) / per / dur : 1;
                if (outer || less) b.all[i]! += part * (outer ? v : v - dur);
                if (outer && idle[node]) b.idle[i]! += part * v;
                if (own || (less && mine?.[node])) b.mine[i]! += part * (own ? v : v - dur);
            }
        }, mine === null && !nested);
        for (const v of b.all) b.most = Math.max(b.most, v);
        return b;
    }

    private begun = false;
    begin(): void {
        this.begun = true;
        this.lead();
        this.redraw();
    }

    // When the hottest function was hot; of very many calls not before people have looked at something.
    lead(): void {
        const { app } = this, s = app.model.spans, few = !s || s.outline || s.rows.start.length < 1e6;
        const find = (): void => {
            this.hot = app.source?.timed ? app.hottest : 0;
            this.bins = null;
            this.redraw();
        };

        clearTimeout(this.later);
        if (few) find();
        else this.later = setTimeout(find, 700);
    }

    override paint(t: Theme): void {
        if (!this.begun) return;
        const { ctx, app } = this, b = this.bins ??= this.gather();
        const n = b.all.length, w = this.w / n, high = this.h - 16;

        for (let i = 0; i < n && b.most > 0; i++) {
            const bar = (v: number, colour: string): void => {
                ctx.fillStyle = colour;
                ctx.fillRect(i * w, 14 + high - v / b.most * high, Math.max(1, w - 0.5), v / b.most * high);
            };
            bar(b.all[i]!, t.dark ? '#3a4250' : '#d6dbe4');
            bar(b.all[i]! - b.idle[i]!, t.dark ? '#7b889e' : '#9aa7bd');
            bar(b.mine[i]!, app.searching ? '#e045e0' : t.accent);
        }
        this.marks(t);
        if (this.at >= 0) {
            ctx.fillStyle = t.text;
            ctx.fillRect(this.px(this.at) - 1, 0, 2, this.h);
        }
        const range = this.picking ?? (app.state.t1 > app.state.t0 ? [app.state.t0, app.state.t1] : null);
        if (range) {
            ctx.fillStyle = t.dark ? 'rgba(0,0,0,.6)' : 'rgba(255,255,255,.7)';
            ctx.fillRect(0, 0, this.px(range[0]!), this.h);
            ctx.fillRect(this.px(range[1]!), 0, this.w, this.h);
            ctx.fillStyle = t.text;
            for (const x of range) ctx.fillRect(this.px(x!) - 0.5, 0, 1.5, this.h);
        }
const func = app.state.func || this.hot;
        fill(this.note, range ? `${time(range[1]! - range[0]!)} from ${moment(range[0]!, (range[1]! - range[0]!) / 10)}` : `${time(app.model.end)} in all`,
            (func > 0 || app.searching) && h('span', { class: 'key' }, h('i', { style: { background: app.searching ? '#e045e0' : 'var(--accent)' } }),
                h('span', { class: 'name which', text: app.searching ? 'what was searched for' : app.model.funcs.name(func) })));
    }

    private marks(t: Theme): void {
        const { ctx } = this, every = step(this.max / this.w * 120);

        ctx.font = sans;
        ctx.textBaseline = 'middle';
        for (let x = 0; x < this.max; x += every) {
            ctx.fillStyle = t.line;
            ctx.fillRect(this.px(x), 0, 1, 14);
            ctx.fillStyle = t.dim;
            ctx.fillText(moment(x, every), this.px(x) + 3, 7);
        }
    }

    override dragBegins(x: number): (x: number, y: number, done: boolean) => void {
        const from = this.unpx(x);

        return (px, _y, done) => {
            const to = Math.max(0, Math.min(this.max, this.unpx(px)));
            this.picking = from < to ? [from, to] : [to, from];
            if (done) {
                const [a, b] = this.picking;
                this.picking = null;
                this.app.setRange(a, b);
            }
            this.redraw();
        };
    }

    // Arrows move a mark; with Shift they choose from where it was. Enter and Escape show all again.
    private at = -1; // ns
    private from = -1;
    private keyPressed(ev: KeyboardEvent): boolean {
        const d = ev.key === 'ArrowRight' ? 1 : ev.key === 'ArrowLeft' ? -1 : 0, { t0, t1 } = this.app.state;

        if (ev.key === 'Enter' && t1 > t0) { this.from = -1; this.app.setRange(0, 0); return true; }
        if (d === 0) return false;
        if (this.at < 0) this.at = t1 > t0 ? t1 : 0;
        if (!ev.shiftKey) this.from = -1;
        else if (this.from < 0) this.from = this.at;
        this.at = Math.max(0, Math.min(this.max, this.at + d * this.max / 100));
        if (this.from >= 0 && this.from !== this.at) this.app.setRange(Math.min(this.from, this.at), Math.max(this.from, this.at));
        this.redraw();
        return true;
    }

    override hover(x: number, y: number): void {
        if (x < 0) this.tip.hide();
        else this.tip.show(this.canvas, x, y, [moment(this.unpx(x), this.max / this.w)]);
    }

    override press(): void { this.app.setRange(0, 0); }
    override double(): void { this.app.setRange(0, 0); }
    override zoom(): void {}
    override pan(): void {}
    override bounds(): void {}
}
