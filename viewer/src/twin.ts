// SPDX-License-Identifier: BSD-2-Clause
// A canvas is silent: this says to screen readers which frame has the focus, and what is around it.
import { fill, h } from './dom';
import type { Graph } from './tree';

export class Twin {
    private live = h('div', { role: 'status' });
    private list = h('ul', { role: 'tree', label: 'The frame and its callees' });
    readonly root = h('div', { class: 'quiet' }, this.live, this.list);

    constructor(private go: (node: number) => void) {}

    private item(text: string, node: number, level: number, current: boolean): HTMLElement {
        const li = h('li', { role: 'treeitem', text, click: () => this.go(node) });

        li.setAttribute('aria-level', String(level));
        if (current) li.setAttribute('aria-selected', 'true');
        return li;
    }

    show(g: Graph, node: number, say: (node: number) => string): void {
        const { first, list } = g.tree.children;
        const level = g.tree.path(node).length + 1;
        const kids = [...list.subarray(first[node]!, first[node + 1]!)].filter((n) => g.total[n]! > 0)
            .sort((a, b) => g.total[b]! - g.total[a]!).slice(0, 20);

        this.live.textContent = say(node);
        fill(this.list, node > 0 && this.item(say(g.tree.parent[node]!), g.tree.parent[node]!, level - 1, false),
            this.item(say(node), node, level, true), ...kids.map((n) => this.item(say(n), n, level + 1, false)));
    }
}
