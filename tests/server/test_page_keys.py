# SPDX-License-Identifier: Apache-2.0
"""The page by keys, pasted and dropped things, and what a reader who does not see it hears."""

import unittest

from page import ENTER, ESCAPE, LAST, Page

FIRST = "Who is the baker?"
RIGHT, LEFT = "\ue014", "\ue012"
FOCUSED = "document.activeElement"


class Keys(Page):
    def test_escape(self):
        """Stops an answer, but closes the drawer first, and in the search box only empties that."""
        browser = self.open(width=500, height=800)
        self.ask_held(browser, FIRST)
        browser.click("#menu")
        browser.type("#search", ESCAPE)
        self.assertFalse(browser.run("return document.getElementById('halt').hidden"))
        browser.run("document.getElementById('new').focus()")
        browser.press(ESCAPE)
        self.assertEqual(browser.run("return document.getElementById('menu').ariaExpanded"), "false")
        self.assertFalse(browser.run("return document.getElementById('halt').hidden"))
        self.assertEqual(browser.run("return document.getElementById('log').ariaBusy"), "true")
        browser.press(ESCAPE)
        self.answered(browser)
        self.assertEqual(browser.run("return document.getElementById('log').ariaBusy"), "false")

    def test_branches(self):
        """A reader who turns to a branch can turn on."""
        browser = self.open()
        self.ask(browser, FIRST)
        for count in (2, 3):
            self.press_action(browser, "Regenerate")
            browser.wait(f"{LAST}.textContent.includes('{count}/{count}')")
            self.answered(browser)
        browser.run(f"{LAST}.querySelector('.branches button').focus()")
        for expected in ("2/3", "1/3", "2/3", "3/3"):  # at the end the other one has the focus
            browser.press(ENTER)
            browser.run("document.getElementById('tokens').onchange()")  # draws anew what has changed
            self.assertIn(expected, browser.run(f"return {LAST}.querySelector('.branches').textContent"))

    def test_tokens(self):
        browser = self.open()
        browser.click("#tokens")
        self.ask(browser, FIRST)
        self.assertEqual(browser.run("return [...document.querySelectorAll('.tokens, .tokens *')]"
                                     ".filter((one) => one.tabIndex == 0).length"), 1)
        browser.run("document.querySelector('.tokens').focus()")
        for key, index in ((RIGHT, 0), (RIGHT, 1), (LEFT, 0), (LEFT, 0)):
            browser.press(key)
            self.assertEqual(browser.run(f"return [...{FOCUSED}.parentElement.children].indexOf({FOCUSED})"), index)
            self.assertEqual(browser.run("return document.querySelectorAll('#alternatives .drawn').length"), 1)

    def test_parts_of_letters(self):
        """They all read alike; one is the drawn one."""
        browser = self.open()
        browser.run_async("""const node = document.createElement("div"); document.body.append(node);
          import("/page/tokens.js").then(({ showTokens }) => {
            showTokens(node, { content: "", tokens: [["\\ufffd", -2, [["\\ufffd", -1], ["\\ufffd", -2], ["a", -3]]]] });
            node.querySelector('span').onmouseenter();
            done(1);
          })""")
        self.assertEqual(browser.run("return [...document.querySelectorAll('#alternatives div')].map((one) => one.className)"),
                         ["", "drawn", ""])

    def test_pasted(self):
        """Text that comes with its picture, as office programs give it, is text; a file alone is attached."""
        browser = self.open()
        paste = """const data = new DataTransfer();
          data.items.add(new File(["goats"], "list.txt"));
          if (arguments[0]) data.setData("text/plain", "goats");
          return !document.getElementById("text").dispatchEvent(
            new ClipboardEvent("paste", { clipboardData: data, cancelable: true }))"""
        self.assertFalse(browser.run(paste, True))
        self.assertTrue(browser.run(paste, False))
        browser.wait("document.getElementById('files').textContent == 'list.txt×'")
        self.assertEqual(self.notices(browser), "")
        browser.wait("!document.getElementById('gauge').hidden")

    def test_name(self):
        """Enter that ends the composition of a letter does not end the name."""
        browser = self.open()
        self.ask(browser, FIRST)
        browser.click("#conversations button[title=Rename]")
        browser.run("document.querySelector('#conversations input').dispatchEvent("
                    "new KeyboardEvent('keydown', { key: 'Enter', isComposing: true }))")
        browser.type("#conversations input", "Bakers" + ENTER)
        self.assertEqual(self.titles(browser), ["Bakers"])

    def test_new_ends_a_search(self):
        browser = self.open()
        self.ask(browser, FIRST)
        browser.type("#search", "baker")
        browser.wait("document.querySelectorAll('#conversations div').length == 1")
        browser.click("#new")
        browser.wait("document.querySelectorAll('#conversations div').length == 2")
        self.assertEqual(browser.run("return document.getElementById('search').value"), "")

    def test_sent_while_scrolled_up(self):
        browser = self.open(height=400)
        for _ in range(3):
            self.ask(browser, FIRST)
        browser.run("document.getElementById('log').scrollTop = 0")
        self.ask(browser, FIRST)
        self.assertLess(browser.run("const log = document.getElementById('log'); "
                                    "return log.scrollHeight - log.scrollTop - log.clientHeight"), 80)


if __name__ == "__main__":
    unittest.main(verbosity=2)
