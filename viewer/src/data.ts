// SPDX-License-Identifier: BSD-2-Clause
// The page's data (docs/formats/page.md): parts of base64 -> gzip -> header and columns.

export type FrameRow = [name: string, kind: string, image: string, file: string, line: number, unsure?: number];
// near_ns: samples of a stack in such a piece of time are one; flat: nodes that others stand for.
export interface TreeHead { begin: string; unit: string; frames: FrameRow[]; near_ns?: number; flat?: number }
export interface CallsHead extends TreeHead {
    nr: number; lost: number; left_out: number; outline?: boolean; end?: string; threads: [string, string][];
}
export interface Finding { kind: string; who: number; other: number; by: number; time: number; ns: number; signal?: number; silent?: number }
export interface PromisesHead {
    begin: string; duration: number; events: number; lost: number; begin_known?: boolean; unknown?: string[]; left_out?: number; left_parts?: number;
    strings: string[]; types: string[]; kinds: string[]; findings: Finding[]; doubts?: Finding[];
}
export interface GuestHead { name: string; vcpus: number; threads: string[] }
export interface RecordedGuest {
    name: string; samples: number; weight: number; lost: number; failed: number; skipped: number;
    complete?: number; pause_ns: { nr: number; sum: number; p50: number; p99: number; max: number };
    duration_ns: number; vcpus?: Record<string, number>[];
}
// Two sides that were compared. sure: by frame of the samples, whether its function is known to take more (1) or less (-1).
export interface DiffHead { before: string; after: string; before_files: string[]; after_files: string[]; verdict: string; sure: number[] }
// A function with the samples at each instruction: `uniscope annotate --json`, and its jumps drawn.
export interface CodeInsn { address: string; text: string; kind: string; self: number; below: number; line?: number; target?: string; callee?: string }
export interface CodeHead {
    function: string; image: string; self: number; total: number; all: number; skid: string; instructions: CodeInsn[];
    lines: { file: string; line: number; inlined?: string; self: number; text?: string }[]; arrows: string[];
}
export interface Head {
    format: string; version: number; title: string; uniscope: string; quality: string;
    left_out?: number; // samples and exits
    hide?: string[]; // globs: functions that are hidden at first
    missing?: number; torn?: number; // of a damaged recording: the same, and packets
    damaged?: number; // bytes of a trace that make no sense
    begin?: string; end?: string; realtime_offset?: string; aggregate?: boolean;
    recording?: { closed: boolean; frequency_hz: number; part?: object; guests: RecordedGuest[] };
    guests?: GuestHead[]; samples?: TreeHead; exits?: TreeHead; calls?: CallsHead;
    promises?: PromisesHead; diff?: DiffHead; code?: CodeHead[];
    columns: { name: string; nr: number; bytes: number }[];
}

export class Data {
    private at = new Map<string, { from: number; nr: number; bytes: number }>();

    constructor(readonly head: Head, private bytes: Uint8Array, from: number) {
        for (const c of head.columns) {
            this.at.set(c.name, { from, nr: c.nr, bytes: c.bytes });
            from += c.bytes;
        }
        if (from > bytes.length) throw new Error('the data is cut off');
    }

    has(name: string): boolean {
        return (this.at.get(name)?.nr ?? 0) > 0;
    }

    // Numbers below 2^32, as nearly all are: what is larger is cut.
    u32(name: string): Uint32Array {
        const c = this.at.get(name);
        const out = new Uint32Array(c?.nr ?? 0);
        const b = this.bytes;

        if (this.small(out, c)) return out;
        for (let i = 0, p = c?.from ?? 0; i < out.length; i++) {
            let v = b[p++]!;
            // Two and three bytes, as in f64().
            if (v > 127) {
                let x = b[p++]!;
                v += (x << 7) - 128;
                if (x > 127) {
                    x = b[p++]!;
                    v += (x << 14) - 16384;
                    for (let shift = 21; x > 127; shift += 7) { // nor behind the end
                        x = b[p++]!;
                        // The bit that goes on was taken for one of the number.
                        if (shift < 32) v = (v & (1 << shift) - 1) | (x & 127) << shift;
                    }
                }
            }
            out[i] = v;
        }
        return out;
    }

    f64(name: string): Float64Array {
        const c = this.at.get(name);
        const out = new Float64Array(c?.nr ?? 0);
        const b = this.bytes;

        if (this.small(out, c)) return out;
        for (let i = 0, p = c?.from ?? 0; i < out.length; i++) {
            let v = b[p++]!;
            // Two and three bytes, as most have, without a loop and as integers.
            if (v > 127) {
                let x = b[p++]!;
                v += (x << 7) - 128;
                if (x > 127) {
                    x = b[p++]!;
                    v += (x << 14) - 16384;
                    if (x > 127) v = this.large(p, v - 2097152);
                    while (x > 127) x = b[p++]!;
                }
            }
            out[i] = v;
        }
        return out;
    }

