# SPDX-License-Identifier: BSD-2-Clause
"""page_browser.py FOLDER: see page_browser.sh, which makes FOLDER's files."""
import base64
import gzip
import json
import os
import pathlib
import re
import sys

sys.path.insert(0, os.path.dirname(__file__))
import browser
import page_code, page_compared, page_hidden, page_looks

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


def number_bytes(v):
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes(out) + bytes([v])


def craft(name, head, columns):
    """A page with these data (docs/formats/page.md)."""
    packed = {k: b"".join(map(number_bytes, v)) for k, v in columns.items()}
    head = {"format": "uniscope-page", "version": 1, "title": name, "uniscope": "", "quality": "", "left_out": 0, **head,
            "columns": [{"name": k, "nr": len(columns[k]), "bytes": len(v)} for k, v in packed.items()]}
    text = json.dumps(head).encode()
    data = base64.b64encode(gzip.compress(b"UPG1" + len(text).to_bytes(4, "little") + text + b"".join(packed.values()))).decode()
    page = (T / "plain.html").read_text()
    at = page.index('id="d0">') + 8
    (T / f"{name}.html").write_text(page[:at] + data + page[page.index("</script>", at):])


def frames(*names):
    return [[n, "ours" if n.startswith("[") else "guest", "", "", 0] for n in names]


def weights(b):
    """One meaning of a sample that stands for several, in all views."""
    # 100 Hz: work, then 48 periods stolen, told at their end, then work again.
    craft("weights", {"recording": {"closed": True, "frequency_hz": 100, "guests": []}, "guests": [{"name": "g", "vcpus": 1, "threads": []}],
                      "samples": {"begin": "1000000000", "unit": "samples", "frames": frames("work", "[stolen]")}},
          {"s.parent": [0, 0], "s.frame": [0, 1], "s.time": [10000000, 490000000, 10000000], "s.node": [1, 2, 1], "s.guest": [0] * 3,
           "s.vcpu": [1] * 3, "s.weight": [1, 49, 1], "s.thread": [0] * 3, "s.state": [0] * 3, "s.pause": [0] * 3})
    b.open(f"file://{T}/weights.html#v=heat&on=0")
    b.wait("uniscope.page.overview.w > 0")
    near = lambda got, want, what: ok(all(abs(g - w) < 0.51 for g, w in zip(got, want)), what, got)  # noqa: E731
    for t0, t1, want in ((100, 200, 10), (0, 511, 51), (400, 505, 10)):
        b.run(f"uniscope.app.setRange({t0}e6, {t1}e6); uniscope.page.overview.draw()")
        graph = b.run("uniscope.app.graph().total[0]")
        card = b.run("uniscope.app.table().reduce((a, r) => a + r.self, 0)")
        heat = b.run(f"(v => v.cells.reduce((a, c, i) => a + c * Math.max(0, Math.min({t1}e6, (i + 1) * v.column / v.rows) - Math.max({t0}e6, i * v.column / v.rows)) / (v.column / v.rows), 0))(uniscope.page.view())")
        strip = b.run(f"(v => {{ const w = uniscope.app.model.end / v.all.length; return v.all.reduce((a, c, i) => a + c * Math.max(0, Math.min({t1}e6, (i + 1) * w) - Math.max({t0}e6, i * w)) / w, 0); }})(uniscope.page.overview.bins)")
        near([graph, card, heat, strip], [want] * 4, f"weights: all views have {want} from {t0} to {t1} ms")
    go(b, "chart")
    drawn = b.run("(p => { let n = 0; for (let i = p.rows.first[0]; i < p.rows.first[1]; i++) n += p.rows.dur[i]; return n; })(uniscope.page.view().plot)")
    ok(abs(drawn / 510e6 - 1) < 0.03, "weights: the flame chart has no holes", drawn)
    same(b.trouble(), [], "weights: no error")


