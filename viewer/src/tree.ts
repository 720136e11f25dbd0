// SPDX-License-Identifier: BSD-2-Clause
// Functions, call trees, and trees made of trees.
import type { FrameRow } from './data';
import { percent } from './text';

export interface Func { name: string; kind: string; image: string; place: string; unsure: number }

// QEMU stops where a block of code begins. '': all its samples are sure.
export function doubt(f: Func): string {
    return f.unsure > 0 ? `~ ${percent(f.unsure, 1)} of its own samples may be of its caller, its callee, or code that leads into it. The callers in their chains are not in doubt by that` : '';
}

// All functions of all trees: the same name of the same image is the same function everywhere.
export class Funcs {
    readonly list: Func[] = [{ name: 'all', kind: 'ours', image: '', place: '', unsure: 0 }];
    private known = new Map<string, number>();
    private ranks: Uint32Array | null = null;

    add(rows: FrameRow[]): Uint32Array {
        const out = new Uint32Array(rows.length);

        rows.forEach(([name, kind, image, file, line, unsure], i) => {
            const key = name + '\0' + kind + '\0' + (kind === 'guest' ? image : '');
            let id = this.known.get(key);
            if (id === undefined) {
                id = this.list.length;
                this.known.set(key, id);
                this.list.push({ name, kind, image, place: file ? file + ':' + line : '', unsure: 0 });
            }
            this.list[id]!.unsure = Math.max(this.list[id]!.unsure, unsure ?? 0);
            out[i] = id;
        });
        this.ranks = null;
        return out;
    }

    name(id: number): string {
        return this.list[id]!.name;
    }

    // Place of each in the order of names.
    get rank(): Uint32Array {
        if (this.ranks === null) {
            const order = this.list.map((_, i) => i);
            order.sort((a, b) => (this.name(a) < this.name(b) ? -1 : this.name(a) > this.name(b) ? 1 : a - b));
            this.ranks = new Uint32Array(order.length);
            order.forEach((id, i) => { this.ranks![id] = i; });
        }
        return this.ranks;
    }
}

// Node 0 is the root; a parent comes before its children.
export class Tree {
    private kids: { first: Uint32Array; list: Uint32Array } | null = null;

    constructor(readonly parent: Uint32Array, readonly func: Uint32Array, readonly funcs: Funcs) {}

    get nr(): number {
        return this.parent.length;
    }

    // Children of node n: list[first[n]] up to list[first[n + 1]], by name.
    get children(): { first: Uint32Array; list: Uint32Array } {
        return this.kids ??= this.sortedChildren();
    }

    private sortedChildren(): { first: Uint32Array; list: Uint32Array } {
        const { nr, parent, func } = this;
        const rank = this.funcs.rank;
        const by = new Uint32Array(rank.length + 1);
        const order = new Uint32Array(nr);
        const first = new Uint32Array(nr + 1);
        const list = new Uint32Array(Math.max(nr - 1, 0));

        for (let i = 1; i < nr; i++) by[rank[func[i]!]! + 1]!++;
        for (let i = 1; i < by.length; i++) by[i]! += by[i - 1]!;
        for (let i = 1; i < nr; i++) order[by[rank[func[i]!]!]!++] = i;
        for (let i = 1; i < nr; i++) first[parent[i]! + 1]!++;
        for (let i = 1; i <= nr; i++) first[i]! += first[i - 1]!;
        const next = first.slice();
        for (let i = 0; i < nr - 1; i++) list[next[parent[order[i]!]!]!++] = order[i]!;
        return { first, list };
    }

    totals(self: Float64Array): Float64Array {
        const total = self.slice();

        for (let i = this.nr - 1; i > 0; i--) total[this.parent[i]!]! += total[i]!;
        return total;
    }

    path(node: number): number[] {
        const out: number[] = [];

        for (let n = node; n > 0; n = this.parent[n]!) out.push(this.func[n]!);
        return out.reverse();
    }

    // The node with that path of names, as far as there is one.
    find(names: string[]): number {
        const { first, list } = this.children;
        let at = 0;

        for (const name of names) {
            let hit = 0;
            for (let k = first[at]!; k < first[at + 1]! && hit === 0; k++)
                if (this.funcs.name(this.func[list[k]!]!) === name) hit = list[k]!;
            if (hit === 0) return at;
            at = hit;
        }
        return at;
    }
}

// A tree with values: what views show.
export interface Graph { tree: Tree; self: Float64Array; total: Float64Array; self2?: Float64Array; total2?: Float64Array }

export function graph(tree: Tree, self: Float64Array, self2?: Float64Array): Graph {
    const g: Graph = { tree, self, total: tree.totals(self) };

    if (self2) {
        g.self2 = self2;
        g.total2 = tree.totals(self2);
    }
    return g;
}

// Grows a tree by paths.
class Maker {
    parent: number[] = [0];
    func: number[] = [0];
    self: number[] = [0];
    self2: number[] = [0];
    private known = new Map<number, number>();

    child(parent: number, func: number): number {
        const key = parent * 4194304 + func;
        let n = this.known.get(key);

        if (n === undefined) {
            n = this.parent.length;
            this.known.set(key, n);
            this.parent.push(parent);
            this.func.push(func);
            this.self.push(0);
            this.self2.push(0);
        }
        return n;
    }

