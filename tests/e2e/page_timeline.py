# SPDX-License-Identifier: BSD-2-Clause
"""page_timeline.py PAGE bad|good|both [PICTURE]: the timeline of the guest `arp` in a browser; both: the bad run with
the good one beside it. Exits 1 and says what is not as it should be."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import browser

page, run = os.path.abspath(sys.argv[1]), sys.argv[2]
wrong = []


def expect(good, what):
    if not good:
        wrong.append(what)


def red(b, name):
    """Share of the width in which the thread's line is red: a picture of the canvas itself."""
    return b.run(f"""(v => {{ const p = v.p, q = [...Array(p.nr).keys()].find(i => p.name(i) === {name!r});
        const y = Math.round(v.plot.y(v.plot.places.row[q])), c = v.plot.canvas;
        const d = c.getContext('2d').getImageData(0, y, c.width, 1).data;
        let n = 0;
        for (let i = 0; i < d.length; i += 4) n += d[i] > 150 && d[i + 1] < 60 && d[i + 2] < 60;
        return n / c.width; }})(uniscope.page.view())""")


def click(b, text, nth=0):
    b.run(f"[...document.querySelectorAll('.bar button')].filter(e => e.textContent === {text!r})[{nth}].click()")
    b.settle()


def both_runs(b):
    """Two timelines, one above the other."""
    windows = "uniscope.page.view().both.map(t => [t.plot.x0, t.plot.x1])"
    names = b.run("[...document.querySelectorAll('.pair .which')].map(e => e.textContent)")
    expect(len(names) == 2 and names[0] != names[1], f"each has its name: {names}")
    heights = b.run("[...document.querySelectorAll('.pair canvas.plot')].filter(c => c.offsetParent).map(c => [c.getBoundingClientRect().top, c.clientHeight])")
    expect(len(heights) == 2 and min(h for _, h in heights) > 150 and heights[1][0] >= heights[0][0] + heights[0][1], f"one above the other: {heights}")
    stuck = b.run("uniscope.page.view().both.map(t => [...Array(t.p.nr).keys()].filter(q => t.p.name(q) === 'tcp connection').map(q => t.p.unresolved[q])[0])")
    expect(stuck == [1, 0], f"the connection is lost in one, and not in the other: {stuck}")
    x, y, w = b.run("(r => [r.left, r.top, r.width])(document.querySelector('.pair canvas').getBoundingClientRect())")
    b.wheel(x + w / 3, y + 60, -150)
    b.settle()
    first, second = b.run(windows)
    expect(max(abs(p - q) for p, q in zip(first, second)) < (first[1] - first[0]) * 1e-3, f"linked: both zoom: {first}, {second}")
    b.run("document.querySelector('.finding.bad').click()")
    b.settle()
    chosen = b.run("uniscope.page.view().both.map(t => t.p.name(t.plot.selected))")
    expect(chosen == ["tcp", "tcp"], f"linked: the same thread is chosen in both: {chosen}")
    click(b, "Linked")
    before = b.run(windows)
    b.wheel(x + w / 3, y + 60, -150)
    b.settle()
    after = b.run(windows)
    expect(after[0] != before[0] and after[1] == before[1], f"not linked: one zooms: {before}, {after}")
    b.key("d")
    b.key("l")
    b.settle()
    apart = b.run(windows)
    b.key("d")
    b.settle()
    now = b.run(windows)
    by = [(now[i][0] - apart[i][0]) / (now[0][1] - now[0][0]) for i in (0, 1)]
    expect(abs(by[0] - 0.15) < 1e-3 and abs(by[0] - by[1]) < 1e-3, f"linked again, they stay as far apart: {by}")
    click(b, "From the begin")
    first, second = b.run(windows)
    expect(first == second, f"from the begin: {first}, {second}")
    expect(b.trouble() == [], f"no error: {b.trouble()}")