def threads(b):
    """Calls below the line of the thread that made them, of every thread."""
    at = 10000000
    # main calls run > step at 1 to 9 ms; worker, whose number is another one, runs from 3 to 5 ms; a third is of no line.
    craft("threads", {"calls": {"begin": str(at), "unit": "ns", "frames": frames("run", "step", "deep", "lone"), "nr": 4, "lost": 0, "left_out": 0,
                                "outline": False, "threads": [["main", "0"], ["worker", "7"], ["", "99"]]},
                      "promises": {"begin": str(at), "duration": 10000000, "events": 9, "lost": 0, "strings": ["", "main", "worker", "value", "hits"],
                                   "types": ["thread"], "kinds": ["read", "gc"], "findings": [{"kind": "lost_wakeup", "who": 2, "other": 3, "by": 1, "time": 60000, "ns": 1, "signal": 50001}]}},
          {"c.parent": [0, 0, 2, 3], "c.frame": [0, 1, 2, 3], "r.thread": [0, 0, 1, 2], "r.depth": [0, 1, 0, 0], "r.nr": [1, 1, 1, 1],
           "c.gap": [1000000, 2000000, 3000000, 6000000], "c.dur": [8000000, 4000000, 2000000, 3000000], "c.off": [0] * 4, "c.cpu": [0] * 4, "c.node": [1, 2, 3, 4],
           "p.id": [0, 0x7f0000001000, 12], "p.type": [0] * 3, "p.fate": [0] * 3, "p.flags": [0] * 3, "p.begin": [0, 0, 0], "p.life": [9900000] * 3,
           "p.run": [5000000, 2000000, 0], "p.wait": [0] * 3, "p.creator": [0, 1, 1], "p.resolver": [0] * 3, "p.other": [0] * 3, "p.label": [1, 2, 3], "p.failure": [0] * 3,
           "count.what": [4, 4], "count.time": [0, 5000000], "count.value": [2, 8]})
    b.open(f"file://{T}/threads.html")
    b.settle()
    colour = """((name, row, depth, ms) => { const v = uniscope.page.view().plot, q = [...Array(v.p.nr).keys()].find(i => v.p.name(i) === row);
        const y = Math.round(v.y(q === undefined ? v.places.nrRows : v.places.row[q]) + 8 + depth * 13 + 3), x = Math.round(v.px(ms * 1e6));
        const d = v.ctx.getImageData(x, y, 1, 1).data, f = uniscope.app.model.funcs.list.findIndex(f => f.name === name);
        return [`rgb(${d[0]},${d[1]},${d[2]})`, uniscope.app.css(f), x, y]; })(%r, %r, %d, %f)"""
    for name, row, depth, ms in (("run", "main", 0, 2), ("step", "main", 1, 5.9), ("deep", "worker", 0, 4.9), ("lone", "", 0, 8.9)):
        got = b.run(colour % (name, row, depth, ms))
        same(got[0], got[1], f"threads: {name} is below {row or 'all others'}")
    got = b.run(colour % ("deep", "worker", 0, 8))
    ok(got[0] != got[1], "threads: for as long as it took", got)
    left, top, _, _ = rect(b, "main canvas")
    x, y = b.run(colour % ("step", "main", 1, 5.5))[2:]
    b.move(left + x, top + y)
    same(b.run("document.querySelector('.tip').innerText.split('\\n').slice(0, 2)"), ["step", "4 ms"], "threads: a pointer is told which call it is")
    b.click(left + x, top + y)
    b.settle()
    same(b.run("[uniscope.app.model.funcs.name(uniscope.state.func), document.querySelector('.card.inner h2').textContent]"), ["step", "main"], "threads: a click chooses function and thread")
    svg = b.run("uniscope.page.view().plot.svg('t', { text: '#000', dim: '#555', line: '#ccc', back: '#fff', accent: '#d40', dark: false })")
    ok(">step<" in svg and ">deep<" in svg, "threads: calls are in the SVG")
    b.run("document.querySelector('.finding.bad').click()")
    b.settle()
    seen = b.run("(p => [50000, 60000].map(t => p.px(t) / p.w))(uniscope.page.view().plot)")
    ok(0.1 < seen[0] < seen[1] < 0.9 and seen[1] - seen[0] > 0.1, "threads: a finding's moments are in the middle of what is shown", seen)
    same(b.run("(v => v.y(v.nrRows - 1) < v.room || v.contentHeight() > v.h)(uniscope.page.view().plot)"), True, "threads: counters are below the lines")
    shown = """(w => { uniscope.app.set({ thread: uniscope.app.model.threads.list.findIndex(t => t.startsWith(w)) }, 'data');
        return (v => [...Array(v.p.nr).keys()].filter(q => v.places.row[q] >= 0).map(q => v.p.name(q)))(uniscope.page.view().plot); })"""
    same([b.run(shown + "('worker')"), b.run(shown + "('nobody')")], [["main", "worker"], ["main", "worker", "value"]], "threads: of a chosen one, and who made it")
    click = "[...document.querySelectorAll('.bar button')].find(e => e.textContent === %r).click()"
    before = b.run("uniscope.page.view().plot.contentHeight()")
    b.run(click % "Calls")
    ok(b.run("uniscope.page.view().plot.contentHeight()") == before - 4 * 13 - 30, "threads: calls are hidden on demand", before)
    b.run(click % "Fisheye")
    b.run(click % "Runners first")
    b.run(click % "hits")
    b.settle()
    same(b.run("(p => p.y(0))(uniscope.page.view().plot)"), 20 + 16 + 15, "threads: few rows are at the top, also by fisheye")
    how = "(p => [p.showCalls, p.fisheye, p.grouped, [...p.hiddenCounters]])(uniscope.page.view().plot)"
    same(b.run(how), [False, True, False, ["hits"]], "threads: each button does what it says")
    link = b.run("location.hash")
    b.open(f"file://{T}/threads.html{link}")
    same(b.run(how), [False, True, False, ["hits"]], "threads: a shared address shows it like that")
    ok(text(b, "main .key").endswith("failed, or stuck") and text(b, "main .found") == "3 threads in all", "threads: the legend and how many are two things", text(b, "main .bar"))
    same(b.trouble(), [], "threads: no error")


