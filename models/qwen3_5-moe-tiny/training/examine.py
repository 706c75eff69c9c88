#!/usr/bin/env python3
"""Asks the model questions and lets it tell stories, with mlx-lm as the runtime.

    examine.py DIR                        questions.txt, then 300 generated questions, greedily
    examine.py DIR --stories 4            stories, sampled with the recommended settings
    examine.py DIR --ask "Who is Mira?"   one answer

--no-think asks with thinking off; otherwise the template's default holds, and the model first writes its thought.
"""
import argparse
import collections
import pathlib
import random

import jinja2
import numpy as np

import generate
import questions
from evaluate import OPEN, Model  # of gemma4-tiny


class Chat:
    """The model behind the chat template of its directory."""

    def __init__(self, path: pathlib.Path, thinking: bool):
        self.model = Model(path)
        self.template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(
            (path / "chat_template.jinja").read_text())
        self.options = {} if thinking else dict(enable_thinking=False)

    def prompt(self, question: str) -> str:
        return self.template.render(messages=[dict(role="user", content=question)], add_generation_prompt=True, **self.options)

    def answer(self, question: str, **settings) -> tuple[str, str]:
        """The thought, where there is one, and the answer."""
        text = self.model.generate(self.prompt(question), **settings)
        thought, end, answer = text.rpartition(generate.THOUGHT)
        return thought.strip(), answer.strip() if end else text


def ask_file(chat: Chat, path: pathlib.Path) -> None:
    """questions.txt: a question, a tab, and what the answer must contain."""
    lines = [line.split("\t") for line in path.read_text().splitlines() if line]
    right = 0
    for question, expected in lines:
        thought, answer = chat.answer(question, limit=160)
        right += expected in answer
        print(f"{'ok   ' if expected in answer else 'WRONG'}  {question}  ->  {answer!r}" + (f"  ({thought})" if thought else ""))
    print(f"{path.name}: {right} of {len(lines)} right")


def ask_generated(chat: Chat, count: int, seed: int) -> None:
    """Questions of every kind that has one right answer; the whole answer must be right."""
    rng = random.Random(seed)
    kinds = [f for group, _ in questions.TOPICS for f, _ in group if f not in OPEN]
    right, total = collections.Counter(), collections.Counter()
    for i in range(count):
        kind = kinds[i % len(kinds)]
        x = kind(rng)
        _, answer = chat.answer(x.question, limit=160)
        total[kind.__name__] += 1
        right[kind.__name__] += answer == x.answer
        if answer != x.answer:
            print(f"  {x.question}  ->  {answer!r}, not {x.answer!r}")
    print(" ".join(f"{k} {right[k]}/{n}" for k, n in total.items()))
    print(f"generated questions: {sum(right.values())} of {count} right ({sum(right.values()) / count:.1%})")


STORIES = ["Tell me a story.", "Tell me a story about a little fox.", "Write a short story about a lost kite.",
           "Tell me a story about Mira the baker."]


def tell_stories(chat: Chat, count: int, seed: int) -> None:
    for i in range(count):
        question = STORIES[i % len(STORIES)]
        thought, story = chat.answer(question, limit=800, temperature=chat.model.settings["temperature"],
                                     rng=np.random.default_rng(seed + i))
        print(f"--- {question}  ({thought})\n{story}\n")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=pathlib.Path)
    p.add_argument("--ask")
    p.add_argument("--stories", type=int, default=0)
    p.add_argument("--questions", type=int, default=300, help="how many generated ones")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--no-think", action="store_true")
    args = p.parse_args()
    chat = Chat(args.dir, not args.no_think)
    if args.ask:
        print(*chat.answer(args.ask), sep="\n")
    elif args.stories:
        tell_stories(chat, args.stories, args.seed)
    else:
        ask_file(chat, args.dir / "questions.txt")
        if args.questions:
            ask_generated(chat, args.questions, args.seed)


if __name__ == "__main__":
    main()