    done(funcs: Funcs, second: boolean): Graph {
        const tree = new Tree(Uint32Array.from(this.parent), Uint32Array.from(this.func), funcs);

        return graph(tree, Float64Array.from(this.self), second ? Float64Array.from(this.self2) : undefined);
    }
}

// From the leaves to the root. With `of`: only the callers of that function, by its total values.
export function callers(g: Graph, funcs: Funcs, of?: number): Graph {
    const { tree } = g;
    const m = new Maker();
    const value = of === undefined ? g.self : g.total;
    const value2 = of === undefined ? g.self2 : g.total2;

    for (let i = 1; i < tree.nr; i++) {
        const v = value[i]!, v2 = value2 ? value2[i]! : 0;
        if ((v === 0 && v2 === 0) || (of !== undefined && (tree.func[i] !== of || within(tree, i, of)))) continue;
        let at = 0;
        for (let n = i; n > 0; n = tree.parent[n]!) at = m.child(at, tree.func[n]!);
        m.self[at]! += v;
        m.self2[at]! += v2;
    }
    if (of === undefined) {
        m.self[0]! += g.self[0]!;
        m.self2[0]! += g.self2?.[0] ?? 0;
    }
    return m.done(funcs, value2 !== undefined);
}

// Is it below a call of the same function already?
function within(tree: Tree, node: number, func: number): boolean {
    for (let n = tree.parent[node]!; n > 0; n = tree.parent[n]!)
        if (tree.func[n] === func) return true;
    return false;
}

// The callees of a function, wherever it was called from. A recursive call is below the first call.
export function callees(g: Graph, funcs: Funcs, of: number): Graph {
    const { tree } = g;
    const m = new Maker();
    const to = new Uint32Array(tree.nr);

    for (let i = 1; i < tree.nr; i++) {
        const up = to[tree.parent[i]!]!;
        if (up === 0 && tree.func[i] !== of) continue;
        const at = m.child(up, tree.func[i]!);
        to[i] = at;
        m.self[at]! += g.self[i]!;
        m.self2[at]! += g.self2?.[i] ?? 0;
    }
    return m.done(funcs, g.self2 !== undefined);
}

// A function that calls itself directly becomes one frame; hidden functions give theirs to callers, or their own values are dropped.
export function merged(g: Graph, funcs: Funcs, recursion: boolean, hidden: Set<number>, drop: boolean): Graph {
    const { tree } = g;
    const m = new Maker();
    const to = new Uint32Array(tree.nr);

    for (let i = 0; i < tree.nr; i++) {
        const f = tree.func[i]!, up = i === 0 ? 0 : to[tree.parent[i]!]!;
        const same = i === 0 || hidden.has(f) || (recursion && up !== 0 && m.func[up] === f);
        const at = same ? up : m.child(up, f);
        to[i] = at;
        if (drop && hidden.has(f)) continue;
        m.self[at]! += g.self[i]!;
        m.self2[at]! += g.self2?.[i] ?? 0;
    }
    return m.done(funcs, g.self2 !== undefined);
}

export interface FuncRow { func: number; self: number; total: number; self2: number; total2: number }

// Per function; a recursion counts once in total.
export function table(g: Graph, nrFuncs: number): FuncRow[] {
    const { tree } = g;
    const self = new Float64Array(nrFuncs), total = new Float64Array(nrFuncs);
    const self2 = new Float64Array(nrFuncs), total2 = new Float64Array(nrFuncs);
    const open = new Uint32Array(nrFuncs);
    const { first, list } = tree.children;
    const stack: number[] = [];
    const rows: FuncRow[] = [];

    for (let k = first[0]!; k < first[1]!; k++) stack.push(list[k]!);
    while (stack.length > 0) {
        const n = stack.pop()!;
        if (n < 0) {
            open[tree.func[-n]!]!--;
            continue;
        }
        const f = tree.func[n]!;
        if (g.total[n] === 0 && !(g.total2?.[n])) continue;
        self[f]! += g.self[n]!;
        if (g.self2) self2[f]! += g.self2[n]!;
        if (open[f]!++ === 0) {
            total[f]! += g.total[n]!;
            if (g.total2) total2[f]! += g.total2[n]!;
        }
        stack.push(-n);
        for (let k = first[n]!; k < first[n + 1]!; k++) stack.push(list[k]!);
    }
    for (let f = 1; f < nrFuncs; f++)
        if (total[f]! > 0 || total2[f]! > 0)
            rows.push({ func: f, self: self[f]!, total: total[f]!, self2: self2[f]!, total2: total2[f]! });
    return rows.sort((a, b) => b.self - a.self || b.total - a.total || a.func - b.func);
}

// The sum of the frames that match, each part counted once; only below `top`.
export function matched(g: Graph, match: Uint8Array, top = 0): number {
    const { tree } = g;
    const inside = new Uint8Array(tree.nr); // 1: below top, 2: below a match as well
    let sum = 0;

    inside[top] = match[tree.func[top]!] ? 2 : 1;
    if (inside[top] === 2) return g.total[top]!;
    for (let i = top + 1; i < tree.nr; i++) {
        const up = inside[tree.parent[i]!]!;
        if (up === 0) continue;
        inside[i] = up;
        if (up === 1 && match[tree.func[i]!]) {
            inside[i] = 2;
            sum += g.total[i]!;
        }
    }
    return sum;
}
