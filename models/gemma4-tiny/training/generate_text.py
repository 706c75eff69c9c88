#!/usr/bin/env python3
"""Writes the training text: seeded, original, endless.

    generate_text.py --documents 20 [--seed 0]        prints documents, for reading

train.py calls `documents(seed, count)`. Document number i of a seed depends on the seed and i alone, so any number of
processes can share the work, and the held-out text is simply another seed.
"""
import argparse
import random
from typing import Iterator

import chat
import documents as plain

BOS, EOS = "<bos>", "<eos>"
HELD_OUT_SEED = 1_000_003
CHAT_SHARE = 0.62


def one(seed: int, index: int) -> str:
    """Document `index` of `seed`: a plain text that ends with <eos>, or a conversation."""
    rng = random.Random(f"{seed}/{index}")
    if rng.random() < CHAT_SHARE:
        return BOS + chat.render(rng, chat.conversation(rng))
    return BOS + plain.document(rng) + EOS


def documents(seed: int, first: int, count: int) -> Iterator[str]:
    for index in range(first, first + count):
        yield one(seed, index)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for text in documents(args.seed, 0, args.documents):
        print(text, end="\n----\n")


if __name__ == "__main__":
    main()
