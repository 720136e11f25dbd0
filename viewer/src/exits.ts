// SPDX-License-Identifier: BSD-2-Clause
// VM exits of the selection by reason, and by the guest's function.
import { type App, type Change, type View } from './app';
import { button, fill, h } from './dom';
import { count, percent, time } from './text';

interface ExitRow { reason: number; func: number; exits: number; host: number; asleep: number; stolen: number; user: number; lengths: [number, number][]; kids: Map<number, ExitRow> }

function quantile(r: ExitRow, q: number): number {
    const all = r.lengths.sort((a, b) => a[0] - b[0]);
    let left = r.exits * q;

    for (const [ns, weight] of all) if ((left -= weight) <= 0) return ns;
    return all[all.length - 1]?.[0] ?? 0;
}

export class Exits implements View {
    root: HTMLElement;
    private body = h('div', { class: 'scroll pad' });
    private open_ = new Set<number>();

    constructor(private app: App) {
        this.root = h('section', { class: 'view' }, this.body);
    }

    private get byFunc(): boolean { return this.app.opt('exits') === 'function'; }

    open(): void { this.draw(); }
    update(c: Change): void { if (c !== 'zoom') this.draw(); }

    private gather(): Map<number, ExitRow> {
        const { app } = this, x = app.model.exits!, { t0, t1, cpu, thread } = app.state, { tree } = x;
        const out = new Map<number, ExitRow>();
        const row = (m: Map<number, ExitRow>, key: number): ExitRow => {
            let r = m.get(key);
            if (!r) m.set(key, r = { reason: key, func: key, exits: 0, host: 0, asleep: 0, stolen: 0, user: 0, lengths: [], kids: new Map() });
            return r;
        };

        if (thread >= 0) return out; // exits are of vCPUs
        for (let i = 0; i < x.time.length; i++) {
            if ((t1 > t0 && (x.time[i]! < t0 || x.time[i]! >= t1)) || (cpu >= 0 && x.cpu[i] !== cpu)) continue;
            const node = x.node[i]!, reason = tree.func[node]!, func = tree.func[tree.parent[node]!]!;
            const [a, b] = this.byFunc ? [func, reason] : [reason, func];
            const w = x.weight[i]!, halt = /^\[exit (hlt|wfi|halt)\b/.test(app.model.funcs.name(reason));
            const cost = x.columns.host[i]! - x.columns.stolen[i]! - (halt ? x.columns.asleep[i]! : 0);
            for (const r of [row(out, a), row(row(out, a).kids, b)]) {
                r.exits += w;
                r.host += cost;
                r.asleep += x.columns.asleep[i]!;
                r.stolen += x.columns.stolen[i]!;
                r.user += x.columns.user[i] ? w : 0;
                r.lengths.push([cost / Math.max(1, w), w]);
            }
        }
        return out;
    }

    private line(r: ExitRow, all: number, sum: number, deep: boolean): HTMLElement {
        const { app } = this, name = app.model.funcs.name(r.func).replace(/^\[exit (.*)\]$/, '$1');
        const el = h('button', { type: 'button', class: 'xr' + (deep ? ' deep' : ''), click: () => {
            app.setFunc(r.func);
            if (!deep) {
                if (!this.open_.delete(r.func)) this.open_.add(r.func);
                this.draw();
            }
        } }, h('span', { class: 'name', text: name }), h('span', { class: 'num', text: count(r.exits) }),
            h('span', { class: 'num' }, h('span', { class: 'rail' }, h('i', { class: 'barlet', style: { width: 100 * r.host / Math.max(1, all) + '%', background: app.css(r.func) } })), h('span', { class: 'pc', text: time(r.host) })),
            h('span', { class: 'num', text: percent(r.host, sum) }), h('span', { class: 'num', text: time(quantile(r, 0.5)) }), h('span', { class: 'num', text: time(quantile(r, 0.99)) }),
            ...[r.asleep, r.stolen].map((v) => h('span', { class: 'num', text: v > 0 ? time(v) : '-' })), h('span', { class: 'num', text: percent(r.user, r.exits) }));

        if (!deep) el.setAttribute('aria-expanded', String(this.open_.has(r.func)));
        return el;
    }

    private draw(): void {
        const rows = [...this.gather().values()].sort((a, b) => b.host - a.host || b.exits - a.exits);
        const all = rows[0]?.host ?? 0, sum = rows.reduce((a, r) => a + r.host, 0);

        fill(this.body, h('div', { class: 'bar' }, button('By reason', 'First the reason, then the functions', () => { this.app.setOpt('exits', ''); this.draw(); }, !this.byFunc),
            button('By function', 'First the function, then the reasons', () => { this.app.setOpt('exits', 'function'); this.draw(); }, this.byFunc),
            h('span', { class: 'grow' }), h('span', { class: 'dim', text: `${count(rows.reduce((a, r) => a + r.exits, 0))} exits cost the host ${time(sum)}` })),
            this.app.state.thread >= 0 && h('p', { class: 'dim', text: 'VM exits are of vCPUs: of one thread there are none.' }),
            h('div', { class: 'xr head' }, ...[this.byFunc ? 'Function' : 'Reason', 'Exits', 'Host time', 'Share', 'Median', 'p99', 'Asleep', 'Stolen', 'To the VMM'].map((text, i) => h('span', { class: i ? 'num' : '', text }))),
            ...rows.flatMap((r) => [this.line(r, all, sum, false),
                ...(this.open_.has(r.func) || rows.length <= 3 ? [...r.kids.values()].sort((a, b) => b.host - a.host || b.exits - a.exits).slice(0, 50).map((k) => this.line(k, all, sum, true)) : [])]));
    }
}
