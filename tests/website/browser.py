"""A headless Chromium, spoken to through a pipe: no driver, no port, no package.

It takes what Chromium calls its DevTools protocol: JSON, one message after another, each closed by a zero byte.
"""

import itertools
import json
import os
import shutil
import subprocess
import tempfile

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--allow-file-access-from-files",
    "--remote-debugging-pipe",
)


def program():
    """The path of a Chromium on this machine, or None."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Browser:
    """One window. Use it in a ``with`` statement, which ends the browser."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="site-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The browser reads from file 3 and writes to file 4, whatever the numbers are here.
        renumber = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", renumber, program(), *_OPTIONS, f"--user-data-dir={self._folder.name}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read), os.close(to_write)
        self._left, self._numbers, self._session = b"", itertools.count(1), None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        return self

    def __exit__(self, *raised):
        os.close(self._write), os.close(self._read)
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()

    def call(self, method, **parameters):
        """What the browser answers."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        return self._wait(lambda told: told.get("id") == number)

    def open(self, address):
        """Load a page, to its last picture."""
        self.call("Page.navigate", url=address)
        self._wait(lambda told: told.get("method") == "Page.loadEventFired")

    def resize(self, width, height=1000):
        """Give the window a size, in pixels; below 500 it is a telephone."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def evaluate(self, script):
        """The value of an expression in JavaScript on the page; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", "the script failed"))
        return answer["result"].get("value")

    def picture(self, whole=True):
        """The page as the bytes of a PNG."""
        import base64

        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def _wait(self, is_it):
        while True:
            while b"\0" not in self._left:
                read = os.read(self._read, 1 << 20)
                if not read:
                    raise RuntimeError("the browser has ended")
                self._left += read
            message, _, self._left = self._left.partition(b"\0")
            told = json.loads(message)
            if "error" in told:
                raise RuntimeError(told["error"]["message"])
            if is_it(told):
                return told.get("result")