def one_run(b, run):
    expect(b.run("uniscope.state.view") == "timeline", "a trace of threads opens with its timeline")
    cards = b.run("[...document.querySelectorAll('.finding.bad')].map(e => e.innerText.replaceAll('\\n', ' '))")
    names = b.run("(p => [...Array(p.nr).keys()].map(i => p.name(i)))(uniscope.page.view().p)")
    expect(names.count("tick") == 64 and "tcp connection" in names, f"names: {names}")
    drawn = b.run("(v => { const s = new Set(v.plot.places.row); return [Math.min(...s), s.size <= v.plot.places.nrRows]; })(uniscope.page.view())")
    expect(drawn == [0, True], f"each has a row: {drawn}")
    overlap = b.run("""(l => { for (let r = 0; r < l.nr; r++) for (let i = l.first[r] + 1; i < l.first[r + 1]; i++)
        if (l.start[i] < l.start[i - 1] + l.dur[i - 1]) return r; return -1; })(uniscope.page.view().plot.places.lives)""")
    expect(overlap == -1, f"row {overlap} has two at a time")
    if run == "bad":
        expect(len(cards) == 2 and cards[0].startswith("Lost wake-up tcp waits for arp reply, which netif had signalled before"), f"cards: {cards}")
        expect(cards[1:] and cards[1].startswith("Never resolved tcp connection"), f"cards: {cards}")
        expect(red(b, "tcp connection") > 0.8, f"the connection's line is red: {red(b, 'tcp connection')}")
        expect(red(b, "httpd") < 0.2, f"and httpd's is not: {red(b, 'httpd')}")
        b.run("document.querySelector('.finding.bad').click()")
        b.settle()
        expect(b.run("document.querySelector('.card.inner h2').textContent") == "tcp", "a click on a finding chooses the thread")
        b.key(",", "Comma")
        expect(b.run("document.querySelector('.card.inner h2').textContent") == "arp reply", "a comma goes to what it waits for")
        b.key("b")
        b.key("[", "BracketLeft")
        expect(b.run("document.querySelector('.card.inner h2').textContent") == "main", "a bracket to who made it")
    else:
        expect(cards == [], f"nothing is wrong: {cards}")
        expect(red(b, "tcp connection") < 0.05, f"the connection's line is not red: {red(b, 'tcp connection')}")
    b.run("uniscope.page.view().plot.jump(uniscope.page.view().p.first, uniscope.page.view().p.last)")
    b.settle()
    x, y = b.run("""(v => { const p = v.p, q = [...Array(p.nr).keys()].find(i => p.name(i) === 'httpd'), r = v.plot.canvas.getBoundingClientRect();
        return [r.left + v.plot.px((p.begin[q] + p.end[q]) / 2), r.top + v.plot.y(v.plot.places.row[q])]; })(uniscope.page.view())""")
    b.move(x, y)
    tip = b.run("document.querySelector('.tip').innerText").split("\n")
    expect(tip[0] == "httpd" and " long" in tip[1] and tip[2].startswith("ran "), f"a pointer is told how long: {tip}")
    b.key("/")
    b.type("^tick$")
    b.settle()
    expect(b.run("uniscope.page.view().plot.lit.size") == 64, "a search lights them")
    b.key("Enter")
    b.run("[...document.querySelectorAll('.bar button')].find(e => e.textContent === 'Only matches').click()")
    b.settle()
    shown = b.run("uniscope.page.view().plot.places.row.filter(r => r >= 0).length")
    expect(shown < len(names) and shown >= 65, f"only matches and those that made them: {shown}")
    svg = b.run("uniscope.page.view().plot.svg('t', { text: '#000', dim: '#555', line: '#ccc', back: '#fff', accent: '#d40', dark: false })")
    parsed = b.run(f"new DOMParser().parseFromString({svg!r}, 'image/svg+xml').querySelectorAll('parsererror, script').length")
    expect(parsed == 0 and "tick" in svg, "the view as SVG")
    expect(b.trouble() == [], f"no error: {b.trouble()}")


with browser.Browser(1400, 900) as b:
    b.open(f"file://{page}")
    b.settle()
    if run == "both":
        both_runs(b)
    else:
        one_run(b, run)
    if len(sys.argv) > 3:
        b.picture(sys.argv[3])
for w in wrong:
    print(w)
sys.exit(len(wrong) != 0)