def plain(b):
    b.open(f"file://{T}/deep.html")
    b.wait("document.querySelector('.card h2 .name') !== null")
    same(b.run("document.querySelector('.card h2 .name').textContent"), "[deeper]", "deep: the hottest is what took time, not what took none")
    b.open(f"file://{T}/nothing.html"), b.settle()
    same([b.run("document.querySelector('.card').hidden"), b.trouble()], [True, []], "nothing: where nothing took any none is the hottest")
    said = "document.querySelector('main .view').innerText.includes('Nothing of what is shown')"
    ok(b.run(said), "nothing: and it says so")
    b.open(f"file://{T}/plain.html")
    same([tabs(b), b.run(said)], [["flame", "functions", "sandwich", "breakdown"], False], "plain: views without data are absent")
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
    got = b.run("(x => [x.columns.host, x.columns.stolen].map(c => c.reduce((a, v) => a + v, 0)))(uniscope.app.model.exits)")
    ok(got[1] > 0 and round(got[0] - got[1]) == round(sum(r["host_ns"] for r in exits["rows"])), "session: and as long ones", got)
    got = b.run("uniscope.app.model.sources.find(s => s.key === 'exit-time').weight.reduce((a, v) => a + v, 0)")
    same(round(got), round(exits["total"]["host_ns"]), "session: their time without what was stolen")
    whole = b.run("uniscope.app.graph().total[0]")
    x, y, w, h = rect(b, "canvas.overview")
    b.drag(x + w * 0.25, y + 30, x + w * 0.5, y + 30)
    b.settle()
    part = b.run("uniscope.app.graph().total[0]")
    ok(abs(part / whole - 0.25) < 0.02, "session: a range of the strip filters", part / whole)
    cpus = b.run("[0, 1].map(c => { uniscope.app.set({ cpu: c }, 'data'); return uniscope.app.graph().total[0]; })")
    off = b.run("(s => { let n = 0; s.each(uniscope.app.selection, (t, d, v, node, cpu) => { if (cpu < 0) n += v; }); return n; })"
                "((uniscope.app.state.cpu = -1, uniscope.app.source))")
    ok(min(cpus) > 0 and off == 0, "session: vCPUs have their parts, and threads on none are not counted", (cpus, off))
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
    # As if there were too many for one picture.
    drawn = "uniscope.page.view().plot.rows.start.length"
    b.run("uniscope.app.setRange(0, 0)")
    every = b.run(drawn)
    b.run("(v => { v.thin = (p, from) => from === undefined ? 4 : 1; uniscope.app.tell('data'); })(uniscope.page.view())")
    fewer = b.run(drawn)
    ok(fewer < every / 2 and "one of 4 samples is drawn" in text(b, "main .bar"), "session: of too many samples some are drawn, and that is said", (fewer, every))
    b.run("uniscope.app.setRange(uniscope.app.model.end / 4, uniscope.app.model.end / 2)")
    some = b.run(drawn)
    ok(every / 6 < some < every / 2 and "one of" not in text(b, "main .bar"), "session: of a shorter range all are", (some, every))
    b.run("(v => { delete v.thin; uniscope.app.setRange(0, 0); })(uniscope.page.view())")
    press = "[...document.querySelectorAll('main button')].find(e => e.textContent === %r).click()"
    for view, button, how, want in (("breakdown", "Logarithmic", "[...document.querySelectorAll('main .bar button')].find(e => e.textContent === 'Logarithmic').ariaPressed", "true"),
                                    ("functions", "Total", "document.querySelector('[aria-sort=descending] .th').textContent", "Total"),
                                    ("exits", "By function", "document.querySelector('.xr.head span').textContent", "Function")):
        go(b, view)
        same(b.run(how) == want, False, f"session: {view} as usual")
        b.run(press % button)
        b.settle()
        shared = b.run("location.hash")
        b.open(f"file://{T}/s.html{shared}")
        same(b.run(how), want, f"session: a shared address has {view} {button.lower()}")
    go(b, "breakdown")
    b.size(700, 800)
    b.run("[...document.querySelectorAll('.segment')].forEach(e => { e.style.flex = '0 0 40px'; })")
    cut = b.run("[...document.querySelectorAll('.segment span')].filter(e => { const a = e.getBoundingClientRect(), r = e.parentElement.getBoundingClientRect(); return a.left < r.left || a.right > r.right; }).length")
    same([cut, b.run("getComputedStyle(document.querySelector('.segment span')).textOverflow")], [0, "ellipsis"], "session: labels of bars do not run out of them")
    b.size(1280, 800)
    b.run("document.querySelector('button.line.wide').click()")
    b.settle()
    same(b.run("uniscope.app.graph().total[0]"), b.run("uniscope.app.graph().self.reduce((a, v) => a + v, 0)"), "session: what a hidden function had goes to its callers")
    same(b.run("uniscope.state.hidden.size"), 1, "session: a click hides a function")
    same(b.trouble(), [], "session: no error")
    b.open(f"file://{T}/s.html{link}")
    there = b.run("uniscope.app.graph().total[0]")
    ok(abs(there - part) < 2, "session: a shared address has the range", there)


