# SPDX-License-Identifier: BSD-2-Clause
"""The report page in headless Chromium: first paint, main thread's CPU, drawing while zooming, a range to a new flame graph. Also
the same trace in speedscope, if npm has it (SPEEDSCOPE=FOLDER of its dist/release)."""
import base64
import gzip
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

from common import ROOT, Skip, bench

sys.path.insert(0, str(ROOT / "tests/e2e"))
import browser  # noqa: E402


def varints(values):
    out = bytearray()
    for v in values:
        while v > 127:
            out.append(v & 127 | 128)
            v >>= 7
        out.append(v)
    return bytes(out)


def put(shell, page, head, columns):
    """shell: a page of report --html, whose data is replaced."""
    head["columns"] = [{"name": k, "nr": len(v), "bytes": 0} for k, v in columns.items()]
    body = b""
    for c, v in zip(head["columns"], columns.values()):
        data = varints(v)
        c["bytes"] = len(data)
        body += data
    text = json.dumps({"format": "uniscope-page", "version": 1, "title": "bench", "uniscope": "", "quality": "", **head}).encode()
    packed = gzip.compress(b"UPG1" + len(text).to_bytes(4, "little") + text + body, 4)
    parts = [base64.b64encode(packed[i:i + (48 << 20)]).decode() for i in range(0, len(packed), 48 << 20)]
    data = "\n".join(f'<script type="application/octet-stream" id="d{i}">{p}</script>' for i, p in enumerate(parts))
    page.write_text(re.sub(r'<script type="application/octet-stream" id="d0">.*?</script>', lambda _: data, shell, count=1, flags=re.S))
    return os.path.getsize(page)


def spans(n):
    """Nested calls of one thread, depth up to 24, 1200 functions, by a random call graph."""
    rnd = random.Random(7)
    call = [[rnd.randrange(1200) for _ in range(rnd.randint(2, 8))] for _ in range(1200)]
    rows = [([], [], []) for _ in range(24)]  # gap, dur, node
    ends = [0] * 24
    parent, frame, known = [], [], {}
    stack, t, made = [], 0, 0
    events = []
    while made < n or stack:
        d, r = len(stack), rnd.random()
        if made < n and (d == 0 or (d < 24 and r < 0.5 - 0.012 * d + (0.25 if d < 4 else 0))):
            up = stack[-1][0] if stack else 0
            f = int(r * 6) if d == 0 else call[frame[up - 1]][int(rnd.random() * rnd.random() * len(call[frame[up - 1]]))]
            node = known.get((up, f))
            if node is None:
                node = known[up, f] = len(parent) + 1
                parent.append(node - 1 - up)
                frame.append(f)
            t += 50 + int(rnd.random() * 400)
            stack.append((node, t))
            events.append((0, t, f))
            made += 1
        else:
            t += 40 + int(rnd.random() ** 6 * 20000)
            node, begin = stack.pop()
            gap, dur, nodes = rows[len(stack)]
            gap.append(begin - ends[len(stack)])
            dur.append(t - begin)
            nodes.append(node)
            ends[len(stack)] = t
            events.append((1, t, frame[node - 1]))
    rows = [r for r in rows if r[0]]
    head = {"calls": {"begin": "1", "unit": "ns", "nr": n, "lost": 0, "left_out": 0, "threads": [["main", "1"]],
                      "frames": [[f"fn_{i:x}", "guest", "app.elf", "", 0] for i in range(1200)]}}
    columns = {"c.parent": parent, "c.frame": frame, "r.thread": [0] * len(rows), "r.depth": range(len(rows)),
               "r.nr": [len(r[0]) for r in rows], "c.gap": sum((r[0] for r in rows), []), "c.dur": sum((r[1] for r in rows), []),
               "c.node": sum((r[2] for r in rows), []), "c.off": [0] * n, "c.cpu": [0] * n}
    return head, columns, events, t


def promises(n, runs):
    rnd = random.Random(3)
    end = n * 10000
    begin = sorted(rnd.randrange(end) for _ in range(n))
    life = [min(end - b, int(rnd.expovariate(1 / 1.2e8)) + 1000) for b in begin]
    who = sorted(((rnd.randrange(n)) for _ in range(runs)))
    at = sorted((begin[w] + int(rnd.random() * life[w]), w) for w in who)
    last, deltas = 1, []
    for b, _ in at:
        deltas.append((b + 1 - last) * 2 if b + 1 >= last else (last - b - 1) * 2 - 1)
        last = b + 1
    edges = sorted((min(end, begin[i] + life[i]), i) for i in range(n))
    head = {"promises": {"begin": "1", "duration": end, "events": n + runs, "lost": 0, "strings": [""] + [f"promise {i}" for i in range(999)],
                         "types": ["task"] * 100, "kinds": ["create", "read", "resolve"] + ["?"] * 17, "findings": []}}
    columns = {"p.id": range(n), "p.type": [1] * n, "p.fate": [1] * n, "p.flags": [1] * n, "p.begin": begin, "p.life": life,
               "p.run": [1] * n, "p.wait": [0] * n, "p.creator": [0] + [rnd.randrange(max(0, i - 50), i) + 1 for i in range(1, n)],
               "p.resolver": [0] * n, "p.other": [0] * n, "p.label": [rnd.randrange(1, 1000) for _ in range(n)], "p.failure": [0] * n,
               "run.who": [w for _, w in at], "run.cpu": [0] * runs, "run.begin": deltas, "run.dur": [100 + rnd.randrange(900) for _ in at],
               "edge.kind": [2] * n, "edge.from": [rnd.randrange(max(1, i - 50), i + 2) for _, i in edges], "edge.to": [i + 1 for _, i in edges],
               "edge.time": [t for t, _ in edges]}
    return head, columns


