// SPDX-License-Identifier: BSD-2-Clause
// Regular expressions with bounded work. A browser's own matcher never ends for some, as (a+)+$. The pattern may come from a shared
// address and the names from a guest: trust neither.
import { pattern } from './text';

export interface Finder { test(name: string): boolean; hard: number } // hard: names that were given up

const STEPS = 200000;  // that one name may take
const BUDGET_MS = 400; // that all names may take
const LONG = 5000;     // characters of a name that a browser's matcher may have

type Next = (i: number) => boolean;
type Node = ((i: number, k: Next) => boolean) & { one?: (c: string) => boolean };
class TooHard extends Error {}

// Backtracks, and counts its steps. Throws what it does not know: looking behind, and references back.
class Matcher {
    private s: string[] = [];
    private steps = 0;
    private at = 0;
    private root: Node;

    constructor(private src: string, private flags: string) {
        this.root = this.either();
        if (this.at < src.length) throw new TooHard();
    }

    test(name: string): boolean {
        this.s = [...name];
        this.steps = 0;
        for (let i = 0; i <= this.s.length; i++) if (this.root(i, () => true)) return true;
        return false;
    }

    private tick(): void { if (++this.steps > STEPS) throw new TooHard(); }

    private either(): Node {
        const all = [this.sequence()];

        while (this.src[this.at] === '|') {
            this.at++;
            all.push(this.sequence());
        }
        return all.length === 1 ? all[0]! : (i, k) => all.some((n) => n(i, k));
    }

    private sequence(): Node {
        const all: Node[] = [];

        while (this.at < this.src.length && this.src[this.at] !== '|' && this.src[this.at] !== ')') all.push(this.repeated(this.atom()));
        const from = (n: number, i: number, k: Next): boolean => (n === all.length ? k(i) : all[n]!(i, (j) => from(n + 1, j, k)));
        return (i, k) => from(0, i, k);
    }

    // A character, by what the browser says of it alone.
    private single(text: string): Node {
        const re = new RegExp(`^(?:${text})$`, this.flags), known = new Map<string, boolean>();
        const one = (c: string): boolean => {
            let is = known.get(c);
            if (is === undefined) known.set(c, is = re.test(c));
            return is;
        };

        return Object.assign((i: number, k: Next): boolean => {
            this.tick();
            return i < this.s.length && one(this.s[i]!) && k(i + 1);
        }, { one });
    }

    private word(i: number): boolean { return /^\w$/.test(this.s[i] ?? ''); }

    private atom(): Node {
        const rest = this.src.slice(this.at), c = rest[0]!;
        const take = (text: string): string => { this.at += text.length; return text; };

        if (c === '(') return this.group(rest);
        if (c === '^') { take(c); return (i, k) => i === 0 && k(i); }
        if (c === '$') { take(c); return (i, k) => i === this.s.length && k(i); }
        if (/^\\[bB]/.test(rest)) {
            const at = take(rest.slice(0, 2)) === '\\b';
            return (i, k) => (this.word(i - 1) !== this.word(i)) === at && k(i);
        }
        if (/^\\[1-9k]/.test(rest)) throw new TooHard();
        const set = /^\[(?:\\.|[^\]\\])*\]/su.exec(rest) ?? /^\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[0-9a-f]{4}|x[0-9a-f]{2}|c[a-z]|.)/isu.exec(rest) ?? /^./su.exec(rest)!;
        return this.single(take(set[0]));
    }

    private group(rest: string): Node {
        const kind = /^\((?:\?(?::|=|!|<[^=!>]*>))?/.exec(rest)![0];

        this.at += kind.length;
        if (this.src[this.at] === '?') throw new TooHard();
        const inner = this.either();
        this.at++; // its end
        if (kind === '(?=') return (i, k) => inner(i, () => true) && k(i);
        if (kind === '(?!') return (i, k) => !inner(i, () => true) && k(i);
        return (i, k) => inner(i, k);
    }

    private repeated(n: Node): Node {
        const m = /^(?:[*+?]|\{(\d+)(,(\d*))?\})(\??)/.exec(this.src.slice(this.at));

        if (!m) return n;
        this.at += m[0].length;
        const c = m[0][0], min = m[1] ? Number(m[1]) : c === '+' ? 1 : 0;
        const max = c === '?' ? 1 : m[1] && !m[2] ? min : m[3] ? Number(m[3]) : Infinity, lazy = m[4] === '?';
        if (n.one) return this.many(n.one, min, max, lazy);
        const from = (nr: number, i: number, k: Next): boolean => {
            const again = (): boolean => nr < max && n(i, (j) => (j > i || nr < min) && from(nr + 1, j, k));
            this.tick();
            if (nr < min) return again();
            return lazy ? k(i) || again() : again() || k(i);
        };
        return (i, k) => from(0, i, k);
    }

    // Without recursion: names are long.
    private many(one: (c: string) => boolean, min: number, max: number, lazy: boolean): Node {
        return (i, k) => {
            let nr = 0;
            while (nr < max && i + nr < this.s.length && one(this.s[i + nr]!)) {
                this.tick();
                nr++;
                if (lazy && nr > min && k(i + nr - 1)) return true;
            }
            for (; nr >= min; nr--) {
                this.tick();
                if (k(i + nr)) return true;
                if (lazy) return false;
            }
            return false;
        };
    }
}

// With one repetition of one character at most, a browser's matcher, which is faster, needs no bound.
function harmless(text: string): boolean {
    const plain = text.replace(/\\./gs, 'x').replace(/\[[^\]]*\]/g, 'x').replace(/\(\?[:=!]/g, '(');

    return !/\)[*+?{]/.test(plain) && (plain.match(/[*+?{]/g)?.length ?? 0) < 2 && !/\\[1-9k]|\(\?</.test(text);
}

// null: that is no regular expression.
export function finder(text: string, ignoreCase: boolean): Finder | null {
    const re = pattern(text, ignoreCase), begin = performance.now();
    let own: Matcher | null | undefined;
    const careful = (name: string): boolean => {
        try {
            if (own === undefined) {
                own = null;
                own = new Matcher(text, re!.flags);
            }
            if (own) return own.test(name);
        } catch {
            // Too many steps, or too deep.
        }
        out.hard++;
        return false;
    };
    const quick = harmless(text), out: Finder = {
        hard: 0,
        test: (name) => {
            if (performance.now() - begin > BUDGET_MS) { out.hard++; return false; }
            return quick && name.length < LONG ? re!.test(name) : careful(name);
        },
    };

    return re && out;
}
