# SPDX-License-Identifier: BSD-2-Clause
"""The cost of a served page: the index of calls, replies for a screen of them, and the first paint in a browser."""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from common import ROOT, bench
from page import measure

sys.path.insert(0, str(ROOT / "tests/e2e"))
import browser  # noqa: E402


def first_paint(args, session):
    """Seconds until the page of a session stands, and of CPU of its main thread; the server has made all before."""
    with subprocess.Popen([args.uniscope, "serve", "--port", "0", session], stderr=subprocess.PIPE, text=True) as p:
        try:
            url = re.search(r"http://\S+", p.stderr.readline())[0]
            begin = time.monotonic()
            while b'"rev":0' in urllib.request.urlopen(url + "state").read():
                time.sleep(0.1)
            ready = time.monotonic() - begin
            size = int(urllib.request.urlopen(url + "data").headers["Content-Length"] or 0)
            paints, empty = [], []
            for _ in range(args.runs):
                with browser.Browser(1600, 1000) as b:
                    paints.append(measure(b, url, "document.documentElement.dataset.ready"))
                with browser.Browser(1600, 1000) as b:
                    empty.append(measure(b, "data:text/html,<p>nothing", "document.body.textContent"))
        finally:
            p.terminate()
    walls = sorted(w for w, _ in paints)
    print(f"    read and indexed in {ready:.1f} s; data {size / 1e3:.0f} kB; first paint {statistics.median(walls):.2f} s"
          f" ({walls[0]:.2f} to {walls[-1]:.2f}), main thread {statistics.median(c for _, c in paints):.2f} s;"
          f" a page with nothing in it {statistics.median(w for w, _ in empty):.2f} s, {statistics.median(c for _, c in empty):.2f} s")


@bench
def served(args):
    """CPU time: INTERVALS=N of them in 24 rows (default 10 million; 100 million take 4 GB), 1600 pixels. First paint: a session of
    half as many calls as EVENTS=N (default 10 million), or of SESSION=FOLDER."""
    print(subprocess.run([f"{args.build}/bench/lod", os.environ.get("INTERVALS", "10000000")], check=True,
                         capture_output=True, text=True).stdout, end="")
    if browser.find() is None:
        print("    first paint: chromium is not installed")
        return
    with tempfile.TemporaryDirectory() as tmp:
        session = pathlib.Path(os.environ.get("SESSION", pathlib.Path(tmp) / "calls.uniscope"))
        if "SESSION" not in os.environ:
            subprocess.run([f"{args.build}/tests/e2e/mktrace", session, os.environ.get("EVENTS", "10000000"), "2", "graph", "3"], check=True)
        first_paint(args, session)
