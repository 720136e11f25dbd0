// SPDX-License-Identifier: BSD-2-Clause
// Elements. Text goes in as text only: names come from guests.

export type Kid = Node | string | null | false | undefined;

type Props = {
    class?: string; text?: string; title?: string; id?: string; role?: string; type?: string;
    label?: string; value?: string; placeholder?: string; tab?: number; hidden?: boolean;
    click?: (ev: MouseEvent) => void; change?: (ev: Event) => void; input?: (ev: Event) => void;
    over?: () => void; style?: Record<string, string>;
};

export function h<K extends keyof HTMLElementTagNameMap>(
    tag: K, props: Props = {}, ...kids: Kid[]): HTMLElementTagNameMap[K] {
    const el = document.createElement(tag);

    if (props.class !== undefined) el.className = props.class;
    if (props.text !== undefined) el.textContent = props.text;
    if (props.title !== undefined) el.title = props.title;
    if (props.id !== undefined) el.id = props.id;
    if (props.tab !== undefined) el.tabIndex = props.tab;
    if (props.hidden) el.hidden = true;
    if (props.role !== undefined) el.setAttribute('role', props.role);
    if (props.label !== undefined) el.setAttribute('aria-label', props.label);
    for (const name of ['type', 'value', 'placeholder'] as const)
        if (props[name] !== undefined) el.setAttribute(name, props[name]!);
    if (props.click) el.addEventListener('click', props.click as EventListener);
    if (props.change) el.addEventListener('change', props.change);
    if (props.input) el.addEventListener('input', props.input);
    if (props.over) el.addEventListener('mouseenter', props.over);
    for (const [k, v] of Object.entries(props.style ?? {})) el.style.setProperty(k, v);
    for (const kid of kids)
        if (kid) el.append(kid);
    return el;
}

export function button(text: string, title: string, click: () => void, on?: boolean): HTMLButtonElement {
    const b = h('button', { text, title, type: 'button', click });

    if (on !== undefined) b.setAttribute('aria-pressed', String(on));
    return b;
}

export function select(label: string, options: [string, string][], value: string,
    change: (v: string) => void): HTMLSelectElement {
    const s = h('select', { label, change: () => change(s.value) });

    for (const [v, text] of options) s.append(h('option', { value: v, text }));
    s.value = value;
    return s;
}

export function download(name: string, type: string, text: string): void {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const a = h('a');

    a.href = url;
    a.download = name;
    a.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export function fill(el: Element, ...kids: Kid[]): void {
    el.replaceChildren(...kids.filter((k): k is Node | string => !!k));
}

export const stillness = matchMedia('(prefers-reduced-motion: reduce)');
