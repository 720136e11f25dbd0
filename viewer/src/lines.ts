// SPDX-License-Identifier: BSD-2-Clause
// The canvas with the lines of threads and promises: lives, runs, arrows, bands, counters.
import { drawCounters } from './counters';
import { lowerBound } from './source';
import { next, seek, type Rows } from './rows';
import { Plot, sans, type Theme } from './plot';
import { SvgPen, type Pen } from './pen';
import { Raster, type Brush } from './raster';
import { Fate, NONE, place, type Places, type Promises } from './promises';
import { Arrows } from './arrows';
import { write } from './marks';
import { moment, step, time } from './text';
import { fitted } from './stack';
import { trackPx, type Tracks } from './tracks';

export const rowPx = 30;
const head = 20;

export class Lines extends Plot {
    places!: Places;
    selected = NONE;
    lit = new Set<number>(); // what is highlighted: found, or a chain of becoming
    fisheye = false;
    hiddenCounters = new Set<string>();
    onPick?: (p: number) => void;
    onHover?: (x: number, y: number, lines: string[] | null) => void;
    onChain?: (p: number) => void;
    onCall?: (call: number) => void;
    showCalls = true;
    private centre = 0; // of the fisheye, a row
    private arrows: Arrows;
    private tops = new Float64Array(1); // where each row begins, if none is smaller
    private tracked: number[][][] = []; // of each row the rows of calls by depth
    private raster = new Raster();

    constructor(readonly p: Promises, readonly tracks: Tracks | null) {
        super('Threads and promises over time: W and S zoom, A and D pan, brackets follow a chain');
        this.arrows = new Arrows(p, this);
        this.pack(() => true);
        this.bounds(p.first, p.last);
        this.fitWithMargin();
    }

    fitWithMargin(): void {
        const margin = (this.p.last - this.p.first) * 0.02;

        this.bounds(this.p.first - margin, this.p.last + margin);
    }

    grouped = true;
    private shown: (i: number) => boolean = () => true;
    private shownAll = true;

    pack(shown: (i: number) => boolean = this.shown, all = this.shownAll): void {
        this.shown = shown;
        this.shownAll = all;
        this.places = place(this.p, shown, this.grouped);
        this.arrows.pack();
        this.centre = Math.min(this.centre, Math.max(0, this.nrRows - 1));
        this.measure();
    }

    // Threads that only made calls are below all others.
    private get others(): { name: string; rows: number[][] }[] { return this.showCalls && this.tracks && this.shownAll ? this.tracks.others : []; }
    private get nrRows(): number { return this.places.nrRows + this.others.length; }

    // How high each row is, with the calls below its line.
    measure(): void {
        const { row, nrRows } = this.places, n = this.nrRows;

        this.tracked = [];
        if (this.tracks && this.showCalls) {
            for (const q of this.tracks.who()) {
                const r = row[q]!, mine = this.tracks.rowsOf(q);
                if (r < 0) continue;
                const list = this.tracked[r] ??= [];
                mine.forEach((rows, d) => { (list[d] ??= []).push(...rows); });
            }
            this.others.forEach((o, i) => { this.tracked[nrRows + i] = o.rows; });
        }
        this.tops = new Float64Array(n + 1);
        for (let r = 0; r < n; r++) this.tops[r + 1] = this.tops[r]! + rowPx + (this.tracked[r]?.length ?? 0) * trackPx;
        this.contentHeight();
        this.redraw();
    }

    rowOf(p: number): number { return p === NONE ? -1 : this.places.row[p]!; }
    // Of what is drawn: is it bent, where is the row in the centre, and where do counters begin?
    private eye = false;
    private middle = 0;
    private room = 0;
    override contentHeight(): number {
        this.room = this.h - this.counterHeight();
        // If all rows have room, nothing has to shrink.
        this.eye = this.fisheye && this.nrRows * rowPx > this.room - head - 16;
        // In the middle, or nearer to the end that is near.
        const top = head + 16 + rowPx / 2 - this.bent(0), end = this.room - rowPx - this.bent(this.nrRows - 1);
        this.middle = Math.min(top, Math.max(end, head + 10 + (this.room - head - 10) * 0.45));
        return this.eye ? this.h : this.tops[this.nrRows]! + head + 30 + this.counterHeight();
    }

