# SPDX-License-Identifier: BSD-2-Clause
"""For page_browser.py: the page as it looks, by keyboard alone, and as axe-core judges it."""
import os
import pathlib

AXE = pathlib.Path(os.environ.get("UNISCOPE_AXE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "uniscope-tests") / "node_modules/axe-core/axe.min.js"
FOCUS = "document.activeElement"


def columns(b, T, go, same, ok):
    """Heads end where their columns end, and no bar lies below a number."""
    edges = """((heads, cells) => heads.map((h, i) => { const r = document.createRange(); r.selectNodeContents(h);
        return Math.round(r.getBoundingClientRect().right - cells[i].getBoundingClientRect().right); }))"""
    b.open(f"file://{T}/s.html#v=functions")
    b.settle()
    same(b.run(f"{edges}([...document.querySelectorAll('.right .th')], [...document.querySelectorAll('.tr .abs')])"), [0, 0], "looks: functions: heads end where their numbers end")
    go(b, "exits")
    # A head without a unit, or a number that is short: to the pixel all end with their column.
    same(set(b.run(f"{edges}([...document.querySelectorAll('.xr.head .num')], [...document.querySelectorAll('.xr:not(.head)')[0].querySelectorAll('.num')])")), {0}, "looks: exits: heads end where their columns end")
    same(b.run("[...document.querySelectorAll('.xr .num')].filter(e => e.getBoundingClientRect().right > document.querySelector('main').getBoundingClientRect().right).length"), 0, "looks: exits: no column is cut")
    for view in ("functions", "exits"):
        go(b, view)
        below = b.run("""[...document.querySelectorAll('main .barlet')].filter(i => { const a = i.getBoundingClientRect();
            return a.width > 0 && [...i.closest('.num').querySelectorAll('.pc, .abs')].some(n => n.getBoundingClientRect().left < a.right); }).length""")
        same(below, 0, f"looks: {view}: no bar lies below a number")


def told(b, T, craft, frames, text, same, ok):
    """A warning that nobody may overlook is above every view; menus are in order; cells of the heat map hold samples."""
    guest = {"name": "shop", "samples": 100, "weight": 200, "complete": 0.0, "lost": 0, "skipped": 144, "duration_ns": 3000000000, "pause_ns": {"nr": 0}, "vcpus": []}
    data = {"s.parent": [0], "s.frame": [0], "s.time": [10000000] * 300, "s.node": [1] * 300, "s.guest": [0] * 300,
            "s.vcpu": [(11, 3, 1)[i % 3] for i in range(300)], "s.weight": [1] * 300, "s.thread": [0] * 300, "s.state": [0] * 300, "s.pause": [0] * 300}
    head = {"guests": [{"name": "shop", "vcpus": 12, "threads": []}], "samples": {"begin": "1000000000", "unit": "samples", "frames": frames("work")}}
    for name, g in (("poor", guest), ("fair", {**guest, "complete": 1.0, "skipped": 2})):
        craft(name, {**head, "recording": {"closed": True, "frequency_hz": 100, "guests": [g]}}, data)
    quality = "samples    2 in 1.0 s\nTOO FEW    only 2 samples to tell shares from\nUNSURE     half of them\nchains     all\n"
    craft("few", {**head, "quality": quality, "recording": {"closed": True, "frequency_hz": 100, "guests": [{**guest, "complete": 1.0, "skipped": 2}]}}, data)
    b.open(f"file://{T}/few.html#v=flame")
    same(text(b, ".doubtful span"), "only 2 samples to tell shares from; half of them", "looks: that samples are too few is told above the flame graph")
    craft("half", {**head, "samples": {**head["samples"], "frames": [[*row, 0.43] for row in frames("work")]}}, data)
    doubt = "~ 43.0 % of its own samples may be of its caller, its callee, or code that leads into it. The callers in their chains are not in doubt by that"
    for name, row in (("half", ["work ~", doubt]), ("few", ["work", ""])):
        b.open(f"file://{T}/{name}.html#v=functions")
        b.settle()
        same(b.run("[...document.querySelectorAll('.tr .name')].map(e => [e.textContent, e.title])"), [row], f"looks: {name}: a function that is unsure has a mark")
        same(doubt in text(b, "aside.card"), name == "half", f"looks: {name}: and its card says why")
    b.open(f"file://{T}/poor.html#v=flame")
    strip = text(b, ".doubtful span")
    ok("100 % of the call chains do not reach" in strip and "59.0 % of the samples were skipped" in strip, "looks: bad quality is told above the flame graph", strip)
    b.run("document.querySelector('.doubtful button').click()")
    same(b.run("uniscope.state.view"), "quality", "looks: and leads to the view of it")
    menu = b.run("[...document.querySelector('select[aria-label=vCPU]').options].map(o => o.text)")
    same(menu, ["all vCPUs", "vCPU 0", "vCPU 2", "vCPU 10"], "looks: vCPUs are in order")
    b.open(f"file://{T}/fair.html#v=heat")
    b.settle()
    same(b.run("document.querySelector('.doubtful')"), None, "looks: of a good recording no such line")
    cell = b.run("(v => v.column / v.rows)(uniscope.page.view())")
    ok(cell >= 2e7, "looks: a cell of the heat map holds two periods of the sampler", cell)
    return cell


def tabs_hint(b, T, same):
    b.size(400, 760)
    b.open(f"file://{T}/s.html")
    b.settle()
    side = "[...document.querySelector('nav').classList].sort().join(' ')"
    same(b.run(side), "after", "looks: at 400 px tabs fade out where there are more")
    b.run("document.querySelector('nav').scrollLeft = 9999")
    b.settle()
    same(b.run(side), "before", "looks: and at the other side at their end")
    b.size(1280, 800)
    b.settle()
    same(b.run(side), "", "looks: not where all fit")


def keyboard(b, T, go, same, ok):
    """From the address line on, without a pointer."""
    b.open(f"file://{T}/s.html#v=heat")
    b.settle()
    for key in ("ArrowRight", "ArrowUp", "Enter", "ArrowRight", "Enter"):
        b.key(key)
    got = b.run("[uniscope.state.t0, uniscope.state.t1].map(t => t / (v => v.column / v.rows)(uniscope.page.view()))")
    rows = b.run("uniscope.page.view().rows")
    # The first arrow makes the mark visible, in the first cell.
    ok(abs(got[0] - 1) < 1e-6 and abs(got[1] - rows - 2) < 1e-6, "looks: heat map: arrows and Enter choose a range", (got, rows))
    b.run("uniscope.app.setRange(0, 0); document.querySelector('canvas.overview').focus()")
    for _ in range(10):
        b.key("ArrowRight")
    for _ in range(5):
        b.key("ArrowRight", modifiers=8)
    got = b.run("[uniscope.state.t0, uniscope.state.t1].map(t => Math.round(100 * t / uniscope.app.model.end))")
    same(got, [10, 15], "looks: the strip: arrows with Shift choose a range")
    b.key("Enter")
    same(b.run("uniscope.state.t1"), 0, "looks: and Enter shows all again")
    for view in b.run("[...document.querySelectorAll('nav button')].map(e => e.dataset.view)"):
        go(b, view)
        b.run("document.body.focus(); document.activeElement.blur()")
        seen, unseen = set(), []
        for _ in range(60):
            b.key("Tab")
            what = b.run(f"(e => !e || e === document.body ? '' : [e.tagName, e.className, e.textContent.slice(0, 20), getComputedStyle(e).outlineStyle].join('|'))({FOCUS})")
            if what == "" or what in seen:
                break
            seen.add(what)
            if what.endswith("|none"):
                unseen.append(what)
        same(unseen, [], f"looks: {view}: what has the focus is seen")
        reached = b.run("[...document.querySelectorAll('main canvas, main button')].some(e => e.tabIndex >= 0)") or view in ("quality",)
        ok(reached and len(seen) > 5, f"looks: {view}: reached by Tab", len(seen))


def svg(b, T, same):
    """The flame graph follows the reader's dark page, unless its background was chosen."""
    shown = "[getComputedStyle(document.documentElement).backgroundColor, getComputedStyle(document.querySelector('#background stop')).stopColor, getComputedStyle(document.querySelector('#title')).fill, [...document.querySelectorAll('#frames text')].map(e => getComputedStyle(e).fill).join()]"
    dark, light, black = "rgb(20, 23, 28)", "rgb(230, 233, 238)", "rgb(0, 0, 0)"
    b.emulate("", prefers_color_scheme="light")
    b.open(f"file://{T}/plain.svg", "document.readyState === 'complete'")
    usual = b.run(shown)
    same(usual[2], black, "looks: a light SVG")
    b.emulate("", prefers_color_scheme="dark")
    b.open(f"file://{T}/plain.svg", "document.readyState === 'complete'")
    same(b.run(shown), [dark, dark, light, usual[3]], "looks: a dark SVG, with frames as they are")
    b.open(f"file://{T}/chosen.svg", "document.readyState === 'complete'")
    same(b.run(shown)[0], "rgb(255, 255, 255)", "looks: a background that was chosen stays")
    b.emulate("")


def judged(b, T, go, same, skip):
    """axe-core: no violation in any view, light and dark."""
    if not AXE.exists():
        skip("looks: axe-core finds no violation", f"axe-core is not there: npm install --prefix {AXE.parent.parent.parent} axe-core")
        return
    axe = AXE.read_text()

    def violations(views):
        bad = []
        for view in views:
            go(b, view)
            bad += [f"{view}: {x}" for x in b.run("axe.run({ resultTypes: ['violations'] }).then(r => r.violations.map(v => v.id + ' ' + v.nodes[0].html.slice(0, 80)))")]
        return bad

    for nr, page in enumerate(("s", "diff", "ring", "poor", "code") if os.environ.get("UNISCOPE_ALL") else ("s", "ring")):
        b.open(f"file://{T}/{page}.html")
        b.run(axe + ";0")
        # By default each page is light or dark, and some are light and some dark.
        for dark in "01" if os.environ.get("UNISCOPE_ALL") else "01"[nr % 2]:
            b.run(f"uniscope.state.dark = '{dark}'; uniscope.page.theme()")
            same(violations(b.run("[...document.querySelectorAll('nav button')].map(e => e.dataset.view)")), [], f"looks: axe-core finds no violation in {page}, {'dark' if dark == '1' else 'light'}")
        # A view that does not fit scrolls, by keyboard as well.
        if page == "s":
            b.size(400, 300)
            same(violations(["quality"]), [], "looks: axe-core finds none where the view scrolls")
            b.size(1280, 800)


def check(b, T, page):
    """page: page_browser's own checks."""
    def skip(what, why):
        page.number += 1
        print(f"ok {page.number} - {what} # SKIP {why}", flush=True)

    columns(b, T, page.go, page.same, page.ok)
    told(b, T, page.craft, page.frames, page.text, page.same, page.ok)
    tabs_hint(b, T, page.same)
    svg(b, T, page.same)
    keyboard(b, T, page.go, page.same, page.ok)
    judged(b, T, page.go, page.same, skip)
    page.same(b.trouble(), [], "looks: no error")
