# SPDX-License-Identifier: BSD-2-Clause
"""page_browser.py FOLDER: see page_browser.sh, which makes FOLDER's files."""
import json
import os
import pathlib
import sys

sys.path.insert(0, os.path.dirname(__file__))
import browser

T = pathlib.Path(sys.argv[1])
number = 0


def ok(good, what, got=None):
    global number
    number += 1
    print(f"{'ok' if good else 'not ok'} {number} - {what}" + ("" if good else f" # got {str(got)[:300]!r}"), flush=True)


def same(got, want, what):
    ok(got == want, what, got)


def tabs(b):
    return b.run("[...document.querySelectorAll('nav button')].map(e => e.dataset.view)")


def go(b, view):
    b.run(f"document.querySelector('nav button[data-view={view}]').click()")
    b.settle()


def rect(b, selector):
    return b.run(f"(r => [r.left, r.top, r.width, r.height])(document.querySelector({selector!r}).getBoundingClientRect())")


def text(b, selector):
    return b.run(f"document.querySelector({selector!r})?.textContent ?? ''")


def painted(b, selector):
    """Different colours on a canvas: more than the background, if anything was drawn."""
    return b.run(f"""(c => {{ const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, s = new Set();
        for (let i = 0; i < d.length; i += 4 * 7) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
        return s.size; }})(document.querySelector({selector!r}))""")


def table(b):
    """The rows on screen: name, self %."""
    return b.run("[...document.querySelectorAll('.tr')].map(r => [r.querySelector('.name').textContent, r.querySelector('.pc').textContent])")


def plain(b):
    b.open(f"file://{T}/plain.html")
    same(tabs(b), ["flame", "functions", "sandwich", "breakdown"], "plain: views without data are absent")
    ok(painted(b, "main canvas") > 5, "plain: the flame graph is drawn")
    same(text(b, ".kicker"), "Hottest function", "plain: the hottest function is shown at once")
    same(b.run("document.querySelector('.card h2 .name').textContent"), "leaf", "plain: it is the right one")
    x, y, w, h = rect(b, "main canvas")
    # Rows are 18 pixels each: all, then main (72 of 112) and other.
    b.click(x + w * 0.3, y + 2 + 18 + 9)
    b.settle()
    same(b.run("uniscope.state.path"), ["main"], "plain: a click zooms")
    ok("p=" in b.run("location.hash"), "plain: the address keeps it")
    shared = b.run("location.href")
    b.key("Escape")
    b.settle()
    same(b.run("uniscope.state.path"), [], "plain: Escape zooms out")
    b.key("ArrowDown")
    same(b.run("document.querySelector('[role=treeitem][aria-selected]').textContent").split(",")[0], "work",
         "plain: keys go from frame to frame, and a screen reader is told")
    b.key("/")
    b.type("^leaf|^work")
    b.settle()
    ok("matched 40.2 % of what is visible" in text(b, ".view .found"), "plain: a search says how much matched",
       text(b, ".view .found"))
    b.key("Escape")
    same(b.run("uniscope.state.search"), "", "plain: Escape ends the search")
    b.key("/")
    b.type("(")
    same(text(b, "header .found"), "not a regular expression", "plain: a bad pattern is no error")
    b.key("Escape")
    b.run("document.activeElement.blur()")
    b.key("r")
    b.settle()
    same(b.run("uniscope.app.graph().tree.nr"), 9, "plain: r merges recursion")
    b.key("r")
    b.key("?")
    same(b.run("document.querySelector('dialog').open"), True, "plain: ? helps")
    b.key("?")
    go(b, "functions")
    same(table(b)[:3], [["leaf", "31.3 %"], ["idle", "31.3 %"], ["<poll>", "17.9 %"]], "plain: the function table")
    b.run("[...document.querySelectorAll('.tr')].find(r => r.querySelector('.name').textContent === 'fib').click()")
    go(b, "sandwich")
    ok("total 12 samples (10.7 %)" in text(b, ".sandwich .bar"), "plain: recursion counts once", text(b, ".sandwich .bar"))
    same(b.trouble(), [], "plain: no error")
    b.open(shared)
    same(b.run("uniscope.state.path"), ["main"], "plain: a shared address shows the same")


