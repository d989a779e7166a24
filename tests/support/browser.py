"""A headless Chromium for tests, spoken to over pipes; a page's scripts need not be allowed."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FOUND = next(filter(None, map(shutil.which, NAMES)), None)

# Texts whose contrast with what is behind them is below that of WCAG 2.1 AA: 4.5, or 3 if large.
# What is behind a text of a drawing is that of the page, or of the rectangle that it stands on.
CONTRAST = """(() => {
    const parsed = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
    const linear = part =>
        (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const over = ([r, g, b, a = 1], below) =>
        [r, g, b].map((one, at) => a * one + (1 - a) * below[at]);
    const inside = (one, box) => box.left <= one.left + 0.5 && one.right <= box.right + 0.5
        && box.top <= one.top + 0.5 && one.bottom <= box.bottom + 0.5;
    const behind = one => {
        const layers = [];
        for (let each = one; each; each = each.parentElement) {
            if (each.tagName === "svg") {
                const place = one.getBoundingClientRect();
                const rects = [...each.querySelectorAll("rect")].filter(rect =>
                    rect.compareDocumentPosition(one) & 4
                    && inside(place, rect.getBoundingClientRect()));
                layers.push(...rects.reverse().map(rect => [rect, "fill"]));
            }
            layers.push([each, "backgroundColor"]);
        }
        return layers.reverse().reduce((below, [each, name]) => {
            const style = getComputedStyle(each), [r, g, b, a = 1] = parsed(style[name]);
            const filled = style[name] === "none" ? 0 : name === "fill" ? a * style.opacity : a;
            return over([r, g, b, filled], below);
        }, [255, 255, 255]);
    };
    const found = {};
    for (const one of document.querySelectorAll("body *")) {
        const own = [...one.childNodes].filter(node => node.nodeType === 3 && node.data.trim());
        const box = one.getBoundingClientRect(), style = getComputedStyle(one);
        if (!own.length || !box.width || !box.height || style.visibility === "hidden") continue;
        const below = behind(one), isDrawn = one.namespaceURI.endsWith("svg");
        const [r, g, b, a = 1] = parsed(isDrawn ? style.fill : style.color);
        let opacity = 1;
        for (let each = one; each; each = each.parentElement)
            opacity *= getComputedStyle(each).opacity;
        const pair = [over([r, g, b, a * opacity], below), below].map(light).sort((x, y) => y - x);
        const ratio = (pair[0] + 0.05) / (pair[1] + 0.05), size = parseFloat(style.fontSize);
        const least = size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5;
        const what = `${one.tagName}.${one.getAttribute("class")} on ${below.map(Math.round)}`;
        if (ratio < least) found[what] = `${ratio.toFixed(2)} ${own[0].data.trim().slice(0, 40)}`;
    }
    return found;
})()"""


class Browser:
    """One tab. `messages` are what the console and the log have said."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in, self._out = os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self.messages: list[str] = []
        self.requests: list[str] = []
        self._loaded = 0
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **given: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol and return what it answers."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": given}
        if self._session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer)
                return dict(answer["result"])

    def _read(self) -> dict[str, Any]:
        parts = bytearray()
        while (byte := self._in.read(1)) != b"\0":
            assert byte, "the browser has ended"
            parts += byte
        found = json.loads(parts)
        method, given = found.get("method"), found.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.messages.append(json.dumps(given)[:500])
        if method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        if method == "Page.loadEventFired":
            self._loaded += 1
        return dict(found)

    def open(self, page: Path, width: int, *, dark: bool = False, media: str = "screen") -> None:
        """Show a file in a window of a width."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
             mobile=False)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", media=media, features=[scheme])
        before = self._loaded
        self("Page.navigate", url=page.as_uri())
        while self._loaded == before:
            self._read()

    def value(self, expression: str) -> Any:
        """Return what an expression comes to in the page."""
        found = self("Runtime.evaluate", expression=expression, returnByValue=True,
                     awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, path: Path, *, whole: bool = True, clip: Any = None) -> None:
        """Write a picture of the page as PNG."""
        more = {} if clip is None else {"clip": clip}
        found = self("Page.captureScreenshot", captureBeyondViewport=whole, format="png", **more)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser of our own, and end it."""
    assert FOUND is not None
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
    flags += [
        "--no-first-run",
        "--disable-extensions",
        "--hide-scrollbars",
        "--disable-dev-shm-usage",
    ]
    # Helpers of the browser may write to its folder for a moment after it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # The browser takes its pipes as the descriptors 3 and 4.
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        started = subprocess.Popen(
            ["bash", "-c", script, "bash", FOUND, *flags, f"--user-data-dir={folder}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        one = None
        try:
            one = Browser(ours_in, ours_out)
            yield one
        finally:
            started.terminate()
            started.wait(20)
            if one is not None:
                one._in.close()
                one._out.close()
