// SPDX-License-Identifier: BSD-2-Clause
// A page that is served: fetches its data, and again when there is more, and has buttons that begin
// and end recordings (docs/formats/live.md).
import { gunzip, parse, type Data } from './data';
import { button, fill, h } from './dom';
import type { Ask } from './parts';
import { time } from './text';

interface State { rev: number; recording: string; since_ms: number; reading?: boolean; can: string[]; target: string; said: string }

const names: Record<string, string> = { samples: 'samples', calls: 'calls' };
const quietMs = 1200;

export class Live {
    readonly root = h('span', { class: 'live', role: 'status' });
    readonly hint = h('p', { class: 'warn', role: 'status', hidden: true }); // where nothing is shown yet
    private state: State | null = null;
    private since = 0;
    private rev = 0;        // of the data that are shown
    private seen = 0;       // of data that there was nothing in
    private busy = false;
    private held = false;   // by the user
    private lost = false;
    private touched = 0;    // when the user last did something that new data would disturb
    private pressed = false;
    private notBefore = 0;
    private timer = 0;
    private what = h('span', {});

    constructor(private show: (data: Data, ask: Ask) => void) {
        for (const ev of ['keydown', 'input', 'change', 'wheel']) addEventListener(ev, () => { this.touched = performance.now(); }, { capture: true, passive: true });
        addEventListener('pointerdown', () => { this.pressed = true; }, true);
        for (const ev of ['pointerup', 'pointercancel']) addEventListener(ev, () => { this.pressed = false; this.touched = performance.now(); }, true);
        document.addEventListener('visibilitychange', () => this.refresh());
        setInterval(() => this.tick(), 500);
        void this.begin();
    }

    // Shows the data that exists before it asks for more; first shows a picture of it.
    private async begin(): Promise<void> {
        await this.fetch();
        setTimeout(() => this.listen(), this.rev > 0 ? 100 : 0);
    }

    private listen(): void {
        const events = new EventSource('events');

        events.onmessage = (ev) => {
            this.lost = false;
            this.news(JSON.parse(String(ev.data)) as State);
        };
        events.onerror = () => {
            this.lost = true;
            this.draw();
            // It comes back by itself, unless it was refused: then others watch, and asking now and then will do.
            if (events.readyState === EventSource.CLOSED) setTimeout(() => { void this.poll(); this.listen(); }, 5000);
        };
    }

    private async poll(): Promise<void> {
        try {
            const r = await fetch('state');
            if (r.ok) { this.lost = false; this.news(await r.json() as State); }
        } catch {
            // Still gone.
        }
    }

    private news(s: State): void {
        this.state = s;
        this.since = performance.now() - s.since_ms;
        this.draw();
        this.refresh();
    }

    // Is it a good moment to show other data?
    private get quiet(): boolean {
        const now = performance.now();

        return this.rev === 0 || (!document.hidden && !this.held && !this.pressed && now - this.touched > quietMs && now > this.notBefore);
    }

    private refresh(): void {
        if (this.busy || !this.state || this.state.rev === this.rev || this.state.rev === this.seen || this.state.rev === 0) return;
        clearTimeout(this.timer);
        if (this.quiet) void this.fetch();
        else this.timer = setTimeout(() => this.refresh(), 300);
    }

    private async fetch(): Promise<void> {
        this.busy = true;
        try {
            const r = await fetch('data');
            if (!r.ok) throw new Error(await r.text());
            const rev = Number(r.headers.get('ETag')?.replaceAll('"', '')), data = r.status === 204 ? null : parse(await gunzip([new Uint8Array(await r.arrayBuffer())]));
            const begin = performance.now(), some = data?.head.columns.some((c) => c.nr > 0);
            if (this.lost) { this.lost = false; this.draw(); }
            // Whether nothing is what there is, or what there is by now, is still to be told.
            if (some || this.state) this.seen = rev;
            // A recording that has just begun: what was shown, or the hint, stays until there is something.
            if (data && (some || (this.state && !this.state.recording))) {
                this.rev = rev;
                this.show(data, (path) => this.part(path, rev));
            }
            // Data that takes long to show is shown less often.
            this.notBefore = performance.now() + 8 * (performance.now() - begin);
        } catch {
            this.lost = true;
            this.draw();
            setTimeout(() => this.refresh(), 3000);
        }
        this.busy = false;
        this.refresh();
    }

    // Null: newer data are served now, and soon shown.
    private async part(path: string, rev: number): Promise<Data | null> {
        const r = await fetch(path);

        if (!r.ok || Number(r.headers.get('ETag')?.replaceAll('"', '')) !== rev) return null;
        return parse(new Uint8Array(await r.arrayBuffer()));
    }

    private async order(path: string): Promise<void> {
        try {
            const r = await fetch(path, { method: 'POST' });
            if (!r.ok && this.state) this.state.said = (await r.text()).trim();
        } catch {
            this.lost = true;
        }
        this.draw();
    }

    private tick(): void {
        // If the server does not answer, nobody knows whether it still records.
        if (this.lost) this.what.textContent = '';
        else if (this.state?.recording) this.what.textContent = `recording ${names[this.state.recording] ?? ''}, ${time(Math.floor((performance.now() - this.since) / 1000) * 1e9)}`;
    }

    private draw(): void {
        const { state: s } = this;

        this.root.dataset.recording = document.documentElement.dataset.recording = s?.recording ?? '';
        this.hint.hidden = !s || s.can.length === 0;
        this.hint.textContent = !s ? '' : s.recording !== '' ? `${s.target} is being recorded: the first of it is shown in a moment.`
            : `Nothing of ${s.target} was recorded yet. Record takes samples of what runs; Trace calls records its functions' calls, threads and promises. What is recorded is shown here while it grows.`;
        if (!s || (s.can.length === 0 && s.rev > 0 && !s.reading)) {
            fill(this.root, this.lost && h('span', { class: 'warn', text: 'not connected' }));
            return;
        }
        this.what.textContent = s.reading || (s.rev === 0 && s.can.length === 0) ? 'reading…' : '';
        this.tick();
        const on = s.recording !== '' && !this.lost;
        fill(this.root, on && h('i', { class: 'dot' }), this.what,
            on && button('Stop', 'Ends the recording', () => void this.order('stop')),
            on && button('Hold', 'Leaves the page as it is, while the recording goes on', () => { this.held = !this.held; this.draw(); this.refresh(); }, this.held),
            ...(s.recording !== '' || this.lost ? [] : s.can.map((what) => button(what === 'calls' ? 'Trace calls' : 'Record', `Records ${names[what] ?? what} of ${s.target}` + (this.rev > 0 ? '; it takes the place of what is shown' : ''), () => void this.order('record/' + what)))),
            s.said !== '' && h('span', { class: 'warn', text: s.said, title: s.said }),
            this.lost && h('span', { class: 'warn', text: 'not connected' + (s.recording !== '' ? ': what is recorded may be more than this' : '') }));
    }
}
