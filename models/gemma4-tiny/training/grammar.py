"""A small template language for English text.

    {a|b|c}        one of the alternatives (they nest, and may be empty)
    {name=a|b}     the same, and `name` keeps the choice for later
    {name:=a|b}    keeps the choice and prints nothing
    [name]         a slot; [name.his] asks the slot for an attribute
    [@macro]       a shared template
    a~             "a" or "an", decided by the word that follows

Templates are easier to write, read and correct than code that glues strings together, and the
finished text gets its articles, spaces and capital letters from one place.
"""
import random
import re

VOWEL_SOUND = re.compile(r"(?i)(?!one\b|once\b|use|uni|eu)[aeiou]|hour|honest")
ARTICLE = re.compile(r"\b([Aa])~ (\"?)(\w+)")
SENTENCE_START = re.compile(r"(^|\n|[.!?] |\.\" )(\"?)([a-z])")
SLOT = re.compile(r"\[(@?)([\w ]+)(?:\.(\w+))?\]")
BINDING = re.compile(r"(\w+)(:?)=")


def split_choices(body: str) -> list[str]:
    """The alternatives of a brace group, split at the bars of its own level."""
    parts, depth, start = [], 0, 0
    for i, ch in enumerate(body):
        if ch == "{":
            depth += 1
        elif ch == "}":
            depth -= 1
        elif ch == "|" and depth == 0:
            parts.append(body[start:i])
            start = i + 1
    return parts + [body[start:]]


def closing_brace(text: str, start: int) -> int:
    """The index of the brace that closes the one at `start`."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError(f"no closing brace: {text[start:start + 60]!r}")


def polish(text: str) -> str:
    """Settles articles, spaces and the capital letters of sentences."""
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r" ?\n ?", "\n", text)
    text = re.sub(r" ([.,!?;:])", r"\1", text)
    text = ARTICLE.sub(lambda m: m[1] + ("n" if VOWEL_SOUND.match(m[3]) else "") + " " + m[2] + m[3], text)
    return SENTENCE_START.sub(lambda m: m[1] + m[2] + m[3].upper(), text.strip())


class Grammar:
    """Expands templates with one random stream and one set of slots."""

    def __init__(self, rng: random.Random, slots: dict | None = None, macros: dict | None = None):
        self.rng = rng
        self.slots = dict(slots or {})
        self.macros = macros or {}

    def choose(self, text: str) -> str:
        """Replaces each brace group by one of its alternatives, left to right."""
        out, i = [], 0
        while (start := text.find("{", i)) >= 0:
            end = closing_brace(text, start)
            out.append(self.fill(text[i:start]))
            body = text[start + 1:end]
            name = BINDING.match(body)
            if name:
                body = body[name.end():]
            picked = self.choose(self.rng.choice(split_choices(body)))
            if name:
                self.slots[name[1]] = picked
            out.append("" if name and name[2] else picked)
            i = end + 1
        return "".join(out) + self.fill(text[i:])

    def fill(self, text: str) -> str:
        """Replaces slots and macros."""
        return SLOT.sub(self.slot, text)

    def slot(self, match: re.Match) -> str:
        if match[1]:
            return self.choose(self.macros[match[2]])
        value = self.slots[match[2]]
        if match[3]:
            value = getattr(value, match[3])
        return str(value)

    def text(self, template: str) -> str:
        return polish(self.choose(template))


def pick(rng: random.Random, template: str, **slots) -> str:
    """One expansion of a short template."""
    return Grammar(rng, slots).text(template)
