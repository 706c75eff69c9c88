#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the instances of a corpus of JSON Schemas, and times masks, beside llguidance and xgrammar.

    schemas.py GRAMMAR_MASKS FOLDER [--draft URI] [--gguf FILE | --size N] [--every N] [--engines NAME,...] [--list]

GRAMMAR_MASKS is the program of tests/oracle/grammar_masks.c. FOLDER has files with a "schema" and "tests", each with
"data" and "valid", as maskbench/data of guidance-ai/jsonschemabench does, or lists of such, as a draft's folder of
JSON-Schema-Test-Suite; --draft is the "$schema" of those that have none. The vocabulary is that of a GGUF file or a
synthetic one. Each schema is compiled by one engine after the other; then each follows all its instances token by
token, asking for a mask before each. A schema is passed where all its instances are judged rightly. Times until the
first mask are in milliseconds, of other masks in microseconds. Needs numpy, and llguidance, xgrammar and gguf for what
is asked of them.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "oracle"))
import grammar_masks
import grammar_vocabulary


def has_bit(words, token):
    return bool(words[token // 32] >> (token % 32) & 1)


class Gumbel:
    def __init__(self, vocabulary, program, path):
        self.masks = grammar_masks.Masks(program, vocabulary, path)

    def compile(self, schema):
        return self.masks.grammar("schema", json.dumps(schema, ensure_ascii=False))

    def begin(self):
        self.masks.again()

    def mask(self):
        mask, time = self.masks.mask()
        return numpy.frombuffer(mask, dtype=numpy.uint32), time

    def accept(self, token):
        self.masks.token(token)


class Llguidance:
    def __init__(self, vocabulary):
        from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
        self.matcher_of = LLMatcher
        self.tokenizer = LLTokenizer(TokenizerWrapper(vocabulary))
        self.words = numpy.zeros((len(vocabulary.tokens) + 31) // 32, dtype=numpy.uint32)

    def compile(self, schema):
        begin = time.perf_counter_ns()
        grammar = self.matcher_of.grammar_from_json_schema(json.dumps(schema))
        self.first = self.matcher_of(self.tokenizer, grammar)
        if self.first.is_error():
            raise ValueError(self.first.get_error())
        return time.perf_counter_ns() - begin

    def begin(self):
        self.matcher = self.first.deep_copy()

    def mask(self):
        begin = time.perf_counter_ns()
        self.matcher.unsafe_compute_mask_ptr(self.words.ctypes.data, self.words.nbytes)
        return self.words, time.perf_counter_ns() - begin

    def accept(self, token):
        self.matcher.consume_token(token)


class Xgrammar:
    def __init__(self, vocabulary):
        import xgrammar
        self.xgrammar = xgrammar
        special = set(vocabulary.special_token_ids)
        tokens = [b"" if i in special else t for i, t in enumerate(vocabulary.tokens)]
        info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, stop_token_ids=[vocabulary.eos_token_id])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.words = xgrammar.allocate_token_bitmask(1, len(tokens))

    def compile(self, schema):
        begin = time.perf_counter_ns()
        try:
            self.grammar = self.compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)
        except RuntimeError as error:
            raise ValueError(str(error)) from error
        return time.perf_counter_ns() - begin

    def begin(self):
        self.matcher = self.xgrammar.GrammarMatcher(self.grammar)

    def mask(self):
        begin = time.perf_counter_ns()
        all_allowed = not self.matcher.fill_next_token_bitmask(self.words)
        elapsed = time.perf_counter_ns() - begin
        words = self.words.numpy()[0].view(numpy.uint32)
        return (numpy.full_like(words, 0xFFFFFFFF) if all_allowed else words), elapsed

    def accept(self, token):
        self.matcher.accept_token(token)


class LongestTokens(grammar_vocabulary.Vocabulary):
    """A tokenizer that takes the longest token at each place, as llguidance asks one where bytes are forced."""

    def __init__(self, vocabulary):
        super().__init__(vocabulary.tokens, vocabulary.special_token_ids)
        special = set(vocabulary.special_token_ids)
        self.ids = {t: i for i, t in enumerate(vocabulary.tokens) if i not in special}
        self.longest = min(max(map(len, self.ids)), 64)

    def __call__(self, text):
        text, tokens, at = text.encode() if isinstance(text, str) else text, [], 0
        while at < len(text):
            size = next(n for n in range(min(self.longest, len(text) - at), 0, -1) if text[at:at + n] in self.ids)
            tokens.append(self.ids[text[at:at + size]])
            at += size
        return tokens


def answer_of(vocabulary, value):
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return vocabulary(text) + [vocabulary.eos_token_id]


def cases_of(path, draft):
    """The name, schema and tests of each case of a file."""
    content = json.loads(path.read_text())
    for case in content if isinstance(content, list) else [content]:
        name, schema = path.stem, case["schema"]
        if isinstance(content, list):
            name += f": {case['description']}"
        if draft and isinstance(schema, dict) and "$schema" not in schema:
            schema = {"$schema": draft} | schema
        yield name, schema, case["tests"]


class Results:
    def __init__(self):
        self.passed, self.refused, self.rejected, self.accepted = 0, [], [], []
        self.firsts, self.masks = [], []

    def follow(self, engine, tokens):
        """Whether the tokens, and then the end, are allowed."""
        engine.begin()
        for token in tokens:
            words, elapsed = engine.mask()
            self.masks.append(elapsed)
            if not has_bit(words, token):
                return False
            engine.accept(token)
        return True

    def judge(self, engine, name, schema, tests):
        try:
            start = engine.compile(schema)
        except ValueError as error:
            self.refused.append(f"{name}: {error}")
            return
        engine.begin()
        self.firsts.append(start + engine.mask()[1])
        verdicts = [(self.follow(engine, tokens), valid) for tokens, valid in tests]
        if any(valid and not taken for taken, valid in verdicts):
            self.rejected.append(name)
        if any(taken and not valid for taken, valid in verdicts):
            self.accepted.append(name)
        self.passed += all(taken == valid for taken, valid in verdicts)

    def line(self, name, count):
        first, masks = numpy.array(self.firsts or [0]) / 1e6, numpy.array(self.masks or [0]) / 1e3
        return (f"{name:12} {self.passed:6} {100 * self.passed / count:7.2f} {len(self.refused):8} "
                f"{len(self.rejected):9} {len(self.accepted):9} | {numpy.median(first):7.2f} "
                f"{numpy.quantile(first, 0.99):8.1f} | {masks.mean():8.1f} {numpy.quantile(masks, 0.99):8.0f} "
                f"{numpy.quantile(masks, 0.999):8.0f}")


def open_engine(name, vocabulary, program, path):
    if name == "gumbel":
        return Gumbel(vocabulary, program, path)
    return {"llguidance": Llguidance, "xgrammar": Xgrammar}[name](vocabulary)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--draft")
    parser.add_argument("--gguf")
    parser.add_argument("--size", type=int, default=131072)
    parser.add_argument("--every", type=int, default=1, help="only each N-th schema")
    parser.add_argument("--engines", default="gumbel,llguidance")
    parser.add_argument("--list", action="store_true", help="names what is refused or judged wrongly")
    options = parser.parse_args()
    vocabulary = grammar_vocabulary.of_gguf(options.gguf) if options.gguf else grammar_vocabulary.synthetic(options.size)
    tokens, files = LongestTokens(vocabulary), sorted(options.folder.glob("*.json"))
    cases = [case for path in files for case in cases_of(path, options.draft)][::options.every]
    results = {name: Results() for name in options.engines.split(",")}
    with tempfile.NamedTemporaryFile() as file:
        engines = {name: open_engine(name, tokens, options.program, file.name) for name in results}
        for case, schema, tests in cases:
            answers = [(answer_of(tokens, test["data"]), test["valid"]) for test in tests]
            for name, engine in engines.items():
                results[name].judge(engine, case, schema, answers)
    print(f"{len(cases)} schemas, {len(vocabulary.tokens)} tokens\n{'':12} passed       % refused "
          f"val.rej. inv.acc. | first: p50      p99 |     mask    99 %   99.9 %")
    for name, result in results.items():
        print(result.line(name, len(cases)))
        for kind in ("refused", "rejected", "accepted") if options.list else ():
            print(*(f"  {kind} {item}" for item in getattr(result, kind)), sep="\n")


if __name__ == "__main__":
    main()
