// SPDX-License-Identifier: BSD-2-Clause
// Hidden functions, as each view with shares says and chooses it: left out, or given to their callers.
import type { App } from './app';
import { button, h, select } from './dom';
import { percent } from './text';

// left: the part of all values that is left out. For a bar of buttons.
export function hiddenTools(app: App, left: number): (HTMLElement | false)[] {
    const { hidden } = app.state;

    return [
        hidden.size > 0 && select('Hidden', [['out', 'hidden: left out'], ['callers', 'hidden: given to callers']], app.drop ? 'out' : 'callers', (v) => { app.drop = v === 'out'; }),
        hidden.size > 0 && button(`Show ${hidden.size} hidden`, 'Shows all functions again', () => { hidden.clear(); app.state.path = []; app.tell('data'); }),
        hidden.size > 0 && app.drop && h('span', { class: 'left', text: `${percent(left, 1)} of the whole is left out: shares and totals are of the rest` }),
    ];
}