    // v and what follows it from the fourth byte on.
    private large(p: number, v: number): number {
        for (let f = 2097152; ; f *= 128) {
            const x = this.bytes[p++]!;
            v += (x & 127) * f;
            if (!(x > 127)) return v;
        }
    }

    // All are below 128, as of what was not recorded, too: a copy.
    private small(out: Uint32Array | Float64Array, c?: { from: number; nr: number; bytes: number }): boolean {
        if (!c || c.bytes !== c.nr) return false;
        out.set(this.bytes.subarray(c.from, c.from + c.nr));
        return true;
    }

    // All 64 bits, in halves: of addresses.
    u64(name: string): { low: Uint32Array; high: Uint32Array } {
        const c = this.at.get(name), nr = c?.nr ?? 0;
        const low = new Uint32Array(nr), high = new Uint32Array(nr), b = this.bytes;

        for (let i = 0, p = c?.from ?? 0; i < nr; i++) {
            const part = [0, 0, 0];
            for (let k = 0; k < 10; k++) {
                const x = b[p++]!;
                part[k >> 2]! |= (x & 127) << 7 * (k & 3);
                if (x < 128) break;
            }
            low[i] = part[0]! | part[1]! << 28;
            high[i] = part[1]! >>> 4 | part[2]! << 24;
        }
        return { low, high };
    }

    // 0, 1, 2, 3, ... are 0, -1, 1, -2, ...
    signed(name: string): Float64Array {
        const out = this.f64(name);

        for (let i = 0; i < out.length; i++) out[i] = out[i]! % 2 ? -(out[i]! + 1) / 2 : out[i]! / 2;
        return out;
    }

    doubles(name: string): Float64Array | null {
        const c = this.at.get(name);

        return c === undefined || c.bytes !== c.nr * 8 ? null
            : new Float64Array(this.bytes.slice(c.from, c.from + c.bytes).buffer);
    }
}

export function sums(a: Float64Array, first = 0): Float64Array {
    for (let i = 0, t = first; i < a.length; i++) a[i] = t += a[i]!;
    return a;
}

function fromBase64(text: string): Uint8Array {
    const modern = Uint8Array as unknown as { fromBase64?: (s: string) => Uint8Array };

    if (modern.fromBase64) return modern.fromBase64(text);
    const s = atob(text);
    const out = new Uint8Array(s.length);
    for (let i = 0; i < s.length; i++) out[i] = s.charCodeAt(i);
    return out;
}

// Not by a Blob and a Response: those take every piece through another process.
export async function gunzip(parts: Uint8Array[]): Promise<Uint8Array> {
    const stream = new DecompressionStream('gzip'), to = stream.writable.getWriter(), from = stream.readable.getReader();
    const last = parts[parts.length - 1]!;
    // The size is at its end, of what is below 4 GiB; what a damaged one says is not believed.
    const said = last.length >= 4 ? new DataView(last.buffer, last.byteOffset + last.length - 4).getUint32(0, true) : 0;
    let out = new Uint8Array(Math.min(said, 1032 * parts.reduce((n, p) => n + p.length, 0))), nr = 0;
    const written = (async () => { for (const p of parts) await to.write(p as BufferSource); await to.close(); })();

    written.catch(() => {}); // reading fails as well, and tells
    for (;;) {
        const { done, value } = await from.read();
        if (done) return nr === out.length ? out : out.subarray(0, nr);
        if (nr + value.length > out.length) {
            const more = new Uint8Array(Math.max(nr + value.length, out.length * 1.5));
            more.set(out);
            out = more;
        }
        out.set(value, nr);
        nr += value.length;
    }
}

export function parse(bytes: Uint8Array): Data {
    const view = new DataView(bytes.buffer, bytes.byteOffset);

    if (bytes.length < 8 || view.getUint32(0, false) !== 0x55504731) throw new Error('this is no page of uniscope');
    const size = view.getUint32(4, true);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size))) as Head;
    return new Data(head, bytes, 8 + size);
}

// Takes the text out of the page, so that it is not kept twice. `o`: what is shown beside it, or null.
export async function load(id = 'd'): Promise<Data | null> {
    const parts: Uint8Array[] = [];

    for (let i = 0; ; i++) {
        const el = document.getElementById(id + i);
        if (el === null) break;
        parts.push(fromBase64(el.textContent ?? ''));
        el.remove();
    }
    return parts.length > 0 ? parse(await gunzip(parts)) : null;
}
