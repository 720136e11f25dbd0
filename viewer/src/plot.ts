// SPDX-License-Identifier: BSD-2-Clause
// A canvas with a horizontal range that is zoomed and panned by wheel, mouse, touch and keys, and a
// vertical one that scrolls.
import { h, stillness } from './dom';

export interface Theme { text: string; dim: string; line: string; back: string; accent: string; dark: boolean; backPixel: number }

export function theme(): Theme {
    const s = getComputedStyle(document.documentElement);
    const v = (name: string): string => s.getPropertyValue(name).trim();
    const back = v('--back');
    const n = parseInt(back.slice(1), 16);

    return { text: v('--text'), dim: v('--dim'), line: v('--line'), back, accent: v('--accent'), dark: v('--dark') === '1',
        backPixel: (0xff000000 | (n & 255) << 16 | (n >> 8 & 255) << 8 | n >> 16) >>> 0 };
}

export const font = '11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace';
export const sans = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';

// Plots that will be drawn with the next frame.
const waiting = new Set<Plot>();

// For paper there is no next frame.
export function drawWaiting(): void { for (const p of [...waiting]) p.now(); }

export abstract class Plot {
    readonly canvas: HTMLCanvasElement;
    readonly ctx: CanvasRenderingContext2D;
    w = 0;
    h = 0;
    x0 = 0;
    x1 = 1;
    top = 0;
    min = 0;
    max = 1;
    // Narrower ranges make no sense.
    finest = 1e-9;
    onRange?: (x0: number, x1: number) => void;
    onMove?: (x0: number, x1: number) => void; // at each step
    drawMs: number[] = [];
    private frame = 0;
    private sized = false;
    private target: [number, number] | null = null;
    private drag: { x: number; y: number; x0: number; x1: number; top: number; moved: boolean } | null = null;
    private touches = new Map<number, { x: number; y: number }>();

    constructor(label: string) {
        this.canvas = h('canvas', { tab: 0, role: 'img', label, class: 'plot' });
        this.ctx = this.canvas.getContext('2d', { alpha: false })!;
        this.listen();
        new ResizeObserver(() => this.observed()).observe(this.canvas);
    }

    // Draws everything; sizes are CSS pixels.
    abstract paint(t: Theme): void;
    abstract hover(x: number, y: number): void;
    abstract press(x: number, y: number, ev: MouseEvent): void;
    double(_x: number, _y: number): void { this.fit(); }
    contentHeight(): number { return this.h; }
    // Is a drag that begins here to select, not to pan?
    dragBegins(_x: number, _y: number, _ev: PointerEvent): ((x: number, y: number, done: boolean) => void) | null { return null; }

    // Its size may be another one: that is asked for when it is drawn.
    resize(): void {
        this.sized = false;
        this.redraw();
    }

    // False: it has none.
    private ownSize(): boolean {
        const { clientWidth: w, clientHeight: hh } = this.canvas;
        const d = devicePixelRatio || 1, width = Math.round(w * d), height = Math.round(hh * d);

        if (w === 0 || hh === 0) return false;
        this.sized = true;
        [this.w, this.h] = [w, hh];
        if (this.canvas.width !== width) this.canvas.width = width;
        if (this.canvas.height !== height) this.canvas.height = height;
        return true;
    }

    // It is told of the size that it has, too, when that was drawn already.
    private observed(): void {
        const { w, h: hh, canvas } = this, { width, height } = canvas;

        if (!this.ownSize() || (!this.frame && w === this.w && hh === this.h && width === canvas.width && height === canvas.height)) return;
        this.now();
    }

    redraw(): void {
        waiting.add(this);
        this.frame ||= requestAnimationFrame(() => this.now());
    }

    now(): void {
        cancelAnimationFrame(this.frame);
        this.frame = 0;
        waiting.delete(this);
        this.draw();
    }

    draw(): void {
        const begin = performance.now();
        if (!this.sized && !this.ownSize()) return;
        const d = devicePixelRatio || 1;
        const t = theme();

        this.top = Math.max(0, Math.min(this.top, this.contentHeight() - this.h));
        this.ctx.setTransform(d, 0, 0, d, 0, 0);
        this.ctx.fillStyle = t.back;
        this.ctx.fillRect(0, 0, this.w, this.h);
        this.paint(t);
        this.onMove?.(this.x0, this.x1);
        this.drawMs.push(performance.now() - begin);
        if (this.drawMs.length > 1000) this.drawMs.splice(0, 500);
    }

    px(x: number): number { return (x - this.x0) / (this.x1 - this.x0) * this.w; }
    unpx(px: number): number { return this.x0 + px / this.w * (this.x1 - this.x0); }

    bounds(min: number, max: number): void {
        this.min = min;
        this.max = max > min ? max : min + 1;
        this.finest = (this.max - this.min) * 1e-9;
        this.jump(this.min, this.max);
    }

    private clamp(x0: number, x1: number): [number, number] {
        const width = Math.max(this.finest, Math.min(x1 - x0, this.max - this.min));
        const a = Math.max(this.min, Math.min(x0, this.max - width));

        return [a, a + width];
    }

    jump(x0: number, x1: number): void {
        [this.x0, this.x1] = this.clamp(x0, x1);
        this.target = null;
        this.redraw();
    }

    // Glides there, unless motion is unwanted.
    show(x0: number, x1: number): void {
        const to = this.clamp(x0, x1), from: [number, number] = [this.x0, this.x1];
        const begin = performance.now();

        if (stillness.matches) {
            this.jump(x0, x1);
            this.onRange?.(this.x0, this.x1);
            return;
        }
        this.target = to;
        const tick = (now: number): void => {
            if (this.target !== to) return;
            const f = Math.min(1, Math.max(0, (now - begin) / 160)), e = 1 - (1 - f) ** 3;
            this.x0 = from[0] + (to[0] - from[0]) * e;
            this.x1 = from[1] + (to[1] - from[1]) * e;
            this.draw();
            if (f < 1) requestAnimationFrame(tick);
            else {
                this.target = null;
                this.onRange?.(this.x0, this.x1);
            }
        };
        requestAnimationFrame(tick);
    }