def measure(b, url, ready):
    """Seconds until a frame of it was drawn, and CPU time of the main thread: of that thread, not of the clock."""
    b.call("Performance.enable", timeDomain="threadTicks")
    b.call("Page.navigate", url="about:blank")
    begin = time.monotonic()
    b.call("Page.navigate", url=url)
    while True:
        try:
            if b.run(f"location.href !== 'about:blank' && !!({ready})"):
                break
        except browser.Failed:
            pass
        time.sleep(0.005)
    b.run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    wall = time.monotonic() - begin
    cpu = {m["name"]: m["value"] for m in b.call("Performance.getMetrics")["metrics"]}["TaskDuration"]
    return wall, cpu


def zoomed(b, plot):
    """draw() in ms while the wheel turns, in and out: median, 95th percentile; and the part of the frames that it missed."""
    x, y, w, h = b.run("(r => [r.left, r.top, r.width, r.height])(document.querySelector('main canvas').getBoundingClientRect())")
    b.run(f"{plot}.drawMs.length = 0")
    for i in range(60):
        b.wheel(x + w * 0.4, y + h / 2, -150 if i < 30 else 150)
        b.run("new Promise(r => requestAnimationFrame(r))")
    ms = sorted(b.run(f"{plot}.drawMs"))
    return statistics.median(ms), ms[int(len(ms) * 0.95)], missed(b, plot)


def missed(b, plot):
    """A hundred frames zoom in and out, each as soon as the browser allows it: percent of a 60 Hz screen's frames that were missed."""
    times = b.run(f"""new Promise(done => {{ const p = {plot}, t = []; const f = now => {{ t.push(now);
        if (t.length > 100) done(t); else {{ p.zoom(t.length % 50 < 25 ? 0.85 : 1 / 0.85, p.w * 0.4); requestAnimationFrame(f); }} }};
        requestAnimationFrame(f); }})""")
    gone = sum(max(0, round((y - x) * 0.06) - 1) for x, y in zip(times, times[1:]))
    return 100 * gone / (gone + len(times) - 1)


def speedscope(b, folder, events, end):
    page = pathlib.Path(os.environ["SPEEDSCOPE"]) / "index.html"
    profile = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": f"fn_{i:x}"} for i in range(1200)]},
               "profiles": [{"type": "evented", "name": "main", "unit": "nanoseconds", "startValue": 0, "endValue": end,
                             "events": [{"type": "OC"[k], "frame": f, "at": t} for k, t, f in events]}]}
    js = folder / "profile.js"
    js.write_text(f"speedscope.loadFileFromBase64('p.json', '{base64.b64encode(json.dumps(profile).encode()).decode()}')")
    return measure(b, f"file://{page}#localProfilePath={js}", "document.querySelectorAll('canvas').length > 1")


@bench
def page(args):
    sizes = [int(float(x)) for x in os.environ.get("SPANS", "1e5 1e6").split()]
    if browser.find() is None:
        raise Skip("chromium is not installed")
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        (folder / "a.folded").write_text("main 1\n")
        subprocess.run([args.uniscope, "report", "--html", folder / "a.html", folder / "a.folded"], check=True)
        shell = (folder / "a.html").read_text()
        for n in sizes:
            head, columns, events, end = spans(n)
            size = put(shell, folder / "spans.html", head, columns)
            ours, theirs = [], []
            for _ in range(args.runs):
                with browser.Browser(1600, 1000) as b:
                    ours.append(measure(b, f"file://{folder}/spans.html", "document.documentElement.dataset.ready"))
                if "SPEEDSCOPE" in os.environ and n <= 1000000:
                    with browser.Browser(1600, 1000) as b:
                        theirs.append(speedscope(b, folder, events, end))
            print(f"{n} calls, {size / 1e6:.1f} MB, {size / n:.1f} bytes a call: first paint {statistics.median(w for w, _ in ours):.2f} s,"
                  f" main thread {statistics.median(c for _, c in ours):.2f} s of CPU")
            if theirs:
                print(f"    speedscope: first paint {statistics.median(w for w, _ in theirs):.2f} s, main thread {statistics.median(c for _, c in theirs):.2f} s of CPU:"
                      f" {statistics.median(c for _, c in theirs) / statistics.median(c for _, c in ours):.1f} times ours")
            with browser.Browser(1600, 1000) as b:
                b.open(f"file://{folder}/spans.html#v=chart")
                b.settle()
                print("    flame chart, draw() while zooming: median {:.1f} ms, p95 {:.1f} ms; {:.0f} % of frames missed".format(*zoomed(b, "uniscope.page.view().plot")))
                ms = b.run("(() => { const a = uniscope.app, out = [], w = a.model.end / 100; for (let i = 10; i < 20; i++) {"
                           " a.state.t0 = i * w; a.state.t1 = a.state.t0 + w; a.graphs.clear(); const t = performance.now(); a.graph(); out.push(performance.now() - t); } return out; })()")
                print(f"    a hundredth of the time as a new flame graph: {statistics.median(ms):.1f} ms")
        for n, runs in ((2000, 100000), (100000, 1000000), (100000, 5000000)):
            head, columns = promises(n, runs)
            size = put(shell, folder / "promises.html", head, columns)
            with browser.Browser(1600, 1000) as b:
                wall, cpu = measure(b, f"file://{folder}/promises.html", "document.documentElement.dataset.ready")
                rows = b.run("uniscope.page.view().plot.places.nrRows")
                print(f"{n} promises, {runs} runs, {size / 1e6:.1f} MB: first paint {wall:.2f} s, main thread {cpu:.2f} s; {rows} rows;"
                      " draw() median {:.1f} ms, p95 {:.1f} ms; {:.0f} % of frames missed".format(*zoomed(b, "uniscope.page.view().plot")))
