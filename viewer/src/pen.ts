// SPDX-License-Identifier: BSD-2-Clause
// The part of a canvas' context that views draw with. Another implementation of it writes SVG.
export interface Pen {
    fillStyle: string | CanvasGradient | CanvasPattern; strokeStyle: string | CanvasGradient | CanvasPattern;
    lineWidth: number; globalAlpha: number; font: string; textBaseline: CanvasTextBaseline;
    fillRect(x: number, y: number, w: number, h: number): void;
    fillText(text: string, x: number, y: number, max?: number): void;
    measureText(text: string): TextMetrics;
    beginPath(): void; moveTo(x: number, y: number): void; lineTo(x: number, y: number): void; closePath(): void;
    stroke(): void; fill(): void;
    setLineDash(d: number[]): void;
}

function xml(s: string): string {
    return s.replace(/[&<>"']/g, (c) => '&#' + c.charCodeAt(0) + ';').replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '\ufffd');
}

export class SvgPen implements Pen {
    fillStyle = '#000'; strokeStyle = '#000'; lineWidth = 1; globalAlpha = 1; font = ''; textBaseline: CanvasTextBaseline = 'middle';
    private out: string[] = [];
    private path = '';
    private dash = '';

    constructor(private ruler: CanvasRenderingContext2D, private w: number, private h: number) {}

    private n(v: number): string { return String(Math.round(v * 10) / 10); }
    private alpha(): string { return this.globalAlpha < 1 ? ` opacity="${this.n(this.globalAlpha)}"` : ''; }

    fillRect(x: number, y: number, w: number, h: number): void {
        const a = Math.max(-5, x), b = Math.min(this.w + 5, x + w);

        if (b > a) this.out.push(`<rect x="${this.n(a)}" y="${this.n(y)}" width="${this.n(b - a)}" height="${this.n(h)}" fill="${this.fillStyle}"${this.alpha()}/>`);
    }

    fillText(text: string, x: number, y: number): void {
        this.out.push(`<text x="${this.n(x)}" y="${this.n(y)}" fill="${this.fillStyle}"${this.alpha()}>${xml(text)}</text>`);
    }

    measureText(text: string): TextMetrics {
        this.ruler.font = this.font;
        return this.ruler.measureText(text);
    }

    beginPath(): void { this.path = ''; }
    moveTo(x: number, y: number): void { this.path += `M${this.n(x)} ${this.n(y)}`; }
    lineTo(x: number, y: number): void { this.path += `L${this.n(x)} ${this.n(y)}`; }
    closePath(): void { this.path += 'Z'; }
    stroke(): void { this.out.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${this.dash}${this.alpha()}/>`); }
    fill(): void { this.out.push(`<path d="${this.path}" fill="${this.fillStyle}"${this.alpha()}/>`); }
    setLineDash(d: number[]): void { this.dash = d.length > 0 ? ` stroke-dasharray="${d.join(' ')}"` : ''; }

    done(title: string, back: string): string {
        return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${this.w} ${this.h}" width="${this.w}" height="${this.h}" font-family="sans-serif" font-size="11" dominant-baseline="middle">\n` +
            `<title>${xml(title)}</title>\n<rect width="100%" height="100%" fill="${back}"/>\n${this.out.join('\n')}\n</svg>\n`;
    }
}
