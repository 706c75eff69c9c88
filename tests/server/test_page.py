# SPDX-License-Identifier: Apache-2.0
"""The page in Chromium. GUMBEL_SCREENSHOTS names a folder for pictures to look at."""

import json
import os
import shutil
import unittest

from browser import Browser
from support import QWEN, Server, alone_in_parts

ENTER, ESCAPE = "\ue007", "\ue00c"
HOSTILE = "\n".join((
    "<script>window.harm = 1</script> <img src=x onerror='window.harm = 2'>",
    "![picture](https://evil.example/leak?x) [link](javascript:window.harm=3) <a href='javascript:window.harm=4'>x</a>",
    "<https://evil.example> https://evil.example/page",
    "**bold `code` *both* **end** <style>body{display:none}</style>",
    "```html", "<script>window.harm = 5</script></code></pre><img src=x onerror='window.harm=6'>", "```",
    "| a | <b>b</b> |", "|---|---|", "| <svg onload='window.harm=7'> | 2 |",
    "> <iframe srcdoc='<script>parent.harm=8</script>'></iframe>", "1. one", "2. <details open ontoggle=alert(1)>",
    "# <u>title</u>", "```", "never closed <script>window.harm = 9</script>"))
LAST = "document.querySelector('#log > :last-child')"
TEXT = f"{LAST}.querySelector('.body > :not(details)').textContent"