    private counterHeight(): number { return this.p.counters.some((c) => !this.hiddenCounters.has(c.name)) ? 76 : 0; }

    private bent(row: number): number {
        const d = row - this.centre;

        return Math.sign(d) * rowPx * 4 * Math.log1p(Math.abs(d) / 4);
    }

    // Middle of a row's line.
    y(row: number): number {
        return this.eye ? this.middle + this.bent(row) : head + 16 + this.tops[row]! - this.top + rowPx / 2;
    }

    height(row: number): number { return this.eye ? rowPx / (1 + Math.abs(row - this.centre) / 4) : rowPx; }

    private row(y: number): number {
        if (!this.eye) return y < head + 16 - this.top ? -1 : lowerBound(this.tops, y - head - 16 + this.top + 1e-9) - 1;
        const d = y - this.middle;
        return Math.round(this.centre + Math.sign(d) * 4 * Math.expm1(Math.abs(d) / (rowPx * 4)));
    }

    paint(t: Theme): void { this.drawWith(this.ctx, t); }

    svg(title: string, t: Theme): string {
        const pen = new SvgPen(this.ctx, this.w, this.h);

        this.drawWith(pen, t);
        return pen.done(title, t.back);
    }

    private drawWith(pen: Pen, t: Theme): void {
        const { p } = this;

        pen.font = sans;
        pen.textBaseline = 'middle';
        pen.fillStyle = t.dark ? '#1b1f26' : '#e9ebef';
        pen.fillRect(0, 0, this.w, this.h);
        this.drawBands(pen, t);
        this.drawGrid(pen, t);
        const a = Math.max(0, this.row(head - rowPx)), b = Math.min(this.nrRows - 1, this.row(this.h + rowPx)), lines = Math.min(b, this.places.nrRows - 1);
        this.drawLit(pen, t, a, b);
        this.drawRows(pen, t, a, lines);
        this.drawCalls(pen, t, a, b);
        this.arrows.draw(pen, t, a, b);
        this.arrows.findings(pen, t);
        for (let r = a; r <= lines; r++) if (this.height(r) >= 22) { this.drawLabels(pen, t, r, this.y(r)); this.drawEnded(pen, t, r, this.y(r)); }
        if (this.selected !== NONE && this.rowOf(this.selected) >= 0) this.drawSelected(pen, t, this.selected);
        if (this.room < this.h) {
            pen.fillStyle = t.back;
            pen.fillRect(0, this.room, this.w, this.h - this.room);
            drawCounters(pen, p.counters, this.hiddenCounters, { x0: this.x0, x1: this.x1, w: this.w, last: p.last, base: this.h - 20, high: this.h - this.room - 26 });
        }
        pen.fillStyle = t.dim;
        const every = this.grid();
        pen.fillText(`each line: ${time(every)}`, this.w - 110, this.h - 9);
        if (p.nr === 0) pen.fillText('no threads', 20, 40);
    }

    private drawRows(pen: Pen, t: Theme, a: number, b: number): void {
        const raster = pen === this.ctx ? this.raster : null, brush = raster ?? pen;
        let last = -9;

        for (let r = a; r <= b; r++) {
            const y = this.y(r);
            // In a fisheye far rows are closer together than lines can be.
            if (y - last < 1.5) continue;
            last = y;
            this.drawLives(pen, brush, t, r, y);
            this.drawRuns(brush, t, r, y);
        }
        raster?.put(this.ctx, this.w, this.h);
    }

