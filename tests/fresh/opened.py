# SPDX-License-Identifier: BSD-2-Clause
"""opened.py FOLDER: opens the page and the picture that demo.sh left there in a browser. It looks for the functions that its folded
stacks have on top. Exits 1 with what was wrong."""
import collections
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../e2e"))
sys.dont_write_bytecode = True
import browser  # noqa: E402  pylint: disable=wrong-import-position


def hottest(path):
    ret = collections.Counter()
    for line in path.read_text().splitlines():
        stack, _, weight = line.rpartition(" ")
        ret[stack.split(";")[-1].removesuffix("_[i]")] += int(weight)  # the mark of an inlined function
    return [name for name, _ in ret.most_common(3)]


def main(folder):
    names = hottest(folder / "demo.folded")
    assert len(names) == 3 and all(names), names
    with browser.Browser() as b:
        b.open(f"file://{folder}/report.html")
        b.run("document.querySelector('nav button[data-view=functions]').click()")
        b.settle()
        shown = b.run("[...document.querySelectorAll('.tr .name')].map(e => e.textContent)")
        assert shown[:1] == names[:1] and set(names) <= set(shown), (shown, names)
        assert b.trouble() == [], b.trouble()
        b.open(f"file://{folder}/demo.svg", "document.readyState === 'complete'")
        titles = b.run("[...document.querySelectorAll('title')].map(e => e.textContent)")
        wide = b.run("document.documentElement.getBoundingClientRect().width")
        assert wide > 500 and all(any(t.startswith(n + " ") for t in titles) for n in names), (wide, titles, names)
        assert b.trouble() == [], b.trouble()
    print("shown:", ", ".join(names))


main(pathlib.Path(sys.argv[1]).resolve())
