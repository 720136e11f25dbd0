// SPDX-License-Identifier: BSD-2-Clause
// Runs inside of an SVG that uniscope wrote, after its own script. It leaves TAP lines in the
// element #tap, where svg_browser.sh reads them. window.RUN chooses the checks; window.TROUBLE
// holds errors and dialogs since the page began.
(function () {
'use strict';
var svg = document.querySelector('svg'), lines = [];
function $(id) { return svg.querySelector('#' + id); }
function ok(good, what) {
    lines.push((good ? 'ok ' : 'not ok ') + (lines.length + 1) + ' - ' + window.RUN + ': ' + what);
}
function is(got, want, what) { ok(got === want, what + (got === want ? '' : ' # got ' + got)); }
var frames = Array.prototype.slice.call($('frames').children).map(function (g) {
    var info = g.querySelector('title').textContent;
    return { g: g, rect: g.querySelector('rect'), info: info,
        name: info.slice(0, info.lastIndexOf(' (')) };
});
function frame(name) { return frames.find(function (f) { return f.name === name; }); }
function click(el) { el.dispatchEvent(new MouseEvent('click', { bubbles: true })); }
function press(key, mods) {
    var ev = Object.assign({ key: key, bubbles: true, cancelable: true }, mods || {});
    var at = document.activeElement && document.activeElement !== document.body ?
        document.activeElement : svg;
    at.dispatchEvent(new KeyboardEvent('keydown', ev));
}
function type(text) {
    var input = svg.querySelector('input');
    input.value = text;
    input.dispatchEvent(new Event('input', { bubbles: true }));
}
function width(name) { return parseFloat(frame(name).rect.getAttribute('width')); }
function out(name) { return frame(name).g.classList.contains('out'); }
function hits() { return svg.querySelectorAll('#frames .hit').length; }
function near(a, b) { return Math.abs(a - b) < 0.01; }

var runs = {
    click: function () {
        var before = frames.map(function (f) { return f.rect.getAttribute('width'); });
        ok(near(width('main'), 60), 'main has 60 % before');
        ok($('unzoom').classList.contains('hide'), 'no reset button before');
        click(frame('work').rect);
        is(width('work'), 100, 'a click makes the frame as wide as the window');
        ok(near(width('leaf'), 75), 'its callee grows alike');
        is(width('main'), 100, 'its caller spans the window');
        ok(frame('main').g.classList.contains('above'), 'its caller is pale');
        ok(out('other'), 'what is not below it is gone');
        ok(!$('unzoom').classList.contains('hide'), 'there is a reset button');
        ok(/[?&]p=main/.test(location.search), 'the address holds the path');
        click(frame('main').rect);
        ok(near(width('work'), 100 * 40 / 60), 'a click on a caller zooms out to it');
        click($('unzoom'));
        ok(before.every(function (w, i) {
            return near(parseFloat(w), parseFloat(frames[i].rect.getAttribute('width')));
        }), 'reset shows all again');
        is(location.search, '', 'and cleans the address');
    },
    hover: function () {
        frame('leaf').rect.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
        is($('details').textContent, 'Function: leaf (30 samples, 30.00%)', 'shows the details');
        frame('leaf').rect.dispatchEvent(new MouseEvent('mouseout', { bubbles: true }));
        is($('details').textContent, ' ', 'and clears them');
    },
    search: function () {
        press('f', { ctrlKey: true });
        ok(svg.querySelector('input') !== null, 'Ctrl-F opens a box');
        type('^leaf|^work');
        is(hits(), 3, 'matches are highlighted');
        is($('matched').textContent, 'Matched: 45.0%', 'stacked matches count once');
        press('Enter');
        ok(svg.querySelector('input') === null, 'Enter closes the box');
        is(hits(), 3, 'and keeps the matches');
        click(frame('other').rect);
        is($('matched').textContent, 'Matched: 12.5%', 'hidden matches do not count');
        click(frame('idle').rect);
        is($('matched').textContent, 'Matched: 0%', 'no visible match is 0');
        click($('unzoom'));
        press('F3');
        type('LEAF');
        is(hits(), 0, 'case matters');
        press('i', { ctrlKey: true });
        is(hits(), 2, 'until Ctrl-I');
        type('(');
        is($('matched').textContent, 'Not a regular expression', 'a bad pattern is no error');
        is(hits(), 0, 'and matches nothing');
        type(' 12\\.');
        is(hits(), 0, 'the whole title is searched');
        type('30\\.00%');
        is(hits(), 1, 'percentages too');
        press('Escape');
        is(hits(), 0, 'Escape ends the search');
        press('/');
        ok(svg.querySelector('input') !== null, '/ opens the box as well');
        press('Escape');
    },
    keys: function () {
        $('frames').focus();
        press('ArrowUp');
        is($('details').textContent, 'Function: main (60 samples, 60.00%)',
            'up goes to the first callee');
        press('ArrowRight');
        is($('details').textContent, 'Function: other (40 samples, 40.00%)', 'right to its sister');
        press('ArrowLeft');
        press('ArrowDown');
        is($('details').textContent, 'Function: all (100 samples, 100%)', 'down comes back');
        press('ArrowUp');
        press('Enter');
        ok(!$('unzoom').classList.contains('hide'), 'Enter zooms');
        press('Escape');
        ok($('unzoom').classList.contains('hide'), 'Escape zooms out');
    },
    path: function () {
        is(width('work'), 100, 'zoomed to the path in the address');
        is(hits(), 2, 'searched for the pattern in the address');
        is($('matched').textContent, 'Matched: 75.0%', 'of what is visible');
    },
    legacy: function () {
        is(width('other'), 100, 'zoomed to the pixels in the address');
    },
    hostile: function () {
        var all = frames.map(function (f) { return f.name; });
        ok(frame('<script>alert(1)</script>') !== undefined, 'a script is a name');
        ok(frame('</title></g><script>alert(2)</script>') !== undefined, 'so are end tags');
        ok(frame(']' + ']></script><script>alert(3)</script>') !== undefined, 'so is a CDATA end');
        ok(all.some(function (s) { return s.indexOf('onerror="alert(4)"') >= 0; }), 'quotes');
        ok(all.some(function (s) { return s.length > 3000; }), 'a very long name is there');
        is(svg.querySelectorAll('script').length, 4, 'no scripts but the four known ones');
        is(svg.querySelectorAll('img, a, iframe, object').length, 0, 'no foreign elements');
        is(svg.textContent.indexOf('\u202e'), -1, 'no right-to-left override');
        frames.forEach(function (f) {
            f.rect.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
            click(f.rect);
            press('f', { ctrlKey: true });
            type(f.name.slice(0, 40));
            press('Escape');
        });
        click($('unzoom'));
        is(window.PWNED, undefined, 'nothing of a name ran');
    }
};
try {
    runs[window.RUN]();
} catch (e) {
    ok(false, 'threw ' + e);
}
is(window.TROUBLE.join('; '), '', 'no error, no dialog');
var tap = document.createElementNS('http://www.w3.org/2000/svg', 'desc');
tap.setAttribute('id', 'tap');
tap.textContent = '\n' + lines.join('\n') + '\n1..' + lines.length + '\n';
svg.appendChild(tap);
})();
