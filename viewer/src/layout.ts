// SPDX-License-Identifier: BSD-2-Clause
// A tree with values as rows: a row a depth, x the value.
import type { Graph } from './tree';
import type { Rows } from './rows';

export interface Layout extends Rows {
    of: Int32Array; // interval of a node, or -1
    total: number;
}

// Nodes are the ids. With a second column a node is as wide as the larger of both.
export function layout(g: Graph, byWeight: boolean): Layout {
    const { tree } = g;
    const { first: kids, list } = tree.children;
    const value = g.total2 ? g.total2.map((v, i) => Math.max(v, g.total[i]!)) : g.total;
    const of = new Int32Array(tree.nr).fill(-1);
    const id = new Uint32Array(tree.nr);
    const start = new Float64Array(tree.nr), dur = new Float64Array(tree.nr);
    const first: number[] = [0, 1];
    let nr = 1;

    dur[0] = widen(g, value);
    of[0] = 0;
    for (let from = 0; from < nr;) {
        const to = nr;
        for (let i = from; i < to; i++) {
            const n = id[i]!, k0 = kids[n]!, k1 = kids[n + 1]!;
            let x = start[i]!;
            const order = byWeight && k1 - k0 > 1 ? list.slice(k0, k1).sort((a, b) => value[b]! - value[a]!) : null;
            for (let k = k0; k < k1; k++) {
                const c = order ? order[k - k0]! : list[k]!;
                if (value[c]! <= 0) continue;
                of[c] = nr;
                id[nr] = c;
                start[nr] = x;
                dur[nr] = g.total2 ? Math.min(value[c]!, start[i]! + dur[i]! - x) : value[c]!;
                x += dur[nr]!;
                nr++;
            }
        }
        from = to;
        if (nr > to) first.push(nr);
    }
    return { nr: first.length - 1, first: Uint32Array.from(first), start: start.subarray(0, nr), dur: dur.subarray(0, nr),
        id: id.subarray(0, nr), of, total: dur[0]! };
}

// In a difference, children may together be wider than both values of the parent: then the parent grows.
function widen(g: Graph, value: Float64Array): number {
    if (!g.total2) return value[0]!;
    const { tree } = g;
    const sum = new Float64Array(tree.nr);

    for (let i = tree.nr - 1; i >= 0; i--) {
        value[i] = Math.max(value[i]!, sum[i]!);
        if (i > 0) sum[tree.parent[i]!]! += value[i]!;
    }
    return value[0]!;
}