def session(b):
    want = json.loads((T / "s.json").read_text())
    exits = json.loads((T / "x.json").read_text())
    b.open(f"file://{T}/s.html")
    same(tabs(b), ["flame", "functions", "sandwich", "chart", "heat", "breakdown", "exits", "quality"], "session: all views")
    got = b.run("uniscope.app.table().map(r => [uniscope.app.model.funcs.name(r.func), r.self, r.total])")
    same(sorted(got), sorted([f["name"] + " ?" * f.get("guess", False), f["self"], f["total"]] for f in want["functions"]),
         "session: each function as `report` has it")
    got = b.run("(m => { const s = m.sources.find(s => s.key === 'exits'); return s.weight.reduce((a, v) => a + v, 0); })(uniscope.app.model)")
    same(got, sum(r["exits"] for r in exits["rows"]), "session: as many exits")
    got = b.run("(x => [x.columns.host, x.columns.asleep].map(c => c.reduce((a, v) => a + v, 0)))(uniscope.app.model.exits)")
    same(round(got[0]), round(sum(r["host_ns"] for r in exits["rows"])), "session: and as long ones")
    whole = b.run("uniscope.app.graph().total[0]")
    x, y, w, h = rect(b, "canvas.overview")
    b.drag(x + w * 0.25, y + 30, x + w * 0.5, y + 30)
    b.settle()
    part = b.run("uniscope.app.graph().total[0]")
    ok(abs(part / whole - 0.25) < 0.02, "session: a range of the strip filters", part / whole)
    cpus = b.run("[0, 1].map(c => { uniscope.app.set({ cpu: c }, 'data'); return uniscope.app.graph().total[0]; })")
    off = b.run("(s => { let n = 0; s.each(uniscope.app.selection, (t, d, v, node, cpu) => { if (cpu < 0) n += v; }); return n; })"
                "((uniscope.app.state.cpu = -1, uniscope.app.source))")
    ok(min(cpus) > 0 and off > 0, "session: vCPUs have their parts", (cpus, off))
    same(sum(cpus) + off, part, "session: which add up")
    b.run("uniscope.app.set({ cpu: -1 }, 'data')")
    link = b.run("location.hash")
    b.key("Escape")
    same(b.run("uniscope.app.graph().total[0]"), whole, "session: Escape shows all of the time")
    for view in tabs(b):
        go(b, view)
        drawn = b.run("!!document.querySelector('main canvas')")
        ok(painted(b, "main canvas") > 2 if drawn else len(text(b, "main")) > 40, f"session: {view} shows something")
    go(b, "heat")
    x, y, w, h = rect(b, "main canvas")
    b.drag(x + 70, y + h - 40, x + 220, y + 60)
    b.settle()
    ok(0 < b.run("uniscope.app.graph().total[0]") < whole, "session: a range of the heat map filters")
    go(b, "chart")
    x, y, w, h = rect(b, "main canvas")
    span = "(v => v.plot.x1 - v.plot.x0)(uniscope.page.view())"
    before = b.run(span)
    b.key("w")
    ok(b.run(span) < before, "session: W zooms")
    b.wheel(x + 100, y + 100, 300)
    b.settle()
    ok(b.run(span) > before, "session: the wheel as well")
    at = b.run("uniscope.page.view().plot.x0")
    b.key("d")
    ok(b.run("uniscope.page.view().plot.x0") > at, "session: D pans")
    go(b, "breakdown")
    b.run("document.querySelector('button.line.wide').click()")
    b.settle()
    same(b.run("uniscope.app.graph().total[0]"), b.run("uniscope.app.graph().self.reduce((a, v) => a + v, 0)"), "session: what a hidden function had goes to its callers")
    same(b.run("uniscope.state.hidden.size"), 1, "session: a click hides a function")
    same(b.trouble(), [], "session: no error")
    b.open(f"file://{T}/s.html{link}")
    same(b.run("uniscope.app.graph().total[0]"), part, "session: a shared address has the range")


def difference(b):
    b.open(f"file://{T}/diff.html")
    same(b.run("uniscope.app.table().map(r => [uniscope.app.model.funcs.name(r.func), r.self, r.self2]).sort()"),
         [["a", 50, 20], ["b", 30, 60], ["gone", 20, 0], ["main", 0, 0], ["new", 0, 20]], "diff: both columns")
    x, y, w, h = rect(b, "main canvas")
    pixel = f"(c => (px => [...c.getContext('2d').getImageData(Math.round(px), 2 + 2 * 18 + 9, 1, 1).data].slice(0, 3)))(document.querySelector('main canvas'))"
    # a is 50 wide, then b 60, gone 20, new 20, of 150.
    less, more = b.run(f"{pixel}({w} * 46 / 150)"), b.run(f"{pixel}({w} * 106 / 150)")
    ok(less[2] > less[0] and more[0] > more[2], "diff: less is blue, more is orange", (less, more))
    same(b.trouble(), [], "diff: no error")
    want = b.run("uniscope.app.table().map(r => [uniscope.app.model.funcs.name(r.func), r.self, r.self2]).sort()")
    b.open(f"file://{T}/both.html")
    same(b.run("uniscope.app.table().map(r => [uniscope.app.model.funcs.name(r.func), r.self, r.self2]).sort()"), want,
         "diff: of two files the same")


