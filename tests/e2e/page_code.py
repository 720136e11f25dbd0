# SPDX-License-Identifier: BSD-2-Clause
"""A part of page_browser.py: source and assembly in the page (`report --html --code`), against `annotate --json`."""
import json
import re
import subprocess

FIRST, NR = 0xffffffff80000000, 11  # where the functions of mksession are


def make(u, mksession, T):
    """A session whose functions have code: each calls the next one, and jumps over an instruction."""
    source = [f".globl fn_{i}\n.type fn_{i}, @function\nfn_{i}:\tjmp 1f\n\tnop\n1:\tcall fn_{(i + 1) % NR}\n\tret\n.balign 16, 0x90\n.size fn_{i}, . - fn_{i}\n"
              for i in range(NR)]
    (T / "code.s").write_text(".text\n" + "".join(source))
    subprocess.run(["gcc", "-g", "-nostdlib", "-static", "-no-pie", f"-Wl,--build-id=sha1,-Ttext={FIRST:#x},-e,fn_0", "code.s", "-o", "code.elf"],
                   cwd=T, check=True)
    ident = re.search(r"Build ID: (\w+)", subprocess.check_output(["readelf", "-n", T / "code.elf"], text=True))[1]
    subprocess.run([mksession, T / "code.uniscope", "3000", "2"], check=True)
    path = T / "code.uniscope/session.json"
    session = json.loads(path.read_text())
    session["guests"][0]["images"] = [{"path": str(T / "code.elf"), "id": ident, "bias": "0x0"}]
    path.write_text(json.dumps(session))
    subprocess.run([u, "report", "--symbols", T / "code.elf", "--html", T / "code.html", "--code", T / "code.uniscope"], check=True)


def check(b, T, page, u, mksession):
    ok, same = page.ok, page.same
    make(u, mksession, T)
    b.open(f"file://{T}/code.html")
    b.settle()
    head = b.run("uniscope.app.model.data.head.code")
    selfs = [c["self"] for c in head]
    table = b.run("uniscope.app.table().map(r => [uniscope.app.model.funcs.name(r.func), r.self]).filter(r => r[1] > 0 && r[0].startsWith('fn_'))")
    same(sorted([c["function"], c["self"]] for c in head), sorted(table), "code: of each function that has samples itself, as the table has them")
    ok(len(head) > 2 and selfs == sorted(selfs, reverse=True), "code: the hottest first", selfs)
    for c in head:
        want = json.loads(subprocess.check_output([u, "annotate", "--json", T / "code.uniscope", c["function"]], text=True))
        got = dict(c)
        arrows = got.pop("arrows")
        ok(got == want and len(arrows) == len(want["instructions"]), f"code: {c['function']} has the numbers of annotate", (got, want))
    name = head[1]["function"]
    b.run(f"uniscope.app.setFunc(uniscope.app.model.funcs.list.findIndex(f => f.name === {name!r}))")
    b.run("[...document.querySelectorAll('.card button')].find(e => e.textContent === 'Code').click()")
    b.settle()
    same(b.run("uniscope.state.view"), "code", "code: the card leads there")
    rows = b.run("[...document.querySelectorAll('.tr')].map(r => [...r.children].map(e => e.textContent))")
    number = lambda s: float(s.replace(",", "")) if s else 0  # noqa: E731
    got = [[number(r[1]), number(r[2]), int(r[3], 16)] for r in rows if r[3]]
    same(got, [[i["self"], i["below"], int(i["address"], 16)] for i in head[1]["instructions"]], "code: samples, below and address of each instruction")
    ok(any(r[3] == "" and "code.s:" in r[4] and "jmp 1f" in r[4] for r in rows), "code: source lines", rows)
    ok(",-- jmp" in rows[1][4] and any("'-> callq" in r[4] for r in rows), "code: jumps are drawn", rows)
    jump = next(i for i in head[1]["instructions"] if i["kind"] == "jump")
    call = next(i for i in head[1]["instructions"] if i["kind"] == "call")
    on = "(document.querySelector('.tr.on')?.children[3].textContent ?? '')"
    b.key("Home")
    b.key("ArrowDown")
    same(b.run(on), jump["address"][2:], "code: arrows move from row to row")
    b.key("Enter")
    same(b.run(on), jump["target"][2:], "code: Enter follows a jump")
    b.key("Enter")
    b.settle()
    same(b.run("document.querySelector('main select').selectedOptions[0].text.split(' ')[0]"), call["callee"], "code: and a call")
    same(b.run("uniscope.app.model.funcs.name(uniscope.state.func)"), call["callee"], "code: which is chosen in all views then")
    b.run("uniscope.app.setRange(1000, 100000)")
    ok("of the whole recording" in b.run("document.querySelector('main').innerText"), "code: a range of time is said not to count here")
    b.open(f"file://{T}/s.html")
    same(b.run("document.querySelectorAll('[data-view=code]').length"), 0, "code: a page without it has no such view")
    same(b.trouble(), [], "code: no error")
