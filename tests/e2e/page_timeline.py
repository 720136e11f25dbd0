# SPDX-License-Identifier: BSD-2-Clause
"""page_timeline.py PAGE bad|good [PICTURE]: the timeline of the guest `arp` in a browser. Exits 1 and says what is
not as it should be."""
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


with browser.Browser(1400, 900) as b:
    b.open(f"file://{page}")
    b.settle()
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
    if len(sys.argv) > 3:
        b.picture(sys.argv[3])
for w in wrong:
    print(w)
sys.exit(len(wrong) != 0)
