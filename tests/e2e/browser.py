# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium that does what a person does: opens a file, moves the pointer, presses keys,
takes pictures. Speaks the DevTools protocol over a pipe, so that it needs nothing but Python."""
import base64
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    return next(filter(None, map(shutil.which, NAMES)), None)


# Before any script of a page: who waits for a timer or for the next picture. A timer of a second or more is no part of drawing.
# window.settled() is kept when nobody waits, or, where timers go on forever, when 250 ms went by without one that draws.
COUNT = """(() => {
    const later = setTimeout, never = clearTimeout, next = requestAnimationFrame, not = cancelAnimationFrame;
    const timers = new Set(), frames = new Set();
    window.setTimeout = (f, ms = 0, ...a) => { const id = later(() => { timers.delete(id); f(...a); }, ms); if (ms < 1000) timers.add(id); return id; };
    window.clearTimeout = (id) => { timers.delete(id); never(id); };
    window.requestAnimationFrame = (f) => { const id = next((t) => { frames.delete(id); f(t); }); frames.add(id); return id; };
    window.cancelAnimationFrame = (id) => { frames.delete(id); not(id); };
    window.settled = () => new Promise((done) => {
        const begin = performance.now();
        const look = () => next(() => next(() => !frames.size && (!timers.size || performance.now() - begin > 250) ? done() : later(look, 5)));
        look();
    });
})()"""


class Failed(Exception):
    pass


class Browser:
    def __init__(self, width=1280, height=800, args=()):
        self.profile = tempfile.mkdtemp()
        to_browser, self.out = os.pipe()
        self.inp, from_browser = os.pipe()

        def pipes():
            os.setsid()
            # It reads from 3 and writes to 4, which may be numbers that our ends have.
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_browser, from_browser)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--hide-scrollbars", "--force-device-scale-factor=1", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile}", f"--window-size={width},{height}", *args, "about:blank"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=COUNT)
        self.call("Runtime.enable")
        self.call("Log.enable")
        self.size(width, height)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for fd in (self.out, self.inp):
            os.close(fd)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def read(self):
        while b"\0" not in self.buffer:
            data = os.read(self.inp, 1 << 20)
            if not data:
                raise Failed("the browser ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            got = self.read()
            if got.get("id") == self.number:
                if "error" in got:
                    raise Failed(f"{method}: {got['error']['message']}")
                return got["result"]
            self.events.append(got)

    def run(self, script):
        """The value of an expression in the page; promises are awaited."""
        got = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            what = got["exceptionDetails"]
            raise Failed(what.get("exception", {}).get("description") or what["text"])
        return got["result"].get("value")

    def open(self, url, ready="document.documentElement.dataset.ready"):
        self.events.clear()
        # A page that differs in its hash only would not load again.
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait(f"location.href !== 'about:blank' && ({ready})")

    def wait(self, script, limit=120):
        end, nap = time.monotonic() + limit, 0.02
        while time.monotonic() < end:
            try:
                if self.run(script):
                    return
            except Failed:
                pass
            time.sleep(nap)
            nap = min(1.3 * nap, 0.2)  # each question costs the page time, too
        raise Failed(f"not true in {limit} s: {script}")

    def settle(self):
        """Until what is being drawn was drawn, and nothing glides any more."""
        self.run("window.settled()")

    def mouse(self, kind, x, y, buttons=0, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, buttons=buttons,
                  button="left" if kind != "mouseMoved" else "none", **more)

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)

    def click(self, x, y, modifiers=0):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, 1, clickCount=1, modifiers=modifiers)
        self.mouse("mouseReleased", x, y, 0, clickCount=1, modifiers=modifiers)

    def drag(self, x0, y0, x1, y1):
        self.mouse("mousePressed", x0, y0, 1, clickCount=1)
        for i in range(1, 6):
            self.mouse("mouseMoved", x0 + (x1 - x0) * i / 5, y0 + (y1 - y0) * i / 5, 1)
        self.mouse("mouseReleased", x1, y1, 0, clickCount=1)

    def touch(self, *steps):
        """Fingers at each step: [(x, y), ...]; the first step puts them down, the last is followed by their leaving."""
        for i, fingers in enumerate(steps):
            self.call("Input.dispatchTouchEvent", type="touchMove" if i else "touchStart",
                      touchPoints=[{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(fingers)])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def wheel(self, x, y, dy, dx=0):
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=dx, deltaY=dy)

    def key(self, key, code=None, modifiers=0):
        code = code or ("Key" + key.upper() if len(key) == 1 and key.isalpha() else key)
        text = {"text": key} if len(key) == 1 and modifiers == 0 else {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=code, modifiers=modifiers, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=code, modifiers=modifiers)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def emulate(self, media="", **features):
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": k.replace("_", "-"), "value": v} for k, v in features.items()])

    def trouble(self):
        """Exceptions, dialogs, and what the console or the content security policy complained about."""
        self.run("0")
        bad = []
        for e in self.events:
            p = e.get("params", {})
            if e.get("method") == "Runtime.exceptionThrown":
                d = p["exceptionDetails"]
                bad.append(d.get("exception", {}).get("description") or d["text"])
            elif e.get("method") == "Page.javascriptDialogOpening":
                bad.append("dialog " + p["message"])
            elif e.get("method") == "Log.entryAdded" and p["entry"]["level"] == "error":
                bad.append(p["entry"]["text"])
        return bad
