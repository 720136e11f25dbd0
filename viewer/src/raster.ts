// SPDX-License-Identifier: BSD-2-Clause
// Rectangles by the ten thousand: a canvas takes longer to note each than it takes to set its pixels.
import type { Pen } from './pen';

export type Brush = Pick<Pen, 'fillStyle' | 'fillRect'>;

// '#rrggbb', opaque.
function pixel(colour: string): number {
    const n = parseInt(colour.slice(1), 16);

    return (0xff000000 | (n & 255) << 16 | (n >> 8 & 255) << 8 | n >> 16) >>> 0;
}

// Rectangles are collected first: up to a few thousand go to the canvas one by one.
const FEW = 3000;

export class Raster implements Brush {
    fillStyle = '';
    private nr = 0;
    private at = new Float64Array(4 * 4096); // x, y, width, height
    private colour: string[] = [];
    private image: ImageData | null = null;
    private buffer = document.createElement('canvas');

    fillRect(x: number, y: number, w: number, h: number): void {
        const k = 4 * this.nr;

        if (k === this.at.length) {
            const more = new Float64Array(2 * k);
            more.set(this.at);
            this.at = more;
        }
        this.at[k] = x;
        this.at[k + 1] = y;
        this.at[k + 2] = w;
        this.at[k + 3] = h;
        this.colour[this.nr++] = this.fillStyle;
    }

    // All that was noted, over what is there of w x h.
    put(ctx: CanvasRenderingContext2D, w: number, h: number): void {
        const { at, colour, nr } = this;

        if (nr > FEW) this.whole(ctx, Math.max(1, Math.round(w)), Math.max(1, Math.round(h)));
        else for (let i = 0; i < nr; i++) {
            if (i === 0 || colour[i] !== colour[i - 1]) ctx.fillStyle = colour[i]!;
            ctx.fillRect(at[4 * i]!, at[4 * i + 1]!, at[4 * i + 2]!, at[4 * i + 3]!);
        }
        this.nr = 0;
    }

    // To whole pixels, at least one.
    private whole(ctx: CanvasRenderingContext2D, w: number, h: number): void {
        const { at, buffer, colour } = this;

        if (this.image?.width !== w || this.image.height !== h) {
            this.image = new ImageData(w, h);
            [buffer.width, buffer.height] = [w, h];
        }
        const pixels = new Uint32Array(this.image.data.buffer);
        pixels.fill(0);
        for (let i = 0, c = 0; i < this.nr; i++) {
            if (i === 0 || colour[i] !== colour[i - 1]) c = pixel(colour[i]!);
            const left = Math.round(at[4 * i]!), top = Math.round(at[4 * i + 1]!);
            const a = Math.max(0, left), b = Math.min(w, Math.max(left + 1, Math.round(at[4 * i]! + at[4 * i + 2]!)));
            const end = Math.min(h, Math.max(top + 1, Math.round(at[4 * i + 1]! + at[4 * i + 3]!)));
            for (let r = Math.max(0, top); r < end; r++)
                for (let k = r * w + a, to = r * w + b; k < to; k++) pixels[k] = c;
        }
        buffer.getContext('2d')!.putImageData(this.image, 0, 0);
        ctx.imageSmoothingEnabled = false;
        ctx.drawImage(buffer, 0, 0);
    }
}
