// SPDX-License-Identifier: BSD-2-Clause
// Rows on a canvas: flame graphs (x is value) and flame charts (x is time).
import { at, strip, type Rows } from './rows';
import { font, Plot, sans, type Theme } from './plot';

export interface Lane { label: string; firstRow: number; nrRows: number }

export interface StackHooks {
    colour(id: number): number;
    text(id: number): string;
    hover(i: number, x: number, y: number): void;
    press(i: number, ev: MouseEvent): void;
    double?(i: number): void;
}

export const rowHeight = 18;
const laneHead = 18;

export class Stack extends Plot {
    rows: Rows = { nr: 0, first: new Uint32Array(1), start: new Float64Array(0), dur: new Float64Array(0), id: new Uint32Array(0) };
    lanes: Lane[] = [];
    up = false;  // the first row is the lowest
    focus = -1;  // interval with a frame around it
    ruler = false;
    rulerText: (x: number, step: number) => string = String;
    rulerStep: (about: number) => number = (v) => v;
    private y: Float64Array = new Float64Array(0);
    private height = 0;
    private image: ImageData | null = null;
    private buffer = document.createElement('canvas');

    constructor(label: string, private hooks: StackHooks) { super(label); }

    set(rows: Rows, lanes: Lane[] = []): void {
        this.rows = rows;
        this.lanes = lanes;
        this.y = new Float64Array(rows.nr);
        let y = this.ruler ? 20 : 2;
        if (lanes.length === 0) for (let r = 0; r < rows.nr; r++, y += rowHeight) this.y[r] = y;
        for (const lane of lanes) {
            y += laneHead;
            for (let r = 0; r < lane.nrRows; r++, y += rowHeight) this.y[lane.firstRow + r] = y;
            y += 4;
        }
        this.height = y + 2;
        this.focus = -1;
        this.redraw();
    }

    override contentHeight(): number { return this.height; }

    rowY(r: number): number {
        const y = this.y[r]! - this.top;

        return this.up ? this.h - y - rowHeight : y;
    }

    override scrollSign(): number { return this.up ? -1 : 1; }
    override scroll(px: number): void { super.scroll(this.up ? -px : px); }

    // The same rows, in more or less detail.
    swap(rows: Rows): void {
        this.rows = rows;
        this.focus = -1;
        this.redraw();
    }

    visible(): [number, number] {
        let a = 0, b = this.rows.nr;

        while (a < b && this.y[a]! + rowHeight < this.top) a++;
        while (b > a && this.y[b - 1]! > this.top + this.h) b--;
        return [a, b];
    }

    override paint(t: Theme): void {
        const [a, b] = this.visible();
        const labels: [number, number, number, number][] = []; // interval, left, right, row
        const width = Math.max(1, Math.round(this.w));

        if (this.image === null || this.image.width !== width || this.image.height < b - a)
            this.image = new ImageData(width, Math.max(64, b - a));
        const all = new Uint32Array(this.image.data.buffer);
        const wide = this.rows.start.length > 200000 ? 40 : 26;
        all.fill(t.backPixel, 0, width * (b - a));
        for (let r = a; r < b; r++)
            strip(this.rows, r, { pixels: all.subarray((r - a) * width, (r - a + 1) * width), width, x0: this.x0, scale: this.w / (this.x1 - this.x0) },
                this.hooks.colour, t.backPixel, wide, (i, left, right) => labels.push([i, left, right, r]));
        this.blit(width, a, b);
        this.label(labels);
        this.frameFocus(t);
        this.laneHeads(t);
        if (this.ruler) this.paintRuler(t);
    }

    private blit(width: number, a: number, b: number): void {
        const { ctx, buffer } = this;

        if (b <= a) return;
        if (buffer.width !== width || buffer.height < b - a) {
            buffer.width = width;
            buffer.height = Math.max(64, b - a);
        }
        buffer.getContext('2d')!.putImageData(this.image!, 0, 0, 0, 0, width, b - a);
        ctx.imageSmoothingEnabled = false;
        for (let r = a; r < b; r++) ctx.drawImage(buffer, 0, r - a, width, 1, 0, this.rowY(r) + 0.5, this.w, rowHeight - 1);
    }

