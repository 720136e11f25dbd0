// SPDX-License-Identifier: BSD-2-Clause
// Source lines and instructions of one function: only the rows on screen exist.
import { type App, type Change, type View } from './app';
import type { CodeHead, CodeInsn } from './data';
import { fill, h, select } from './dom';
import { count, percent } from './text';

const rowPx = 20;
const onPaper = 2000;

// Code of a function by its name, or where it is inlined.
export function codeOf(app: App, func: number): CodeHead[] {
    const all = app.model.data.head.code ?? [], name = app.model.funcs.list[func]?.name.replace(/ \?$/, '') ?? '';
    const own = all.filter((c) => c.function === name);

    return own.length > 0 ? own : all.filter((c) => c.lines.some((l) => l.inlined === name));
}

interface Row { line?: CodeHead['lines'][number]; insn?: CodeInsn; arrows?: string }

export class Code implements View {
    root: HTMLElement;
    private body = h('div', { class: 'tbody', role: 'none' });
    private scroller = h('div', { class: 'scroll code', tab: 0, role: 'rowgroup', label: 'Code by rows' }, this.body);
    private table = h('div', { class: 'view', role: 'table', label: 'Source and assembly' },
        h('div', { class: 'thead code', role: 'row' }, ...['Self', 'Samples', 'Below', 'Address', 'Code'].map((text, i) =>
            h('span', { role: 'columnheader', class: i < 4 ? 'right' : '', text }))), this.scroller);
    private bar = h('div', { class: 'bar' });
    private said = h('p', { class: 'dim pad' });
    private of: CodeHead | undefined;
    private rows: Row[] = [];
    private at = -1; // the row of the keys
    private paper = false;

    constructor(private app: App) {
        this.scroller.addEventListener('scroll', () => this.draw());
        new ResizeObserver(() => this.draw()).observe(this.scroller);
        this.root = h('section', { class: 'view' }, this.bar, this.said, this.table);
    }

    open(): void { this.choose(); }

    update(c: Change): void {
        if (c === 'func' || c === 'data') this.choose();
        else this.draw();
    }

    private choose(): void {
        const { app } = this, all = app.model.data.head.code!, func = app.state.func || app.hottest, found = codeOf(app, func), name = app.model.funcs.list[func]?.name ?? '';
        const next = found.includes(this.of!) ? this.of : found[0];

        fill(this.bar, select('Function', all.map((c, i): [string, string] => [String(i), `${c.function}  ${percent(c.self, c.all)}`]), String(next ? all.indexOf(next) : -1), (v) => this.pick(all[Number(v)]!)));
        this.table.hidden = !next;
        this.said.textContent = !next ? `The page has no code of ${name}: it has that of the ${all.length} hottest functions. \`uniscope annotate\` shows any.` : this.about(next, name);
        if (next !== this.of) this.show(next);
        this.draw();
    }

    private about(c: CodeHead, name: string): string {
        const { app } = this, s = app.state, chosen = s.t1 > s.t0 || s.cpu >= 0 || s.thread >= 0;

        return (c.function !== name ? `${name} is inlined here, in ${c.function}. ` : '') + `${count(c.self)} of ${count(c.all)} samples are in it itself (${percent(c.self, c.all)}), ${count(c.total)} with callees. ` +
            (c.skid === 'block' ? 'Samples are where a block of code begins: the time was spent in a block that leads there.' : 'A sample is at the instruction that was next to run: a slow one is often shown at the one behind it.') +
            (chosen ? ' These numbers are of the whole recording, whatever is chosen above.' : '');
    }

    // A function without a frame of its own in this view is shown all the same.
    private pick(c: CodeHead): void {
        const func = this.app.model.funcs.list.findIndex((f) => f.name === c.function);

        this.of = c;
        this.show(c);
        if (func > 0 && func !== this.app.state.func) this.app.setFunc(func);
        else this.choose();
    }

