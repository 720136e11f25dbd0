// SPDX-License-Identifier: BSD-2-Clause
import { App, type State, type View } from './app';
import { Breakdown } from './breakdown';
import { Card } from './card';
import { Chart } from './chart';
import { Code } from './code';
import { load, type Data } from './data';
import { button, fill, h, select } from './dom';
import { Exits } from './exits';
import { Flame } from './flame';
import { Functions } from './functions';
import { Heat } from './heat';
import { Live } from './live';
import { Help } from './help';
import { Overview } from './overview';
import { Pair } from './pair';
import { drawWaiting } from './plot';
import { doubtful, Quality } from './quality';
import { Sandwich } from './sandwich';
import { withParts, type Ask } from './parts';
import { model, type Model } from './source';
import { Timeline } from './timeline';
import { Tip } from './tip';
import { Url } from './url';

interface Tab { id: string; title: string; make: () => View }

// A view without data is absent.
function tabs(app: App, tip: Tip): Tab[] {
    const { model: m } = app, out: Tab[] = [], any = m.sources.length > 0, timed = m.sources.some((s) => s.timed), { head } = m.data;
    const add = (is: boolean, id: string, title: string, make: () => View): void => { if (is) out.push({ id, title, make }); };

    add(!!head.promises, 'timeline', 'Threads & promises', () => (m.beside ? new Pair(app, tip, m.beside) : new Timeline(app, tip)));
    add(any, 'flame', 'Flame graph', () => new Flame(app, tip));
    add(any, 'functions', 'Functions', () => new Functions(app));
    add(any, 'sandwich', 'Callers & callees', () => new Sandwich(app, tip));
    add((head.code?.length ?? 0) > 0, 'code', 'Source & assembly', () => new Code(app));
    add(timed, 'chart', 'Flame chart', () => new Chart(app, tip));
    add(timed, 'heat', 'Heat map', () => new Heat(app, tip));
    add(any, 'breakdown', 'Breakdown', () => new Breakdown(app, tip));
    add(!!m.exits, 'exits', 'VM exits', () => new Exits(app));
    add(head.quality !== '' || !!head.calls || !!head.promises, 'quality', 'Quality', () => new Quality(app));
    return out;
}

class Page {
    private tip = new Tip();
    private help = new Help();
    private views: Tab[] = [];
    private made = new Map<string, View>();
    private tabs = h('div', { class: 'tabs', role: 'tablist', label: 'Views' });
    private nav = h('nav', {}, this.tabs);
    private main = h('main');
    private search = h('input', { type: 'search', placeholder: 'Search  /', label: 'Search functions by regular expression' });
    private found = h('span', { class: 'found' });
    private filters = h('div', { class: 'filters' });
    private overview: Overview;
    private card: Card;
    private url: Url;

    // gone: another page takes its place. more: what else goes below the head.
    constructor(readonly app: App, private gone: AbortSignal, private more: HTMLElement | null) {
        const { model: m } = app;

        this.overview = new Overview(app, this.tip);
        this.card = new Card(app, (v) => this.go(v));
        this.url = new Url(app);
        this.views = tabs(app, this.tip);
        app.state.source = m.sources[0]?.key ?? '';
        app.state.on = !!m.sources[0]?.hasOff && (m.sources[0] === m.spans || m.sources[0].self({ t0: 0, t1: 0, cpu: -1, thread: -1, on: true }).some((v) => v > 0));
        this.url.usual = app.state.on;
        app.state.view = this.views[0]?.id ?? '';
        this.build();
        app.listen((c) => {
            const view = this.view();
            if (view && c !== 'look') view.update(c);
            else view?.open();
            if (c === 'search' || c === 'data') this.sayFound();
            if (c === 'zoom') { this.url.saveSoon(); return; }
            this.filter();
            this.url.save();
        });
        this.keys();
    }

    // The state that the address does not hold, for the page that replaces this page.
    keep(): { search: boolean; at: [number, number]; top: number; scroll: number } {
        const plot = (this.view() as { plot?: { top: number } } | undefined)?.plot;

        return { search: document.activeElement === this.search, at: [this.search.selectionStart ?? 0, this.search.selectionEnd ?? 0],
            top: plot?.top ?? 0, scroll: this.main.querySelector('.scroll')?.scrollTop ?? 0 };
    }