def difference(b):
    b.open(f"file://{T}/diff.html")
    same(b.run("uniscope.app.table().map(r => [uniscope.app.model.funcs.name(r.func), r.self, r.self2]).sort()"),
         [["a", 50, 20], ["b", 30, 60], ["gone", 20, 0], ["main", 0, 0], ["new", 0, 20]], "diff: both columns")
    x, y, w, h = rect(b, "main canvas")
    pixel = f"(c => (px => [...c.getContext('2d').getImageData(Math.round(px), 2 + 2 * 18 + 9, 1, 1).data].slice(0, 3)))(document.querySelector('main canvas'))"
    # a is 50 wide, then b 60, gone 20, new 20, of 150.
    less, more = b.run(f"{pixel}({w} * 46 / 150)"), b.run(f"{pixel}({w} * 106 / 150)")
    ok(less[2] > less[0] and more[0] > more[2], "diff: less is blue, more is orange", (less, more))
    go(b, "sandwich")
    b.run("uniscope.app.setFunc(uniscope.app.model.funcs.list.findIndex(f => f.name === 'main'))")
    same(text(b, ".sandwich .bar .dim"), "before: total 100 samples (100 %), self 0 samples (0.00 %); after: total 100 samples (100 %), self 0 samples (0.00 %)",
         "diff: callers and callees say both")
    got = b.run("(h => [...h.rows.id].map(n => [uniscope.app.model.funcs.name(h.g.tree.func[n]), h.g.total[n], h.g.total2[n]]).slice(2).sort())(uniscope.page.view().down)")
    same(got, [["a", 50, 20], ["b", 30, 60], ["gone", 20, 0], ["new", 0, 20]], "diff: below it is what was and what is")
    go(b, "breakdown")
    same(b.run("[...document.querySelectorAll('.stacked')].map(e => [e.querySelector('.who').textContent, e.querySelector('.pc').textContent])"),
         [["before", "100 samples"], ["after", "100 samples"]], "diff: a bar for each")
    same(b.run("[...document.querySelectorAll('.line.wide')].map(e => [e.querySelector('.who').textContent, e.querySelector('.pc').textContent])"),
         [["b", "60.0 % (+30.00)"], ["a", "20.0 % (-30.00)"], ["new", "20.0 % (+20.00)"], ["gone", "0.00 % (-20.00)"]],
         "diff: functions by the larger share, with its change")
    same(b.trouble(), [], "diff: no error")
    want = b.run("uniscope.app.table().map(r => [uniscope.app.model.funcs.name(r.func), r.self, r.self2]).sort()")
    b.open(f"file://{T}/both.html")
    same(b.run("uniscope.app.table().map(r => [uniscope.app.model.funcs.name(r.func), r.self, r.self2]).sort()"), want,
         "diff: of two files the same")
    # 100 samples before and 1000 after: a change by 100 samples has the right share.
    b.open(f"file://{T}/longer.html#v=functions")
    b.run("[...document.querySelectorAll('.th')].find(e => e.textContent.startsWith('Change')).click()")
    same(b.run("[...document.querySelectorAll('.tr')].map(e => [e.querySelector('.name').textContent, e.querySelectorAll('.num')[2].textContent])"),
         [["less", "-6.00 %"], ["more", "+5.00 %"], ["same", "+1.00 %"], ["main", "0.00 %"]], "diff: ordered by the change of shares, which is what is shown")