    private label(labels: [number, number, number, number][]): void {
        const { ctx } = this;

        ctx.font = font;
        ctx.fillStyle = '#16130d';
        ctx.textBaseline = 'middle';
        const em = ctx.measureText('M').width;
        for (const [i, left, right, row] of labels) {
            const room = Math.floor((right - left - 6) / em);
            const name = this.hooks.text(this.rows.id[i]!);
            if (room < 3) continue;
            ctx.fillText(fitted(name, room), left + 4, this.rowY(row) + rowHeight / 2 + 0.5, right - left - 4);
        }
    }

    private rowOf(i: number): number {
        let a = 0, b = this.rows.nr;

        while (b - a > 1) {
            const mid = (a + b) >>> 1;
            if (this.rows.first[mid]! <= i) a = mid;
            else b = mid;
        }
        return a;
    }

    private frameFocus(t: Theme): void {
        const { ctx, focus: i } = this;

        if (i < 0 || i >= this.rows.start.length) return;
        const left = Math.max(-2, this.px(this.rows.start[i]!)), right = Math.min(this.w + 2, this.px(this.rows.start[i]! + this.rows.dur[i]!));
        ctx.strokeStyle = t.text;
        ctx.lineWidth = 2;
        ctx.strokeRect(left + 1, this.rowY(this.rowOf(i)) + 1, Math.max(2, right - left - 2), rowHeight - 2);
    }

    private laneHeads(t: Theme): void {
        const { ctx } = this;

        ctx.font = '600 ' + sans;
        ctx.textBaseline = 'middle';
        for (const lane of this.lanes) {
            const y = (this.y[lane.firstRow] ?? 0) - laneHead - this.top;
            if (y < -20 || y > this.h) continue;
            ctx.fillStyle = t.line;
            ctx.fillRect(0, y, this.w, 1);
            ctx.fillStyle = t.text;
            ctx.fillText(lane.label, 6, y + laneHead / 2);
        }
    }

    private paintRuler(t: Theme): void {
        const { ctx } = this;
        const step = this.rulerStep((this.x1 - this.x0) / this.w * 110);

        ctx.fillStyle = t.back;
        ctx.fillRect(0, 0, this.w, 18);
        ctx.font = sans;
        for (let x = Math.ceil(this.x0 / step) * step; x <= this.x1; x += step) {
            const px = this.px(x);
            ctx.fillStyle = t.line;
            ctx.fillRect(px, 12, 1, 6);
            ctx.fillStyle = t.dim;
            ctx.fillText(this.rulerText(x, step), px + 3, 8);
        }
    }

    pick(x: number, y: number): number {
        const [a, b] = this.visible();

        for (let r = a; r < b; r++) {
            const top = this.rowY(r);
            if (y >= top && y < top + rowHeight) return at(this.rows, r, this.unpx(x), (this.x1 - this.x0) / this.w * 1.5);
        }
        return -1;
    }

    // Scrolls so that the interval can be seen.
    reveal(i: number): void {
        const y = this.y[this.rowOf(i)] ?? 0;

        if (y < this.top) this.top = y - rowHeight;
        else if (y + rowHeight > this.top + this.h) this.top = y + 2 * rowHeight - this.h;
        this.redraw();
    }

    override hover(x: number, y: number): void { this.hooks.hover(x < 0 ? -1 : this.pick(x, y), x, y); }
    override press(x: number, y: number, ev: MouseEvent): void { this.hooks.press(this.pick(x, y), ev); }
    override double(x: number, y: number): void {
        const i = this.pick(x, y);

        if (i >= 0 && this.hooks.double) this.hooks.double(i);
        else this.fit();
    }
}

export function fitted(name: string, room: number): string {
    return name.length <= room ? name : name.slice(0, room - 1) + '…';
}