    restore(k: ReturnType<Page['keep']>): void {
        const plot = (this.view() as { plot?: { top: number; redraw(): void } } | undefined)?.plot, scroller = this.main.querySelector('.scroll');

        if (plot) { plot.top = k.top; plot.redraw(); }
        if (scroller) scroller.scrollTop = k.scroll;
        if (k.search) { this.search.focus(); this.search.setSelectionRange(...k.at); }
    }

    // Views are made when they are opened: the first picture does not wait for the others.
    private view(): View | undefined {
        const { view: id } = this.app.state, tab = this.views.find((v) => v.id === id);
        let v = this.made.get(id);

        if (!v && tab) this.made.set(id, v = tab.make());
        return v;
    }

    // Hides the functions that `report --hide` named, unless the address says which are hidden.
    private hide(globs: string[]): void {
        const { funcs } = this.app.model;

        for (const glob of globs) {
            // As base/text.h has them: * ? [a-z] [!a-z]; all else stands for itself.
            const re = new RegExp('^' + glob.replace(/\[([!^]?)([^\]]+)\]|[^]/g, (c, not?: string, set?: string) => set !== undefined ? `[${not ? '^' : ''}${set.replace(/[\\^]/g, '\\$&')}]`
                : c === '*' ? '.*' : c === '?' ? '.' : c.replace(/[\\^$+.()|{}[\]]/, '\\$&')) + '$', 's');
            funcs.list.forEach((f, i) => { if (i > 0 && re.test(f.name)) this.app.state.hidden.add(i); });
        }
    }

    private build(): void {
        const { app } = this, { head } = app.model.data, served = document.documentElement.dataset.served !== undefined;
        // A served page was asked for by a number or a pattern: the guest's own name says more.
        const title = (served && head.recording?.guests.length === 1 && head.recording.guests[0]!.name) || head.title;

        document.title = title || 'uniscope';
        this.search.addEventListener('input', () => app.setSearch(this.search.value));
        fill(document.body,
            h('header', {}, h('b', { class: 'mark', text: 'uniscope' }), h('h1', { text: title, title }), this.nav, h('span', { class: 'grow' }),
                this.found, this.search, button('◐', 'Dark or light', () => this.dark()), button('?', 'Keys (?)', () => this.help.toggle())),
            this.doubtful(),
            head.diff !== undefined && h('p', { class: 'verdict', text: head.diff.verdict }),
            head.diff !== undefined && h('p', { class: 'sides' }, ...this.side('before', head.diff.before, head.diff.before_files), ...this.side('after', head.diff.after, head.diff.after_files)),
            h('section', { class: 'top', label: 'What is shown' }, h('div', { class: 'tools' }, this.filters, h('span', { class: 'grow' }), this.more),
                app.model.sources.some((s) => s.timed) && this.overview.canvas),
            h('div', { class: 'body' }, this.main, this.card.root), this.tip.root, this.help.root);
        this.nav.addEventListener('scroll', () => this.moreTabs());
        new ResizeObserver(() => this.moreTabs()).observe(this.nav);
        this.hide(head.hide ?? []);
        this.url.restore();
        this.theme();
        this.search.value = app.state.search;
        if (app.state.search !== '') app.setSearch(app.state.search);
        if (!this.view()) app.state.view = this.views[0]?.id ?? '';
        this.go(app.state.view, false);
        // After the first picture: these look at everything once more.
        requestAnimationFrame(() => setTimeout(() => {
            this.revealTab();
            this.card.draw();
            this.overview.begin();
        }));
        this.filter();
        this.sayFound();
        addEventListener('beforeprint', () => this.print(true), { signal: this.gone });
        addEventListener('afterprint', () => this.print(false), { signal: this.gone });
        addEventListener('hashchange', () => {
            this.url.restore();
            this.search.value = app.state.search;
            app.setSearch(app.state.search);
            this.go(app.state.view, false);
            app.tell('data');
        }, { signal: this.gone });
    }

    // The heading has no room for the names of both sides.
    private side(which: string, name: string, files: string[]): HTMLElement[] {
        return [h('span', { class: 'dim', text: which }), h('b', { text: name, title: files.join('\n') })];
    }

    go(id: string, save = true): void {
        const { app } = this;

        app.state.view = id;
        this.tip.hide();
        fill(this.tabs, ...this.views.map((v, i) => {
            const b = button(v.title, `${v.title} (${i + 1})`, () => this.go(v.id));
            b.setAttribute('role', 'tab');
            b.setAttribute('aria-selected', String(v.id === id));
            b.dataset.view = v.id;
            return b;
        }));
        if (save) this.revealTab();
        const view = this.view();
        if (!view) {
            fill(this.main, h('p', { class: 'warn', text: 'Nothing was recorded.' }));
            return;
        }
        fill(this.main, view.root);
        document.body.dataset.view = id;
        view.open();
        this.sayFound();
        // Views may differ in what they do with hidden functions.
        if (save && this.app.state.hidden.size > 0) this.card.draw();
        if (save) this.url.save();
    }

    // Bad quality is told above every view, not in its own alone.
    private doubtful(): HTMLElement | false {
        const why = doubtful(this.app.model.data.head);

        return why !== '' && h('section', { class: 'doubtful', label: 'Quality of the recording' }, h('span', { text: why }), button('Quality', 'How good the recording is', () => this.go('quality')));
    }

    // Tabs that do not fit fade out at that side.
    private moreTabs(): void {
        const { scrollLeft: at, scrollWidth: all, clientWidth: seen } = this.nav;

        this.nav.classList.toggle('before', at > 1);
        this.nav.classList.toggle('after', at + seen < all - 1);
    }

    private revealTab(): void { this.tabs.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }); }

    // Chooses the data that is shown, and the part of it.
    private filter(): void {
        const { app } = this, { sources, cpus, threads } = app.model, s = app.state;
        const numbered = (all: string, list: string[]): [string, string][] => [['-1', all], ...list.map((name, i): [string, string] => [String(i), name]).sort((a, b) => a[1].localeCompare(b[1], 'en', { numeric: true }))];

        fill(this.filters,
            sources.length > 1 && select('What is shown', sources.map((x): [string, string] => [x.key, x.title]), s.source, (v) => app.set({ source: v, path: [] }, 'data')),
            cpus.list.length > 1 && select('vCPU', numbered('all vCPUs', cpus.list), String(s.cpu), (v) => app.set({ cpu: Number(v) }, 'data')),
            threads.list.length > 1 && select('Thread', numbered('all threads', threads.list), String(s.thread), (v) => app.set({ thread: Number(v) }, 'data')),
            app.source?.hasOff && button('On CPU only', 'Leaves out idle, stolen, waiting and the host\'s time', () => app.set({ on: !s.on }, 'data'), s.on),
            app.source?.hasOff && h('span', { class: 'dim', text: s.on ? '100 % is the guest\'s time on a CPU' : '100 % is all time' }),
            this.overview.note, s.t1 > s.t0 && button('All of the time', 'Shows the whole recording again', () => app.setRange(0, 0)));
        this.filters.hidden = !sources.some((x) => x.timed);
    }

    private sayFound(): void {
        const { app } = this, g = app.graph();

        this.found.textContent = app.badPattern ? 'not a regular expression' : '';
        if (!app.badPattern && app.searching && this.view()?.matches) this.found.textContent = this.view()!.matches!();
        else if (!app.badPattern && app.searching && g) {
            const n = app.match.reduce((a, b) => a + b, 0);
            this.found.textContent = `${n} function${n === 1 ? '' : 's'}, ${(100 * app.matchedShare(g, 0)).toFixed(1)} %` + (app.hard > 0 ? `; not looked at: ${app.hard} for which the pattern takes too long` : '');
        }
    }

    private theme(): void {
        const dark = this.app.state.dark === '' ? matchMedia('(prefers-color-scheme: dark)').matches : this.app.state.dark === '1';

        document.documentElement.dataset.dark = dark ? '1' : '0';
        matchMedia('(prefers-color-scheme: dark)').onchange = () => { this.theme(); this.app.tell('look'); };
    }

    // Ink is for what is drawn, not for what is behind it.
    private print(on: boolean): void {
        if (on) document.documentElement.dataset.dark = '0';
        else this.theme();
        this.app.tell('look');
        this.view()?.print?.(on);
        drawWaiting();
    }

    private dark(): void {
        this.app.state.dark = document.documentElement.dataset.dark === '1' ? '0' : '1';
        this.theme();
        this.app.tell('look');
    }

    // One step back: what was done last, as far as that can be told.
    private escape(): void {
        const { app } = this, s = app.state;

        if (s.search !== '') { this.search.value = ''; app.setSearch(''); }
        else if (s.t1 > s.t0) app.setRange(0, 0);
        else if (s.cpu >= 0 || s.thread >= 0) app.set({ cpu: -1, thread: -1 }, 'data');
        else app.setFunc(0);
    }

    private nextThread(by: number): void {
        const { app } = this, n = app.model.threads.list.length;

        if (n > 1) app.set({ thread: (app.state.thread + 1 + by + n + 1) % (n + 1) - 1 }, 'data');
    }

    private keys(): void {
        addEventListener('keydown', (ev) => {
            const typing = ev.target instanceof HTMLInputElement || ev.target instanceof HTMLSelectElement;
            const find = (ev.key === '/' && !typing) || ev.key === 'F3' || ((ev.ctrlKey || ev.metaKey) && ev.key === 'f');

            if (this.help.root.open) { if (ev.key === '?') this.help.toggle(); return; }
            if (find) { ev.preventDefault(); this.search.focus(); this.search.select(); return; }
            if (typing) { this.typed(ev); return; }
            if (ev.ctrlKey || ev.metaKey || ev.altKey) return;
            if (ev.target instanceof HTMLButtonElement && (ev.key === 'Enter' || ev.key === ' ')) return;
            if (ev.key === '?') this.help.toggle();
            else if (/^[1-9]$/.test(ev.key)) { const v = this.views[Number(ev.key) - 1]; if (v) this.go(v.id); }
            else if (this.view()?.keyDown?.(ev)) ev.preventDefault();
            else if (ev.key === 'Escape') this.escape();
            else if (ev.key === 'n') this.nextThread(1);
            else if (ev.key === 'p') this.nextThread(-1);
        }, { signal: this.gone });
    }

    private typed(ev: KeyboardEvent): void {
        const { app } = this;

        if (ev.target !== this.search) return;
        if (ev.key === 'Escape') { this.search.value = ''; app.setSearch(''); this.search.blur(); }
        else if (ev.key === 'Enter') {
            this.search.blur();
            if (app.searching && this.view()?.matches) this.view()!.keyDown?.(ev); // to the first match
        }
        else if (ev.ctrlKey && ev.key === 'i') { ev.preventDefault(); app.setSearch(app.state.search, !app.state.ignoreCase); }
    }
}

