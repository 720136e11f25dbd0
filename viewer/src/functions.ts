// SPDX-License-Identifier: BSD-2-Clause
// The function table: only the rows on screen exist.
import { type App, type Change, type View } from './app';
import { button, download, fill, h } from './dom';
import { hiddenTools } from './hidden';
import { count, percent, value } from './text';
import { doubt, type FuncRow } from './tree';

const rowPx = 26;
const onPaper = 2000;
const columns = ['self', 'total', 'name', 'delta'] as const;
type Column = typeof columns[number];

export class Functions implements View {
    root: HTMLElement;
    private body = h('div', { class: 'tbody', role: 'none' });
    private scroller = h('div', { class: 'scroll', tab: 0, role: 'rowgroup', label: 'Functions by rows' }, this.body);
    private head = h('div', { class: 'thead', role: 'row' });
    private table = h('div', { class: 'view', role: 'table', label: 'Functions' }, this.head, this.scroller);
    private rows: FuncRow[] = [];
    private note = h('b', {});
    private hiding = h('span', { class: 'bar' });
    private most: [number, number] = [0, 0]; // self and total
    private paper = false;
    private said = h('span', { class: 'found' });

    constructor(private app: App) {
        this.scroller.addEventListener('scroll', () => this.draw());
        new ResizeObserver(() => this.draw()).observe(this.scroller);
        this.root = h('section', { class: 'view' },
            h('div', { class: 'bar' }, this.note, button('Save CSV', 'The table as a file', () => this.save()), this.hiding,
                h('span', { class: 'grow' }), this.said), this.table);
    }

    open(): void { this.update('data'); }

    update(c: Change): void {
        if (c === 'data' || c === 'search' || c === 'look') this.collect();
        this.draw();
    }

    private get by(): Column {
        const by = this.app.opt('order', 'self') as Column;

        return columns.includes(by) && (by !== 'delta' || this.two) ? by : 'self';
    }

    private get two(): boolean { return this.app.source?.second !== undefined; }

    private collect(): void {
        const { app } = this, { funcs } = app.model, g = app.graph();
        const all = app.table(), whole = Math.max(g?.total[0] ?? 0, 1e-9), whole2 = Math.max(g?.total2?.[0] ?? 0, 1e-9);
        const order: Record<Column, (a: FuncRow, b: FuncRow) => number> = {
            self: (a, b) => (this.two ? b.self2 - a.self2 : b.self - a.self),
            total: (a, b) => (this.two ? b.total2 - a.total2 : b.total - a.total),
            name: (a, b) => funcs.rank[a.func]! - funcs.rank[b.func]!,
            delta: (a, b) => Math.abs(b.self2 / whole2 - b.self / whole) - Math.abs(a.self2 / whole2 - a.self / whole),
        };
        this.rows = (app.searching ? all.filter((r) => app.match[r.func]) : [...all]).sort(order[this.by]);
        this.most = this.rows.reduce((m, r): [number, number] => [Math.max(m[0], this.two ? r.self2 : r.self), Math.max(m[1], this.two ? r.total2 : r.total)], [0, 0] as [number, number]);
        const column = (key: Column, text: string): HTMLElement => {
            const b = button(text, 'Order by this column', () => { app.setOpt('order', key, 'self'); this.collect(); this.draw(); });
            b.className = 'th';
            const cell = h('div', { role: 'columnheader', class: key === 'name' ? '' : 'right' }, b);
            cell.setAttribute('aria-sort', this.by === key ? 'descending' : 'none');
            return cell;
        };
        fill(this.head, column('self', this.two ? 'Self after' : 'Self'), column('total', this.two ? 'Total after' : 'Total'),
            this.two && column('delta', 'Change of self'), column('name', 'Function'));
        fill(this.hiding, ...hiddenTools(app, app.leftOut));
        this.head.classList.toggle('two', this.two);
        this.said.textContent = `${count(this.rows.length)}${app.searching ? ' of ' + count(all.length) : ''} functions`;
        this.table.setAttribute('aria-rowcount', String(this.rows.length + 1));
        this.body.style.height = this.rows.length * rowPx + 'px';
    }

