"""A page in Debian's chromium, asked by the DevTools protocol over a pipe: no driver and no other
package."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
NEEDED = pytest.mark.skipif(
    not any(map(shutil.which, NAMES)),
    reason="there is no chromium; `apt-get install chromium` brings it",
)
SECONDS = 60
"""That chromium may take for one answer: the machine may be busy."""


class Tab:
    """One page. `messages` are what its console and its log said, and errors of its scripts."""

    def __init__(self, to_chromium: int, from_chromium: int) -> None:
        self._to, self._from, self._read, self._calls = to_chromium, from_chromium, b"", 0
        self._session: str | None = None
        self.messages: list[str] = []
        self.loaded = False
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, path: Path | str, width: int, *, dark: bool = False) -> None:
        """Load a file or an address in a window of that width, in CSS pixels; returns when it is
        drawn."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                   deviceScaleFactor=1, mobile=False)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self.loaded = False
        address = path if isinstance(path, str) else path.resolve().as_uri()
        self._call("Page.navigate", url=address)
        while not self.loaded:
            self._next()

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression, or of what its promise becomes; raises RuntimeError
        where it throws."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)  # fmt: skip
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def screenshot(self) -> bytes:
        """The whole page, not the window alone, as PNG."""
        taken = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(taken["data"])

    def press(self, key: str) -> None:
        """A key, by its name."""
        for kind in ("rawKeyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                       windowsVirtualKeyCode={"Tab": 9, "Enter": 13}[key])  # fmt: skip

    def _call(self, method: str, **params: Any) -> Any:
        self._calls += 1
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": self._calls, "method": method, "params": params, **session}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._calls:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        """The next message, an answer or an event; events are noted."""
        while b"\0" not in self._read:
            if not select.select([self._from], [], [], SECONDS)[0]:
                raise TimeoutError(f"chromium said nothing for {SECONDS} s")
            if not (more := os.read(self._from, 1 << 20)):
                raise RuntimeError("chromium ended")
            self._read += more
        first, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        method = message.get("method")
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.messages.append(json.dumps(message["params"]))
        return message


@contextmanager
def tab(profile: Path) -> Iterator[Tab]:
    """A tab of a fresh chromium that keeps its files under `profile`; it is ended afterwards."""
    pipes = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (*os.pipe(), *os.pipe())]
    chromium_reads, we_write, we_read, chromium_writes = pipes

    def at_3_and_4() -> None:
        os.dup2(chromium_reads, 3)
        os.dup2(chromium_writes, 4)

    path = next(filter(None, map(shutil.which, NAMES)))
    process = subprocess.Popen(
        [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"], pass_fds=(3, 4),
        preexec_fn=at_3_and_4, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        os.close(chromium_reads)
        os.close(chromium_writes)
        yield Tab(we_write, we_read)
    finally:
        process.terminate()
        process.wait(SECONDS)
        os.close(we_write)
        os.close(we_read)
