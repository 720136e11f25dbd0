// SPDX-License-Identifier: BSD-2-Clause
// Arrows and texts over the lines of the timeline.
import type { Pen } from './pen';
import type { Theme } from './plot';

export function arrow(pen: Pen, x: number, y0: number, y1: number, head: number, colour: string): void {
    const down = Math.sign(y1 - y0), tip = y1 - 5 * down;

    pen.globalAlpha = Math.max(0.15, 1 - Math.min(1, Math.abs(y1 - y0) / 6000));
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = head > 0 ? 1.5 : 1;
    pen.beginPath();
    pen.moveTo(x, y0);
    pen.lineTo(x, head > 0 ? tip - head * down : y1);
    pen.stroke();
    if (head === 0 || Math.abs(y1 - y0) < 12) return;
    pen.beginPath();
    pen.moveTo(x, tip);
    pen.lineTo(x - 4, tip - 10 * down);
    pen.lineTo(x + 4, tip - 10 * down);
    pen.closePath();
    pen.fill();
}

// Text that can be read whatever is behind it; its width.
export function write(pen: Pen, t: Theme, text: string, x: number, y: number, colour: string): number {
    const { width } = pen.measureText(text);

    pen.globalAlpha = 0.75;
    pen.fillStyle = t.dark ? '#1b1f26' : '#e9ebef';
    pen.fillRect(x - 2, y - 7, width + 4, 13);
    pen.globalAlpha = 1;
    pen.fillStyle = colour;
    pen.fillText(text, x, y);
    return width;
}
