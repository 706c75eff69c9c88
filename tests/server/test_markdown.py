# SPDX-License-Identifier: Apache-2.0
"""Answers as Markdown in Chromium. GUMBEL_SCREENSHOTS names a folder for pictures to look at."""

import http.client
import os
import shutil
import time
import unittest

from browser import Browser
from support import QWEN, Server

TAGS = set("P BR HR H1 H2 H3 H4 H5 H6 UL OL LI BLOCKQUOTE PRE CODE EM STRONG S A TABLE THEAD TBODY TR TH TD DIV SPAN BUTTON "
           "math semantics mrow mi mn mo ms mtext mspace msub msup msubsup munder mover munderover mfrac msqrt mroot mtable "
           "mtr mtd mstyle menclose mpadded mphantom merror".split())
ATTRIBUTES = set("class title href target rel start type display mathvariant mathcolor mathbackground stretchy fence separator "
                 "accent accentunder lspace rspace minsize maxsize symmetric largeop movablelimits linethickness columnalign "
                 "columnspacing columnlines rowspacing rowlines scriptlevel displaystyle width height depth voffset "
                 "notation".split())
HOSTILE = (
    "<script>window.harm = 1</script>", "<img src=x onerror='window.harm = 2'>", "<svg onload='window.harm = 3'></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=window.harm=4&gt;\">",
    "<math><mtext><style><img src=x onerror='window.harm = 5'></style></mtext></math>",
    "<style>body { display: none }</style>", "<iframe srcdoc='<script>parent.harm = 6</script>'></iframe>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=window.harm=7>",
    "<svg></p><style><a id=\"</style><img src=1 onerror=window.harm=8>\">", "<noscript><p title=\"</noscript><img src=x onerror="
    "window.harm=9>\">", "<a href='javascript:window.harm=10'>x</a>", "<object data=/x></object><embed src=/y>",
    "<template><img src=x onerror=window.harm=11></template>", "<base href=https://evil.example/>",
    "<link rel=stylesheet href=https://evil.example/a.css>", "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<form id=log><input name=attributes>",
    "<p style='position: fixed' onclick='window.harm = 24'>x</p>",
    "[a](https://evil.example/\"onmouseover=window.harm=12)",
    "[a](https://evil.example 'x\" onmouseover=\"window.harm=13')", "![a\" onerror=\"window.harm=14](https://evil.example/p.png)",
    "![p](https://evil.example/p.png)", "[![p](https://evil.example/p.png)](https://evil.example/q)",
    "`<img src=x onerror=window.harm=15>`", "$<img src=x onerror=window.harm=16>$", "$\\text{<script>window.harm=17</script>}$",
    "```html\n</code></pre><img src=x onerror=window.harm=18><script>window.harm=19</script>\n```",
    "```\"><img/src=x/onerror=window.harm=20>\n<style>a</style>\n```", "&lt;img src=x onerror=window.harm=21&gt;",
    "| <img src=x onerror=window.harm=22> | b |\n|---|---|\n| <svg/onload=window.harm=23> | `<b>` |")
TABLE = "| left | mid | right |\n|:--|:-:|--:|\n| `a \\| b` | `c | d` | 1 |\n| x | y | 2 |"
LONG = "\n\n".join(f"## Part {number}\n\nSome *text* of part {number}, with `code` and $x_{{{number}}}$.\n\n- one\n- two\n\n"
                   f"```python\nprint({number})\n```\n\n| a | b |\n|---|---|\n| {number} | 2 |" for number in range(1, 160))


