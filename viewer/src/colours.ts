// SPDX-License-Identifier: BSD-2-Clause
// Colours of functions: warm ones for the guest's own, by name; cool and grey ones for the rest.
import type { Func } from './tree';

const named: [RegExp, number, number, number][] = [
    [/^\[(idle|sleeping|asleep)\]/, 220, 8, 76], [/^\[(blocked|waiting)\]/, 255, 22, 74], [/^\[ready\]/, 140, 35, 68],
    [/^\[kvm\]/, 208, 60, 70], [/^\[vmm\]/, 178, 45, 64], [/^\[stolen\]/, 285, 35, 74], [/^\[exit /, 200, 48, 68],
];

function hash(s: string): number {
    let x = 2166136261;

    for (let i = 0; i < s.length; i++) x = Math.imul(x ^ s.charCodeAt(i), 16777619);
    return ((x ^ x >>> 15) >>> 0) / 4294967296;
}

// As canvas pixels are: alpha, blue, green, red.
export function hsl(hue: number, sat: number, light: number): number {
    const a = sat / 100 * Math.min(light, 100 - light) / 100;
    const f = (n: number): number => {
        const k = (n + hue / 30) % 12;
        return Math.round(255 * (light / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
    };

    return (0xff000000 | f(4) << 16 | f(8) << 8 | f(0)) >>> 0;
}

export function css(c: number): string {
    return `rgb(${c & 255},${c >> 8 & 255},${c >> 16 & 255})`;
}

// Each image has its own range of hues.
const ranges: [number, number][] = [[12, 44], [80, 60], [160, 40], [320, 30]];

export function ofFunc(f: Func, images: Map<string, number>): number {
    if (f.name === 'all' && f.kind === 'ours') return hsl(220, 6, 82);
    for (const [re, hue, sat, light] of named) if (re.test(f.name)) return hsl(hue, sat, light);
    const v = hash(f.name);
    if (f.kind === 'ours') return hsl(215, 20, 72 + 8 * v);
    if (f.kind === 'unknown') return hsl(30, 6, 68 + 10 * v);
    if (!images.has(f.image)) images.set(f.image, images.size);
    const [base, width] = ranges[images.get(f.image)! % ranges.length]!;
    return hsl(base + width * v, f.kind === 'inlined' ? 62 : 84, 62 + 8 * hash(f.name + '!'));
}

// The colour of a difference from -1 to 1. All eyes can tell blue and orange apart; flamegraph.pl
// has red and blue.
export function ofDelta(d: number, safe: boolean): number {
    const v = Math.max(-1, Math.min(1, d));
    const s = Math.sqrt(Math.abs(v));

    if (Math.abs(v) < 1e-9) return hsl(220, 8, 88);
    return v > 0 ? hsl(safe ? 28 : 2, 90, 90 - 38 * s) : hsl(safe ? 214 : 222, 85, 90 - 32 * s);
}

export const hit = hsl(300, 85, 62);