    private show(c: CodeHead | undefined): void {
        let line = -1, hottest = -1;

        this.of = c;
        this.rows = [];
        c?.instructions.forEach((insn, i) => {
            if (insn.line !== undefined && insn.line !== line) this.rows.push({ line: c.lines[insn.line]! });
            line = insn.line ?? -1;
            if (hottest < 0 || insn.self > this.rows[hottest]!.insn!.self) hottest = this.rows.length;
            this.rows.push({ insn, arrows: c.arrows[i] ?? '' });
        });
        this.at = hottest;
        this.table.setAttribute('aria-rowcount', String(this.rows.length + 1));
        this.body.style.height = this.rows.length * rowPx + 'px';
        requestAnimationFrame(() => { this.scroller.scrollTop = Math.max(0, hottest * rowPx - this.scroller.clientHeight / 2); });
    }

    private draw(): void {
        const from = this.paper ? 0 : Math.max(0, Math.floor(this.scroller.scrollTop / rowPx) - 3);
        const to = Math.min(this.rows.length, this.paper ? onPaper : from + Math.ceil((this.scroller.clientHeight || 600) / rowPx) + 6);

        fill(this.body, ...this.rows.slice(from, to).map((r, i) => this.row(r, from + i)));
    }

    private row(r: Row, index: number): HTMLElement {
        const { app } = this, c = this.of!, self = r.insn?.self ?? r.line!.self, i = r.insn;
        const file = r.line?.file.replace(/^.*\//, '') ?? '', where = r.line ? `${file}:${r.line.line}${r.line.inlined ? ` (${r.line.inlined}, inlined)` : ''}` : '';
        const num = (text: string): HTMLElement => h('span', { role: 'cell', class: 'right', text });
        const row = h('div', { class: 'tr code' + (r.line ? ' src' : '') + (index === this.at ? ' on' : ''), role: 'row', style: { top: index * rowPx + 'px' },
            click: () => { this.at = index; this.draw(); } },
            h('span', { role: 'cell', class: 'right' }, h('i', { class: 'barlet', style: { width: c.self > 0 ? 100 * self / c.self + '%' : '0', background: app.css(app.state.func || app.hottest) } }), self > 0 && h('span', { text: percent(self, c.self) })),
            num(self > 0 ? count(self) : ''), num(i && i.below > 0 ? count(i.below) : ''), num(i ? i.address.slice(2) : ''),
            h('code', { role: 'cell', title: r.line ? r.line.file : '' },
                i ? h('span', {}, h('span', { class: 'dim', text: r.arrows ?? '' }), ' ' + i.text) : h('b', { text: where }), r.line && `  ${r.line.text ?? ''}`,
                i?.callee !== undefined && h('span', { class: 'dim', text: `  <${i.callee}>` })));

        row.setAttribute('aria-rowindex', String(index + 2));
        return row;
    }

    print(on: boolean): void {
        this.paper = on;
        this.draw();
    }

    // Enter: to where a jump leads, or into the callee.
    private follow(): boolean {
        const i = this.rows[this.at]?.insn, to = i?.target === undefined ? -1 : this.rows.findIndex((r) => r.insn?.address === i.target);
        const callee = this.app.model.data.head.code!.find((c) => c.function === i?.callee);

        if (to >= 0) this.move(to);
        else if (callee) this.pick(callee);
        return to >= 0 || !!callee;
    }

    private move(to: number): void {
        this.at = Math.max(0, Math.min(this.rows.length - 1, to));
        this.scroller.scrollTop = Math.max(Math.min(this.scroller.scrollTop, this.at * rowPx), (this.at + 1) * rowPx - this.scroller.clientHeight);
        this.draw();
    }

    keyDown(ev: KeyboardEvent): boolean {
        const page = Math.max(1, Math.floor(this.scroller.clientHeight / rowPx) - 1);
        const to = new Map([['ArrowDown', this.at + 1], ['ArrowUp', this.at - 1], ['PageDown', this.at + page], ['PageUp', this.at - page], ['Home', 0], ['End', this.rows.length - 1]]).get(ev.key);

        if (this.rows.length === 0) return false;
        if (ev.key === 'Enter') return this.follow();
        if (to === undefined) return false;
        this.move(to);
        return true;
    }
}