declare global {
    interface Window { uniscope?: { app: App; page: Page; state: State } }
}

let gone = new AbortController();

function show(m: Model, more: HTMLElement | null = null): void {
    const before = window.uniscope?.page;
    const old = before?.app.model, same = !old || old.begin === m.begin || old.end === 0;
    // A range of time says nothing of another recording, nor does what was scrolled to.
    const kept = same ? before?.keep() : undefined;

    if (!same) {
        const q = new URLSearchParams(location.hash.slice(1));
        for (const k of ['t', 'z', 'who', 'cpu', 'thread']) q.delete(k);
        history.replaceState(null, '', '#' + q.toString());
    }
    gone.abort();
    gone = new AbortController();
    const app = new App(m);
    const page = new Page(app, gone.signal, more);

    if (kept) page.restore(kept);
    // For who looks at a report by script.
    window.uniscope = { app, page, state: app.state };
    document.documentElement.dataset.ready = '1';
}

function failed(e: unknown): void {
    fill(document.body, h('p', { class: 'warn', text: 'This report cannot be shown: ' + (e instanceof Error ? e.message : String(e)) }));
    document.documentElement.dataset.ready = 'failed';
}

if (document.documentElement.dataset.served) {
    const live: Live = new Live((data: Data, ask: Ask) => show(withParts(model(data), ask), live.root));
    // Until the first data are there; not before these can be: it takes as long to draw.
    setTimeout(() => {
        if (!window.uniscope) fill(document.body, h('header', {}, h('b', { class: 'mark', text: 'uniscope' })), h('div', { class: 'tools' }, live.root), live.hint);
    }, 300);
} else {
    Promise.all([load(), load('o')]).then(([data, other]) => {
        if (!data) throw new Error('it has no data');
        const m = model(data);
        if (other?.head.promises) m.beside = model(other, m.funcs);
        show(m);
    }).catch(failed);
}
