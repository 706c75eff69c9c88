"""What a question is, and the words for asking one."""
import dataclasses
import random

import world as w
from grammar import pick, polish


@dataclasses.dataclass(frozen=True)
class QA:
    question: str
    answer: str
    short: str = ""      # the answer in one word, where there is one


ORDERS = ("Tell", "Name", "Say", "Write", "Spell", "Calculate", "Add", "Introduce", "Make", "List", "Count", "Start",
          "Please", "Give", "Explain", "Translate", "Summarize", "Take")


def qa(rng: random.Random, question: str, answer: str, short: str = "", **slots) -> QA:
    """Fills the templates. An order ends with a full stop, a question with a question mark."""
    question = pick(rng, question, **slots)
    if question.endswith(("?", ".")):
        question = question[:-1] + ("." if question.startswith(ORDERS) else "?")
    if question.endswith("=?"):
        question = question[:-1]
    return QA(question, pick(rng, answer, **slots), short and polish(short + "."))


def a(noun: str) -> str:
    return polish("x a~ " + noun)[2:]


def the(rng: random.Random) -> w.Villager:
    return rng.choice(w.VILLAGERS)