@unittest.skipUnless(shutil.which("chromedriver"), "there is no chromedriver")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(program=QWEN)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def picture(self, browser, name):
        folder = os.environ.get("GUMBEL_SCREENSHOTS")
        if folder:
            browser.picture(os.path.join(folder, name + ".png"))

    def open(self, **more):
        browser = Browser(**more)
        self.addCleanup(browser.__exit__)
        browser.open(self.server.url + "/")
        browser.wait("document.querySelector('#model option')")
        return browser

    def ask(self, browser, text):
        browser.type("#text", text + ENTER)
        browser.wait(f"{LAST} && {LAST}.className == 'assistant' && {LAST}.querySelector('.row button')")

    def set(self, browser, name, value):
        browser.run("const field = document.getElementById(arguments[0]); field.value = arguments[1]; "
                    "field.onchange()", name, value)

    def test_conversation(self):
        browser = self.open()
        self.set(browser, "seed", "7")
        self.ask(browser, "Who is the baker?")
        thought, answer = alone_in_parts("Who is the baker?", 7, QWEN)
        self.assertEqual(browser.run(f"return {TEXT}"), answer)
        self.assertEqual(browser.run(f"return {LAST}.querySelector('.thought').textContent"), thought)
        self.assertFalse(browser.run(f"return {LAST}.querySelector('details').open"))
        self.assertIn("seed 7", browser.run(f"return {LAST}.querySelector('.row').textContent"))
        self.assertIn("tokens/s", browser.run(f"return {LAST}.querySelector('.row').textContent"))
        self.set(browser, "seed", "")
        self.ask(browser, "Who has a goat?")
        self.assertRegex(browser.run(f"return {LAST}.querySelector('.row').textContent"), r"\d+ of \d+ prompt tokens")
        self.picture(browser, "conversation")
        before = browser.run("return document.getElementById('log').textContent")
        browser.reload()
        browser.wait("document.querySelector('#model option')")
        self.assertEqual(browser.run("return document.getElementById('log').textContent"), before)
        self.assertEqual(browser.log(), [])

    def press_action(self, browser, name, index=-1):
        browser.run("const all = [...document.querySelectorAll('#log .assistant, #log .user')]; "
                    "const node = all.at(arguments[1]); "
                    "[...node.querySelectorAll('button')].find((one) => one.textContent == arguments[0]).click()",
                    name, index)

    def test_replay(self):
        """Whatever the settings are by now, the answer is the same again."""
        browser = self.open()
        self.set(browser, "temperature", "1.5")
        self.set(browser, "thinking", "false")
        self.ask(browser, "Tell me a story about a dog.")
        text = browser.run(f"return {TEXT}")
        self.set(browser, "temperature", "0.1")
        self.press_action(browser, "Replay")
        row = browser.wait(f"{LAST}.textContent.includes('replayed') && {LAST}.querySelector('.row').textContent")
        self.assertIn("replayed: the same text", row)
        self.assertEqual(browser.run(f"return {TEXT}"), text)

    def test_stop(self):
        browser = self.open()
        self.set(browser, "temperature", "0")
        self.set(browser, "max_tokens", "2000")
        browser.run("const old = window.fetch; window.fetch = (path, options) => old(path, { ...options, body: "
                    "JSON.stringify({ ...JSON.parse(options.body), ignore_eos: true }) })")
        browser.type("#text", "Tell me a story." + ENTER)
        browser.wait(f"{LAST}.className == 'assistant' && {LAST}.textContent.length > 20")
        browser.press(ESCAPE)
        row = browser.wait(f"{LAST}.querySelector('.row button') && {LAST}.querySelector('.row').textContent")
        self.assertIn("ended: stopped", row)

    def test_edit_and_regenerate(self):
        browser = self.open()
        self.ask(browser, "Who is the baker?")
        self.press_action(browser, "Regenerate")
        browser.wait(f"{LAST}.querySelector('.row button')")
        self.press_action(browser, "Edit", 0)
        browser.type(".edit", " And the miller?" + ENTER)
        browser.wait(f"{LAST}.className == 'assistant' && {LAST}.querySelector('.row button')")
        self.assertEqual(browser.run("return document.querySelectorAll('#log > *').length"), 2)
        self.assertEqual(browser.run("return document.querySelector('.user .body').textContent"),
                         "Who is the baker? And the miller?")

    def test_tokens(self):
        browser = self.open()
        browser.click("#tokens")
        self.ask(browser, "Who is the baker?")
        self.assertGreater(browser.run("return document.querySelectorAll('.tokens span').length"), 5)
        browser.hover(".tokens span:nth-child(2)")
        self.assertEqual(browser.run("return document.querySelector('#alternatives').textContent.split('\\n').length"), 5)
        self.assertIn("%", browser.run("return document.querySelector('#alternatives').textContent"))
        self.picture(browser, "tokens")

    def test_hostile_text(self):
        """Markup that a model writes stays text, its links are plain ones, and nothing becomes a request."""
        browser = self.open()
        kept = {"conversations": [{"messages": [{"role": "user", "content": HOSTILE},
                                                {"role": "assistant", "content": HOSTILE, "reasoning": HOSTILE,
                                                 "seed": HOSTILE, "error": HOSTILE, "finish": HOSTILE}]}],
                "open": 0, "settings": {}, "theme": ""}
        browser.run("localStorage.setItem('gumbel.conversations', arguments[0])", json.dumps(kept))
        browser.reload()
        browser.wait("document.querySelector('.assistant')")
        browser.click("details summary")
        allowed = {"P", "DIV", "PRE", "CODE", "STRONG", "EM", "TABLE", "TR", "TD", "TH", "BLOCKQUOTE", "OL", "UL", "LI",
                   "H1", "DETAILS", "SUMMARY", "BUTTON", "THEAD", "TBODY", "SPAN", "BR", "A"}
        found = set(browser.run("return [...document.querySelectorAll('#log *')].map((one) => one.tagName)"))
        self.assertLessEqual(found, allowed)
        for tag in ("PRE", "TABLE", "BLOCKQUOTE", "OL", "H1", "STRONG"):
            self.assertIn(tag, found)
        links = browser.run("return [...document.querySelectorAll('#log a')].map((one) => one.href)")
        self.assertEqual(links, ["https://evil.example/leak?x", "https://evil.example/", "https://evil.example/page"])
        self.assertIsNone(browser.run("return window.harm"))
        self.assertEqual(browser.log(), [])
        urls = browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
        self.assertTrue(all(url.startswith(self.server.url) for url in urls), urls)
        self.assertIn("<img src=x", browser.run("return document.querySelector('.assistant').textContent"))
        self.picture(browser, "hostile")

    def test_policy(self):
        """Script that did get into the page would not run."""
        browser = self.open()
        for script in ("document.body.insertAdjacentHTML('beforeend', \"<img src=x onerror='window.harm=1'>\")",
                       "document.body.innerHTML = '<p>'", "setTimeout('window.harm = 2')",
                       "const script = document.createElement('script'); script.textContent = 'window.harm = 3'; "
                       "document.body.append(script)",
                       "trustedTypes.createPolicy('other', {})", "trustedTypes.createPolicy('dompurify', {})"):
            with self.assertRaises(AssertionError, msg=script):
                browser.run(script)
        self.assertIsNone(browser.run("return window.harm"))

    def test_phone_and_dark(self):
        browser = self.open(width=500, height=800)
        self.ask(browser, "Who is the baker?")
        self.assertLessEqual(browser.run("return document.documentElement.scrollWidth - innerWidth"), 0)
        self.assertEqual(browser.run("return getComputedStyle(document.querySelector('aside')).display"), "none")
        browser.click("#menu")
        self.assertEqual(browser.run("return getComputedStyle(document.querySelector('aside')).display"), "flex")
        for theme in ("light", "dark"):
            browser.click("#theme")
            self.assertEqual(browser.run("return document.documentElement.dataset.theme"), theme)
            self.picture(browser, "phone-" + theme)
        browser.click("#new")
        self.assertEqual(browser.run("return document.querySelectorAll('#log > *').length"), 0)
        browser.click("#configure")
        self.picture(browser, "phone-settings")

    def test_key(self):
        """The browser asks for the key as a password, which the page's own requests then carry."""
        with Server("--api-key", "secret") as server:
            self.assertEqual(server.request("GET", "/")[0], 401)
            self.assertIn("Basic", server.request("GET", "/")[1]["WWW-Authenticate"])
            with Browser() as browser:
                browser.open(f"http://me:secret@127.0.0.1:{server.port}/")  # as if it had been typed
                browser.open(server.url + "/")
                browser.wait("document.querySelector('#model option')")


if __name__ == "__main__":
    unittest.main(verbosity=2)
