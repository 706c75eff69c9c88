#!/usr/bin/env python3
"""Generates the training text in the chat format of Qwen3.5: seeded, original, endless.

    generate.py --documents 20 [--seed 0]        prints documents, for reading

The world, its stories and its questions are gemma4-tiny's. Document number i of a seed depends on the seed and i
alone, so any number of processes can share the work, and the held-out text is simply another seed.
"""
import argparse
import random
import re

import world_path  # noqa: F401  (for the modules below)
import chat
import documents as plain
import world

END_OF_TEXT, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
THINK, THOUGHT = "<think>", "</think>"
HELD_OUT_SEED = 1_000_003
CHAT_SHARE = 0.68

Piece = tuple[str, bool]          # text, and whether the model learns to write it

NUMBERS = re.compile(r"[0-9]|\b(" + "|".join([*world.SMALL[1:], *world.TENS.values()]) + r")\b")
VILLAGE = re.compile(r"\b(Fernhill|" + "|".join(v.name for v in world.VILLAGERS) + r")\b")


def thought(system: str, question: str, answer: str) -> str:
    """One line that sorts the question, as far as the question itself tells."""
    asked = question.lower()
    if system in chat.ONE_WORD:
        return "The answer is one word."
    if answer.startswith("I am sorry"):
        return "I do not know this."
    if answer.startswith("That is too difficult"):
        return "This is too difficult for me."
    if "\n\n" in question or len(question) > 120:
        return "The answer is in the text."
    if len(answer) > 100 and re.search(r"\b(story|poem|adventure)\b", asked):
        return f"The user wants a {'poem' if 'poem' in asked else 'story'}."
    if re.search(r"\b(joke|riddle|funny|laugh)\b", asked):
        return "The user wants a joke."
    if VILLAGE.search(question + answer):
        return "This is about the village of Fernhill."
    if NUMBERS.search(asked):
        return "I have to think about numbers."
    return "I know what to say."


def chat_pieces(rng: random.Random) -> list[Piece]:
    """A conversation as the chat template writes it.

    The last reply follows the generation prompt: with an empty thought when thinking is off, or else after `<think>`,
    where the model writes a thought of one line. Earlier replies have lost theirs.
    """
    c = chat.conversation(rng)
    thinks = rng.random() < 0.5
    pieces = [(f"{START}system\n{c.system.strip()}{END}\n", False)] if c.system else []
    for i, (question, answer) in enumerate(c.turns):
        question, answer = question.strip(), answer.strip()
        opening, reply = "", answer
        if i == len(c.turns) - 1:
            opening = f"{THINK}\n" if thinks else f"{THINK}\n\n{THOUGHT}\n\n"
            reply = f"{thought(c.system, question, answer)}\n{THOUGHT}\n\n{answer}" if thinks else answer
        pieces += [(f"{START}user\n{question}{END}\n{START}assistant\n{opening}", False), (reply + END, True), ("\n", False)]
    return pieces


def document(seed: int, index: int) -> list[Piece]:
    """Document `index` of `seed`: a plain text that ends with <|endoftext|>, or a conversation."""
    rng = random.Random(f"{seed}/{index}")
    if rng.random() < CHAT_SHARE:
        return chat_pieces(rng)
    return [(plain.document(rng) + END_OF_TEXT, True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for index in range(args.documents):
        print("".join(text for text, _ in document(args.seed, index)), end="\n----\n")


if __name__ == "__main__":
    main()
