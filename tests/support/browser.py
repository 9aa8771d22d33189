"""A headless Chromium for tests of pages, driven through two pipes: no port, and no package besides the browser."""
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time


class Browser:
    """with Browser("/usr/bin/chromium") as browser: browser.open(path, 400, 900)"""

    def __init__(self, program, seconds=240):
        self.seconds = seconds  # for each answer: a machine that compiles beside it is slow
        self.folder = tempfile.mkdtemp(prefix="holdfast-browser-")
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def in_place():  # the browser reads from 3 and writes to 4
            os.setsid()
            fds = [os.dup(to_browser), os.dup(from_browser)]
            fds = [os.dup(fd) if fd in (3, 4) else fd for fd in fds]
            os.dup2(fds[0], 3)
            os.dup2(fds[1], 4)

        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--mute-audio",
             "--remote-debugging-pipe", f"--user-data-dir={self.folder}/profile", "about:blank"],
            preexec_fn=in_place, close_fds=False, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self.events = b"", 0, []
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log.close()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _message(self, deadline):
        with selectors.DefaultSelector() as ready:
            ready.register(self._in, selectors.EVENT_READ)
            while b"\0" not in self._buffer:
                left = deadline - time.monotonic()
                if left <= 0 or not ready.select(left):
                    raise TimeoutError(f"the browser did not answer within {self.seconds} s")
                data = os.read(self._in, 1 << 20)
                if not data:
                    with open(os.path.join(self.folder, "log"), encoding="utf8", errors="replace") as log:
                        raise ConnectionError("the browser ended: " + log.read()[-2000:])
                self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        """The result of one command; what the page reports meanwhile is in self.events."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data):]
        deadline = time.monotonic() + self.seconds
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url, width, height, dark=False, media="screen"):
        """The page in a window of that size, loaded; its events are fresh."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events = []
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + self.seconds
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._message(deadline))

    def run(self, script):
        """The value of an expression; an exception in it is one here."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def errors(self):
        """What the console has of errors, exceptions included, since the page was opened."""
        self.run("0")  # what was on its way has come
        out = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                out.append(details.get("exception", {}).get("description", details["text"]))
            elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert", "warning"):
                out.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
            elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
                out.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
        return out
