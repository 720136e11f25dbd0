// SPDX-License-Identifier: BSD-2-Clause
import { button, h } from './dom';

const keys: [string, string][] = [
    ['W  S', 'zoom in and out (also the wheel)'], ['A  D', 'pan left and right (also drag)'], ['0', 'show all'],
    ['arrows', 'frame to frame; in charts pan and scroll; in the strip and the heat map a mark, with Shift or Enter a range'], ['Enter', 'zoom into the frame, or the next match; in code: to where a jump or call leads'], ['Page Up / Down', 'scroll'],
    ['/  Ctrl-F', 'search functions: a regular expression'], ['Ctrl-I', 'case matters, or not (in the search)'],
    ['1 ... 9', 'the views, in their order'], ['i', 'flame graph or icicle'], ['v', 'leaves first'], ['r', 'merge recursion'], ['x', 'of a difference: both sides, before, after, only before'],
    ['[  ]  ,', 'of a thread: who made it, what it became or who resolved it, what it waits for; b goes back'], ['z', 'timeline: all rows at once'], ['l', 'two traces: moved together, or each for itself'],
    ['m', 'choose what a chart shows as the range'], ['n  p', 'next and previous thread'], ['Esc', 'undo: search, zoom, range, function'], ['?', 'this help'],
];

export class Help {
    readonly root = h('dialog', { class: 'help', label: 'Keys' }, h('h2', { text: 'Keys' }),
        h('dl', {}, ...keys.flatMap(([k, what]) => [h('dt', { text: k }), h('dd', { text: what })])),
        h('p', { class: 'dim', text: 'Drag over the strip at the top, or over the heat map, to choose a range of time for all views. The address of this page keeps what you see: share it with the file.' }),
        button('Close', 'Esc', () => this.root.close()));

    toggle(): void {
        if (this.root.open) this.root.close();
        else this.root.showModal();
    }
}