def hostile(b):
    b.open(f"file://{T}/hostile.html")
    names = b.run("uniscope.app.model.funcs.list.map(f => f.name)")
    ok("</script><script>alert(2)</script>" in names and "__proto__" in names, "hostile: names are names", names)
    for view in tabs(b):
        go(b, view)
        b.run("[...document.querySelectorAll('main .tr, .card button.line')].slice(0, 40).forEach(e => e.click())")
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
    # A pattern for which the browser's matcher would need longer than anybody lives.
    b.open(f"file://{T}/hostile.html#v=flame&s=(a%2B)%2B%24")
    b.settle()
    ok(re.search(r"not looked at: \d+ for which the pattern takes too long", text(b, "header .found")), "hostile: a pattern that never ends does, and that is said", text(b, "header .found"))
    b.run("uniscope.app.setSearch('^(a|b|c)+!$')")
    ok(text(b, "header .found").startswith("1 function,"), "hostile: what can be searched for is found", text(b, "header .found"))


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
    b.run("uniscope.app.setRange(0, 0)")
    b.key("w")
    b.settle()
    seen, link = b.run("(p => [p.x0, p.x1])(uniscope.page.view().plot)"), b.run("location.hash")
    b.key("m")
    same(b.run("[uniscope.state.t0, uniscope.state.t1]"), seen, "calls: m makes what is seen the range")
    same(b.trouble(), [], "calls: no error")
    b.open(f"file://{T}/calls.html{link}")
    got = b.run("(p => [p.x0, p.x1])(uniscope.page.view().plot)")
    ok(all(abs(a - c) <= 1 for a, c in zip(got, seen)), "calls: a shared address shows the same piece of the chart", (got, seen))


def moved(b):
    """Threads go from CPU to CPU in the middle of their calls. Numbers of a CPU and of a range are those of trace's texts."""
    sums = "(([cpu, t0, t1]) => { uniscope.app.set({ cpu, t0, t1 }, 'data'); return uniscope.app.graph().self.reduce((a, v) => a + v, 0); })"
    b.open(f"file://{T}/moved.html")
    for cpu in json.loads((T / "moved.cpus").read_text())["cpus"]:
        want = sum(f["self_ns"] for f in cpu["functions"] if f["function"][0] != "[")
        got = b.run(f"{sums}([uniscope.app.model.cpus.list.indexOf('vCPU {cpu['cpu']}'), 0, 0])")
        ok(want > 0 and abs(got - want) <= want * 1e-4, f"moved: vCPU {cpu['cpu']} has its part", (got, want))
    want = {f["function"]: f["self_ns"] for f in json.loads((T / "moved.json").read_text())["functions"] if f["self_ns"] > 0}
    b.run(f"{sums}([-1, 2e6, 2.1e6])")
    got = dict(b.run("uniscope.app.table().filter(r => r.self > 0).map(r => [uniscope.app.model.funcs.name(r.func), r.self])"))
    ok(got == want and len(want) > 1, "moved: a range has what `trace report` has", (got, want))
    ok(b.run("uniscope.app.set({ on: false, t0: 0, t1: 0 }, 'data'), uniscope.app.table().some(r => uniscope.app.model.funcs.name(r.func) === '[waiting]' && r.self > 0)"), "moved: waiting is told apart")
    same(b.trouble(), [], "moved: no error")
    b.open(f"file://{T}/cut.html#v=quality")
    ok("The trace is damaged" in text(b, ".warn"), "moved: a trace that is cut off says so", text(b, ".warn"))


