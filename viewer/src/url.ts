// SPDX-License-Identifier: BSD-2-Clause
// Keeps the view in the page's address, #v=flame&t=1.5,2&s=regex&f=function&p=a;b, so that it can be shared.
import type { App } from './app';

export class Url {
    private last = '';
    private timer = 0;

    usual = false; // of `on`

    constructor(private app: App) {}

    save(): void {
        const { app } = this, s = app.state, { model: m } = app;
        const q = new URLSearchParams();

        q.set('v', s.view);
        if (m.sources.length > 1 && s.source !== m.sources[0]?.key) q.set('src', s.source);
        if (s.t1 > s.t0) q.set('t', `${(s.t0 / 1e9).toFixed(9)},${(s.t1 / 1e9).toFixed(9)}`);
        if (s.cpu >= 0) q.set('cpu', m.cpus.list[s.cpu]!);
        if (s.thread >= 0) q.set('thread', m.threads.list[s.thread]!);
        if (s.search) q.set('s', s.search);
        if (!s.ignoreCase) q.set('case', '1');
        if (s.func > 0) q.set('f', m.funcs.name(s.func));
        if (s.path.length > 0) q.set('p', JSON.stringify(s.path));
        if (s.hidden.size > 0 || m.data.head.hide) q.set('hide', JSON.stringify([...s.hidden].map((f) => m.funcs.name(f))));
        if (s.z1 > s.z0) q.set('z', `${(s.z0 / 1e9).toFixed(9)},${(s.z1 / 1e9).toFixed(9)}`);
        if (s.who >= 0) q.set('who', String(s.who));
        for (const k of ['up', 'inverted', 'recursion', 'byWeight'] as const) if (s[k]) q.set(k, '1');
        if (s.on !== this.usual) q.set('on', s.on ? '1' : '0');
        if (!s.safe) q.set('safe', '0');
        if (s.dark) q.set('dark', s.dark);
        for (const [k, v] of s.opt) q.set('o.' + k, v);
        this.last = '#' + q.toString();
        try {
            history.replaceState(null, '', this.last);
        } catch {
            // Some browsers allow that only so often a second: the next change will tell.
        }
    }

    // For state that changes many times a second.
    saveSoon(): void {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.save(), 100);
    }

    private range(text: string | null): [number, number] {
        const [a, b] = (text ?? '').split(',').map((x) => Number(x) * 1e9);

        return b! > a! ? [a!, b!] : [0, 0];
    }

    private names(text: string | null): string[] {
        try {
            const v: unknown = JSON.parse(text ?? '[]');
            return Array.isArray(v) ? v.filter((x): x is string => typeof x === 'string') : [];
        } catch {
            return [];
        }
    }

    restore(): void {
        const { app } = this, s = app.state, { model: m } = app;
        const q = new URLSearchParams(location.hash.slice(1));
        const func = (name: string): number => Math.max(0, m.funcs.list.findIndex((f, i) => i > 0 && f.name === name));
        const [t0, t1] = this.range(q.get('t'));

        if (location.hash === '' || location.hash === this.last) return;
        s.view = q.get('v') ?? s.view;
        s.source = m.sources.find((x) => x.key === q.get('src'))?.key ?? m.sources[0]?.key ?? '';
        [s.t0, s.t1] = t0 < m.end ? [Math.max(0, t0), Math.min(t1, m.end)] : [0, 0];
        [s.z0, s.z1] = this.range(q.get('z'));
        s.who = /^\d{1,9}$/.test(q.get('who') ?? '') ? Number(q.get('who')) : -1;
        s.cpu = m.cpus.list.indexOf(q.get('cpu') ?? '\0');
        s.thread = m.threads.list.indexOf(q.get('thread') ?? '\0');
        s.search = q.get('s') ?? '';
        s.ignoreCase = q.get('case') !== '1';
        s.func = q.has('f') ? func(q.get('f')!) : 0;
        s.path = this.names(q.get('p'));
        if (q.has('hide') || !m.data.head.hide) s.hidden = new Set(this.names(q.get('hide')).map(func).filter((f) => f > 0));
        for (const k of ['up', 'inverted', 'recursion', 'byWeight'] as const) s[k] = q.get(k) === '1';
        s.on = q.has('on') ? q.get('on') === '1' : this.usual;
        s.safe = q.get('safe') !== '0';
        s.dark = q.get('dark') ?? '';
        s.opt = new Map([...q].filter(([k, v]) => k.startsWith('o.') && k.length < 20 && v.length < 400).map(([k, v]) => [k.slice(2), v]));
    }
}