def hostile(b):
    b.open(f"file://{T}/hostile.html")
    names = b.run("uniscope.app.model.funcs.list.map(f => f.name)")
    ok("</script><script>alert(2)</script>" in names and "__proto__" in names, "hostile: names are names", names)
    for view in tabs(b):
        go(b, view)
        b.run("[...document.querySelectorAll('main button.tr, .card button.line')].slice(0, 40).forEach(e => e.click())")
        x, y, w, h = rect(b, "main")
        for i in range(8):
            b.move(x + w * i / 8 + 3, y + 50 + 18)
    for name in names:
        b.run(f"uniscope.app.setSearch({json.dumps(name[:60])})")
        b.run(f"uniscope.app.setFunc(uniscope.app.model.funcs.list.findIndex(f => f.name === {json.dumps(name)}))")
    same(b.run("[document.querySelectorAll('script, img, a, iframe, object').length, window.PWNED ?? 0]"), [0, 0], "hostile: no element is of a name")
    ok("\u202e" not in "".join(names), "hostile: no right-to-left override")
    bad = b.run("""(async () => { const s = document.createElement('script'); s.textContent = 'window.PWNED = 2'; document.body.append(s);
        await new Promise(r => setTimeout(r, 50)); s.remove(); return window.PWNED ?? 0; })()""")
    same(bad, 0, "hostile: and if there were a script, the policy stops it")
    same([t for t in b.trouble() if "Content Security Policy" not in t], [], "hostile: no error, no dialog")


def calls(b):
    b.open(f"file://{T}/calls.html")
    same(tabs(b)[0], "flame", "calls: a text of ftrace is a page")
    got = b.run("uniscope.app.table().map(r => [uniscope.app.model.funcs.name(r.func), r.self, r.total])")
    same(got, [["other", 7000, 7000], ["inner", 3000, 3000], ["outer", 2000, 5000]], "calls: self and total by time")
    b.run("uniscope.app.setRange(1000, 3000)")
    got = b.run("uniscope.app.table().map(r => [uniscope.app.model.funcs.name(r.func), r.self, r.total]).sort()")
    same(got, [["inner", 2000, 2000], ["other", 2000, 2000], ["outer", 0, 2000]], "calls: the part of each that is in the range")
    go(b, "chart")
    same(b.run("uniscope.page.view().plot.lanes.map(l => l.nrRows)"), [2, 1], "calls: a lane for each thread, as deep as it went")
    ok(painted(b, "main canvas") > 5, "calls: the flame chart is drawn")
    same(b.trouble(), [], "calls: no error")


def mirage(b):
    b.open(f"file://{T}/ring.html")
    same(tabs(b), ["timeline", "quality"], "mirage: a trace of MirageOS is a page")
    same(b.run("(p => [...Array(p.nr).keys()].map(i => [p.name(i), p.fate[i], p.failed(i)]))(uniscope.page.view().p).find(x => x[0] === 'tcp')"),
         ["tcp", 2, "Exit"], "mirage: the thread that failed, and how")
    same(b.trouble(), [], "mirage: no error")


def look(b):
    b.emulate(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    b.open(f"file://{T}/plain.html")
    same(b.run("getComputedStyle(document.body).backgroundColor"), "rgb(20, 23, 28)", "dark: as the system says")
    x, y, w, h = rect(b, "main canvas")
    b.click(x + w * 0.3, y + 2 + 18 + 9)
    same(b.run("(p => p.x1 - p.x0)(uniscope.page.view().plot)"), 72, "still: nothing glides where motion is unwanted")
    b.emulate(prefers_color_scheme="light", prefers_reduced_motion="no-preference")
    b.settle()
    same(b.run("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)", "light: and changes with it")


def damaged(b):
    page = (T / "plain.html").read_text()
    at = page.index('id="d0">') + 60
    (T / "cut.html").write_text(page[:at] + page[page.index("</script>", at):])
    b.open(f"file://{T}/cut.html")
    ok("cannot be shown" in text(b, "body"), "damaged: it says so", text(b, "body")[:100])


with browser.Browser() as b:
    for part in (plain, session, difference, hostile, calls, mirage, look, damaged):
        try:
            part(b)
        except Exception as e:
            ok(False, part.__name__, e)
print(f"1..{number}")
