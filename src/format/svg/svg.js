// SPDX-License-Identifier: BSD-2-Clause
// The flame graph's behaviour. Frames are in the order of a walk over the call tree, callers
// first, so what lies below frame i is the range i .. f[i].end. Names of guests are only ever read
// from text nodes and written to text nodes.
(function () {
'use strict';
var script = document.currentScript;
var svg = script && script.ownerSVGElement || document.documentElement;
var XHTML = 'http://www.w3.org/1999/xhtml', SVG = 'http://www.w3.org/2000/svg';
var FG = 'http://github.com/jonhoo/inferno';
var XPAD = 10, TEXT_PAD = 3, MIN_CHARS = 3, DETAILS_ROOM = 420;
function id(name) { return svg.querySelector('#' + name); }
// Inside of an HTML page the parser knows no namespaces of ours.
function fg(el, name) { return el.getAttributeNS(FG, name) || el.getAttribute('fg:' + name); }
var box = id('frames'), details = id('details'), matched = id('matched');
var unzoom = id('unzoom'), search = id('search'), icase = id('ignorecase');
var oldWidth = parseFloat(svg.getAttribute('width'));
var fontSize = parseFloat(svg.getAttribute('font-size'));
var row = parseFloat(fg(box, 'row'));
var nametype = fg(box, 'nametype'), compat = fg(box, 'compat') === '1';
var f = [], zoom = 0, cur = 0, ignoreCase = false, pattern = '', regex = null, input = null;
var width = oldWidth - 2 * XPAD, widths = {}, measure = null;

function load() {
    var path = [], gs = box.children, i, g, rect, info, cut, level;
    for (i = 0; i < gs.length; i++) {
        g = gs[i];
        rect = g.querySelector('rect');
        info = g.querySelector('title').textContent;
        cut = info.lastIndexOf(' (');
        level = f.length ? Math.round(Math.abs(+rect.getAttribute('y') - f[0].y) / row) : 0;
        f.push({ g: g, rect: rect, text: g.querySelector('text'), info: info,
            name: cut < 0 ? info : info.slice(0, cut), y: +rect.getAttribute('y'),
            x: +fg(rect, 'x'), w: +fg(rect, 'w'),
            level: level, up: level ? path[level - 1] : -1, end: i + 1, state: '', hit: false });
        path.length = level;
        path[level] = i;
        for (level--; level >= 0; level--) f[path[level]].end = i + 1;
        g.setAttribute('data-i', i);
    }
}

// Widths of characters come from a canvas, which has no layout to wait for.
function charWidth(c) {
    if (widths[c] === undefined) {
        if (!measure) {
            measure = document.createElementNS(XHTML, 'canvas').getContext('2d');
            if (measure) measure.font = fontSize + 'px ' + svg.getAttribute('font-family');
        }
        widths[c] = measure ? measure.measureText(c).width : fontSize * 0.59;
    }
    return widths[c];
}

function fit(name, px) {
    var room = px - 2 * TEXT_PAD, used = 0, keep = 0, n = 0, dots = 2 * charWidth('.'), c;
    if (room < MIN_CHARS * charWidth('.')) return '';
    for (c of name) {
        used += charWidth(c);
        if (used > room) return n >= 1 && keep ? name.slice(0, keep) + '..' : '';
        if (used + dots <= room) keep += c.length;
        n++;
    }
    return name;
}

function label(e, x, w) {
    var s = fit(e.name, w * width / 100);
    if (!e.text) {
        if (!s) return;
        e.text = document.createElementNS(SVG, 'text');
        e.text.setAttribute('dx', TEXT_PAD);
        e.text.setAttribute('y', e.y + (row - 1) / 2 + 3);
        e.rect.parentNode.appendChild(e.text);
    }
    if (e.text.textContent !== s) e.text.textContent = s;
    e.text.setAttribute('x', x + '%');
}

function setState(e, state) {
    if (e.state === state) return;
    e.state = state;
    e.g.classList.toggle('above', state === 'above');
    e.g.classList.toggle('out', state === 'out');
}

function draw() {
    var z = f[zoom], i, e, x, w;
    for (i = 0; i < f.length; i++) {
        e = f[i];
        if (i >= zoom && i < z.end) {
            x = 100 * (e.x - z.x) / z.w;
            w = 100 * e.w / z.w;
            setState(e, '');
        } else if (i < zoom && e.end >= z.end) {
            x = 0;
            w = 100;
            setState(e, 'above');
        } else {
            setState(e, 'out');
            continue;
        }
        e.rect.setAttribute('x', x + '%');
        e.rect.setAttribute('width', w + '%');
        label(e, x, w);
    }
    unzoom.classList.toggle('hide', zoom === 0);
}

function show(i, byKey) {
    if (f[cur]) f[cur].g.classList.remove('cur', 'key');
    if (i === null) {
        details.textContent = ' ';
        return;
    }
    details.textContent = nametype + ' ' + fit(f[i].name, width - DETAILS_ROOM) +
        f[i].info.slice(f[i].name.length);
    if (byKey) {
        cur = i;
        f[i].g.classList.add('cur', 'key');
    }
}

function zoomTo(i) {
    zoom = i;
    draw();
    count();
    save();
}

// Share of the visible width that matches lie over; one above another counts once. flamegraph.pl
// counts what a zoom hides as well.
function count() {
    var z = f[compat ? 0 : zoom], sum = 0, till = z.x, i, e, from, to, any = false;
    if (!regex) {
        matched.textContent = ' ';
        return;
    }
    for (i = 0; i < f.length; i++) {
        e = f[i];
        if (!e.hit || e.state === 'out' && !compat) continue;
        any = true;
        from = Math.max(e.x, till);
        to = Math.min(e.x + e.w, z.x + z.w);
        if (to > from) {
            sum += to - from;
            till = to;
        }
    }
    sum = 100 * sum / z.w;
    matched.textContent = 'Matched: ' + (any ? sum.toFixed(1).replace(/^100\.0$/, '100') : '0') + '%';
}

function find(text) {
    var ok = true, i, hit;
    pattern = text;
    regex = null;
    if (text) {
        try {
            regex = new RegExp(text, ignoreCase ? 'i' : '');
        } catch (bad) {
            ok = false;
        }
    }
    for (i = 0; i < f.length; i++) {
        hit = !!regex && regex.test(f[i].info);
        if (hit !== f[i].hit) {
            f[i].hit = hit;
            f[i].g.classList.toggle('hit', hit);
        }
    }
    search.textContent = regex ? 'Reset Search' : 'Search';
    search.classList.toggle('on', !!regex);
    if (input) input.classList.toggle('bad', !ok);
    count();
    if (!ok) matched.textContent = 'Not a regular expression';
    save();
}

function closeBox() {
    var o = id('box');
    input = null;
    if (o) o.remove();
    search.classList.remove('hide');
    box.focus();
}

function openBox() {
    var o;
    if (!input) {
        o = document.createElementNS(SVG, 'foreignObject');
        o.setAttribute('id', 'box');
        o.setAttribute('width', 220);
        o.setAttribute('height', fontSize * 2);
        o.setAttribute('y', fontSize * 0.6);
        input = document.createElementNS(XHTML, 'input');
        input.setAttribute('type', 'text');
        input.setAttribute('placeholder', 'regular expression');
        input.setAttribute('aria-label', 'Search frames, regular expression');
        input.addEventListener('input', function () { find(input.value); });
        input.addEventListener('keydown', boxKey);
        o.appendChild(input);
        svg.appendChild(o);
        search.classList.add('hide');
        place();
    }
    input.value = pattern;
    input.focus();
    input.select();
}

function boxKey(ev) {
    if (ev.key === 'Escape') find('');
    if (ev.key === 'Enter' || ev.key === 'Escape') {
        closeBox();
        ev.preventDefault();
    }
    shortcut(ev);
    ev.stopPropagation();
}

function toggleCase() {
    ignoreCase = !ignoreCase;
    icase.classList.toggle('on', ignoreCase);
    icase.setAttribute('aria-pressed', ignoreCase);
    find(pattern);
}

// The address carries the zoomed frame as its path of names: it survives another window size.
function save() {
    var q = new URLSearchParams(), path = [], i;
    for (i = zoom; i > 0; i = f[i].up) path.unshift(encodeURIComponent(f[i].name));
    if (path.length) q.set('p', path.join(';'));
    if (pattern) q.set('s', pattern);
    if (ignoreCase) q.set('i', '1');
    q = q.toString();
    try {
        history.replaceState(null, '', location.pathname + (q ? '?' + q : ''));
    } catch (refused) { /* a sandboxed frame has no address of its own */ }
}

function child(i, name) {
    var k;
    for (k = i + 1; k < f[i].end; k = f[k].end) if (f[k].name === name) return k;
    return -1;
}

// x and y are flamegraph.pl's: pixels of the picture before any zoom.
function frameAt(x, y) {
    var scale = f[0].w / (oldWidth - 2 * XPAD), i;
    for (i = 0; i < f.length; i++) {
        if (Math.abs(f[i].y - y) < 1 && Math.abs(f[i].x - (x - XPAD) * scale) < 0.15 * scale) return i;
    }
    return 0;
}

function restore() {
    var q = new URLSearchParams(location.search), at = 0, part;
    if (q.get('i') === '1') toggleCase();
    try {
        if (q.get('p')) {
            for (part of q.get('p').split(';')) {
                at = child(at, decodeURIComponent(part));
                if (at < 0) break;
            }
        } else if (q.get('x') && q.get('y')) {
            at = frameAt(parseFloat(q.get('x')), parseFloat(q.get('y')));
        }
    } catch (malformed) { at = 0; }
    zoom = Math.max(at, 0);
    pattern = q.get('s') || '';
}

function place() {
    var o = id('box');
    if (o) o.setAttribute('x', Math.max(0, width + 2 * XPAD - 220 - 34));
}

// One viewBox would scale the text too: the picture is as wide as the window, and redrawn.
function resize() {
    width = Math.max(svg.getBoundingClientRect().width - 2 * XPAD, 10);
    box.setAttribute('width', width);
    place();
    draw();
}

function frameOf(ev) {
    var g = ev.target.closest ? ev.target.closest('g[data-i]') : null;
    return g ? +g.getAttribute('data-i') : null;
}

// The frame that touches in that direction; left and right stay below the same caller.
function step(i, way) {
    var k, last;
    if (way === 'up') return f[i].up;
    if (way === 'down') return i + 1 < f[i].end ? i + 1 : -1;
    if (way === 'next') return f[i].up >= 0 && f[i].end < f[f[i].up].end ? f[i].end : -1;
    for (k = f[i].up + 1, last = -1; f[i].up >= 0 && k < i; k = f[k].end) last = k;
    return last;
}

function arrow(key) {
    var icicle = f.length > 1 && f[1].y > f[0].y, to;
    var way = { ArrowLeft: 'prev', ArrowRight: 'next', ArrowUp: icicle ? 'up' : 'down',
        ArrowDown: icicle ? 'down' : 'up' }[key];
    if (!way) return false;
    to = f[cur].state === 'out' ? zoom : step(cur, way);
    if (to >= 0 && f[to].state !== 'out') show(to, true);
    return true;
}

function shortcut(ev) {
    var k = ev.key.toLowerCase(), ctrl = ev.ctrlKey || ev.metaKey;
    if (k === 'f3' || ctrl && k === 'f') openBox();
    else if (ctrl && k === 'i') toggleCase();
    else return false;
    ev.preventDefault();
    return true;
}

function key(ev) {
    if (shortcut(ev) || ev.ctrlKey || ev.metaKey || ev.altKey) return;
    if (ev.key === '/') openBox();
    else if (ev.key === 'Escape') { if (pattern) find(''); else zoomTo(0); }
    else if (ev.target !== svg && ev.target !== box && ev.target.nodeName !== 'body') return;
    else if (ev.key === 'Enter' || ev.key === ' ') zoomTo(cur);
    else if (ev.key === 'Home') show(zoom, true);
    else if (!arrow(ev.key)) return;
    ev.preventDefault();
}

function button(el, name, act) {
    el.classList.remove('hide');
    el.setAttribute('role', 'button');
    el.setAttribute('tabindex', '0');
    el.setAttribute('aria-label', name);
    el.addEventListener('click', act);
    el.addEventListener('keydown', function (ev) {
        if (ev.key !== 'Enter' && ev.key !== ' ') return;
        ev.preventDefault();
        ev.stopPropagation();
        act();
    });
}

load();
if (!f.length) return;
button(unzoom, 'Reset zoom', function () { zoomTo(0); });
button(search, 'Search', function () { if (pattern) find(''); else openBox(); });
button(icase, 'Ignore case when searching', toggleCase);
box.setAttribute('tabindex', '0');
box.setAttribute('aria-label', 'Flame graph: arrow keys walk, Enter zooms, Escape resets');
details.setAttribute('aria-live', 'polite');
matched.setAttribute('aria-live', 'polite');
box.addEventListener('click', function (ev) {
    var i = frameOf(ev), link = ev.target.closest && ev.target.closest('a');
    if (link && !ev.ctrlKey) return;
    if (link) ev.preventDefault();
    if (i !== null) { cur = i; zoomTo(i); }
});
box.addEventListener('mouseover', function (ev) { show(frameOf(ev), false); });
box.addEventListener('mouseout', function () { show(null, false); });
(svg === document.documentElement ? window : svg).addEventListener('keydown', key);
window.addEventListener('resize', resize);
svg.removeAttribute('viewBox');
svg.setAttribute('width', '100%');
restore();
resize();
if (pattern) find(pattern);
})();