    private draw(): void {
        const { app } = this, g = app.graph();
        const from = this.paper ? 0 : Math.max(0, Math.floor(this.scroller.scrollTop / rowPx) - 3);
        const to = this.paper ? Math.min(this.rows.length, onPaper) : Math.min(this.rows.length, from + Math.ceil((this.scroller.clientHeight || 600) / rowPx) + 6);

        if (!g) return;
        fill(this.body, ...this.rows.slice(from, to).map((r, i) => this.row(r, from + i, g.total[0]!, g.total2?.[0] ?? 0)));
    }

    // All of them go onto paper, up to so many that nobody reads them.
    print(on: boolean): void {
        this.paper = on;
        this.note.textContent = on && this.rows.length > onPaper ? `the first ${count(onPaper)} of ${count(this.rows.length)}: Save CSV has all` : '';
        this.draw();
    }

    // The bar is the share of the largest; the number is that of all.
    private cell(v: number, all: number, most: number, unit: string, func: number): HTMLElement {
        return h('span', { class: 'num', role: 'cell' }, h('span', { class: 'rail' }, h('i', { class: 'barlet', style: { width: most > 0 ? 100 * v / most + '%' : '0', background: this.app.css(func) } })),
            h('span', { class: 'pc', text: percent(v, all) }), h('span', { class: 'abs', text: value(v, unit) }));
    }

    private row(r: FuncRow, index: number, all: number, all2: number): HTMLElement {
        const { app } = this, f = app.model.funcs.list[r.func]!, unit = app.source!.unit;
        const two = this.two, change = (all2 > 0 ? r.self2 / all2 : 0) - (all > 0 ? r.self / all : 0);

        const row = h('div', { class: 'tr' + (two ? ' two' : '') + (r.func === app.state.func ? ' on' : ''), role: 'row', style: { top: index * rowPx + 'px' },
            click: () => app.setFunc(r.func) },
            this.cell(two ? r.self2 : r.self, two ? all2 : all, this.most[0], unit, r.func), this.cell(two ? r.total2 : r.total, two ? all2 : all, this.most[1], unit, r.func),
            two && h('span', { role: 'cell', class: 'num ' + (change > 0 ? 'more' : 'less'), text: (change > 0 ? '+' : '') + (100 * change).toFixed(2) + ' %' + (app.source!.sure?.[r.func] ? ' *' : '') }),
            h('div', { role: 'cell', style: { 'min-width': '0' } }, h('button', { class: 'fn', type: 'button' }, h('span', { class: 'name', text: f.name + (f.unsure > 0 ? ' ~' : ''), title: doubt(f) }), (f.image || f.place) && h('span', { class: 'dim', text: '  ' + (f.place || f.image) }))));

        row.setAttribute('aria-rowindex', String(index + 2));
        return row;
    }

    private save(): void {
        const q = (s: string): string => '"' + (/^[=+\-@\t]/.test(s) ? "'" : '') + s.replaceAll('"', '""') + '"';
        const two = this.two;

        download('functions.csv', 'text/csv', (two ? 'function,image,self before,self after,total before,total after\r\n' : 'function,image,self,total\r\n') +
            this.rows.map((r) => {
                const f = this.app.model.funcs.list[r.func]!;
                return [q(f.name), q(f.image), ...(two ? [r.self, r.self2, r.total, r.total2] : [r.self, r.total])].join(',') + '\r\n';
            }).join(''));
    }

    keyDown(ev: KeyboardEvent): boolean {
        const d = ev.key === 'ArrowDown' ? 1 : ev.key === 'ArrowUp' ? -1 : 0;
        const now = this.rows.findIndex((r) => r.func === this.app.state.func);
        const next = this.rows[Math.max(0, now + d)];

        if (d === 0 || !next) return false;
        this.scroller.scrollTop = Math.max(Math.min(this.scroller.scrollTop, (now + d) * rowPx), (now + d + 1) * rowPx - this.scroller.clientHeight);
        this.app.setFunc(next.func);
        return true;
    }
}
