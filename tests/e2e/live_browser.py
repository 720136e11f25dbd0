# SPDX-License-Identifier: BSD-2-Clause
"""live_browser.py parts|small WHOLE-URL PARTS-URL | grows URL | live URL yes|no | gone URL PID: see live.sh. Says what is wrong, and fails."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(__file__))
import browser

table = "uniscope.app.table().map(r => [uniscope.app.model.funcs.name(r.func), Math.round(r.self), Math.round(r.total)]).sort()"


def same(got, want, what):
    assert got == want, f"{what}: {str(got)[:600]}, not {str(want)[:600]}"


def count_questions(b):
    """From now on window.asked is how many questions the server has not answered in full."""
    b.run("(f => { window.asked = 0; const done = () => setTimeout(() => window.asked--, 50);"
          "window.fetch = (...a) => { window.asked++; return f(...a).then(r => {"
          "r.clone().arrayBuffer().then(done, done); return r; }, e => { done(); throw e; }); }; })(window.fetch)")


def answered(b):
    """Until what was asked for has come and was drawn, however long a busy host takes."""
    b.settle()
    b.wait("window.asked === 0")
    b.settle()


def parts(whole, in_parts):
    got = []
    with browser.Browser() as b:
        for url in (whole, in_parts):
            b.open(url)
            count_questions(b)
            end = b.run("uniscope.app.model.end")
            nr = b.run("uniscope.app.model.spans.rows.start.length")
            one = [b.run(table)]
            same(b.run("uniscope.app.model.cpus.list.toSorted()"), ["vCPU 0", "vCPU 1", "vCPU 2"], "vCPUs")
            choices = ((-1, -1, 0.3, 0.7), (1, -1, 0, 0), (0, -1, 0.5, 0.51), (-1, 1, 0, 0), (-1, 2, 0.2, 0.6))
            # By default a range, a thread and a vCPU, each once.
            for thread, cpu, t0, t1 in choices if os.environ.get("UNISCOPE_ALL") else choices[2:5:2]:
                # The data that was asked for comes later, and there may be more to ask for then.
                b.run(f"window.told = 0; uniscope.app.listen(() => window.told++); uniscope.app.set({{ thread: {thread}, cpu: uniscope.app.model.cpus.list.indexOf('vCPU {cpu}') }}, 'look');"
                      f"uniscope.app.setRange(Math.round({end} * {t0}), Math.round({end} * {t1}))")
                b.settle()
                b.wait("(t => t === window.last && window.asked === 0 ? true : (window.last = t, false))(JSON.stringify(uniscope.app.table()) + window.told)")
                answered(b)
                one.append(b.run(table))
            b.run("uniscope.app.set({ thread: -1, cpu: uniscope.app.model.cpus.list.indexOf('vCPU 1') }, 'look'); uniscope.app.setRange(0, 0); document.querySelector('nav button[data-view=chart]').click()")
            answered(b)
            # So near that each call has its own pixels: all of them are there.
            b.run("(p => { p.jump(p.max * 0.5, p.max * 0.502); })(uniscope.page.view().plot)")
            near = ("(p => { const out = [], r = p.rows; for (let k = 0; k < r.nr; k++) for (let i = r.first[k]; i < r.first[k + 1]; i++)"
                    "if (r.start[i] + r.dur[i] > p.x0 && r.start[i] < p.x1) out.push([Math.round(r.start[i]), Math.round(r.dur[i]), uniscope.app.model.funcs.name(uniscope.app.source.tree.func[r.id[i]])]);"
                    "return out.sort((a, b) => a[0] - b[0] || a[1] - b[1]); })(uniscope.page.view().plot)")
            b.settle()
            b.wait("(r => !r.count || Math.max(...r.count.subarray(r.first[0], r.first[1])) >= 1)(uniscope.page.view().plot.rows)")
            answered(b)
            one.append(b.run(near))
            same(b.run("[...new Set(uniscope.page.view().plot.lanes.map(l => l.label))].length"), 1, "lanes of one vCPU")
            b.run("uniscope.app.set({ cpu: -1 }, 'data')")
            b.run("document.querySelector('nav button[data-view=breakdown]').click()")
            bars = []
            for by in ("thread", "all", "cpu"):
                b.run(f"uniscope.app.setOpt('bars', '{by}', 'cpu'); uniscope.app.tell('data')")
                answered(b)
                bars += b.run("[...document.querySelectorAll('.stacked')].map(x => [x.querySelector('.who').textContent, x.querySelector('.pc').textContent])")
            one.append(bars)
            one.append(b.run("document.querySelector('.card').innerText.split('\\n')"))
            assert "Ran on thread" in one[-1] and "Ran on vCPU" in one[-1], one[-1]
            for view in ("heat", "breakdown", "quality", "flame", "sandwich", "functions"):
                b.run(f"document.querySelector('nav button[data-view={view}]').click()")
                b.settle()
            same(b.trouble(), [], "no error")
            got.append((nr, one))
    (nr, one), (few, other) = got
    assert few < nr / 2, f"an outline is sent of {nr}: {few}"
    for i, (a, b) in enumerate(zip(one, other)):
        assert len(a) > 3, f"picture {i} shows something: {a}"
        same(b, a, f"picture {i}")


def small(whole, less):
    """A bounded first load: fewer nodes, or samples, and the same functions by themselves."""
    got = []
    own = "uniscope.app.table().filter(r => r.self > 0).map(r => [uniscope.app.model.funcs.name(r.func), Math.round(r.self)]).sort()"
    with browser.Browser() as b:
        for url in (whole, less):
            b.open(url)
            b.settle()
            got.append((b.run(own), b.run("[uniscope.app.source.tree.nr, uniscope.app.source.time?.length ?? 0]"), b.run("uniscope.app.graph().total[0]")))
            b.run("document.querySelector('nav button[data-view=quality]').click()")
            got[-1] += (b.run("document.querySelector('main').innerText"),)
            for view in ("chart", "heat", "flame"):
                b.run(f"document.querySelector('nav button[data-view={view}]').click()")
                b.settle()
            same(b.trouble(), [], "no error")
    (a, (nodes, times), total, _), (c, (few, fewer), sum_, says) = got
    assert len(a) > 3
    same(c, a, "functions")
    same(sum_, total, "total")
    assert (0 < fewer <= times / 4) if times > 0 else few <= 300 < nodes, f"{nodes} nodes, {times} samples; {few}, {fewer}"
    assert ("are shown as one" if times > 0 else "nodes more than are sent") in says, says


def grows(url):
    """The default run's part of live()."""
    with browser.Browser() as b:
        b.open(url)
        b.wait("uniscope.app.graph()?.total[0] > 0")
        before = b.run("uniscope.app.graph().total[0]")
        b.wait(f"uniscope.app.graph()?.total[0] > {before}")
        b.run("[...document.querySelectorAll('.live button')].find(b => b.textContent === 'Stop').click()")
        b.wait("document.querySelector('.live').dataset.recording === ''")
        b.wait("[...document.querySelectorAll('.live button')].some(b => b.textContent === 'Record')")
        same(b.trouble(), [], "no error")


