// SPDX-License-Identifier: BSD-2-Clause
// How good the recording is.
import { type App, type View } from './app';
import type { Head, RecordedGuest } from './data';
import { fill, h } from './dom';
import { count, percent, time } from './text';

const shares: [string, string][] = [['guest', '#e8954a'], ['kvm', '#79aee0'], ['vmm', '#62b8ae'], ['idle', '#c6cad2'], ['stolen', '#b79ac8']];

// A defect so bad that the user must know it before they believe any view; '': none.
export function doubtful(head: Head): string {
    const r = head.recording, several = (r?.guests.length ?? 0) > 1;
    const of = (g: RecordedGuest): string[] => {
        // The weights hold skipped ones, too.
        const asked = (g.skipped > 0 ? g.samples : g.weight) + g.skipped + g.lost, out: string[] = [];

        if (asked === 0) return out;
        if (g.complete !== undefined && g.weight > 0 && g.complete < 0.95) out.push(`${percent(1 - g.complete, 1)} of the call chains do not reach their outermost caller`);
        // Numbers of skipped and lost ones are those of the whole recording.
        if (!r!.part && g.skipped > asked / 10) out.push(`${percent(g.skipped, asked)} of the samples were skipped`);
        if (!r!.part && g.lost > asked / 100) out.push(`${percent(g.lost, asked)} of the samples were lost`);
        return out.map((s) => (several ? `${g.name}: ${s}` : s));
    };
    // A recording that has just begun has few samples.
    const recording = !!document.documentElement.dataset.recording;
    const told = [...(head.quality ?? '').matchAll(/^(NO PROFILE|TOO FEW|UNSURE|NOT EXACTLY THAT IMAGE) +(.*)$/gm)].filter((m) => m[1] !== 'TOO FEW' || !recording).map((m) => m[2]!);
    const all = [...told, ...(r?.guests ?? []).flatMap(of)], calls = head.calls;

    if (calls && calls.lost > 0) all.push(`${count(calls.lost)} events of the trace were lost`);
    if ((head.missing ?? 0) + (head.torn ?? 0) + (head.damaged ?? 0) > 0) all.push('the recording is damaged');
    return all.length > 0 ? all.slice(0, 3).join('; ') + (all.length > 3 ? '; and more' : '') : '';
}

export class Quality implements View {
    root = h('section', { class: 'view' });

    constructor(private app: App) {}
    update(): void {}

    private tile(label: string, text: string, note: string, bad: boolean): HTMLElement {
        return h('div', { class: 'tile' + (bad ? ' bad' : '') }, h('span', { class: 'dim', text: label }), h('b', { text }), h('span', { class: 'dim', text: note }));
    }

    open(): void {
        const { head } = this.app.model.data, r = head.recording;
        const guests = (r?.guests ?? []).filter((g) => g.samples > 0 || (r!.guests.length === 1 && !head.calls && !head.promises));

        fill(this.root, h('div', { class: 'scroll pad', tab: 0, role: 'region', label: 'Quality' },
            r && !r.closed && h('p', { class: 'warn', text: document.documentElement.dataset.recording ? 'It is being recorded: this is what there is by now.' : 'The recorder was killed, or still runs: this is what was there.' }),
            (head.missing ?? 0) + (head.torn ?? 0) > 0 && h('p', { class: 'warn', text: `The recording is damaged: ${(head.missing ?? 0) > 0 ? count(head.missing!) + ' samples or exits that it tells of are not in it' : 'some of it could not be read'} (${count(head.torn ?? 0)} torn packets). The numbers below are of what was recorded.` }),
            (head.damaged ?? 0) > 0 && h('p', { class: 'warn', text: `The trace is damaged: ${count(head.damaged!)} bytes of it make no sense. Calls, threads and promises are those that could be read.` }),
            (head.left_out ?? 0) > 0 && h('p', { class: 'warn', text: `The last ${count(head.left_out!)} samples and exits are not in this page, which holds 20 million of each: uniscope report and export have all.` }),
            ...guests.flatMap((g) => [guests.length > 1 && h('h3', { text: g.name }), h('div', { class: 'tiles' },
                this.tile('samples', count(g.weight), `in ${time(g.duration_ns)} at ${count(r!.frequency_hz)} Hz`, g.weight === 0),
                g.complete !== undefined && this.tile('whole call chains', percent(g.complete, 1), 'reach their outermost caller', g.complete < 0.95),
                !r!.part && this.tile('lost', count(g.lost), 'made, and not kept', g.lost > 0),
                !r!.part && this.tile('skipped', count(g.skipped), 'too late, or to spare the guest', g.skipped > g.samples / 50),
                g.pause_ns.nr > 0 ? this.tile('pause per sample', time(g.pause_ns.p50), `median; p99 ${time(g.pause_ns.p99)}, longest ${time(g.pause_ns.max)}`, g.pause_ns.sum > g.duration_ns / 20)
                    : this.tile('pause per sample', 'none', 'the guest was never stopped', false)),
            ...(g.vcpus ?? []).map((v, i) => h('div', { class: 'stacked' }, h('span', { class: 'who', text: 'vCPU ' + i }), h('div', { class: 'track' }, h('div', { class: 'segments', style: { width: '100%' } },
                ...shares.filter(([k]) => v[k]! > 0).map(([k, c]) => h('span', { class: 'segment', title: `${k} ${percent(v[k]!, 1)}`, style: { 'flex-grow': String(v[k]), background: c } }, v[k]! > 0.07 && h('span', { text: `${k} ${percent(v[k]!, 1)}` })))))))]),
            ...[head.samples, head.exits, head.calls].filter((x) => (x?.flat ?? 0) > 0).map((x) => h('p', { class: 'warn', text: `The call tree has ${count(x!.flat!)} nodes more than are sent: what takes least is flat here, each function once in [small] below the last caller that is shown. report and export have all.` })),
            (head.samples?.near_ns ?? 0) > 0 && h('p', { class: 'warn', text: `These are very many samples: those of one stack within ${time(head.samples!.near_ns!)} are shown as one. report --html has each.` }),
            head.calls && h('div', { class: 'tiles' }, this.tile('calls', count(head.calls.nr), head.calls.left_out > 0 ? count(head.calls.left_out) + ' of them are not in this page' : 'all are in this page', head.calls.left_out > 0),
                this.tile('events lost', count(head.calls.lost), 'calls open then are cut off', head.calls.lost > 0)),
            (head.promises?.left_out ?? 0) + (head.promises?.left_parts ?? 0) > 0 && h('p', { class: 'warn', text: `${count(head.promises!.left_out ?? 0)} threads and promises, and ${count(head.promises!.left_parts ?? 0)} runs, waits and others, are not in this page: it holds the first million and those that something is wrong with. uniscope promises reads all.` }),
            head.promises && h('div', { class: 'tiles' }, this.tile('events of threads', count(head.promises.events), '', false), this.tile('events lost', count(head.promises.lost), '', head.promises.lost > 0)),
            head.quality !== '' && h('pre', { text: head.quality, tab: 0, role: 'region', label: 'Quality in words' }),
            h('p', { class: 'dim', text: `uniscope ${head.uniscope}` })));
    }
}
