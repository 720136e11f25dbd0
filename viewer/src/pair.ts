// SPDX-License-Identifier: BSD-2-Clause
// Two timelines, one above the other: of a bad run and of a good one. Each begins at its own begin.
import { type App, type Change, type View } from './app';
import { button, fill, h } from './dom';
import { NONE } from './promises';
import type { Model } from './source';
import { Timeline } from './timeline';
import { Tip } from './tip';

export class Pair implements View {
    root: HTMLElement;
    both: [Timeline, Timeline];
    private bar = h('div', { class: 'bar' });
    private linked = true;
    private later = 0; // by how much the second one's window is after the first one's
    private used = 0;  // the one that keys are for
    private telling = false;

    constructor(private app: App, tip: Tip, beside: Model) {
        this.both = [new Timeline(app, tip), new Timeline(app, tip, beside)];
        const plots = this.both.map((x) => x.plot);
        const min = Math.min(...plots.map((p) => p.min)), max = Math.max(...plots.map((p) => p.max));
        const halves = this.both.map((x, i) => {
            const half = h('div', { class: 'half' }, x.root);

            x.name = x.m.data.head.title;
            half.addEventListener('pointerdown', () => { this.used = i; }, true);
            half.addEventListener('wheel', () => { this.used = i; }, true);
            // The same piece of time is as wide in both.
            x.plot.bounds(min, max);
            x.onMove = (x0, x1) => this.moved(i, x0, x1);
            x.onChoose = (q) => this.chosen(i, q);
            return half;
        });
        this.root = h('section', { class: 'view pair' }, this.bar, ...halves);
    }

    // For who asks what is seen: of the one that was used last.
    get plot(): Timeline['plot'] { return this.both[this.used]!.plot; }
    get p(): Timeline['p'] { return this.both[this.used]!.p; }

    private moved(i: number, x0: number, x1: number): void {
        const other = this.both[1 - i]!.plot, by = i === 0 ? this.later : -this.later, hair = (x1 - x0) * 1e-6;

        if (!this.linked || i !== this.used) return;
        if (Math.abs(other.x0 - x0 - by) > hair || Math.abs(other.x1 - x1 - by) > hair) other.jump(x0 + by, x1 + by);
    }

    // In the other run, the one of the same name: the third `tick` of here is the third one of there.
    private chosen(i: number, q: number): void {
        const a = this.both[i]!.p, b = this.both[1 - i]!;

        if (!this.linked || this.telling) return;
        let nth = 0, to = NONE;
        if (q !== NONE) {
            const name = a.name(q);
            for (let k = 0; k < q; k++) if (a.name(k) === name) nth++;
            for (let k = 0; k < b.p.nr && to === NONE; k++) if (b.p.name(k) === name && nth-- === 0) to = k;
        }
        this.telling = true;
        b.choose(to);
        this.telling = false;
    }

    private link(on: boolean): void {
        const [a, b] = this.both;

        this.linked = on;
        // If the user moved the two apart, they stay apart.
        if (on) {
            this.later = b.plot.x0 - a.plot.x0;
            this.used = 0;
            a.plot.redraw();
        }
        this.toolbar();
    }

    private toolbar(): void {
        fill(this.bar,
            button('Linked', 'Both show the same piece of time, and the chosen thread of one is also chosen in the other. What was moved apart while they were not stays apart (l)',
                () => this.link(!this.linked), this.linked),
            button('From the begin', 'Both from their begin', () => {
                this.later = 0;
                this.app.set({ z0: 0, z1: 0 }, 'zoom');
                for (const x of this.both) x.plot.jump(x.plot.min, x.plot.max);
            }));
    }

    open(): void {
        this.toolbar();
        for (const x of this.both) x.open();
    }

    update(c: Change): void { for (const x of this.both) x.update(c); }

    keyDown(ev: KeyboardEvent): boolean {
        if (ev.key !== 'l') return this.both[this.used]!.keyDown(ev);
        this.link(!this.linked);
        return true;
    }
}