def busy(b):
    """Calls of a guest that never rests: 1000 of 1 us in the first half, one of 1 ms in the second."""
    n = 1000
    craft("busy", {"calls": {"begin": "1000", "unit": "ns", "frames": frames("short", "long"), "nr": n + 1, "lost": 0, "left_out": 0, "outline": False, "threads": [["", "1"]]}},
          {"c.parent": [0, 1], "c.frame": [0, 1], "r.thread": [0], "r.depth": [0], "r.nr": [n + 1], "c.gap": [0] * (n + 1), "c.dur": [1000] * n + [1000000],
           "c.off": [0] * (n + 1), "c.cpu": [0] * (n + 1), "c.node": [1] * n + [2]})
    b.open(f"file://{T}/busy.html#v=heat")
    cells = "(v => [v.cells.length / 2, v.cells.length].map((to, k) => v.cells.slice(k * v.cells.length / 2, to).reduce((a, c) => a + c, 0)))(uniscope.page.view())"
    same(b.run(cells), [n, 1], "busy: where all cells are full, the heat map shows how many calls began")
    b.run("(e => { e.value = 'time'; e.dispatchEvent(new Event('change')); })(document.querySelector('main .bar select'))")
    got = b.run(cells)
    ok(all(abs(v - 1e6) < 1 for v in got), "busy: and the time in them on demand", got)
    b.run("uniscope.app.setFunc(1)")
    got = b.run(cells)
    ok(abs(got[0] - 1e6) < 1 and got[1] < 1, "busy: of a chosen function its time", got)
    b.settle()
    link = b.run("location.hash")
    ok("o.heat=time" in link, "busy: the address has it", link)
    # As if there were very many: when the hottest one was hot is told a little later.
    b.run("uniscope.app.setFunc(0)")
    b.run("Object.defineProperty(uniscope.app.model.spans.rows.start, 'length', { value: 5e6 }); uniscope.page.overview.hot = 0; uniscope.app.tell('data')")
    b.wait("uniscope.page.overview.hot > 0 && document.querySelector('.range .which')?.textContent === 'short'")
    ok(True, "busy: of millions of calls the strip shows when the hottest was hot, and its name")
    same(b.trouble(), [], "busy: no error")


def mirage(b):
    b.open(f"file://{T}/ring.html")
    b.settle()
    ok("1 promise failed (red). No finding in what is known. Not known: " in text(b, ".card.inner"), "mirage: what is red is told", text(b, ".card.inner"))
    b.run("(p => { const f = p.ctx.fillText; window.told = []; p.ctx.fillText = function (s, ...a) { told.push(s); f.call(this, s, ...a); }; p.draw(); })(uniscope.page.view().plot)")
    ok(b.run("told.includes('5 ns')") and not b.run("told.some(s => s.startsWith('0.0000'))"), "mirage: moments of nanoseconds are in nanoseconds", b.run("told"))
    same(tabs(b), ["timeline", "quality"], "mirage: a trace of MirageOS is a page")
    same(b.run("(p => [...Array(p.nr).keys()].map(i => [p.name(i), p.fate[i], p.failed(i)]))(uniscope.page.view().p).find(x => x[0] === 'tcp')"),
         ["tcp", 2, "Exit"], "mirage: the thread that failed, and how")
    chain = b.run("""(v => { const q = v.p.other.findIndex(x => x !== 0xffffffff); v.plot.onChain(q);
        return [q >= 0, v.plot.lit.has(q) && v.plot.lit.has(v.p.other[q]), uniscope.state.who === q]; })(uniscope.page.view())""")
    same(chain, [True, True, True], "mirage: who becomes whom is lit together")
    b.settle()
    link = b.run("location.hash")
    same(b.trouble(), [], "mirage: no error")
    who = b.run("uniscope.state.who")
    b.open(f"file://{T}/ring.html{link}")
    same(b.run("uniscope.page.view().plot.selected"), who, "mirage: a shared address has the thread that was chosen")


def in_doubt(b):
    """The doubts of `trace findings`, in the same words but for the form of times."""
    b.open(f"file://{T}/doubts.html")
    with open(f"{T}/doubts.txt", encoding="utf-8") as f:
        doubts = re.sub(r"\nstill waiting when.*?(?=\n\n|\Z)", "", f.read(), flags=re.S).splitlines()
    told = [line.strip() for line in doubts if "in doubt" in line or line.startswith("    ")]
    plain = lambda line: re.sub(r"[\d.,]+ (ns|us|µs|ms|s)", "TIME", line)
    cli = [re.sub(r"^TIME +", "", plain(line)).lower() for line in told]
    page = b.run("[...document.querySelectorAll('.card.inner h3, .doubt')].map(e => e.innerText.replaceAll('\\n', ' '))")
    same(len(cli), 6, "in doubt: findings tells four, of two kinds")
    same([plain(line).lower() for line in page], cli, "in doubt: the page tells the same")
    same(b.run("[...document.querySelectorAll('.finding.bad')].length"), 0, "in doubt: nothing is wrong")
    b.run("document.querySelectorAll('.doubt')[1].click()")
    b.settle()
    same(b.run("document.querySelector('.card.inner h2').textContent"), "other worker", "in doubt: a click chooses the thread")
    same(b.trouble(), [], "in doubt: no error")


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


