// SPDX-License-Identifier: BSD-2-Clause
// State that all views share: the model, the selection, the search, and the listeners to their changes.
import { css, hit, ofFunc } from './colours';
import type { Model, Selection, Source } from './source';
import { graph, matched, merged, table, type FuncRow, type Graph } from './tree';
import { mix } from './rows';
import { finder } from './search';

export interface State {
    // z0, z1: what a chart over time shows; 0, 0: all. who: the thread that was chosen, or -1.
    view: string; source: string; t0: number; t1: number; cpu: number; thread: number;
    search: string; ignoreCase: boolean; func: number; path: string[]; z0: number; z1: number; who: number; up: boolean; inverted: boolean;
    recursion: boolean; byWeight: boolean; on: boolean; safe: boolean; dark: string; hidden: Set<number>;
    opt: Map<string, string>; // how single views show it, where that is not as usual
}

// The kind of a change. A view may redraw less for some kinds.
export type Change = 'data' | 'search' | 'func' | 'look' | 'zoom';

export class App {
    state: State = { view: '', source: '', t0: 0, t1: 0, cpu: -1, thread: -1, search: '', ignoreCase: true, func: 0, path: [], z0: 0, z1: 0, who: -1,
        up: false, inverted: false, recursion: false, byWeight: false, on: false, safe: true, dark: '', hidden: new Set(), opt: new Map() };
    match: Uint8Array;
    badPattern = false;
    hard = 0; // names that are too hard for the pattern
    private colours: Uint32Array;
    private graphs = new Map<string, Graph>();
    private tables = new Map<string, FuncRow[]>();
    private listeners: ((c: Change) => void)[] = [];

    constructor(readonly model: Model) {
        const images = new Map<string, number>();

        model.changed = () => this.tell('data');
        this.match = new Uint8Array(model.funcs.list.length);
        this.colours = Uint32Array.from(model.funcs.list, (f) => ofFunc(f, images));
    }

    listen(fn: (c: Change) => void): void { this.listeners.push(fn); }

    tell(c: Change): void {
        if (c === 'data') {
            this.graphs.clear();
            this.tables.clear();
        }
        for (const fn of this.listeners) fn(c);
    }

    get selection(): Selection {
        const { t0, t1, cpu, thread, on } = this.state;

        return { t0, t1, cpu, thread, on };
    }

    get source(): Source | undefined {
        return this.model.sources.find((s) => s.key === this.state.source) ?? this.model.sources[0];
    }

    // Hidden functions: is their own time left out of this view, or given to their callers? Graphs of stacks keep their widths.
    private get stacks(): boolean { return this.state.view === 'flame' || this.state.view === 'sandwich'; }
    get drop(): boolean { return this.stacks ? this.opt('hiddenstacks') === 'out' : this.opt('hidden') !== 'callers'; }
    set drop(on: boolean) {
        this.state.path = [];
        this.state.opt.delete('part');
        if (this.stacks) this.setOpt('hiddenstacks', on ? 'out' : '');
        else this.setOpt('hidden', on ? '' : 'callers');
        this.tell('data');
    }

    private get how(): string {
        const { recursion, hidden } = this.state;

        return (recursion ? '+r' : '') + (hidden.size > 0 ? (this.drop ? '-' : '^') + [...hidden].join(',') : '');
    }

    // The part of the selection's values that graph() leaves out.
    get leftOut(): number {
        const s = this.source, sum = (a?: Float64Array): number => a?.reduce((x, y) => x + y, 0) ?? 0;

        if (!s || !this.drop || this.state.hidden.size === 0) return 0;
        const all = sum(s.self(this.selection)) + sum(s.second), g = this.graph();
        return all > 0 ? 1 - (g!.total[0]! + (g!.total2?.[0] ?? 0)) / all : 0;
    }

    // The selection's values, as one tree.
    graph(source = this.source): Graph | null {
        const { recursion, hidden } = this.state;

        if (!source) return null;
        const key = source.key + this.how;
        let g = this.graphs.get(key);
        if (g === undefined) {
            g = graph(source.tree, source.self(this.selection), source.second);
            if (recursion || hidden.size > 0) g = merged(g, this.model.funcs, recursion, hidden, this.drop);
            this.graphs.set(key, g);
        }
        return g;
    }

    // By self time; not what only says that nothing of the guest ran, unless that is all. 0: nothing took any.
    get hottest(): number {
        const all = this.table(), second = this.source?.second;
        const rows = (second ? [...all].sort((a, b) => b.self2 - a.self2) : all).filter((r) => (second ? r.self2 : r.self) > 0);

        return (rows.find((r) => this.model.funcs.list[r.func]!.kind !== 'ours') ?? rows[0])?.func ?? 0;
    }

    table(source = this.source): FuncRow[] {
        if (!source) return [];
        const key = source.key + this.how;
        let t = this.tables.get(key);
        if (t === undefined) this.tables.set(key, t = table(this.graph(source)!, this.model.funcs.list.length));
        return t;
    }

    get searching(): boolean { return this.state.search !== '' && !this.badPattern; }

    // Colour of a function as a pixel: what was searched for stands out.
    colour(func: number): number {
        const c = this.colours[func]!;

        if (!this.searching) return c;
        return this.match[func] ? hit : mix(c, 0xffc8c8c8, 0.45);
    }

    css(func: number): string { return css(this.colours[func]!); }

    setSearch(text: string, ignoreCase = this.state.ignoreCase): void {
        const re = text === '' ? null : finder(text, ignoreCase);

        this.state.search = text;
        this.state.ignoreCase = ignoreCase;
        this.badPattern = text !== '' && re === null;
        this.model.funcs.list.forEach((f, i) => { this.match[i] = re !== null && i > 0 && re.test(f.name) ? 1 : 0; });
        this.hard = re?.hard ?? 0;
        this.tell('search');
    }

    // Share of what is visible in frames that match.
    matchedShare(g: Graph, top: number): number {
        return g.total[top]! > 0 ? matched(g, this.match, top) / g.total[top]! : 0;
    }

    setRange(t0: number, t1: number): void {
        this.state.t0 = Math.max(0, t0);
        this.state.t1 = t1 > t0 ? t1 : 0;
        if (!(t1 > t0)) this.state.t0 = 0;
        this.state.z0 = this.state.z1 = 0;
        this.tell('data');
    }

    setFunc(func: number): void {
        if (this.state.func === func) return;
        this.state.func = func;
        this.tell('func');
    }

    opt(key: string, usual = ''): string { return this.state.opt.get(key) ?? usual; }

    setOpt(key: string, v: string, usual = ''): void {
        if (v === usual) this.state.opt.delete(key);
        else this.state.opt.set(key, v);
        this.tell('zoom');
    }

    set(part: Partial<State>, c: Change): void {
        Object.assign(this.state, part);
        this.tell(c);
    }
}

export interface View {
    root: HTMLElement;
    open(): void; // becomes visible
    update(c: Change): void; // only while visible
    keyDown?(ev: KeyboardEvent): boolean;
    print?(on: boolean): void; // begins, or has ended
    matches?(): string; // what a search found here, if that is not functions
}
