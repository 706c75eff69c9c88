# SPDX-License-Identifier: Apache-2.0
"""What the tests of the page share. GUMBEL_SCREENSHOTS names a folder for pictures to look at."""

import json
import os
import re
import shutil
import unittest

from browser import Browser
from support import QWEN, Server

ENTER, ESCAPE = "\ue007", "\ue00c"
LAST = "document.querySelector('#log > :last-child')"
TEXT = f"{LAST}.querySelector('.text').textContent"
# Lets the first events of each answer through and holds the rest until window.release is called.
HOLD = """
const old = window.unheld = window.fetch;
window.fetch = async (path, options) => {
  const response = await old(path, options);
  if (!path.endsWith("/chat/completions")) return response;
  let count = 0;
  const released = new Promise((resolve, reject) => {
    window.release = resolve;
    options.signal.onabort = () => reject(options.signal.reason);
  });
  released.catch(() => {});
  const hold = new TransformStream({ async transform(part, out) {
    for (const event of new TextDecoder().decode(part).split(/(?<=\\n\\n)/)) {
      if (++count > 12) await released;
      out.enqueue(new TextEncoder().encode(event));
    }
  } });
  return new Response(response.body.pipeThrough(hold), response);
};
"""
READ_STORE = """
const open = indexedDB.open("gumbel");
open.onsuccess = () => {
  const all = open.result.transaction(arguments[0]).objectStore(arguments[0]).getAll();
  all.onsuccess = () => { open.result.close(); done(all.result); };
};
"""
ROW = f"{LAST}.querySelector(':scope > .row')"


def letters(text):
    """Without what Markdown and JSON put between them."""
    return re.sub(r"[\W_]", "", re.sub(r"\\n", "", text))


@unittest.skipUnless(shutil.which("chromedriver"), "there is no chromedriver")
class Page(unittest.TestCase):
    OPTIONS = ()
    PROGRAM = QWEN

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.OPTIONS, program=cls.PROGRAM)
        cls.addClassCleanup(cls.server.__exit__)
        cls.browser = Browser()  # one for all tests: to start it takes as long as most of them
        cls.addClassCleanup(cls.browser.__exit__)

    def picture(self, browser, name):
        folder = os.environ.get("GUMBEL_SCREENSHOTS")
        if folder:
            browser.picture(os.path.join(folder, name + ".png"))

    def open(self, server=None, quota=None, **size):
        """The page as a browser has it that was never there."""
        browser, url = self.browser, (server or self.server).url
        browser.begin_anew(url, **size)
        if quota:
            browser.cdp("Storage.overrideQuotaForOrigin", origin=url, quotaSize=quota)
        browser.open(url + "/")
        self.ready(browser)
        return browser

    def ready(self, browser):
        browser.wait("document.body.dataset.ready", 60)

    def reload(self, browser):
        browser.reload()
        self.ready(browser)

    def ask(self, browser, text):
        browser.type("#text", text + ENTER)
        self.answered(browser)

    def ask_held(self, browser, text):
        """An answer that stays half written."""
        browser.run(HOLD)
        browser.type("#text", text + ENTER)
        browser.wait(f"{LAST}.className == 'assistant' && "
                     f"[...{LAST}.querySelectorAll('.text, .thought')].some((one) => one.textContent.length > 10)")

    def answered(self, browser):
        browser.wait(f"{LAST}.className == 'assistant' && {LAST}.querySelector(':scope > .row > button')", 60)

    def set(self, browser, name, value):
        browser.run("const field = document.getElementById(arguments[0]); field.value = arguments[1]; "
                    "field.onchange()", name, value)

    def press_action(self, browser, name, index=-1):
        """A button of a message: the last one's, or that of another number."""
        browser.run("const node = [...document.querySelectorAll('#log > *')].at(arguments[1]); "
                    "[...node.querySelectorAll('button')].find((one) => one.textContent == arguments[0]).click()",
                    name, index)

    def turns(self, browser):
        return browser.run("return [...document.querySelectorAll('#log .user .body, #log .assistant .text')]"
                           ".map((one) => one.textContent)")

    def stored(self, browser, store):
        """What is on the disk."""
        return browser.run_async(READ_STORE, store)

    def kept(self, browser, store, text):
        """Waits until the letters of the text are on the disk."""
        for _ in range(200):
            if letters(text) in letters(json.dumps(self.stored(browser, store), ensure_ascii=False)):
                return
        self.fail(f"{text} is not kept")

    def delete(self, browser, title):
        browser.run("document.querySelector(`#conversations button[aria-label=${CSS.escape(arguments[0])}]`).click()",
                    "Delete " + title)

    def titles(self, browser):
        return browser.run("return [...document.querySelectorAll('#conversations div button:first-child')]"
                           ".map((one) => one.textContent)")

    def notices(self, browser):
        return browser.run("return document.getElementById('notices').textContent")
