# SPDX-License-Identifier: Apache-2.0
"""Vocabularies for the scripts that compare and time grammars: those of the bundled tokenizers, and a synthetic one
of any size with the kinds of tokens that large ones have (words with and without a space, code, numbers, white
space, other scripts, parts of characters)."""
import json
import random
import re
import struct

# Alphabets of syllables: code points, and how many characters a word has at most.
SCRIPTS = [(0x410, 0x44F, 9), (0x3B1, 0x3C9, 9), (0x5D0, 0x5EA, 7), (0x627, 0x64A, 8), (0x905, 0x939, 6),
           (0xE01, 0xE2E, 7), (0x3041, 0x3096, 4), (0x30A1, 0x30FA, 5), (0x4E00, 0x9FA5, 4), (0xAC00, 0xD7A3, 3),
           (0xC0, 0x17F, 8), (0x1F300, 0x1F64F, 2)]


def byte_characters():
    """What byte-level tokenizers write for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {**{chr(b): b for b in plain}, **{chr(256 + i): b for i, b in enumerate(others)}}


class Vocabulary:
    def __init__(self, tokens, special):
        """tokens: bytes by id. special: ids without bytes; the first one ends an answer."""
        self.tokens, self.special_token_ids = tokens, special
        self.eos_token_id = self.bos_token_id = special[0]
        self.one_byte = {t[0]: i for i, t in enumerate(tokens) if len(t) == 1}

    def __call__(self, text):
        """As llguidance asks: some tokens of the text."""
        return [self.one_byte[b] for b in (text.encode() if isinstance(text, str) else text) if b in self.one_byte]

    def write(self, path):
        """As grammar_masks reads it."""
        special = set(self.special_token_ids)
        with open(path, "wb") as file:
            for i, token in enumerate(self.tokens):
                file.write(struct.pack("<I", 0) if i in special else struct.pack("<I", len(token)) + token)


def bundled(path):
    """That of a tokenizer.json, as tests of one model have it."""
    data = json.load(open(path))
    model, added = data["model"], {t["id"]: t for t in data["added_tokens"]}
    spellings = {i: s for s, i in model["vocab"].items()} | {i: t["content"] for i, t in added.items()}
    byte_level = "ByteLevel" in json.dumps(data["decoder"])
    characters = byte_characters()

    def to_bytes(i, spelling):
        if i in added:
            return spelling.encode()
        if byte_level:
            return bytes(characters[c] for c in spelling)
        byte = re.fullmatch("<0x([0-9A-F]{2})>", spelling)
        return bytes([int(byte[1], 16)]) if byte else spelling.replace("\u2581", " ").encode()

    tokens = [to_bytes(i, spellings.get(i, f"<unused{i}>")) for i in range(max(spellings) + 1)]
    special = [i for i in range(len(tokens)) if i not in spellings or (i in added and added[i]["special"])]
    return Vocabulary(tokens, special)


def of_gguf(path):
    """That of a GGUF file; needs the package gguf."""
    from gguf import GGUFReader
    fields = GGUFReader(path).fields
    byte_level = fields["tokenizer.ggml.model"].contents() == "gpt2"
    characters, tokens = byte_characters(), []
    kinds = fields["tokenizer.ggml.token_type"].contents()
    for spelling, kind in zip(fields["tokenizer.ggml.tokens"].contents(), kinds):
        byte = re.fullmatch("<0x([0-9A-F]{2})>", spelling)
        if byte:
            tokens.append(bytes([int(byte[1], 16)]))
        elif byte_level and all(c in characters for c in spelling):
            tokens.append(bytes(characters[c] for c in spelling))
        else:
            tokens.append(spelling.replace("\u2581", " ").encode())
    end = fields["tokenizer.ggml.eos_token_id"].contents()
    special = [end] + [i for i, kind in enumerate(kinds) if kind not in (1, 4, 6) and i != end]
    return Vocabulary(tokens, special)


def synthetic(size, seed=1):
    draw = random.Random(seed)
    tokens = {bytes([b]): None for b in range(256)}

    def add(text):
        tokens.setdefault(text.encode() if isinstance(text, str) else text)

    for n in range(1000):
        add(str(n))
    for n in range(1, 33):
        for space in (" ", "\t", "\n", "\r\n", "=", "-", "*", "#", "_"):
            add(space * n)
        add("\n" + " " * n)
    signs = list("\"'`{}[]()<>:;,.!?/\\|@#$%^&*-_=+~")
    for _ in range(6000):
        add("".join(draw.choices(signs, k=draw.randint(1, 4))) + draw.choice(["", "", " ", "\n", "\n\n"]))
    onsets = "b c d f g h j k l m n p qu r s t v w x y z bl br ch cl cr dr fl gr ph pl pr sc sh sk sl sp st str th tr wh".split()
    vowels = "a e i o u ai ea ee ie io oo ou ow y".split()
    codas = ["", "", "", *"b d g k l m n p r s t x ck ct ll ld lt mp nd ng nk nt rd rm rn rt ss st th".split()]
    endings = ["", "", "", "s", "ed", "ing", "er", "ly", "tion", "able", "ment"]
    while len(tokens) < size * 55 // 100:
        word = "".join(draw.choice(onsets) + draw.choice(vowels) + draw.choice(codas)
                       for _ in range(draw.choices((1, 2, 3), (4, 5, 2))[0])) + draw.choice(endings)
        for form in (word, " " + word, word.capitalize(), " " + word.capitalize(), word.upper())[:draw.randint(1, 5)]:
            add(form)
        if draw.random() < 0.1:
            add(draw.choice(("_", ".", '"', "\\", "/", "(", "->", " '")) + word)
        if draw.random() < 0.05:
            add(word + draw.choice(("(", '":', '",', "();", "_", ".", "'")))
    while len(tokens) < size - 64:
        first, last, longest = draw.choice(SCRIPTS)
        word = "".join(chr(draw.randint(first, last)) for _ in range(draw.randint(1, longest)))
        add(word)
        if draw.random() < 0.3:
            add(" " + word)
        if draw.random() < 0.02:
            coded = word.encode()
            add(coded[:-1])
            add(coded[1:])
    ordinary = list(tokens)[:size - 64]
    draw.shuffle(ordinary)
    special = [f"<|special_{i}|>".encode() for i in range(64)]
    return Vocabulary(ordinary + special, list(range(size - 64, size)))
