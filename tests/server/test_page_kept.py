# SPDX-License-Identifier: Apache-2.0
"""The page loses nothing: branches, what was deleted, what was not sent, two tabs, a full disk."""

import json
import unittest

from page import ENTER, ESCAPE, LAST, ROW, Page, letters

OTHER = "Who has a goat?"
FIRST = "Who is the baker?"


class Kept(Page):
    def branch(self, browser, index=-1):
        return browser.run("const node = [...document.querySelectorAll('#log > *')].at(arguments[0]); "
                           "return node.querySelector('.branches')?.textContent", index)

    def test_edit_is_a_branch(self):
        browser = self.open()
        self.ask(browser, FIRST)
        self.ask(browser, OTHER)
        before = self.turns(browser)
        self.press_action(browser, "Edit", 0)
        browser.type(".edit", " And the miller?" + ENTER)
        browser.wait("document.querySelectorAll('#log > *').length == 2")
        self.answered(browser)
        self.assertEqual(self.turns(browser)[0], FIRST + " And the miller?")
        self.assertEqual(self.branch(browser, 0), "‹ 2/2 ›")
        self.picture(browser, "branches")
        self.press_action(browser, "‹", 0)
        self.assertEqual(self.turns(browser), before)
        self.reload(browser)
        self.assertEqual(self.turns(browser), before)
        self.press_action(browser, "›", 0)
        self.assertEqual(self.turns(browser)[0], FIRST + " And the miller?")

    def test_regenerate_and_replay_keep_later_turns(self):
        browser = self.open()
        self.set(browser, "temperature", "1.5")
        self.ask(browser, FIRST)
        self.ask(browser, OTHER)
        before = self.turns(browser)
        self.press_action(browser, "Regenerate", 1)
        browser.wait("document.querySelectorAll('#log > *').length == 2")
        self.answered(browser)
        self.press_action(browser, "Replay", 1)
        browser.wait(f"{LAST}.textContent.includes('replayed')")
        self.assertEqual(self.branch(browser, 1), "‹ 3/3 ›")
        self.press_action(browser, "‹", 1)
        self.press_action(browser, "‹", 1)
        self.assertEqual(self.turns(browser), before)

    def test_cancelled_edit(self):
        browser = self.open()
        self.ask(browser, FIRST)
        before = self.turns(browser)
        self.press_action(browser, "Edit", 0)
        browser.type(".edit", " no" + ESCAPE)
        self.assertEqual(self.turns(browser), before)
        self.press_action(browser, "Edit", 0)
        self.assertEqual(browser.run("return document.querySelector('.edit').value"), FIRST)

    def test_undo(self):
        browser = self.open()
        self.ask(browser, FIRST)
        before = self.turns(browser)
        browser.click("#conversations .open button:last-child")
        browser.wait("!document.querySelector('#log .user')")
        self.assertEqual(self.titles(browser), ["New conversation"])
        self.picture(browser, "deleted")
        browser.click("#notices [data-kind=deleted] button")
        browser.wait("document.querySelector('#log .user')")
        self.assertEqual(self.turns(browser), before)
        self.reload(browser)
        self.assertEqual(self.turns(browser), before)

    def test_deleted_for_good(self):
        """Once the notice is closed, or another conversation deleted, the first one is gone from the disk."""
        browser = self.open()
        self.ask(browser, FIRST)
        self.assertEqual(len(self.stored(browser, "messages")), 2)
        browser.click("#conversations .open button:last-child")
        browser.wait("!document.querySelector('#log .user')")
        self.assertEqual(len(self.stored(browser, "messages")), 2)
        browser.click("#notices [data-kind=deleted] button[aria-label=Close]")
        for _ in range(100):
            if len(self.stored(browser, "messages")) == 0:
                break
        self.assertEqual(len(self.stored(browser, "messages")), 0)
        self.assertNotIn(FIRST, self.titles(browser))

    def test_what_is_not_sent(self):
        """Text in the box is kept with its conversation: over a reload, and while another one is read."""
        browser = self.open()
        self.ask(browser, FIRST)
        browser.type("#text", "half a quest")
        self.kept(browser, "conversations", "half a quest")
        self.reload(browser)
        self.assertEqual(browser.run("return document.getElementById('text').value"), "half a quest")
        browser.click("#new")
        browser.wait("!document.querySelector('#log .user')")
        self.assertEqual(browser.run("return document.getElementById('text').value"), "")
        browser.click("#conversations div:last-child button:first-child")
        browser.wait("document.querySelector('#log .user')")
        self.assertEqual(browser.run("return document.getElementById('text').value"), "half a quest")

    def test_reload_in_an_answer(self):
        browser = self.open()
        self.set(browser, "thinking", "false")
        self.ask_held(browser, "Tell me a story about a dog.")
        question, answer = self.turns(browser)
        self.kept(browser, "messages", answer)
        self.reload(browser)
        self.assertEqual(self.turns(browser)[0], question)
        self.assertIn(letters(answer), letters(self.turns(browser)[1]))  # more of it may have come since
        browser.wait(f"{ROW}.textContent.includes('the page was closed')")
        self.press_action(browser, "Replay")
        browser.wait(f"{LAST}.textContent.includes('replayed: the same text, and the rest')")

    def test_reload_before_an_answer(self):
        """A request that is ended by a reload is no fault of the server's."""
        browser = self.open()
        for count in (1, 2, 3):
            browser.type("#text", FIRST + ENTER)
            self.reload(browser)
            self.assertEqual(len(self.turns(browser)), 2 * count)
            self.assertEqual(browser.run(f"return {LAST}.querySelector('.error').textContent"), "")

    def test_as_the_page_closes(self):
        """What is typed is written at once; a request that the browser ends is no error."""
        browser = self.open()
        browser.type("#text", "half a quest")
        browser.run("dispatchEvent(new Event('pagehide'))")
        self.assertIn("half a quest", str(self.stored(browser, "conversations")))
        self.ask_held(browser, "ion?")
        browser.run("dispatchEvent(new Event('pagehide'))")
        browser.click("#halt")
        browser.wait(f"{ROW}.textContent.includes('the page was closed')")

    def test_full_storage(self):
        browser = self.open(quota=1)
        self.ask(browser, FIRST)
        browser.wait("document.getElementById('notices').textContent.includes('storage is full')")
        self.picture(browser, "full-storage")
        self.assertIn(FIRST, self.exported(browser))  # as the notice asks for
        self.assertEqual(self.stored(browser, "messages"), [])
        browser.cdp("Storage.overrideQuotaForOrigin", origin=self.server.url)
        self.ask(browser, OTHER)
        browser.wait("!document.getElementById('notices').textContent")
        self.reload(browser)  # what could not be written was written with the next message
        self.assertEqual(len(self.turns(browser)), 4)

    def test_full_storage_gets_room(self):
        """Deleting is written though nothing else can be."""
        browser = self.open(quota=50000)
        self.ask(browser, FIRST)
        browser.click("#new")
        browser.run("const box = document.getElementById('text'); box.value = 'goat '.repeat(12000); box.oninput()")
        browser.wait("document.getElementById('notices').textContent.includes('storage is full')")
        self.delete(browser, FIRST)
        browser.click("#notices [data-kind=deleted] button[aria-label=Close]")
        for _ in range(100):
            if not self.stored(browser, "messages"):
                break
        self.assertEqual(self.stored(browser, "messages"), [])

    def test_no_storage(self):
        """As where a browser blocks the data of sites."""
        browser = self.open()
        for name in ("indexedDB", "sessionStorage"):
            browser.cdp("Page.addScriptToEvaluateOnNewDocument",
                        source="Object.defineProperty(window, '%s', { get() { throw new Error('not here'); } })" % name)
        self.reload(browser)
        self.assertIn("does not keep conversations (not here)", self.notices(browser))
        self.ask(browser, FIRST)
        self.assertEqual(len(self.turns(browser)), 2)
        self.assertEqual([len(one["messages"]) for one in json.loads(self.exported(browser))["conversations"]], [2])

    def test_storage_that_does_not_open(self):
        browser = self.open()
        browser.cdp("Page.addScriptToEvaluateOnNewDocument", source="IDBFactory.prototype.open = () => ({})")
        self.reload(browser)
        self.assertIn("its database does not open; load the page again", self.notices(browser))
        self.ask(browser, FIRST)
        self.assertEqual(len(self.turns(browser)), 2)

    def test_only_what_is_needed(self):
        """Twelve turns take little more than their text."""
        browser = self.open()
        self.set(browser, "max_tokens", "20")
        text = "A line of some forty characters to read. " * 10
        for turn in range(12):
            browser.run("const box = document.getElementById('text'); box.value = arguments[0]; box.oninput()", text)
            browser.type("#text", ENTER)
            browser.wait(f"document.querySelectorAll('#log > *').length == {2 * turn + 2}")
            self.answered(browser)
        written = json.dumps([self.stored(browser, "conversations"), self.stored(browser, "messages")])
        said = sum(len(turn) for turn in self.turns(browser))
        self.assertLess(len(written), said + 24 * 400)
        browser.run("const old = IDBObjectStore.prototype.put; window.puts = 0; "
                    "IDBObjectStore.prototype.put = function (...words) { puts++; return old.apply(this, words); }")
        browser.run_async("import('/page/store.js').then((store) => store.write(['settings', 'x', {}])).then(() => done(1))")
        self.assertEqual(browser.run("return window.puts"), 1)  # what was written before is not written again

    def test_rename_and_search(self):
        browser = self.open()
        self.ask(browser, FIRST)
        browser.click("#new")
        browser.wait("!document.querySelector('#log .user')")
        self.ask(browser, OTHER)
        browser.click("#conversations .open button:nth-child(2)")
        browser.type("#conversations input", "Goats" + ENTER)
        browser.wait("document.querySelector('#conversations .open button')")
        self.assertEqual(self.titles(browser), ["Goats", FIRST])
        for text, found in (("goat", ["Goats"]), ("BAKER", [FIRST]), ("no such thing", []), ("", ["Goats", FIRST])):
            browser.run("const box = document.getElementById('search'); box.value = arguments[0]; box.oninput()", text)
            browser.wait("JSON.stringify([...document.querySelectorAll('#conversations div button:first-child')]"
                         ".map((one) => one.textContent)) == " + repr(json.dumps(found, separators=(",", ":"))))
        self.reload(browser)
        self.assertEqual(self.titles(browser), ["Goats", FIRST])

    def exported(self, browser):
        browser.run("URL.createObjectURL = (blob) => { window.exported = blob; return '#'; }; "
                    "HTMLAnchorElement.prototype.click = () => {}")
        browser.click("#export")
        browser.wait("window.exported")
        return browser.run_async("window.exported.text().then(done)")

    def import_text(self, browser, text):
        browser.run_async("import('/page/transfer.js').then((transfer) => "
                          "transfer.importText('a.json', arguments[0])).then(() => done(1))", text)

    def test_export_and_import(self):
        browser = self.open()
        self.ask(browser, FIRST)
        self.press_action(browser, "Regenerate")
        browser.wait(f"{LAST}.querySelector('.branches')")
        self.answered(browser)
        before, text = self.turns(browser), self.exported(browser)
        browser.click("#conversations .open button:last-child")
        browser.wait("!document.querySelector('#log .user')")
        self.import_text(browser, text)
        self.assertEqual(self.turns(browser), before)
        self.assertEqual(self.branch(browser), "‹ 2/2 ›")
        self.assertIn("1 conversation is imported", self.notices(browser))
        self.import_text(browser, text)  # twice is two copies
        self.assertEqual(self.titles(browser).count(FIRST), 2)
        self.press_action(browser, "Replay")
        browser.wait(f"{LAST}.textContent.includes('replayed: the same text')")

    def test_broken_imports(self):
        browser = self.open()
        message = {"id": "a", "role": "user", "content": "x", "created": 1, "parent": None}
        for bad in ("", "{", "[]", '{"format": "gumbel-conversations", "version": 1}',
                    *(json.dumps({"format": "gumbel-conversations", "version": 1, "conversations": [one]}) for one in (
                        None, 1, {}, {"messages": [None]}, {"messages": [{**message, "role": "harm"}]},
                        {"messages": [{**message, "content": {}}]}, {"messages": [{**message, "parent": "a"}]},
                        {"messages": [{**message, "calls": [1]}]}, {"messages": [{**message, "calls": [None]}]},
                        {"messages": [{**message, "files": [None]}]}, {"messages": [{**message, "timings": {"tokens": "x"}}]},
                        {"messages": [{**message, "asked": {"form": {"kind": "x", "text": ""}}}]},
                        {"messages": [{**message, "asked": {"stop": {}}}]}, {"messages": [{**message, "tokens": [["x", 0, [1]]]}]},
                        {"messages": [{**message, "parent": "b"}, {**message, "id": "b", "parent": "a"}]}, {"title": [], "messages": [message]}))):
            self.import_text(browser, bad)
            self.assertIn("a.json has no conversations that this page exported", self.notices(browser), bad)
        self.assertEqual(self.titles(browser), ["New conversation"])
        self.assertEqual(browser.log(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