def touch(b):
    """Pinch, pan and tap, by what the browser makes of fingers."""
    b.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    b.open(f"file://{T}/calls.html#v=chart")
    x, y, w, h = rect(b, "main canvas")
    seen = "(p => [p.x0, p.x1])(uniscope.page.view().plot)"
    before = b.run(seen)
    b.touch([(x + 300, y + 80), (x + 400, y + 80)], [(x + 250, y + 80), (x + 450, y + 80)], [(x + 200, y + 80), (x + 500, y + 80)])
    pinched = b.run(seen)
    at = lambda r, px: r[0] + (r[1] - r[0]) * px / w  # noqa: E731
    ok(abs((pinched[1] - pinched[0]) * 3 / (before[1] - before[0]) - 1) < 0.05, "touch: fingers three times as far apart zoom three times", (before, pinched))
    ok(abs(at(pinched, 200) - at(before, 300)) < (before[1] - before[0]) * 0.01, "touch: what is under a finger stays there", (before, pinched))
    same(b.run("uniscope.state.func"), 0, "touch: a pinch is no tap")
    b.touch([(x + 400, y + 80)], [(x + 380, y + 80)], [(x + 300, y + 80)])
    panned = b.run(seen)
    ok(abs(panned[0] - at(pinched, 100)) < (before[1] - before[0]) * 0.01, "touch: a finger pans", (pinched, panned))
    fingers = lambda kind, *at: b.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x + px, "y": y + 80, "id": k} for k, px in enumerate(at)])  # noqa: E731
    b.run("document.querySelector('main canvas').addEventListener('pointerdown', (ev) => { window.last = ev.pointerId; })")
    fingers("touchStart", 300, 400)
    fingers("touchMove", 300, 480)
    # The protocol lifts all fingers or none.
    b.run(f"document.querySelector('main canvas').dispatchEvent(new PointerEvent('pointerup', {{ pointerId: last, pointerType: 'touch', clientX: {x + 480}, clientY: {y + 80} }}))")
    two = b.run(seen)
    for px in (320, 360, 400):
        fingers("touchMove", px, 480)
    fingers("touchEnd")
    one = b.run(seen)
    ok(two[1] - two[0] < 0.8 * (panned[1] - panned[0]) and abs((one[1] - one[0]) / (two[1] - two[0]) - 1) < 1e-6, "touch: when a finger of two leaves, nothing zooms", (panned, two, one))
    ok(abs((two[0] - one[0]) / (two[1] - two[0]) * w - 90) < 25, "touch: and the other goes on from where it was", (two, one))
    b.run("uniscope.page.view().plot.jump(0, 1e9)")
    b.settle()
    b.touch([(x + 100, y + 20 + 18 + 9)])
    b.settle()
    same(b.run("[uniscope.app.model.funcs.name(uniscope.state.func), document.querySelector('.tip').hidden, document.querySelector('.tip').innerText.split('\\n')[1]]"),
         ["outer", False, "5 µs"], "touch: a tap chooses, and says what it is")
    ok(text(b, "main [role=status]").startswith("outer, 5 µs, from "), "touch: also to a screen reader", text(b, "main [role=status]"))
    b.open(f"file://{T}/s.html")
    x, y, w, h = rect(b, "canvas.overview")
    whole = b.run("uniscope.app.graph().total[0]")
    b.touch([(x + w * 0.25, y + 30)], [(x + w * 0.4, y + 30)], [(x + w * 0.5, y + 30)])
    ok(abs(b.run("uniscope.app.graph().total[0]") / whole - 0.25) < 0.02, "touch: a finger chooses a range")
    same(b.trouble(), [], "touch: no error")
    b.call("Emulation.setTouchEmulationEnabled", enabled=False)


def narrow(b):
    b.size(390, 760)
    b.open(f"file://{T}/s.html")
    for view in tabs(b):
        go(b, view)
        wide = b.run("[...document.querySelectorAll('header, .filters, .bar, .tr, .card')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).length")
        same(wide, 0, f"narrow: {view} fits a telephone")
    same(b.run("getComputedStyle(document.querySelector('.card')).display"), "block", "narrow: and the chosen function is told")
    b.size(1280, 800)


