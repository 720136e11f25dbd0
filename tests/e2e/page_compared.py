# SPDX-License-Identifier: BSD-2-Clause
"""A part of page_browser.py: the page of `uniscope diff -o`."""


def check(b, T, page):
    """The first side has twice the samples."""
    ok, same, text = page.ok, page.same, page.text
    names = "uniscope.app.model.funcs"
    widths = f"(v => [...v.rows.id].map((n, i) => [{names}.name(v.g.tree.func[n]), Math.round(v.rows.dur[i])]).filter(([n]) => n !== 'main').sort())(uniscope.page.view())"
    b.open(f"file://{T}/compared.html")
    same(text(b, ".verdict"), (T / "compared.txt").read_text().splitlines()[0], "compared: the verdict is that of diff")
    same(text(b, "header h1"), f"{T}/half.folded, compared with {T}/whole.folded", "compared: both sides have their names")
    shown = f"[...document.querySelectorAll('.sides b')].map(e => [e.textContent, e.title, e.scrollWidth <= e.clientWidth + 1 && getComputedStyle(e).textOverflow])"
    same(b.run(shown), [[f"{T}/{name}.folded", f"{T}/{name}.folded", "clip"] for name in ("whole", "half")], "compared: the names of both sides are shown whole")
    x, y, w, h = page.rect(b, "main canvas")
    pixel = f"(c => (px => [...c.getContext('2d').getImageData(Math.round(px), 2 + 2 * 18 + 9, 1, 1).data].slice(0, 3)))(document.querySelector('main canvas'))"
    same(b.run(widths), [["a", 1990], ["all", 5500], ["b", 2300], ["gone", 200], ["same", 1010]], "compared: as wide as the larger share")
    more, less, unsure = (b.run(f"{pixel}({w} * {at} / 5500)") for at in (1950, 4250, 5450))
    ok(more[0] > more[2] + 60 and less[2] > less[0] + 30 and abs(unsure[0] - unsure[2]) < 12, "compared: orange and blue for what is sure alone", (more, less, unsure))
    b.key("x")
    b.settle()
    same(b.run(widths), [["a", 1500], ["all", 5000], ["b", 2300], ["gone", 200], ["same", 1000]], "compared: x shows before")
    b.key("x")
    b.settle()
    same(b.run(widths), [["a", 1990], ["all", 5000], ["b", 2000], ["same", 1010]], "compared: and after, at the same scale")
    b.key("x")
    b.settle()
    same(b.run(widths), [["all", 200], ["gone", 200]], "compared: and what is gone")
    b.run(f"uniscope.app.setFunc({names}.list.findIndex(f => f.name === 'a'))")
    card = text(b, ".card")
    ok("39.8 %self30.0 % before" in card and "It takes more than before." in card, "compared: the card has before and after", card)
    same(b.trouble(), [], "compared: no error")
