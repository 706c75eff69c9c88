# SPDX-License-Identifier: Apache-2.0
"""The page says in words what is going on, and what can be tried from it: forms of answers, tools, files."""

import json
import os
import tempfile
import unittest

from page import ENTER, LAST, ROW, TEXT, Page
from support import GEMMA, QWEN, Server
from test_models import megabytes

FIRST = "Who is the baker?"
WEATHER = [{"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]}}}]


class Words(Page):
    def problem(self, browser, name):
        return browser.run("return document.getElementById(arguments[0]).parentElement.querySelector('.problem')"
                           ".textContent", name)

    def test_settings_that_make_no_sense(self):
        browser = self.open()
        browser.click("#configure")
        for name, value, problem in (
                ("temperature", "hot", "not a number"), ("temperature", "0,7", "not a number: write 0.7"),
                ("temperature", "-1", "less than 0"), ("top_p", "1.5", "more than 1"), ("top_k", "2.5", "not a whole number"),
                ("max_tokens", "0", "less than 1"), ("seed", "18446744073709551616", "not a whole number from 0 to 2^64 - 1"),
                ("tools", "{", "not JSON: "), ("tools", "[{}]", "tool 1 has no name")):
            self.set(browser, name, value)
            self.assertIn(problem, self.problem(browser, name), value)
            browser.type("#text", FIRST + ENTER)
            browser.wait("document.getElementById('notices').textContent.includes(arguments[0])".replace(
                "arguments[0]", json.dumps(problem)))
            self.assertEqual(browser.run("return document.getElementById('text').value"), FIRST)
            self.assertEqual(self.turns(browser), [])
            browser.run("const box = document.getElementById('text'); box.value = ''; box.oninput()")
            self.picture(browser, "settings-problem")
            self.set(browser, name, "")
            self.assertEqual(self.problem(browser, name), "")
        self.set(browser, "form", "json_schema")
        self.assertEqual(self.problem(browser, "form_text"), "empty")
        self.set(browser, "form_text", "{")
        self.assertIn("not JSON", self.problem(browser, "form_text"))

    def test_which_model_answered(self):
        with Server(QWEN, program=GEMMA) as server:
            browser = self.open(server)
            browser.run("document.getElementById('model').selectedIndex = 1; document.getElementById('model').onchange()")
            chosen = browser.run("return document.getElementById('model').value")
            self.ask(browser, FIRST)
            self.reload(browser)
            self.assertEqual(browser.run("return document.getElementById('model').value"), chosen)
            browser.run("document.getElementById('model').selectedIndex = 0; document.getElementById('model').onchange()")
            self.assertIn(chosen, browser.run(f"return {ROW}.textContent"))
            before = browser.run(f"return {TEXT}")
            self.press_action(browser, "Replay")  # with the model that answered, whatever is chosen now
            browser.wait(f"{LAST}.textContent.includes('replayed: the same text')")
            self.assertEqual(browser.run(f"return {TEXT}"), before)

    def test_server_has_gone(self):
        with Server(program=QWEN) as server:
            browser = self.open(server)
            self.ask_held(browser, FIRST)
        browser.run("window.release()")
        self.answered(browser)
        browser.type("#text", FIRST + ENTER)
        error = browser.wait(f"{LAST}.querySelector('.error').textContent")
        self.assertIn("The server has gone: nothing answers at http://127.0.0.1", error)
        self.picture(browser, "error")
        self.assertEqual(len(self.turns(browser)), 4)

    def test_errors(self):
        browser = self.open()
        for reply, words in (
                ("new Response('no', { status: 502, statusText: 'Bad Gateway' })", "The server answered 502 Bad Gateway without"),
                ("new Response('{\"error\": {\"message\": \"no key\"}}', { status: 401 })", "no key Load the page again"),
                ("new Response('data: {\"error\": {\"message\": \"it broke\"}}\\n\\n')", "it broke"),
                ("new Response('data: {\"choices\": []}\\n\\n')", "The server ended the answer before it was whole."),
                ("Promise.reject(new TypeError('Failed to fetch'))", "The server has gone")):
            browser.run("window.real ??= window.fetch; window.fetch = async (path, options) => "
                        "path.endsWith('/chat/completions') ? %s : real(path, options)" % reply)
            browser.type("#text", FIRST + ENTER)
            browser.wait(f"{LAST}.querySelector('.error')?.textContent.includes({json.dumps(words)})")
            browser.wait(f"{LAST}.querySelector('.row > button')")
        browser.run("window.fetch = window.real")
        self.press_action(browser, "Regenerate")
        browser.wait(f"{LAST}.querySelector('.text').textContent.length > 10")

    def test_too_long(self):
        browser = self.open()
        browser.run("const box = document.getElementById('text'); box.value = 'goat '.repeat(3000); box.oninput()")
        browser.wait("document.getElementById('gauge').textContent.includes('too many, begin a new conversation')")
        browser.type("#text", ENTER)
        error = browser.wait(f"{LAST}.querySelector('.error').textContent", 60)
        self.assertRegex(error, "maximum context length is 2048 tokens.*Begin a new conversation")

    def test_no_models(self):
        browser = self.open()
        browser.cdp("Page.addScriptToEvaluateOnNewDocument", source="window.real = window.fetch; "
                    "window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))")
        self.reload(browser)
        self.assertIn("The server has gone", self.notices(browser))
        browser.run("window.fetch = window.real")
        browser.click("#notices button")
        browser.wait("document.querySelector('#model option')")
        self.assertEqual(self.notices(browser), "")

    def test_tokens(self):
        """The drawn one is marked; an answer without them says why, and its replay has them."""
        browser = self.open()
        self.set(browser, "temperature", "1.5")
        self.ask(browser, FIRST)
        browser.click("#tokens")
        self.assertFalse(browser.run(f"return {LAST}.querySelector('.hint').hidden"))
        self.picture(browser, "no-tokens")
        self.press_action(browser, "Replay")
        browser.wait(f"{LAST}.textContent.includes('replayed: the same text')")
        self.assertTrue(browser.run(f"return {LAST}.querySelector('.hint').hidden"))
        for index in range(1, browser.run("return document.querySelectorAll('.tokens span').length") + 1):
            token = browser.run("const one = document.querySelector(arguments[0]); one.onmouseenter(); "
                                "return one.textContent", f".tokens span:nth-child({index})")
            drawn = browser.run("return [...document.querySelectorAll('#alternatives .drawn')].map((one) => one.textContent)")
            self.assertEqual(len(drawn), 1)
            self.assertEqual(json.loads(drawn[0].split("%", 1)[1]), token)
            self.assertTrue(drawn[0].startswith("▸"))
        self.picture(browser, "alternatives")
        self.reload(browser)
        self.assertGreater(browser.run("return document.querySelectorAll('.tokens span').length"), 5)

    def test_writing_while_an_answer_is_written(self):
        """The box takes text, other conversations can be read and asked; the answer goes on."""
        browser = self.open()
        self.ask_held(browser, FIRST)
        browser.type("#text", "next question" + ENTER)
        self.assertIn("An answer is being written", self.notices(browser))
        self.assertEqual(browser.run("return document.getElementById('text').value"), "next question")
        self.kept(browser, "conversations", "next question")
        browser.click("#new")
        browser.wait("!document.querySelector('#log .user')")
        browser.run("window.first = window.release")
        browser.type("#text", "Who has a goat?" + ENTER)
        browser.wait(f"{LAST}.className == 'assistant' && {LAST}.querySelector('.thought').textContent.length > 5")
        browser.run("window.release()")
        self.answered(browser)
        browser.click("#conversations div:last-child button:first-child")
        browser.wait("document.querySelector('#log .user .body').textContent == %s" % json.dumps(FIRST))
        self.assertEqual(browser.run("return document.getElementById('text').value"), "next question")
        self.assertTrue(browser.run("return document.getElementById('send').hidden"))
        browser.run("window.first()")
        self.answered(browser)
        self.assertIn("tokens/s", browser.run(f"return {ROW}.textContent"))

    def test_drawer(self):
        browser = self.open(width=500, height=800)
        self.ask(browser, FIRST)
        browser.click("#menu")
        self.assertEqual(browser.run("return document.getElementById('menu').ariaExpanded"), "true")
        browser.click("#shade", at=(200, 0))
        self.assertEqual(browser.run("return getComputedStyle(document.querySelector('aside')).display"), "none")
        self.assertEqual(browser.run("return document.getElementById('menu').ariaExpanded"), "false")
        browser.click("#menu")
        browser.click("#conversations button")
        self.assertEqual(browser.run("return getComputedStyle(document.querySelector('aside')).display"), "none")

    def test_continue(self):
        """What was cut is gone on with beside it; both stay."""
        browser = self.open()
        self.set(browser, "thinking", "false")
        self.set(browser, "temperature", "0")
        self.ask(browser, "Tell me a story about a dog.")
        whole = browser.run(f"return {TEXT}")
        self.set(browser, "max_tokens", "8")
        self.press_action(browser, "Regenerate")
        browser.wait(f"{ROW}.textContent.includes('the limit of tokens')")
        cut = browser.run(f"return {TEXT}")
        self.set(browser, "max_tokens", "")
        self.press_action(browser, "Continue")
        browser.wait(f"{LAST}.textContent.includes('3/3')")
        self.answered(browser)
        self.assertLess(len(cut), len(whole))
        self.assertEqual(browser.run(f"return {TEXT}"), whole)
        self.press_action(browser, "Replay")
        browser.wait(f"{LAST}.textContent.includes('replayed: the same text')")
        self.assertEqual(browser.run(f"return {TEXT}"), whole)

    def test_gauge(self):
        browser = self.open()
        self.assertTrue(browser.run("return document.getElementById('gauge').hidden"))
        self.ask(browser, FIRST)
        words = browser.run("return document.querySelector('#gauge span').textContent")
        tokens = browser.run(f"return {ROW}.textContent")
        prompt, answer = (int(tokens.split(what)[0].split()[-1]) for what in (" prompt tokens", " tokens ·"))
        self.assertEqual(words, f"{prompt + answer} of 2048 tokens")
        browser.type("#text", "one two three")
        browser.wait("document.querySelector('#gauge span').textContent != %s" % json.dumps(words))

    def test_gauge_of_a_model_that_is_loaded_by_its_first_question(self):
        with Server(QWEN, "--alias", "other", "--models-memory", f"{megabytes(QWEN) + 0.5}MB", program=GEMMA) as server:
            browser = self.open(server)
            self.assertEqual([one["is_loaded"] for one in server.request("GET", "/v1/models")[2]["data"]].count(True), 1)
            for name in ("tiny", "other"):
                browser.run("const box = document.getElementById('model'); box.value = arguments[0]; box.onchange()", name)
                self.ask(browser, FIRST)
                browser.wait("!document.getElementById('gauge').hidden")

    def attach(self, browser, name, data):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(data)
            browser.run("document.getElementById('attach_file').hidden = false")
            browser.type("#attach_file", path)
            browser.wait("document.getElementById('attach_file').files.length == 0")

    def test_files(self):
        browser = self.open()
        browser.run("const old = window.fetch; window.fetch = (path, options) => "
                    "{ if (options?.body) window.body = options.body; return old(path, options); }")
        self.attach(browser, "list.md", b"# Goats\n```\none\n```\n")
        self.attach(browser, "second.txt", "größer".encode())
        self.assertEqual(browser.run("return document.getElementById('files').textContent"), "list.md×second.txt×")
        browser.click("#files .file:last-child button")
        self.reload(browser)
        self.assertEqual(browser.run("return document.getElementById('files').textContent"), "list.md×")
        browser.run("const old = window.fetch; window.fetch = (path, options) => { if (path.endsWith('completions')) "
                    "window.body = options.body; return old(path, options); }")
        self.ask(browser, "Which goats?")
        content = json.loads(browser.run("return window.body"))["messages"][-1]["content"]
        self.assertEqual(content, "list.md:\n````\n# Goats\n```\none\n```\n\n````\n\nWhich goats?")
        self.assertEqual(browser.run("return document.querySelector('.user summary').textContent"), "list.md")
        self.assertEqual(browser.run("return document.getElementById('files').textContent"), "")
        for name, data, words in (("picture.png", b"\x89PNG\xff\xfe", "picture.png is no text in UTF-8"),
                                  ("large.txt", b"x" * 3000000, "large.txt has 3 MB; 2 MB is the most")):
            self.attach(browser, name, data)
            self.assertIn(words, self.notices(browser))
            self.assertEqual(browser.run("return document.getElementById('files').textContent"), "")

    def test_forms_of_answers(self):
        browser = self.open()
        self.set(browser, "thinking", "false")
        browser.click("#configure")
        self.set(browser, "seed", "7")
        self.set(browser, "form", "json_schema")
        browser.click("#form_example")
        self.ask(browser, "A goat, please.")
        goat = json.loads(browser.run(f"return {LAST}.querySelector('.text code').textContent"))
        self.assertEqual(set(goat), {"name", "age"})
        self.picture(browser, "schema")
        for form, text, pattern in (("regex", "(yes|no)!", r"^(yes|no)!$"), ("choice", "left\nright", "^(left|right)$"),
                                    ("grammar", 'root ::= "so " [0-9]{2}', r"^so \d\d$")):
            self.set(browser, "form", form)
            self.set(browser, "form_text", text)
            self.ask(browser, "Say it.")
            self.assertRegex(browser.run(f"return {TEXT}").strip(), pattern)
        self.set(browser, "form_text", "root ::= (")
        browser.type("#text", "Say it." + ENTER)
        self.assertIn("grammar", browser.wait(f"{LAST}.querySelector('.error')?.textContent"))

    def test_tools(self):
        browser = self.open()
        self.set(browser, "thinking", "false")
        self.set(browser, "tools", json.dumps(WEATHER))
        self.set(browser, "tool_choice", "required")
        self.set(browser, "seed", "8")  # one call; others have up to 25, which leave no room for results
        self.ask(browser, "Is it warm in Rome?")
        self.assertEqual(browser.run(f"return {LAST}.querySelector('.call strong').textContent"), "get_weather")
        self.assertIn(json.loads(browser.run(f"return {LAST}.querySelector('.call pre').textContent"))["city"], ("Rome", "Oslo"))
        self.picture(browser, "call")
        self.set(browser, "tool_choice", "")
        browser.type(".call textarea", "24 degrees")
        self.press_action(browser, "Give results")
        browser.wait(f"document.querySelector('.tool') && {LAST}.className == 'assistant'")
        self.answered(browser)
        self.assertEqual(browser.run("return document.querySelector('.tool summary').textContent"), "get_weather returned")
        self.assertIn("24 degrees", browser.run("return document.querySelector('.tool').textContent"))
        self.reload(browser)
        self.press_action(browser, "Replay")
        browser.wait(f"{LAST}.textContent.includes('replayed: the same text')")
        self.picture(browser, "results")


if __name__ == "__main__":
    unittest.main(verbosity=2)
