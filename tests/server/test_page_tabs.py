# SPDX-License-Identifier: Apache-2.0
"""The page in several tabs: each shows what the others write, and none undoes it."""

import unittest

from page import ENTER, LAST, ROW, Page

OTHER = "Who has a goat?"
FIRST = "Who is the baker?"
# Keeps the transactions that read a store open, as a busy disk does, until window.releaseReads is called: writes wait for
# them.
HOLD_READS = """
const get = IDBObjectStore.prototype.get, name = arguments[0];
let isReleased = false;
window.isReadHeld = false;
window.releaseReads = () => { isReleased = true; IDBObjectStore.prototype.get = get; };
IDBObjectStore.prototype.get = function (key) {
  const store = this, held = {};
  if (store.name != name) return get.call(store, key);
  const ask = () => { const request = get.call(store, key); request.onsuccess = () => {
    window.isReadHeld = true;
    if (!isReleased) return ask();
    held.result = request.result;
    held.onsuccess();
  }; };
  ask();
  return held;
};
"""
# Keeps what the next conversation that is opened reads until window.letGo is called.
HOLD_MESSAGES = """
const getAll = IDBIndex.prototype.getAll;
IDBIndex.prototype.getAll = function (key) {
  IDBIndex.prototype.getAll = getAll;
  const held = {}, request = getAll.call(this, key);
  request.onsuccess = () => { window.letGo = () => { held.result = request.result; held.onsuccess(); }; };
  return held;
};
"""


class Tabs(Page):
    def second(self, browser):
        """A second tab, which is shown from now on; gives both."""
        first = browser.window()
        browser.new_window()
        browser.open(self.server.url + "/")
        self.ready(browser)
        return first, browser.window()

    def test_tabs_agree(self):
        browser = self.open()
        self.ask(browser, FIRST)
        first, _ = self.second(browser)
        browser.wait("document.querySelectorAll('#log > *').length == 2")
        self.ask(browser, OTHER)
        self.set(browser, "top_k", "3")
        browser.run("document.getElementById('settings').hidden = false")
        browser.type("#system", "Be brief.")
        browser.to_window(first)
        browser.wait("document.getElementById('system').value == 'Be brief.'")
        browser.wait("document.querySelectorAll('#log > *').length == 4")
        browser.wait("document.getElementById('top_k').value == '3'")
        self.ask(browser, FIRST)
        self.assertEqual(len(self.turns(browser)), 6)
        self.reload(browser)
        self.assertEqual(len(self.turns(browser)), 6)

    def test_slow_reads_undo_nothing(self):
        """What this tab does while it still reads what another one wrote before stays as it is."""
        browser = self.open()
        self.ask(browser, FIRST)
        first, second = self.second(browser)
        browser.to_window(first)
        browser.run(HOLD_READS, "conversations")
        browser.to_window(second)
        browser.type("#text", OTHER)
        browser.to_window(first)
        browser.wait("window.isReadHeld")
        browser.type("#text", FIRST + ENTER)
        browser.run("window.releaseReads()")
        self.answered(browser)
        self.assertEqual(self.turns(browser)[2:3], [FIRST])
        browser.run(HOLD_READS, "settings")
        browser.to_window(second)
        self.set(browser, "top_k", "3")
        browser.to_window(first)
        browser.wait("window.isReadHeld")
        self.set(browser, "top_k", "5")
        browser.run("window.releaseReads()")
        self.assertEqual(len(self.stored(browser, "settings")), 1)  # which is read behind what was written
        self.assertEqual(browser.run("return document.getElementById('top_k').value"), "5")
        self.reload(browser)
        self.assertEqual(self.turns(browser)[2:3], [FIRST])

    def test_tab_reads_while_another_writes(self):
        """The other tab shows the answer as it grows, says where it is written, and writes nothing over it."""
        browser = self.open()
        self.ask_held(browser, FIRST)
        first, second = self.second(browser)
        browser.wait(f"{ROW}.textContent.includes('being written in another tab')")
        browser.run(f"window.node = {LAST}; window.node.querySelector('details').open = true")
        browser.to_window(first)
        browser.run("window.release()")
        self.answered(browser)
        text = self.turns(browser)
        browser.to_window(second)
        browser.wait(f"{ROW}.textContent.includes('tokens/s')")
        self.assertNotIn("another tab", browser.run(f"return {ROW}.textContent"))
        self.assertEqual(self.turns(browser), text)
        self.assertTrue(browser.run(f"return window.node == {LAST}"))  # with what is open or selected in it

    def test_waiting_is_no_end(self):
        """Before its first token an answer says now and then that it is awaited."""
        browser = self.open()
        browser.run("const old = window.setInterval; window.setInterval = (action) => { window.tick = action; return old(action, 1e6); }")
        self.ask_held(browser, FIRST)
        self.kept(browser, "messages", '"partial": true')
        before = self.stored(browser, "messages")[1]["at"]
        browser.run("window.tick()")
        for _ in range(200):
            if self.stored(browser, "messages")[1]["at"] > before:
                return
        self.fail("nothing was written")

    def test_deleted_while_another_writes(self):
        """The answer is stopped, and nothing of it comes back to the disk."""
        browser = self.open()
        self.ask_held(browser, FIRST)
        first, second = self.second(browser)
        self.delete(browser, FIRST)
        browser.to_window(first)
        browser.wait("document.getElementById('halt').hidden")
        browser.to_window(second)
        browser.click("#notices [data-kind=deleted] button")
        browser.wait(f"{ROW}?.textContent.includes('ended: stopped')")
        self.delete(browser, FIRST)
        browser.click("#notices [data-kind=deleted] button[aria-label=Close]")
        for _ in range(100):
            if not self.stored(browser, "messages"):
                break
        browser.to_window(first)
        browser.wait("!document.querySelector('#conversations').textContent.includes('baker')")
        self.assertEqual(self.stored(browser, "messages"), [])

    def test_news_while_reading(self):
        """What another tab writes while this one reads the conversation is shown, too."""
        browser = self.open()
        self.ask_held(browser, FIRST)
        first, second = self.second(browser)
        browser.click("#new")
        self.ask(browser, OTHER)
        self.reload(browser)
        browser.run(HOLD_MESSAGES)
        browser.click("#conversations div:last-child button:first-child")
        browser.wait("!!window.letGo")
        browser.to_window(first)
        browser.run("window.release()")
        self.answered(browser)
        text = self.turns(browser)
        browser.to_window(second)
        browser.run("window.letGo()")
        browser.wait(f"{ROW}.textContent.includes('tokens/s') && !{ROW}.textContent.includes('another tab')")
        self.wait_for_turns(browser, text)

    def wait_for_turns(self, browser, text):
        for _ in range(200):
            if self.turns(browser) == text:
                return
        self.assertEqual(self.turns(browser), text)

    def test_last_click_wins(self):
        """A conversation that takes long to read does not take the place of one opened behind it."""
        browser = self.open()
        self.ask(browser, FIRST)
        browser.click("#new")
        self.ask(browser, OTHER)
        self.reload(browser)
        browser.run(HOLD_MESSAGES)
        browser.click("#conversations div:last-child button:first-child")
        browser.wait("!!window.letGo")
        browser.click("#new")
        browser.wait("document.querySelector('#log .welcome')")
        browser.run("window.letGo()")
        self.stored(browser, "messages")  # a while
        self.assertEqual(self.turns(browser), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