@unittest.skipUnless(shutil.which("chromedriver"), "there is no chromedriver")
class Markdown(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(program=QWEN)
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.server.__exit__()

    def setUp(self):
        self.browser.open(self.server.url + "/")
        self.browser.wait("document.querySelector('#model option')")
        self.browser.run("""return import(location.origin + "/page/markdown.js").then((module) => {
          window.target = document.createElement("div");
          document.getElementById("log").append(target);
          window.show = (text) => module.showMarkdown(target, text);
        })""")

    def tearDown(self):
        self.assertEqual(self.browser.log(), [])
        urls = self.browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
        self.assertTrue(all(url.startswith(self.server.url) for url in urls), urls)
        self.assertIsNone(self.browser.run("return window.harm"))

    def show(self, text):
        self.browser.run("show(arguments[0])", text)
        folder = os.environ.get("GUMBEL_SCREENSHOTS")
        if folder:
            self.browser.picture(os.path.join(folder, f"{self.id().split('.')[-1]}.png"))

    def value(self, expression):
        return self.browser.run("return " + expression)

    def texts(self, selector):
        return self.value(f"[...target.querySelectorAll('{selector}')].map((one) => one.textContent)")

    def text(self):
        return self.value("target.textContent")

    def test_lists(self):
        self.show("1. one\n   - two\n     1. three\n     2. four\n   - five\n2. six\n\n7. seven")
        self.assertEqual(self.texts("ol > li > ul > li > ol > li"), ["three", "four"])
        self.assertEqual(self.value("target.querySelectorAll(':scope > ol > li').length"), 3)
        self.show("3. three\n4. four")
        self.assertEqual(self.value("target.querySelector('ol').start"), 3)

    def test_words(self):
        self.show("__bold__ **b2** *em* ~~gone~~ snake_case_name\nnext 2 * 3 * 4\n\n##### Fifth\n\n> quoted\n\n---")
        self.assertEqual(self.texts("strong"), ["bold", "b2"])
        self.assertEqual(self.texts("em"), ["em"])
        self.assertEqual(self.texts("s"), ["gone"])
        self.assertEqual(self.texts("h5"), ["Fifth"])
        self.assertEqual(self.texts("blockquote"), ["\nquoted\n"])
        self.assertEqual(self.value("target.querySelectorAll('hr, p br').length"), 2)
        self.assertIn("snake_case_name\nnext 2 * 3 * 4", self.text())

    def test_table(self):
        self.show(TABLE)
        self.assertEqual(self.texts("tbody tr:first-child td"), ["a | b", "c | d", "1"])
        aligned = "[...target.querySelectorAll('tr:last-child td')].map((one) => getComputedStyle(one).textAlign)"
        self.assertEqual(self.value(aligned), ["left", "center", "right"])

    def test_links(self):
        self.show("[a](https://one.example/x?y=1&z=2) https://two.example <mailto:me@three.example> main.py me@mail.com")
        self.assertEqual(self.value("[...target.querySelectorAll('a')].map((one) => one.getAttribute('href'))"),
                         ["https://one.example/x?y=1&z=2", "https://two.example", "mailto:me@three.example"])
        for name, expected in (("target", "_blank"), ("rel", "noopener noreferrer")):
            self.assertEqual(self.value(f"[...target.querySelectorAll('a')].map((one) => one.{name})"), [expected] * 3)
        self.assertEqual(self.value("target.querySelector('a').title"), "https://one.example/x?y=1&z=2")
        for address in ("javascript:window.harm=1", "JaVaScRiPt:window.harm=1", "data:text/html,<script>1</script>",
                        "vbscript:x", "file:///etc/passwd", "/v1/models", "#log", "java&#10;script:window.harm=1"):
            text = f"[x]({address}) ![y]({address}) <{address}>"
            self.show(text)
            self.assertEqual(self.texts("a, img"), [], address)
            self.assertIn("[x](", self.text())

    def test_images(self):
        self.show("![a cat](https://evil.example/cat.png) [![dog](https://evil.example/dog.png)](https://evil.example/d)")
        self.assertEqual(self.texts("img"), [])
        self.assertEqual(self.texts("a"), ["a cat", "dog"])
        self.assertEqual(self.value("[...target.querySelectorAll('a')].map((one) => one.href)"),
                         ["https://evil.example/cat.png", "https://evil.example/d"])

    def test_math(self):
        self.show("$a^2$ and \\(b_1\\), $$c$$ and \\[d\\]")
        self.assertEqual(self.texts("math"), ["a2", "b1", "c", "d"])
        self.assertEqual(self.value("[...target.querySelectorAll('math')].map((one) => one.getAttribute('display'))"),
                         [None, None, "block", "block"])
        self.show("$$\n\\frac{1}{2}\n$$\n\n\\[\nx = \\begin{cases} 1 \\\\ 2 \\end{cases}\n\\]\n- list:\n  $$\n  e\n  $$\n\n$$f$$")
        self.assertEqual(self.value("target.querySelectorAll(':scope > .math > math mfrac, :scope > .math mtable, li .math, "
                                    ":scope > .math').length"), 6)
        self.show("$a\\$ b$ $$x$$\n\n$$y$$ and $$z$$")
        self.assertEqual(self.texts("math"), ["a$b", "x", "y", "z"])
        self.show("Sets: $\\mathbb{R} \\mathcal{L} \\mathbf{x}$")
        self.assertEqual(self.texts("math"), ["ℝℒ𝐱"])
        self.show("$$\\begin{aligned} aaaa &= b \\\\ c &= dddd \\end{aligned}$$")
        inner = "[...target.querySelectorAll('mtd')].map((one) => one.firstChild.getBoundingClientRect())"
        a, b, c, d = self.value(f"{inner}.map((one) => ({{ left: one.left, right: one.right }}))")
        self.assertAlmostEqual(a["right"], c["right"], 1)
        self.assertAlmostEqual(b["left"], d["left"], 1)

    def test_prices(self):
        for text in ("$5 and $10", "$a and $b", "$5,$6", "a $ x$ b", "It costs $5, not $6 or 7$ more? $ x $",
                     "\\$x\\$", "US$", "`$x$` and $y `z$`"):
            self.show(text)
            self.assertEqual(self.texts("math"), [], text)
        self.show("```\n$x$\n$$\ny\n$$\n```\n\n    \\[z\\]\n\n`\\(a\\)`")
        self.assertEqual(self.texts("math"), [])
        self.assertIn("$$\ny\n$$", self.text())

    def test_broken_math(self):
        powers = "".join("\\def\\%s{%s}" % (new, 10 * ("\\" + old)) for old, new in ("ab", "bc", "cd", "de"))
        for text in ("$\\frac{a}{$", "$\\frac{<b>x</b>$", "$$\n\\begin{matrix} a\n$$", "\\(\\unknowncommand\\)",
                     "$\\def\\a{\\a\\a}\\a$",
                     "\\[\\def\\x#1{\\x{#1#1}}\\x{1}\\]", "$" + "{" * 1900 + "$",
                     f"$\\def\\a{{x}}{powers}\\e$"):
            self.show(text)
            self.assertEqual(self.texts("math"), [], text)
            self.assertEqual(self.texts("code"), [text], text)
        for text in ("\\href{javascript:window.harm=1}{x}", "\\href{https://evil.example}{x}",
                     "\\url{javascript:window.harm=1}", "\\htmlStyle{color:red}{x}",
                     "\\includegraphics{https://evil.example/x.png}", "\\htmlData{a=b}{x}", "\\htmlId{log}{x}",
                     "\\message{no}", "\\errmessage{no}", "\\show\\x", "\\gdef\\y{1}\\y", "\\rule{900em}{900em}",
                     "\\fcolorbox{red}{blue}{x}", "\\colorbox{red}{x}", "\\text{unicode ü 漢}"):
            self.show(f"${text}$")
            self.check_tags()
            self.assertEqual(self.texts("a, [href]"), [])
        self.show("$\\y$")
        self.assertEqual(self.texts("math"), [])

    def check_tags(self):
        self.assertLessEqual(set(self.value("[...target.querySelectorAll('*')].map((one) => one.tagName)")), TAGS)
        found = set(self.value("[...target.querySelectorAll('*')].flatMap((one) => one.getAttributeNames())"))
        self.assertLessEqual(found, ATTRIBUTES)

    def test_code(self):
        self.show("```python\ndef f(x):\n    return \"a\" # b\n```\n\n```klingon\ndef f\n```\n\n```\nif x\n```\n\n"
                  "```constructor\nif x\n```")
        self.assertEqual(self.texts(".hljs-keyword"), ["def", "return"])
        self.assertEqual(self.value("target.querySelectorAll('[class^=hljs]').length"), 7)
        self.assertEqual(self.texts(".bar span"), ["python", "klingon", "", "constructor"])
        self.assertEqual(self.texts("pre code")[0], 'def f(x):\n    return "a" # b')

    def test_slow_colours(self):
        """A language that once took long is not coloured again with every frame; the text stays."""
        self.browser.run("""const old = hljs.highlight; window.count = 0;
          hljs.highlight = (...words) => { count++; const end = performance.now() + 150;
            while (performance.now() < end); return old(...words); }""")
        for text in ("```python\none", "```python\none two", "```python\none two 3\n```"):
            self.show(text)
        self.assertEqual(self.value("window.count"), 1)
        self.assertEqual(self.value("target.querySelector('code').textContent"), "one two 3")

    def test_copy(self):
        self.show("```python\nprint(1)\n```")
        self.browser.run("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }); "
                         "document.oncopy = () => { window.copied = document.getSelection().toString(); }")
        self.browser.click(".bar button")
        self.browser.wait("document.querySelector('.bar button').textContent == 'Copied'")
        self.assertEqual(self.value("window.copied"), "print(1)")
        self.assertEqual(self.value("document.querySelectorAll('.copied').length"), 0)
        self.browser.wait("document.querySelector('.bar button').textContent == 'Copy'")

    def test_hostile(self):
        for text in HOSTILE + ("\n\n".join(HOSTILE), "\n".join("> - " + one for one in HOSTILE)):
            self.show(text)
            self.check_tags()
            self.assertEqual(self.value("getComputedStyle(document.body).display"), "flex")
        self.assertIn("<script>window.harm = 1</script>", self.text())

    def test_sanitizer(self):
        """Markup that the parser would let through is not shown either."""
        self.browser.run("""return import(location.origin + "/page/sanitize.js").then((module) => {
          window.show = (text) => target.replaceChildren(module.toNodes(text));
        })""")
        for text in HOSTILE:
            self.show(text)
            self.check_tags()
        self.browser.log()  # the policy speaks of what DOMPurify looks at

    def test_streaming(self):
        self.assertGreater(len(LONG), 20000)
        self.show(LONG[:300])
        self.browser.run("window.first = target.children[1]; getSelection().selectAllChildren(first)")
        selected = self.value("getSelection().toString()")
        self.browser.run("for (let end = 300; end < arguments[0].length; end += 37) show(arguments[0].slice(0, end))", LONG)
        self.show(LONG)
        self.assertTrue(self.value("first === target.children[1] && first.isConnected"))
        self.assertEqual(self.value("getSelection().toString()"), selected)
        streamed = self.value("target.innerHTML")
        self.browser.run("target.replaceWith(target = document.createElement('div'))")
        self.browser.run("document.getElementById('log').append(target)")
        self.show(LONG)
        self.assertEqual(self.value("target.innerHTML"), streamed)
        self.show("Only this.")
        self.assertEqual(self.text(), "Only this.")

    def test_parts(self):
        """Each beginning of a text is shown without a failure."""
        text = TABLE + "\n\n```js\nlet a = `1`;\n```\n\n$$\nx^2\n$$\n\n1. a\n   > b [c](https://d.example)"
        self.browser.run("for (let end = 0; end <= arguments[0].length; end++) show(arguments[0].slice(0, end))", text)
        self.assertEqual(self.value("target.children.length"), 4)

    def test_long(self):
        for text in ("[", "*", "$", ">", "`", "|", "$a ", "\\(", "\\[\n", "![", "[a](", "> ", "- ", "https://a.b/(("):
            for length in (200000, 20000):
                begin = time.monotonic()
                self.show((text * length)[:length])
                self.assertLess(time.monotonic() - begin, 10, text)

    def test_wide_table(self):
        """A wide head and many short rows would be millions of cells."""
        for columns, rows in ((190, 100), (210, 100), (2000, 40000)):
            text = "a|" * columns + "\n" + "-|" * columns + "\n" + "x|\n" * rows
            begin = time.monotonic()
            self.show(text)
            self.assertLess(time.monotonic() - begin, 10, columns)
            self.assertEqual(len(self.texts("table")), 1 if columns < 200 else 0)

    def test_plain(self):
        self.show("before")
        self.browser.run("delete window.markdownit")
        self.show("**a**\n<b>c</b>")
        self.assertEqual(self.text(), "**a**\n<b>c</b>")
        self.assertEqual(self.value("target.childElementCount"), 0)
        self.assertEqual(self.value("getComputedStyle(target).whiteSpace"), "pre-wrap")

    def test_colours(self):
        """The contrast of each colour of code, 4.5 to 1 at least."""
        self.show("```js\nx\n```")
        for theme in ("light", "dark"):
            ratios = self.browser.run("""
              document.documentElement.dataset.theme = arguments[0];
              const light = (colour) => colour.match(/[0-9.]+/g).slice(0, 3).map((one) => one / 255)
                .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
                .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
              const back = light(getComputedStyle(target.querySelector(".block")).backgroundColor), code =
                target.querySelector("code");
              return ["keyword", "string", "comment", "number", "title", "built_in", "attr", "type", "name"].map((name) => {
                code.className = "hljs-" + name;
                const fore = light(getComputedStyle(code).color);
                return [name, (Math.max(fore, back) + 0.05) / (Math.min(fore, back) + 0.05)];
              })""", theme)
            for name, ratio in ratios:
                self.assertGreaterEqual(ratio, 4.5, (theme, name))

    def fetch(self, path, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, reply.headers, body

    def test_files(self):
        for path in ("/", "/page/page.css", "/page/markdown.js", "/page/libraries.js"):
            status, headers, body = self.fetch(path, {})
            self.assertEqual((status, headers["Cache-Control"]), (200, "no-cache"))
            self.assertGreater(len(body), 100)
            again = self.fetch(path, {"If-None-Match": headers["ETag"]})
            self.assertEqual((again[0], again[2]), (304, b""))
            self.assertEqual(self.fetch(path, {"If-None-Match": '"other"'})[0], 200)
        self.assertEqual(headers["Content-Encoding"], "gzip")
        for path in ("/page/", "/page/none.js", "/page/page.html", "/page/../page.css", "/page.css"):
            self.assertEqual(self.fetch(path, {})[0], 404, path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
