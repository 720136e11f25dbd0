# SPDX-License-Identifier: BSD-2-Clause
"""For page_browser.py: functions that are hidden in the breakdown, and by `report --hide`."""
import json


LEFT = "99.9 % of the whole is left out: shares and totals are of the rest"


def choose(b, value):
    b.run("(s => { s.value = '%s'; s.dispatchEvent(new Event('change')); })([...document.querySelectorAll('main select')].find(s => [...s.options].some(o => o.value === 'callers')))" % value)
    b.settle()


def others(b, same, text):
    """The other views with shares: the table leaves out, graphs of stacks give to callers, and each has the other choice."""
    total = "uniscope.app.graph().total[0]"
    rows = "[...document.querySelectorAll('.tr')].map(r => [r.querySelector('.name').textContent, r.querySelector('.pc').textContent])"
    card = "[document.querySelector('.card h2').textContent, document.querySelector('.card .two b').textContent]"

    def go(view):
        b.run(f"document.querySelector('nav button[data-view={view}]').click()")
        b.settle()

    go("functions")
    same([b.run(rows)[0], text(b, ".left"), b.run(total)], [["tcp_input", "78.6 %"], LEFT, 7e7], "hide: the table of functions is of what is left, and says so")
    same(b.run(card), ["tcp_input", "78.6 %"], "hide: and so is the card")
    for view, name in (("flame", "flame graph"), ("sandwich", "callers and callees")):
        go(view)
        same([b.run(total), text(b, ".left")], [1e11, ""], f"hide: {name}: usually given to callers")
        choose(b, "out")
        same([b.run(total), text(b, ".left"), b.run(card)], [7e7, LEFT, ["tcp_input", "78.6 %"]], f"hide: {name}: left out instead")
        choose(b, "callers")
        same(b.run(total), 1e11, f"hide: {name}: and given to callers again")
    go("functions")
    choose(b, "callers")
    same([b.run(total), text(b, ".left")], [1e11, ""], "hide: the table of functions gives to callers, too")
    choose(b, "out")
    go("breakdown")


def check(b, T, same, ok, text):
    """Nanos' trace.csv: a bar a thread; what is hidden is left out of bars, shares and totals, or given to callers."""
    bars = "[...document.querySelectorAll('.stacked')].map(e => [e.querySelector('.who').textContent, e.querySelector('.pc').textContent])"
    lines = "[...document.querySelectorAll('button.line.wide')].map(e => [e.querySelector('.who').textContent, e.querySelector('.pc').textContent])"
    b.open(f"file://{T}/csv.html#v=breakdown")
    same(b.run(bars), [["tid 1", "100 s"], ["tid 2", "20 ms"]], "csv: a bar for each thread")
    same(b.run(lines)[:2], [["kernel_sleep", "99.9 %"], ["tcp_input", "0.06 %"]], "csv: shares of all")
    b.run("document.querySelector('button.line.wide').click()")
    b.settle()
    same(b.run(bars), [["tid 1", "80 ms"], ["tid 2", "20 ms"]], "csv: bars without what was hidden by a click")
    same(b.run(lines)[:2], [["tcp_input", "55.0 %"], ["runloop_internal", "30.0 %"]], "csv: shares are of what is left")
    ok("99.9 % of the whole is left out" in text(b, ".left"), "csv: and it says so", text(b, ".left"))
    b.open(f"file://{T}/hide.html#v=breakdown")
    want = [f["name"] for f in json.loads((T / "hide.json").read_text())["functions"] if f["self"] > 0]
    same([n for n, _ in b.run(lines)], want, "hide: --hide's globs are hidden at first, as in `report --json`")
    same(b.run(lines)[0][1], "78.6 %", "hide: shares are those that `report --hide` prints")
    others(b, same, text)
    choose(b, "callers")
    same([b.run(lines)[0][0], text(b, ".left")], ["tid 1", ""], "hide: given to callers instead")
    b.run("[...document.querySelectorAll('button')].find(e => /^Show 2 hidden/.test(e.textContent)).click()")
    b.settle()
    same(b.run(lines)[0], ["kernel_sleep", "99.9 %"], "hide: all is shown again")
    same(b.trouble(), [], "hide: no error")
