#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times masks of grammars beside llguidance's: the same grammars, vocabulary and answers, by turns.

    grammar.py GRAMMAR_MASKS [--size N] [--steps N] [--rounds N] [--seed S]

GRAMMAR_MASKS is the program of tests/oracle/grammar_masks.c; the vocabulary is the synthetic one of N tokens. An
answer is drawn once for each grammar, from the masks; then both follow it with a new matcher, gumbel and llguidance by
turns, so that other load on the machine meets both. The least time of the rounds counts for each step, so that what is
left is what the step costs. Times are in microseconds: `start` until the first mask can be asked for, `mask`, and
`take` for accepting a token. Needs llguidance and numpy.
"""
import argparse
import pathlib
import random
import sys
import tempfile
import time

import numpy
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from llguidance.gbnf_to_lark import any_to_lark

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "oracle"))
import grammar_cases
import grammar_masks
import grammar_vocabulary


class Times:
    """Of one side: start, mask and take, each a list by step."""

    def __init__(self, start, masks, takes):
        self.start, self.masks, self.takes = start, numpy.array(masks), numpy.array(takes)

    def least(self, other):
        return Times(min(self.start, other.start), numpy.minimum(self.masks, other.masks),
                     numpy.minimum(self.takes, other.takes))


def draw_answer(masks, vocabulary, draw, most):
    """Tokens that the grammar allows; long ones more often."""
    tokens = []
    while len(tokens) < most:
        allowed = numpy.flatnonzero(grammar_masks.bits(masks.mask()[0], masks.count))
        some = [int(t) for t in draw.choices(allowed, k=3) if t != vocabulary.eos_token_id]
        if not some:
            break
        token = max(some, key=lambda t: len(vocabulary.tokens[t])) if draw.random() < 0.3 else some[0]
        masks.token(token)
        tokens.append(token)
    return tokens


def time_ours(masks, kind, text, answer):
    start = masks.grammar(kind, text)
    times, takes = [], []
    for token in answer:
        times.append(masks.mask()[1])
        takes.append(masks.timed_token(token)[1])
    return Times(start, times, takes)


def time_llguidance(tokenizer, words, grammar, answer):
    now = time.perf_counter_ns
    begin = now()
    matcher = LLMatcher(tokenizer, grammar)
    start = now() - begin
    times, takes = [], []
    for token in answer:
        begin = now()
        matcher.unsafe_compute_mask_ptr(words.ctypes.data, words.nbytes)
        middle = now()
        matcher.consume_token(token)
        times.append(middle - begin)
        takes.append(now() - middle)
    assert not matcher.is_error(), matcher.get_error()
    return Times(start, times, takes)


def print_line(name, sides):
    cells = []
    for times in sides:
        cells.append(f"{times.start / 1e3:8.0f} {times.masks.mean() / 1e3:8.2f} "
                     f"{numpy.quantile(times.masks, 0.999) / 1e3:8.1f} {times.takes.mean() / 1e3:7.2f}")
    print(f"{name[:44]:44} | {' | '.join(cells)}", flush=True)


def joined(sides):
    return Times(max(t.start for t in sides), numpy.concatenate([t.masks for t in sides]),
                 numpy.concatenate([t.takes for t in sides]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--size", type=int, default=262144)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    vocabulary = grammar_vocabulary.synthetic(options.size)
    tokenizer = LLTokenizer(TokenizerWrapper(vocabulary))
    words = numpy.zeros((options.size + 31) // 32, dtype=numpy.int32)
    cases = [("gbnf", text, LLMatcher.grammar_from_lark(any_to_lark(text))) for text in grammar_cases.GBNF]
    cases += [("regex", text, LLMatcher.grammar_from_regex(text)) for text in grammar_cases.REGEXES]
    all_ours, all_theirs = [], []
    print(f"{'microseconds':44} | {'gumbel':34} | llguidance")
    print(f"{'grammar':44} | " + " | ".join([f"{'start':>8} {'mask':>8} {'99.9 %':>8} {'take':>7}"] * 2))
    with tempfile.NamedTemporaryFile() as file:
        masks = grammar_masks.Masks(options.program, vocabulary, file.name)
        for kind, text, grammar in cases:
            masks.grammar(kind, text)
            answer = draw_answer(masks, vocabulary, random.Random(options.seed), options.steps)
            ours = theirs = None
            for _ in range(options.rounds):
                mine, other = time_ours(masks, kind, text, answer), time_llguidance(tokenizer, words, grammar, answer)
                ours, theirs = (mine, other) if ours is None else (ours.least(mine), theirs.least(other))
            all_ours.append(ours)
            all_theirs.append(theirs)
            print_line(repr(text), (ours, theirs))
        masks.close()
    print_line("all (start: the longest)", (joined(all_ours), joined(all_theirs)))


if __name__ == "__main__":
    main()