    private drawCalls(pen: Pen, t: Theme, a: number, b: number): void {
        const seen: { rows: number[]; y: number }[] = [];

        if (!this.tracks || this.eye) return;
        for (let r = a; r <= b; r++)
            this.tracked[r]?.forEach((rows, d) => {
                const y = this.y(r) + 8 + d * trackPx;
                if (y > head - trackPx && y < this.room) seen.push({ rows, y });
            });
        this.tracks.draw(pen, this.ctx, seen, this.w, this.x0, this.x1, t.dark ? 0xff261f1b : 0xffefebe9);
        pen.font = sans;
        for (let r = Math.max(a, this.places.nrRows); r <= b; r++) write(pen, t, this.others[r - this.places.nrRows]!.name, 3, this.y(r) - 2, t.text);
    }

    // Calls may go on in a row behind the last event of its thread: whose they are.
    private drawEnded(pen: Pen, t: Theme, r: number, y: number): void {
        const { lives } = this.places, last = lives.first[r + 1]! - 1;

        if (!this.showCalls || !this.tracked[r]?.length || last < lives.first[r]! || lives.start[last]! + lives.dur[last]! >= this.x0) return;
        write(pen, t, fitted(this.p.name(lives.id[last]!), 40) + ' (ended)', 3, y - 9, t.dim);
    }

    private grid(): number { return step((this.x1 - this.x0) / this.w * 110); }

    private drawGrid(pen: Pen, t: Theme): void {
        const every = this.grid();

        for (let x = Math.ceil(this.x0 / every) * every; x <= this.x1; x += every) {
            const px = this.px(x);
            pen.fillStyle = t.dark ? '#2a303a' : '#d3d7de';
            pen.fillRect(px, head - 6, 1, this.h);
            pen.fillStyle = t.dim;
            pen.fillText(moment(x, every), px + 3, 9);
        }
    }

    private drawBands(pen: Pen, t: Theme): void {
        for (const b of this.p.bands) {
            const x = this.px(b.begin), w = this.px(b.end) - x;
            if (x > this.w || x + w < 0) continue;
            pen.fillStyle = b.gc ? (t.dark ? '#4a3636' : '#e3c4c4') : (t.dark ? '#14171c' : '#d9dce2');
            pen.fillRect(x, head, Math.max(1, w), this.h);
            if (w <= 16) continue;
            pen.fillStyle = t.dim;
            pen.fillText(fitted(b.gc ? 'GC' : 'sleeping', Math.max(2, w / 7 | 0)), Math.max(0, x) + 3, head + 8);
        }
    }

    private drawLit(pen: Pen, t: Theme, a: number, b: number): void {
        if (this.lit.size === 0) return;
        pen.fillStyle = t.dark ? '#6b5d00' : '#ffec80';
        for (const q of this.lit) {
            const r = this.rowOf(q);
            if (r < a || r > b) continue;
            const x = Math.max(-4, this.px(this.p.begin[q]!)), to = Math.min(this.w + 4, this.px(this.p.end[q]!));
            if (to >= 0 && x <= this.w) pen.fillRect(x - 3, this.y(r) - 9, Math.max(6, to - x + 6), 18);
        }
    }

    // Calls fn for what is visible of a row; what is narrower than a pixel comes together.
    private visible(rows: Rows, r: number, fn: (i: number, left: number, right: number) => void): void {
        const scale = this.w / (this.x1 - this.x0), end = rows.first[r + 1]!;

        for (let i = seek(rows, r, this.x0); i < end;) {
            const left = (rows.start[i]! - this.x0) * scale;
            if (left > this.w) return;
            const right = left + rows.dur[i]! * scale;
            fn(i, left, right);
            if (right - left >= 1) { i++; continue; }
            const to = next(rows.start, i + 1, end, this.x0 + (Math.floor(left) + 1) / scale, 1);
            i = to - 1 > i && rows.dur[to - 1]! * scale >= 1 ? to - 1 : to;
        }
    }

    private bad(q: number): boolean { return this.p.fate[q] === Fate.Failed || this.p.unresolved[q] === 1 || this.p.stuck[q] === 1; }

