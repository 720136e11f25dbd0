// SPDX-License-Identifier: BSD-2-Clause
// Numbers for people.

export const nothing = 'Nothing of what is shown is in this choice of time, vCPU and thread.';

export function count(v: number): string {
    // Without the browser's tables of languages, which take it longer to open than a first picture's draw() does.
    if (v >= 10 && v < 1e15) return String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, ',');
    return v < 1e15 ? v.toLocaleString('en-US', { maximumFractionDigits: v < 10 ? 2 : 0 }) : v.toPrecision(3);
}

export function percent(part: number, whole: number): string {
    const p = whole > 0 ? 100 * part / whole : 0;

    return (p >= 99.95 ? '100' : p >= 10 ? p.toFixed(1) : p.toFixed(2)) + ' %';
}

const units: [number, string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

export function time(ns: number, digits = 3): string {
    const a = Math.abs(ns);
    const [unit, name] = units.find(([u]) => a >= u) ?? units[3]!;

    const n = Number((ns / unit).toPrecision(Math.max(digits, 1)));

    return a === 0 ? '0 s' : (Math.abs(n) >= 1e-6 && Math.abs(n) < 1000 && digits <= 3 ? String(n) : n.toLocaleString('en-US', { maximumFractionDigits: 9 })) + ' ' + name;
}

// A moment, exact enough to be told from one a step further.
export function moment(ns: number, step: number): string {
    const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / 1e9))));

    // Near the beginning a short unit says it better than zeros.
    if (digits > 6 && Math.abs(ns) < 1e6) return `${Number(ns.toFixed(0)).toLocaleString('en-US')} ns`;
    return (ns / 1e9).toFixed(digits) + ' s';
}

export function value(v: number, unit: string): string {
    return unit === 'ns' ? time(v) : count(v) + ' ' + (v === 1 && unit.endsWith('s') ? unit.slice(0, -1) : unit);
}

// Distances that a ruler may have.
export function step(about: number): number {
    const p = 10 ** Math.floor(Math.log10(about));
    const f = about / p;

    return p * (f <= 1 ? 1 : f <= 2 ? 2 : f <= 5 ? 5 : 10);
}

// Compiles what a person types. null: it is no regular expression.
export function pattern(text: string, ignoreCase: boolean): RegExp | null {
    try {
        return new RegExp(text, ignoreCase ? 'iu' : 'u');
    } catch {
        try {
            return new RegExp(text, ignoreCase ? 'i' : '');
        } catch {
            return null;
        }
    }
}
