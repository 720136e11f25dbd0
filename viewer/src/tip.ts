// SPDX-License-Identifier: BSD-2-Clause
// A tip that describes the object under the pointer.
import { fill, h } from './dom';

export class Tip {
    readonly root = h('div', { class: 'tip', hidden: true });

    show(over: HTMLElement, x: number, y: number, lines: string[]): void {
        const r = over.getBoundingClientRect(), { root } = this;

        fill(root, ...lines.map((text, i) => h('div', { text, class: i === 0 ? 'first' : '' })));
        root.hidden = false;
        const left = Math.max(4, Math.min(innerWidth - root.offsetWidth - 8, r.left + x + 14));
        const below = r.top + y + 18;
        const top = below + root.offsetHeight > innerHeight ? r.top + y - root.offsetHeight - 10 : below;
        root.style.left = left + 'px';
        root.style.top = Math.max(4, top) + 'px';
    }

    hide(): void { this.root.hidden = true; }
}
