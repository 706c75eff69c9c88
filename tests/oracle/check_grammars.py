#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the masks of grammars with those of llguidance, at every step of random answers.

    check_grammars.py GRAMMAR_MASKS [--models FOLDER...] [--size N] [--answers N] [--steps N] [--gbnf FILE...]
                      [--only TEXT] [--seed S]

GRAMMAR_MASKS is the program of tests/oracle/grammar_masks.c. Vocabularies: those of the FOLDERs' tokenizer.json, and
a synthetic one of N tokens. At every step the masks must be the same bits; then a token of the mask, drawn at random,
is taken, and now and then some are undone, a token that is not allowed is offered, or a clone goes on.
Needs llguidance and numpy. Exits with 77 (skipped) without them.
"""
import argparse
import pathlib
import random
import sys
import tempfile

try:
    import numpy
    from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
    from llguidance.gbnf_to_lark import any_to_lark
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import grammar_cases
import grammar_masks
import grammar_vocabulary


def draw_token(draw, allowed, vocabulary):
    """Mostly long tokens, so that answers get somewhere; the end of an answer is drawn last."""
    some = [int(t) for t in draw.choices(allowed, k=4) if t != vocabulary.eos_token_id] or [int(allowed[0])]
    return max(some, key=lambda t: len(vocabulary.tokens[t])) if draw.random() < 0.5 else some[0]


def differences(ours, theirs, vocabulary):
    def name(ids):
        return [(int(i), vocabulary.tokens[i]) for i in ids[:8]]
    return f"only here: {name(numpy.flatnonzero(ours & ~theirs & 1))}, " \
           f"only llguidance: {name(numpy.flatnonzero(theirs & ~ours & 1))}"


def agrees(ours, theirs, matcher, vocabulary):
    return numpy.array_equal(ours, theirs)


def agrees_where_forced(ours, theirs, matcher, vocabulary):
    """Where the next bytes are certain llguidance allows one tokenization of them alone; here all are allowed."""
    forced = matcher.compute_ff_bytes()
    tokens = [vocabulary.tokens[i] for i in numpy.flatnonzero(ours)]
    return not (theirs & ~ours & 1).any() and all(forced.startswith(t) or t.startswith(forced) for t in tokens)


def check_answer(masks, tokenizer, vocabulary, grammar, draw, most):
    """The number of masks that were compared; AssertionError where something differs."""
    matcher = LLMatcher(tokenizer, grammar)
    assert not matcher.is_error(), f"llguidance: {matcher.get_error()}"
    taken = []
    for step in range(most):
        mask = masks.mask()[0]
        ours = grammar_masks.bits(mask, masks.count)
        theirs = grammar_masks.bits(matcher.compute_bitmask(), masks.count)
        text = b"".join(vocabulary.tokens[t] for t in taken)
        same = agrees_where_forced if matcher.compute_ff_bytes() else agrees
        assert same(ours, theirs, matcher, vocabulary), f"after {text!r}: {differences(ours, theirs, vocabulary)}"
        allowed = numpy.flatnonzero(ours)
        assert len(allowed), f"after {text!r}: nothing is allowed"
        may_end, forced, _ = masks.state()
        assert may_end == matcher.is_accepting(), f"after {text!r}: end"
        assert forced == (allowed[0] if len(allowed) == 1 else -1), f"after {text!r}: forced"
        if draw.random() < 0.2:
            refused = draw.randrange(masks.count)
            assert ours[refused] or not masks.token(refused), f"after {text!r}: {refused} was accepted"
        if draw.random() < 0.05:
            masks.clone()
        if draw.random() < 0.1 and taken:
            back = draw.randint(1, min(len(taken), 5))
            assert masks.rollback(back) and matcher.rollback(back)
            del taken[-back:]
            continue
        token = draw_token(draw, allowed, vocabulary)
        if token == vocabulary.eos_token_id:
            return step + 1
        assert masks.token(token), f"after {text!r}: {token} was refused"
        matcher.consume_token(token)
        taken.append(token)
    return most


def cases_of(options):
    for text in grammar_cases.REGEXES:
        yield "regex", text, LLMatcher.grammar_from_regex(text)
    for text in grammar_cases.GBNF + [path.read_text() for path in options.gbnf]:
        yield "gbnf", text, LLMatcher.grammar_from_lark(any_to_lark(text))


def vocabularies_of(options):
    for folder in options.models:
        yield folder.name, grammar_vocabulary.bundled(folder / "tokenizer.json")
    if options.size:
        yield f"synthetic, {options.size}", grammar_vocabulary.synthetic(options.size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", nargs="*", default=[], type=pathlib.Path)
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--answers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--gbnf", nargs="*", default=[], type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failures = 0
    for name, vocabulary in vocabularies_of(options):
        tokenizer = LLTokenizer(TokenizerWrapper(vocabulary))
        compared = grammars = 0
        with tempfile.NamedTemporaryFile() as file:
            masks = grammar_masks.Masks(options.program, vocabulary, file.name)
            for kind, text, grammar in cases_of(options):
                if options.only not in text:
                    continue
                grammars += 1
                draw = random.Random(options.seed)
                try:
                    masks.grammar(kind, text)
                    for _ in range(options.answers):
                        compared += check_answer(masks, tokenizer, vocabulary, grammar, draw, options.steps)
                        masks.again()
                except (AssertionError, ValueError) as error:
                    failures += 1
                    print(f"{name}: {kind} {text!r}\n    {error}")
            masks.close()
        print(f"{name}: {grammars} grammars, {compared} masks compared, {failures} failures", flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
