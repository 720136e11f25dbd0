# SPDX-License-Identifier: BSD-2-Clause
"""For page_browser.py: functions that are hidden in the breakdown, and by `report --hide`."""
import json


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
    same(b.run("uniscope.app.graph().total[0]"), 1e11, "hide: a flame graph gives it to callers")
    b.run("(s => { s.value = 'callers'; s.dispatchEvent(new Event('change')); })([...document.querySelectorAll('select')].find(s => [...s.options].some(o => o.value === 'callers')))")
    b.settle()
    same([b.run(lines)[0][0], text(b, ".left")], ["tid 1", ""], "hide: given to callers instead")
    b.run("[...document.querySelectorAll('button')].find(e => /^Show 2 hidden/.test(e.textContent)).click()")
    b.settle()
    same(b.run(lines)[0], ["kernel_sleep", "99.9 %"], "hide: all is shown again")
    same(b.trouble(), [], "hide: no error")