    zoom(factor: number, px = this.w / 2): void {
        const x = this.unpx(px);

        this.jump(x - (x - this.x0) * factor, x + (this.x1 - x) * factor);
        this.onRange?.(this.x0, this.x1);
    }

    pan(part: number): void {
        const by = (this.x1 - this.x0) * part;

        this.jump(this.x0 + by, this.x1 + by);
        this.onRange?.(this.x0, this.x1);
    }

    scroll(px: number): void {
        this.top += px;
        this.redraw();
    }

    fit(): void { this.show(this.min, this.max); }

    // True if the key meant something.
    key(ev: KeyboardEvent): boolean {
        switch (ev.code) {
        case 'KeyW': case 'Equal': case 'NumpadAdd': this.zoom(1 / 1.4); return true;
        case 'KeyS': case 'Minus': case 'NumpadSubtract': this.zoom(1.4); return true;
        case 'KeyA': this.pan(-0.15); return true;
        case 'KeyD': this.pan(0.15); return true;
        case 'Digit0': case 'Numpad0': this.fit(); return true;
        case 'PageUp': this.scroll(-this.h * 0.8); return true;
        case 'PageDown': this.scroll(this.h * 0.8); return true;
        default: return false;
        }
    }

    private where(ev: MouseEvent): [number, number] {
        const r = this.canvas.getBoundingClientRect();

        return [ev.clientX - r.left, ev.clientY - r.top];
    }

    private wheel(ev: WheelEvent): void {
        const unit = ev.deltaMode === 1 ? 16 : 1;
        const dy = ev.deltaY * unit, dx = ev.deltaX * unit;

        ev.preventDefault();
        if (Math.abs(dx) > Math.abs(dy)) this.pan(dx / this.w);
        else if (ev.shiftKey || (!ev.ctrlKey && ev.altKey)) this.scroll(dy);
        else this.zoom(Math.exp(Math.max(-200, Math.min(200, dy)) * 0.002), this.where(ev)[0]);
    }

    private listen(): void {
        const c = this.canvas;
        let select: ((x: number, y: number, done: boolean) => void) | null = null;

        c.addEventListener('wheel', (ev) => this.wheel(ev), { passive: false });
        c.addEventListener('dblclick', (ev) => this.double(...this.where(ev)));
        c.addEventListener('pointerdown', (ev) => {
            const [x, y] = this.where(ev);
            // A selection has one finger, a pinch has two.
            if (ev.button !== 0 || select || this.touches.size === 2) return;
            c.setPointerCapture(ev.pointerId);
            this.touches.set(ev.pointerId, { x, y });
            select = this.touches.size === 1 ? this.dragBegins(x, y, ev) : null;
            this.grab(x, y, this.touches.size === 2);
        });
        c.addEventListener('pointermove', (ev) => {
            const [x, y] = this.where(ev), d = this.drag;
            if (d === null || !this.touches.has(ev.pointerId)) {
                this.hover(x, y);
                return;
            }
            if (this.touches.size === 2) this.pinch(ev.pointerId, x, y);
            else {
                this.touches.set(ev.pointerId, { x, y });
                d.moved ||= Math.abs(x - d.x) + Math.abs(y - d.y) > 4;
                if (d.moved && ev.pointerType === 'touch') this.hover(-1, -1);
                if (d.moved && select) select(x, y, false);
                else if (d.moved) this.dragTo(d, x, y);
            }
        });
        const end = (ev: PointerEvent): void => {
            const d = this.drag, [x, y] = this.where(ev);
            if (!this.touches.delete(ev.pointerId) || d === null) return;
            // One finger of a pinch is left: it goes on from where it is.
            const [left] = this.touches.values();
            if (left) { this.grab(left.x, left.y, true); return; }
            this.drag = null;
            if (select && d.moved) select(x, y, true);
            else if (d.moved) this.onRange?.(this.x0, this.x1);
            else if (ev.type === 'pointerup') this.tapped(x, y, ev);
            select = null;
        };
        c.addEventListener('pointerup', end);
        c.addEventListener('pointercancel', end);
        c.addEventListener('pointerleave', (ev) => { if (this.drag === null && ev.pointerType !== 'touch') this.hover(-1, -1); });
    }

    private grab(x: number, y: number, moved: boolean): void {
        this.drag = { x, y, x0: this.x0, x1: this.x1, top: this.top, moved };
    }

    // A finger does not hover: what is under it is told when it taps.
    private tapped(x: number, y: number, ev: PointerEvent): void {
        this.press(x, y, ev);
        if (ev.pointerType === 'touch') this.hover(x, y);
    }

    private dragTo(d: { x: number; y: number; x0: number; x1: number; top: number }, x: number, y: number): void {
        const by = (d.x - x) / this.w * (d.x1 - d.x0);

        this.top = d.top + this.scrollSign() * (d.y - y);
        this.jump(d.x0 + by, d.x1 + by);
        this.onRange?.(this.x0, this.x1);
    }

    scrollSign(): number { return 1; }

    private pinch(id: number, x: number, y: number): void {
        const moved = this.touches.get(id)!;
        const other = [...this.touches].find(([k]) => k !== id)![1];
        const before = Math.max(10, Math.abs(moved.x - other.x)), now = Math.max(10, Math.abs(x - other.x));

        this.zoom(before / now, other.x);
        moved.x = x;
        moved.y = y;
    }
}
