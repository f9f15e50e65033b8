"""A headless Chromium, driven over a pipe by its own protocol (CDP) with nothing but the standard library.

Owns the browser's process and its folder. Invariants: every wait has an end; what the browser said in its console and what it
asked of a network is kept and never cleared, so that a test can say that there was nothing.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .programs import Program, give_up

CHROMIUM = Program("chromium", "any", "chromium")
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
WAIT_SECONDS = 60.0
MODIFIERS = {"Alt": 1, "Control": 2, "Shift": 8}
CODES = {
    "Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, "ArrowLeft": 37, "Home": 36,
    "End": 35, "PageDown": 34, "PageUp": 33,
}  # fmt: skip


class Browser:
    """One page of one browser. ``console`` are messages of errors and warnings, ``requests`` every address asked for."""

    def __init__(self, process: subprocess.Popen[bytes], reading: int, writing: int) -> None:
        self.process = process
        self.reading, self.writing = reading, writing
        os.set_blocking(reading, False)
        self.number = 0
        self.buffer = bytearray()
        self.session = ""
        self.console: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the protocol, and its result. Raises AssertionError where the browser refuses or does not answer."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writing, data) :]
        end = time.monotonic() + WAIT_SECONDS
        while True:
            answer = self._next(end)
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._hear(answer)

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            assert time.monotonic() < end, "the browser does not answer"
            try:
                data = os.read(self.reading, 1 << 20)
                assert data, "the browser has ended"
                self.buffer += data
            except BlockingIOError:
                time.sleep(0.005)
        line, _, rest = bytes(self.buffer).partition(b"\0")
        self.buffer = bytearray(rest)
        value: dict[str, Any] = json.loads(line)
        return value

    def _hear(self, event: dict[str, Any]) -> None:
        method, params = event.get("method", ""), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.console.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.console.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.console.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def look(self, width: int, height: int, *, dark: bool = False, paper: bool = False) -> None:
        """The size of the window, light or dark, screen or paper."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="print" if paper else "", features=[scheme])

    def open(self, url: str) -> None:
        """Go to an address and wait until the page says that it is ready (``data-ready``)."""
        self.call("Page.navigate", url=url)
        self.wait("document.body && document.body.dataset.ready === 'yes'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, f"it never came: {script}"
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Click the middle of what a selector finds first, as a mouse does."""
        box = self.run(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.scrollIntoView({{block: 'center'}});"
            " const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def press(self, *keys: str) -> None:
        """Press keys by their names, ``Shift+Tab`` among them."""
        for key in keys:
            *held, name = key.split("+") if len(key) > 1 else [key]
            bits = sum(MODIFIERS[one] for one in held)
            more: dict[str, Any] = {"windowsVirtualKeyCode": CODES[name]} if name in CODES else {"text": name}
            if name == "Enter":
                more["text"] = "\r"
            self.call("Input.dispatchKeyEvent", type="keyDown", key=name, modifiers=bits, **more)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=name, modifiers=bits)

    def write(self, text: str) -> None:
        """Type a text into what has the focus."""
        self.call("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        """What is seen, as a PNG file."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser with an empty folder of its own, ended and removed afterwards."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None or sys.platform == "win32":
        give_up(CHROMIUM, "no Chromium is installed here (looked for " + ", ".join(NAMES) + ")")
    folder = tempfile.mkdtemp(prefix="browser-")
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    command = [program, *FLAGS, f"--user-data-dir={folder}", "about:blank"]

    # The protocol wants its two pipes as descriptors 3 and 4, whatever numbers ours have.
    high = [fd if fd > 9 else os.dup(fd) for fd in (their_in, their_out)]
    shell = f'exec "$@" 3<&{high[0]} 4>&{high[1]}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *command],
        pass_fds=high,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    for fd in {their_in, their_out, *high}:
        os.close(fd)
    try:
        yield Browser(process, our_in, our_out)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait(10)
        os.close(our_in)
        os.close(our_out)
        shutil.rmtree(folder, ignore_errors=True)