    private drawLives(pen: Pen, brush: Brush, t: Theme, r: number, y: number): void {
        const { p } = this, thick = this.height(r) >= 8 ? 2 : 1;
        const red = t.dark ? '#ff5050' : '#cc0000', grey = t.dark ? '#8b95a4' : '#4a515b';

        let from = 0, to = -1, last = false;
        const flush = (): void => {
            brush.fillStyle = last ? red : grey;
            if (to > from) brush.fillRect(from, y - thick / 2 - (last ? 0.5 : 0), to - from, thick + (last ? 1 : 0));
            to = -1;
        };

        this.visible(this.places.lives, r, (i, left, right) => {
            const q = this.places.lives.id[i]!, bad = this.bad(q);
            // Thin ones that touch each other are one rectangle.
            if (thick < 2) {
                if (left > to + 0.5 || bad !== last) { flush(); [from, last] = [left, bad]; }
                to = Math.max(to, left + 1, right);
                return;
            }
            brush.fillStyle = bad ? red : grey;
            brush.fillRect(left, y - thick / 2 - (bad ? 0.5 : 0), Math.max(1, right - left), thick + (bad ? 1 : 0));
            if (right > this.w + 8) return;
            if (p.fate[q] === Fate.Failed) brush.fillRect(right - 1, y - 4, 2, 8);
            else if (p.fate[q] === Fate.Open && right - left > 4) {
                pen.fillStyle = bad ? red : grey;
                pen.beginPath();
                pen.moveTo(right, y - 4);
                pen.lineTo(right + 6, y);
                pen.lineTo(right, y + 4);
                pen.closePath();
                pen.fill();
            }
        });
        flush();
    }

    // Narrow ones that touch each other are one rectangle: rectangles are what takes the time.
    private drawRuns(brush: Brush, t: Theme, r: number, y: number): void {
        const edge = t.dark ? '#8b95a4' : '#4a515b', big = this.height(r) >= 12;
        let from = 0, to = -1;
        const flush = (): void => {
            if (to <= from) return;
            brush.fillStyle = big ? edge : '#ffffff';
            brush.fillRect(from, y - (big ? 4 : 1), to - from, big ? 8 : 2);
            to = -1;
        };

        this.visible(this.places.runs, r, (_i, left, right) => {
            const end = Math.max(left + 1, right);
            if (!big || right - left < 1.5) {
                if (left > to + 0.5) { flush(); from = left; to = end; }
                else to = Math.max(to, end);
                return;
            }
            flush();
            brush.fillStyle = edge;
            brush.fillRect(left, y - 4, end - left, 8);
            brush.fillStyle = '#ffffff';
            brush.fillRect(left + 0.5, y - 3, right - left - 1, 6);
        });
        flush();
    }

    private drawLabels(pen: Pen, t: Theme, r: number, y: number): void {
        const { lives } = this.places, { p } = this;

        this.visible(lives, r, (i, left, right) => {
            const q = lives.id[i]!, end = lives.first[r + 1]!;
            const limit = i + 1 < end ? this.px(lives.start[i + 1]!) : this.w + 300;
            const x = Math.max(left, 3);
            const own = p.labels(q), room = Math.floor((limit - x) / 6.3);
            if (room < 3 || right < 0) return;
            const colour = this.bad(q) ? (t.dark ? '#ff8080' : '#a40000') : t.text;
            if (own.length < 2) {
                const name = fitted(p.name(q), room), type = own.length > 0 && room - name.length > 9 ? p.typeName(q) : '';
                const width = write(pen, t, name, x, y - 9, colour);
                if (type) write(pen, t, type, x + width + 8, y - 9, t.dim);
            }
            else {
                own.forEach(([at, text], k) => {
                    const lx = Math.max(this.px(k === 0 ? p.begin[q]! : at), 3);
                    const until = Math.min(limit, k + 1 < own.length ? this.px(own[k + 1]![0]) : limit), chars = Math.floor((until - lx) / 6.3);
                    if (chars >= 3 && lx < this.w) write(pen, t, fitted(text, chars), lx, y - 9, colour);
                });
            }
        });
    }

