# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, driven by the W3C's WebDriver protocol."""

import base64
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # Chromium leaves its files
        self.base = f"http://127.0.0.1:{self.start()}"
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                            "--window-size=1200,800"]}
        session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base += "/session/" + session["sessionId"]

    def start(self):
        """The driver's port. It ends where another program takes the one it chose, and is then started again."""
        for _ in range(5):
            self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                           text=True, env={**os.environ, "TMPDIR": self.folder.name})
            for line in self.driver.stdout:
                found = re.search(r"successfully on port (\d+)", line)
                if found:
                    return found.group(1)
            self.driver.stdout.close()
            status = self.driver.wait()
        raise RuntimeError(f"chromedriver ended with status {status}: {line}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "", {})
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            self.folder.cleanup()

    def call(self, method, path, body=None):
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=600) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:500]) from None

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def reload(self):
        self.call("POST", "/refresh")

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """A script that calls done with its result."""
        return self.call("POST", "/execute/async", {"script": "const done = arguments[arguments.length - 1]; " + script,
                                                    "args": list(arguments)})

    def cdp(self, command, **parameters):
        """A command of Chromium's own protocol."""
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def window(self):
        return self.call("GET", "/window")

    def windows(self):
        return self.call("GET", "/window/handles")

    def new_window(self):
        self.to_window(self.call("POST", "/window/new", {"type": "tab"})["handle"])

    def to_window(self, handle):
        self.call("POST", "/window", {"handle": handle})

    def begin_anew(self, origin, width=1200, height=800):
        """As if it had just been started: one new tab, and nothing of the origin is kept."""
        others = self.windows()
        self.new_window()
        tab = self.window()
        for other in others:
            self.to_window(other)
            self.call("DELETE", "/window")
        self.to_window(tab)
        self.call("POST", "/window/rect", {"width": width, "height": height})
        self.cdp("Storage.clearDataForOrigin", origin=origin, storageTypes="all")
        self.cdp("Network.clearBrowserCache")
        self.log()

    def element(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector, at=None):
        """In its middle, or so many pixels right of and below it."""
        if not at:
            return self.call("POST", f"/element/{self.element(selector)}/click")
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "duration": 0, "origin": {ELEMENT: self.element(selector)}, "x": at[0], "y": at[1]},
            {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]}]})

    def type(self, selector, text):
        self.call("POST", f"/element/{self.element(selector)}/value", {"text": text})

    def hover(self, selector):
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "duration": 0, "origin": {ELEMENT: self.element(selector)}, "x": 0, "y": 0}]}]})

    def press(self, text):
        """Keys for whatever has the focus."""
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            {"type": kind, "value": letter} for letter in text for kind in ("keyDown", "keyUp")]}]})

    def wait(self, script, seconds=20):
        """Until the expression is true; gives its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run("return " + script)
            if value:
                return value
            time.sleep(0.02)
        log = self.run("return document.getElementById('log')?.innerText || ''")
        raise AssertionError(f"not within {seconds} s: {script}; the page ends with: {log[-500:]}")

    def log(self):
        """What the console has said since the last call, problems alone."""
        return [entry for entry in self.call("POST", "/se/log", {"type": "browser"})
                if entry["level"] in ("SEVERE", "WARNING")]

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))
