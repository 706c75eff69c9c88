# SPDX-License-Identifier: Apache-2.0
"""The page in Chromium: answers, replay, stop, tokens, and that nothing a model writes does anything."""

import json
import unittest

from browser import Browser
from page import ENTER, ESCAPE, LAST, ROW, TEXT, Page
from support import QWEN, Server, alone_in_parts

HOSTILE = "\n".join((
    "<script>window.harm = 1</script> <img src=x onerror='window.harm = 2'>",
    "![picture](https://evil.example/leak?x) [link](javascript:window.harm=3) <a href='javascript:window.harm=4'>x</a>",
    "<https://evil.example> https://evil.example/page",
    "**bold `code` *both* **end** <style>body{display:none}</style>",
    "```html", "<script>window.harm = 5</script></code></pre><img src=x onerror='window.harm=6'>", "```",
    "| a | <b>b</b> |", "|---|---|", "| <svg onload='window.harm=7'> | 2 |",
    "> <iframe srcdoc='<script>parent.harm=8</script>'></iframe>", "1. one", "2. <details open ontoggle=alert(1)>",
    "# <u>title</u>", "```", "never closed <script>window.harm = 9</script>"))


class Chat(Page):
    def test_conversation(self):
        browser = self.open()
        self.set(browser, "seed", "7")
        self.ask(browser, "Who is the baker?")
        thought, answer = alone_in_parts("Who is the baker?", 7, QWEN)
        self.assertEqual(browser.run(f"return {TEXT}"), answer)
        self.assertEqual(browser.run(f"return {LAST}.querySelector('.thought').textContent"), thought)
        self.assertFalse(browser.run(f"return {LAST}.querySelector('details').open"))
        self.assertIn("seed 7", browser.run(f"return {ROW}.textContent"))
        self.assertIn("tokens/s", browser.run(f"return {ROW}.textContent"))
        self.set(browser, "seed", "")
        self.ask(browser, "Who has a goat?")
        self.assertRegex(browser.run(f"return {ROW}.textContent"), r"\d+ of \d+ prompt tokens")
        self.picture(browser, "conversation")
        before = browser.run("return document.getElementById('log').textContent")
        self.reload(browser)
        self.assertEqual(browser.run("return document.getElementById('log').textContent"), before)
        self.assertEqual(browser.log(), [])

    def test_replay(self):
        """Whatever the settings are by now, the answer is the same again."""
        browser = self.open()
        self.set(browser, "temperature", "1.5")
        self.set(browser, "thinking", "false")
        self.ask(browser, "Tell me a story about a dog.")
        text = browser.run(f"return {TEXT}")
        self.set(browser, "temperature", "0.1")
        self.press_action(browser, "Replay")
        row = browser.wait(f"{LAST}.textContent.includes('replayed') && {ROW}.textContent")
        self.assertIn("replayed: the same text", row)
        self.assertEqual(browser.run(f"return {TEXT}"), text)

    def test_stop(self):
        browser = self.open()
        self.set(browser, "temperature", "0")
        self.set(browser, "max_tokens", "2000")
        self.set(browser, "thinking", "false")
        self.ask_held(browser, "Tell me a story about a dog.")
        browser.press(ESCAPE)
        self.answered(browser)
        self.assertIn("ended: stopped", browser.run(f"return {ROW}.textContent"))
        text = browser.run(f"return {TEXT}")
        browser.run("window.fetch = window.unheld")
        self.press_action(browser, "Replay")  # its seed is known though it has no end
        browser.wait(f"{LAST}.textContent.includes('replayed: the same text, and the rest')")
        self.assertTrue(browser.run(f"return {TEXT}").startswith(text.rstrip()))

    def test_tokens(self):
        browser = self.open()
        browser.click("#tokens")
        self.ask(browser, "Who is the baker?")
        self.assertGreater(browser.run("return document.querySelectorAll('.tokens span').length"), 5)
        browser.hover(".tokens span:nth-child(2)")
        self.assertIn(browser.run("return document.querySelectorAll('#alternatives div').length"), (5, 6))
        self.assertIn("%", browser.run("return document.querySelector('#alternatives').textContent"))
        self.picture(browser, "tokens")

    def test_hostile_text(self):
        """Markup that a model writes stays text, its links are plain ones, and nothing becomes a request."""
        browser = self.open()
        browser.run_async("""import("/page/transfer.js").then((transfer) => transfer.importText("hostile", JSON.stringify({
          format: "gumbel-conversations", version: 1, conversations: [{ title: arguments[0], system: arguments[0], messages: [
            { id: "a", parent: null, created: 1, role: "user", content: arguments[0],
              files: [{ name: arguments[0], text: arguments[0] }] },
            { id: "b", parent: "a", created: 2, role: "assistant", content: "", finish: "tool_calls",
              calls: [{ id: "c", name: arguments[0], arguments: arguments[0] }] },
            { id: "c", parent: "b", created: 3, role: "tool", name: arguments[0], content: arguments[0], call: "c" },
            { id: "d", parent: "c", created: 4, role: "assistant", content: arguments[0], reasoning: arguments[0],
              seed: arguments[0], error: arguments[0], finish: arguments[0], model: arguments[0], note: arguments[0],
              warning: arguments[0] }] }] }))).then(() => done(1))""", HOSTILE)
        browser.wait("document.querySelectorAll('#log > *').length == 4")
        browser.run("document.querySelectorAll('#log details').forEach((one) => { one.open = true; })")
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
        self.assertIn("<img src=x", browser.run("return document.querySelector('#log').textContent"))
        self.picture(browser, "hostile")
        self.reload(browser)
        self.assertIsNone(browser.run("return window.harm"))
        self.assertEqual(browser.log(), [])

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
            self.assertEqual(browser.run("return getComputedStyle(document.documentElement).colorScheme"), theme)
            self.picture(browser, "phone-" + theme)
        browser.click("#new")
        browser.wait("document.querySelector('#log .welcome')")
        self.picture(browser, "phone-empty")
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
                self.ready(browser)
                self.ask(browser, "Who is the baker?")


if __name__ == "__main__":
    unittest.main(verbosity=2)