def live(url, calls):
    press = "(t => [...document.querySelectorAll('.live button')].find(b => b.textContent === t)?.click())"
    with browser.Browser() as b, browser.Browser() as other:
        b.open(url)
        count_questions(b)
        other.open(url)
        b.wait("uniscope.app.graph()?.total[0] > 0")
        before = b.run("uniscope.app.graph().total[0]")
        b.wait(f"uniscope.app.graph()?.total[0] > {before}")
        # The view that the user looks at stays as it is while the recording grows.
        b.run("document.querySelector('nav button[data-view=functions]').click()")
        b.run("uniscope.app.setSearch('^lab')")
        before = b.run("uniscope.app.graph().total[0]")
        b.wait(f"uniscope.app.graph()?.total[0] > {before}")
        same(b.run("[uniscope.state.view, uniscope.state.search, document.querySelector('header input').value]"), ["functions", "^lab", "^lab"], "view and search stay")
        b.run(press + "('Hold')")
        answered(b)
        held = b.run("uniscope.app.graph().total[0]")
        other.wait(f"uniscope.app.graph()?.total[0] > {held} + 100")
        same(b.run("uniscope.app.graph().total[0]"), held, "held: it stays")
        b.run(press + "('Hold')")
        b.wait(f"uniscope.app.graph()?.total[0] > {held}")
        b.run("uniscope.app.setSearch('')")
        other.run(press + "('Stop')")
        for each in (b, other):
            each.wait("document.querySelector('.live').dataset.recording === ''")
        b.wait("[...document.querySelectorAll('.live button')].some(b => b.textContent === 'Record')")
        if calls == "yes":
            b.run(press + "('Trace calls')")
            for each in (b, other):
                each.wait("document.querySelector('.live').dataset.recording === 'calls'")
                each.wait("uniscope.app.model.spans?.rows.start.length > 10")
            nr = other.run("uniscope.app.model.spans.rows.start.length")
            other.wait(f"uniscope.app.model.spans?.rows.start.length > {nr}")
            b.run(press + "('Stop')")
            b.wait("document.querySelector('.live').dataset.recording === ''")
        b.run(press + "('Record')")
        other.wait("document.querySelector('.live').dataset.recording === 'samples'")
        same(b.run("document.querySelector('.live .warn')?.textContent ?? ''"), "", "nothing went wrong")
        for each in (b, other):
            same(each.trouble(), [], "no error")


def gone(url, pid):
    text = "document.querySelector('.live').textContent"
    with browser.Browser() as b:
        b.open(url)
        b.wait(f"/recording samples/.test({text})")
        os.kill(int(pid), signal.SIGKILL)
        # It claims no longer that it records, and offers nothing that nobody would do.
        b.wait(f"/not connected/.test({text}) && !/recording samples/.test({text})")
        same(b.run("document.querySelectorAll('.live button').length"), 0, "no buttons")


{"parts": parts, "small": small, "grows": grows, "live": live, "gone": gone}[sys.argv[1]](*sys.argv[2:])