def paper(b):
    b.open(f"file://{T}/s.html#dark=1")
    back = "document.documentElement.dataset.dark"
    same(b.run(back), "1", "paper: a dark page")
    b.run("""addEventListener('beforeprint', () => {
        const light = (c) => c.getContext('2d').getImageData(2, c.height - 2, 1, 1).data[0] > 128;
        window.printed = document.documentElement.dataset.dark;
        window.light = [...document.querySelectorAll('canvas')].filter(c => c.clientWidth > 0).every(light);
    })""")
    pdf = base64.b64decode(b.call("Page.printToPDF", printBackground=True)["data"])
    ok(pdf.startswith(b"%PDF-") and len(pdf) > 20000, "paper: it prints", len(pdf))
    same([b.run("window.printed"), b.run("window.light"), b.run(back)], ["0", True, "1"], "paper: which is white, and the screen is dark again")
    b.emulate("print")
    hidden = b.run("[...document.querySelectorAll('nav, .bar button, input, select')].filter(e => e.getClientRects().length > 0).length")
    same(hidden, 0, "paper: has no buttons")
    shape = b.run("(c => { const r = c.getBoundingClientRect(); return [r.width / r.height, c.width / c.height, getComputedStyle(c).objectFit]; })(document.querySelector('main canvas'))")
    ok(abs(shape[0] / shape[1] - 1) < 0.02 or shape[2] == "contain", "paper: pictures keep their shape", shape)
    b.emulate("")
    same(b.trouble(), [], "paper: no error")


def printed(b):
    """All functions, not those on the screen; of very many the first, and it says so."""
    for nr, says in ((300, ""), (2500, "the first 2,000 of 2,5")) if os.environ.get("UNISCOPE_ALL") else ((300, ""),):
        b.open(f"file://{T}/many{nr}.html#v=functions")
        b.settle()
        b.run("""addEventListener('afterprint', () => { window.after = document.querySelectorAll('.tr').length; });
            addEventListener('beforeprint', () => { window.rows = document.querySelectorAll('.tr').length; window.says = document.querySelector('.bar').innerText; })""")
        b.call("Page.printToPDF")
        rows, said, after = b.run("[window.rows, window.says, window.after]")
        b.emulate("print")
        same(b.run("[...document.querySelectorAll('.th')].filter(e => e.getClientRects().length > 0).map(e => e.textContent)"), ["Self", "Total", "Function"], "paper: columns have their headings")
        b.emulate("")
        same(rows, min(2000, nr + 1), f"paper: functions of {nr}")
        ok(says in said and ("the first" in said) == (nr > 2000), f"paper: and how many of {nr}", said)
        ok(b.run("document.querySelectorAll('.tr').length") < 100, "paper: the screen has few rows again", after)
    same(b.trouble(), [], "paper: no error")


def damaged(b):
    page = (T / "plain.html").read_text()
    at = page.index('id="d0">') + 60
    (T / "cut.html").write_text(page[:at] + page[page.index("</script>", at):])
    b.open(f"file://{T}/cut.html")
    ok("cannot be shown" in text(b, "body"), "damaged: it says so", text(b, "body")[:100])
    for name, end in (("its script", len(page) - 4000), ("its data", at))[0 if os.environ.get("UNISCOPE_ALL") else 1:]:
        (T / "short.html").write_text(page[:end])
        b.open(f"file://{T}/short.html", "document.readyState === 'complete'")
        b.wait("getComputedStyle(document.querySelector('.late')).visibility === 'visible'")
        ok("cut off" in b.run("document.body.innerText"), f"damaged: a page that ends within {name} says so")
    b.open(f"file://{T}/plain.html")
    same(b.run("document.querySelectorAll('.late').length"), 0, "damaged: a whole one does not")


with browser.Browser() as b:
    for part in (plain, weights, threads, session, lambda b: page_hidden.check(b, T, same, ok, text), difference, lambda b: page_compared.check(b, T, sys.modules[__name__]), lambda b: page_code.check(b, T, sys.modules[__name__], *sys.argv[2:4]), hostile, calls, moved, busy, mirage, in_doubt, look, lambda b: page_looks.check(b, T, sys.modules[__name__]), touch, narrow, paper, printed, damaged):
        try:
            part(b)
        except Exception as e:
            ok(False, part.__name__, e)
print(f"1..{number}")