    private drawSelected(pen: Pen, t: Theme, q: number): void {
        const y = this.y(this.rowOf(q)), x = Math.max(-4, this.px(this.p.begin[q]!)), to = Math.min(this.w + 4, this.px(this.p.end[q]!));

        pen.strokeStyle = t.accent;
        pen.lineWidth = 2;
        pen.beginPath();
        pen.moveTo(x - 3, y - 8);
        pen.lineTo(to + 8, y - 8);
        pen.lineTo(to + 8, y + 8);
        pen.lineTo(x - 3, y + 8);
        pen.closePath();
        pen.stroke();
    }

    private pick(x: number, y: number): number {
        const r = this.row(y), { lives } = this.places;

        if (y > this.room || r < 0 || r >= this.places.nrRows || Math.abs(this.y(r) - y) > Math.max(2, this.height(r) / 2)) return NONE;
        const at = this.unpx(x), slack = 4 * (this.x1 - this.x0) / this.w;
        const i = seek(lives, r, at - slack);
        return i < lives.first[r + 1]! && lives.start[i]! - slack <= at ? lives.id[i]! : NONE;
    }

    // Call below the pointer, or -1, and who made it.
    private pickCall(x: number, y: number): [number, number] {
        const r = this.row(y), depth = Math.floor((y - this.y(r) - 8) / trackPx), rows = this.tracked[r]?.[depth];

        if (!this.tracks || !rows || this.eye || x < 0 || y > this.room) return [-1, NONE];
        const i = this.tracks.pick(rows, this.unpx(x), (this.x1 - this.x0) / this.w * 1.5);
        return [i, i < 0 ? NONE : this.tracks.who().find((q) => this.places.row[q] === r && this.tracks!.rowsOf(q)[depth]?.some((k) => this.tracks!.holds(k, i))) ?? NONE];
    }

    override hover(x: number, y: number): void {
        const [call] = this.pickCall(x, y), q = x < 0 || call >= 0 ? NONE : this.pick(x, y);

        if (call >= 0) { this.onHover?.(x, y, this.tracks!.describe(call, (this.x1 - this.x0) / this.w)); return; }

        this.onHover?.(x, y, q === NONE ? null : this.describe(q, this.unpx(x)));
    }

    describe(q: number, at?: number): string[] {
        const { p } = this, out = [p.name(q)], fateName = ['open', 'resolved', 'failed', 'became another'][p.fate[q]!]!;

        out.push(`${p.typeName(q)}, ${p.unresolved[q] ? 'should have been resolved, and never was' : fateName}, ${time(p.end[q]! - p.begin[q]!)} long`);
        out.push(`ran ${time(p.run[q]!)}, waited ${time(p.wait[q]!)}`);
        if (p.failed(q)) out.push(p.failed(q));
        const w = at === undefined ? undefined : p.waits(q).find((x) => x.begin <= at && (x.end < 0 || x.end >= at));
        if (w) out.push(`here it waits for ${p.name(w.on)}${w.ready >= 0 && at! > w.ready ? ', which is there: for a CPU' : ''}`);
        return out;
    }

    override press(x: number, y: number): void {
        const [call, who] = this.pickCall(x, y), q = call >= 0 ? who : this.pick(x, y);

        if (call >= 0) this.onCall?.(call);
        if (this.eye) this.centre = Math.max(0, Math.min(this.nrRows - 1, this.row(y)));
        this.onPick?.(q);
        this.redraw();
    }

    override double(x: number, y: number): void {
        const q = this.pick(x, y);

        if (q === NONE) this.fit();
        else this.onChain?.(q);
    }

    // Rows only: the time that is shown stays.
    keepInSight(q: number): void {
        const r = q === NONE ? -1 : this.rowOf(q);

        if (r < 0) return;
        this.centre = r;
        const y = this.y(r);
        if (!this.eye && (y < head + rowPx || y > this.room - rowPx)) this.top += y - this.h / 2;
    }

    reveal(q: number): void {
        if (this.rowOf(q) < 0) return;
        this.keepInSight(q);
        if (this.p.end[q]! < this.x0 || this.p.begin[q]! > this.x1) {
            const width = Math.max(this.x1 - this.x0, 1);
            this.show(this.p.begin[q]! - width * 0.2, this.p.begin[q]! + width * 0.8);
        }
        this.redraw();
    }
}
