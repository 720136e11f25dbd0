// SPDX-License-Identifier: BSD-2-Clause
// The page's data (docs/formats/page.md): parts of base64 -> gzip -> header and columns.

export type FrameRow = [name: string, kind: string, image: string, file: string, line: number];
export interface TreeHead { begin: string; unit: string; frames: FrameRow[] }
export interface CallsHead extends TreeHead {
    nr: number; lost: number; left_out: number; threads: [string, string][];
}
export interface Finding { kind: string; who: number; other: number; by: number; time: number; ns: number; signal?: number }
export interface PromisesHead {
    begin: string; duration: number; events: number; lost: number;
    strings: string[]; types: string[]; kinds: string[]; findings: Finding[];
}
export interface GuestHead { name: string; vcpus: number; threads: string[] }
export interface RecordedGuest {
    name: string; samples: number; weight: number; lost: number; failed: number; skipped: number;
    complete?: number; pause_ns: { nr: number; sum: number; p50: number; p99: number; max: number };
    duration_ns: number; vcpus?: Record<string, number>[];
}
export interface Head {
    format: string; version: number; title: string; uniscope: string; quality: string;
    begin?: string; end?: string; realtime_offset?: string; aggregate?: boolean;
    recording?: { closed: boolean; frequency_hz: number; guests: RecordedGuest[] };
    guests?: GuestHead[]; samples?: TreeHead; exits?: TreeHead; calls?: CallsHead;
    promises?: PromisesHead;
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

        for (let i = 0, p = c?.from ?? 0; i < out.length; i++) {
            let v = b[p++]!;
            if (v > 127) {
                v &= 127;
                for (let shift = 7; ; shift += 7) {
                    const x = b[p++]!;
                    if (shift < 32) v |= (x & 127) << shift;
                    if (x < 128) break;
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

        for (let i = 0, p = c?.from ?? 0; i < out.length; i++) {
            let v = b[p++]!;
            if (v > 127) {
                v -= 128;
                for (let f = 128; ; f *= 128) {
                    const x = b[p++]!;
                    v += (x & 127) * f;
                    if (x < 128) break;
                }
            }
            out[i] = v;
        }
        return out;
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

async function gunzip(parts: Uint8Array[]): Promise<Uint8Array> {
    const packed = new Blob(parts as BlobPart[]).stream().pipeThrough(new DecompressionStream('gzip'));

    return new Uint8Array(await new Response(packed).arrayBuffer());
}

export function parse(bytes: Uint8Array): Data {
    const view = new DataView(bytes.buffer, bytes.byteOffset);

    if (bytes.length < 8 || view.getUint32(0, false) !== 0x55504731) throw new Error('this is no page of uniscope');
    const size = view.getUint32(4, true);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size))) as Head;
    return new Data(head, bytes, 8 + size);
}

// Takes the text out of the page, so that it is not kept twice.
export async function load(): Promise<Data> {
    const parts: Uint8Array[] = [];

    for (let i = 0; ; i++) {
        const el = document.getElementById('d' + i);
        if (el === null) break;
        parts.push(fromBase64(el.textContent ?? ''));
        el.remove();
    }
    return parse(await gunzip(parts));
}
