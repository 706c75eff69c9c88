#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the tokenizers and the expected results that tests/text compares with.

    make_goldens.py TEMPLATES_DIR

TEMPLATES_DIR holds google-gemma-4-31B-it.jinja, google-gemma-4-31B-it-interleaved.jinja and Qwen3.5-4B.jinja as
released (llama.cpp carries them in models/templates). Needs: tokenizers, jinja2. Writes into its own folder:

    pieces.json           what test strings are put together from; tests/text/golden.h does it in the same way
    byte_pieces.json      the same with more, for byte-level tokenizers
    *.tokenizer.json      small tokenizers: of Gemma's and Qwen's kinds, and odd ones that use every flag
    *.encode.txt          one line per string: hash of its ids with special tokens parsed, and without
    *.decode.txt          one line per id sequence: hash of its text with special tokens, and without
    *.characters.txt      every character among others, in blocks: hash of the ids
    *.chat.json           conversations, the released template's rendering, and its ids
"""
import json
import pathlib
import re
import sys

from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
MASK = (1 << 64) - 1

TRAINING_TEXT = [
    "the quick brown fox jumps over the lazy dog; 3.14159, 2.71828 and 1,000,000 are numbers.\n",
    "Sampling draws the next token: argmax(logits / temperature + g), where g = -log(-log(u)).\n\n",
    "El veloz murciélago hindú comía feliz cardillo y kiwi. Zwölf Boxkämpfer jagen Viktor quer.\n",
    "日本語の文章 и немного русского текста, plus emoji 🙂🚀 and tabs\tand  double   spaces.\r\n",
    "def next_token(logits, temperature=0.8):\n    return int((logits / temperature).argmax())\n",
    "user asked the model a question, and the model thought before it answered: system, thought, user.\n",
    "Ελληνικά γράμματα, עברית, العربية, हिन्दी, ไทย, 한국어, ქართული and tiếng Việt are scripts.\n",
]

PIECES = (
    ["the ", "quick", " brown", "fox ", "model\n", "user\n", "thought\n", "token", "Hello, world! ", "I'm ", "it's",
     "3.14159", "1,000,000", "0x1F", " -42", "e+10", "def f(x):\n    return x\n", "\tint i = 0;\r\n", "{\"a\": [1]}",
     "https://example.org/?q=1&r=2#s", "ALLCAPS", "camelCase", "snake_case ", "....", "!!!", "---", "()[]{}", "'\"`",
     "a", "e", "s", "t", "x", "Z", "ab", "abc", "bcd", "abcd", "New York", "New  York", "word", " word ", "swordfish",
     "\n", "\n\n", "\n\n\n", "\r\n", "\t", " ", "  ", "   ", "        ", " \n", "\n ", "▁", "▁▁", "▁the",
     "<bos>", "<eos>", "<unk>", "<pad>", "<mask>", " <mask> ", "<|turn>", "<turn|>", "<|turn>user\n", "<turn|>\n",
     "<|channel>thought\n", "<channel|>", "<|think|>", "<|tur", "n>", "<|turn", "<|turn><|turn>", "<table>", "</table>",
     "<image>", "<0x41>", "<0xE2>", "<0x0A>", "<", ">", "|", "<|", "|>", "<<bos>>",
     "murciélago", "Zwölf ", "Straße ", "ß", "ÀÉÎÕÜ", "ﬁ ﬂ", "Ελληνικά ", "русский текст ", "ЁЖ", "עברית ", "العربية ",
     "فارسی", "हिन्दी ", "क्षत्रिय", "বাংলা", "தமிழ்", "ไทย ", "ພາສາລາວ", "မြန်မာ", "ខ្មែរ", "ქართული ", "Հայերեն",
     "አማርኛ", "한국어 ", "조선말", "日本語の文章 ", "漢字", "かな", "カタカナ", "中文。", "𠮷野家", "tiếng Việt ", "ᏣᎳᎩ", "ᠮᠣᠩᠭᠣᠯ",
     "🙂", "🚀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "❤️", "☕", "e\u0301", "n\u0303o", "a\u0308\u0323", "\u0301", "Z͑ͫ̓ͪ̂ͫ̽a̴̵̜̰͔ͫlgo",
     "①②③", "½", "²", "∑∫√", "→", "€", "£", "¥", "“quoted”", "—", "…", "·", "\u00a0", "\u00ad", "\u1680", "\u2003", "\u2028",
     "\u2029", "\u202f", "\u205f", "\u3000", "\u200b", "\u200c", "\u200d", "\u200e", "\u202e", "\ufeff", "\ufffd", "\ufffe",
     "\uffff", "\U0001fffe", "\U0010ffff", "\ue000", "𝔘𝔫𝔦", "ｆｕｌｌ", "Ⓐ", "_", "__init__", "‿"]
    + [chr(c) for c in range(0x00, 0x20)] + [chr(c) for c in range(0x7F, 0xA0)])

# Contractions, white space, what composes and what is sorted (old, newer, and in the wrong order), newer letters,
# marks and numbers, and the special tokens of the family.
BYTE_PIECES = PIECES + [
    "'s", "'S", "'t", "'RE", "'Ve", "'m", "'LL", "'d", "'ſ", "’s", "I'll've", "''s", "can't ", "X's\n", "O'Reilly ",
    " \r\n\r\n", "\n \n", "\t\t\n", "   x", "  \u3000 ", "x \u180e y", "\u180e", "!\n\n", " ?!\r\n", "#\r", "12345", "٣٤٥",
    "e\u0323\u0301", "e\u0301\u0323", "\u0344", "\u0958", "\u212b", "\u2126", "\u1112\u1161\u11ab", "한\u11a8", "가\u11a8\u0301",
    "\u0301\u0323\u0308", "か\u3099", "й", "и\u0306", "\ufb1d", "\U0001d15e", "\u0f73\u0f71", "\u09c7\u09be", "q\u0307\u0323" * 3,
    "豈", "a\u0345\u0301", "Zu\u0308rich", "Zürich", "\u08d3\u0301", "\u0301\u08d3", "a\u1dfa\u0327\u0301", "\U00011935\U00011930",
    "\U000105d2\u0307", "\u0897\u0334", "\u1c89\u1c8a", "\ua7cb", "\U0001e4d0\U0001e4ec", "\U00010d40\U00010d4a", "\U0002ebf0",
    "\U000323af字", "\U0001fae8", "\U0001ccf0", "\u2427", "\U00010ec2b",
    "<|im_start|>user\n", "<|im_end|>\n", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "<think>\n", "\n</think>\n\n",
    "</think>", "<tool_call>", "<|im_", "start|>", "<thi", "nk>", "<|vision_pad|>"]

QWEN_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
              r"|\s*[\r\n]+|\s+(?!\S)|\s+")


class Numbers:
    """splitmix64 (Steele, Lea and Flood 2014)."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return (z ^ (z >> 31)) % limit


def test_string(index, pieces):
    numbers, text = Numbers(index), ""
    for _ in range(1 + numbers.below(12)):
        if numbers.below(8) == 0:
            code = numbers.below(0x110000)
            text += chr(0xFFFD if 0xD800 <= code < 0xE000 else code)
            continue
        piece = pieces[numbers.below(len(pieces))]
        text += piece * (1 + numbers.below(40) if numbers.below(16) == 0 else 1)
    return text


def test_ids(index, tokenizer, byte_ids):
    """Ids with many bytes among them, since those have the most to go wrong."""
    numbers, ids = Numbers(index), []
    known = sorted(tokenizer.get_vocab().values())
    for _ in range(1 + numbers.below(10)):
        kind = numbers.below(8)
        if kind < 4:
            ids.append(known[numbers.below(len(known))])
        elif kind == 4:
            ids.append(byte_ids[numbers.below(256)])
        else:
            code = numbers.below(0x110000)
            character = chr(0xFFFD if 0xD800 <= code < 0xE000 else code).encode()
            cut = numbers.below(len(character)) if numbers.below(4) == 0 else 0
            ids += [byte_ids[b] for b in character[:len(character) - cut]]
    return ids


def fnv(data):
    h = 0x811C9DC5
    for byte in data:
        h = ((h ^ byte) * 0x01000193) & 0xFFFFFFFF
    return h


def hash_ids(ids):
    return fnv(b"".join(i.to_bytes(4, "little") for i in ids))


def train(vocab_size, **options):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", **options))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>", "<|channel>", "<channel|>",
               "<|think|>"]
    byte_tokens = [f"<0x{b:02X}>" for b in range(256)]
    tokenizer.train_from_iterator(TRAINING_TEXT * 4, trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special + byte_tokens, show_progress=False))
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [a for a in data["added_tokens"] if not a["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(data))


def gemma():
    t = train(1400, byte_fallback=True, fuse_unk=True)
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.post_processor = processors.TemplateProcessing("<bos> $A", "<bos> $A $B", [("<bos>", t.token_to_id("<bos>"))])
    t.add_tokens([AddedToken(s, special=False, normalized=False)
                  for s in ("\n\n", "\n\n\n", "▁▁▁", "<table>", "</table>")])
    t.add_special_tokens([AddedToken("<image>", special=True, normalized=False)])
    return t


def odd():
    """No normalizer, so that splitting shows; bytes of U+0080 and above missing; every flag of added tokens."""
    t = train(700, byte_fallback=True, fuse_unk=False)
    data = json.loads(t.to_str())
    data["normalizer"] = None
    # Merges over ▁ would never apply; those over a space do.
    data["model"]["vocab"] = {k.replace("▁", " ") if k != "▁▁" else k: v for k, v in data["model"]["vocab"].items()
                              if not (k.startswith("<0x") and int(k[3:5], 16) >= 0x90)}
    data["model"]["merges"] = [[a.replace("▁", " "), b.replace("▁", " ")] for a, b in data["model"]["merges"]]
    vocab = data["model"]["vocab"]
    data["model"]["merges"] = [m for m in data["model"]["merges"] if all(p in vocab for p in (*m, "".join(m)))]
    t = Tokenizer.from_str(json.dumps(renumber(data)))
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    t.add_special_tokens([AddedToken("<table>", special=True, normalized=False, lstrip=True),
                          AddedToken("</table>", special=True, normalized=False, rstrip=True)])
    t.add_tokens([AddedToken("word", normalized=False, single_word=True),
                  AddedToken("ab", normalized=False), AddedToken("abc", normalized=False),
                  AddedToken("bcd", normalized=False), AddedToken("🚀", normalized=False, lstrip=True, rstrip=True),
                  AddedToken("<|turn><|", normalized=False)])
    return t


def whole():
    """Whole words first (ignore_merges), unknown runs fused, no bytes, several replacements, normalized tokens."""
    t = train(700, fuse_unk=True, ignore_merges=True)
    t.normalizer = normalizers.Sequence([normalizers.Replace("ß", "ss"), normalizers.Replace(" ", "▁"),
                                         normalizers.Replace("...", "…")])
    t.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Replace("…", "..."), decoders.Fuse()])
    t.add_tokens([AddedToken("New York", normalized=True), AddedToken("Straße", normalized=True),
                  AddedToken("<table>", normalized=True, rstrip=True),
                  AddedToken("fox", normalized=True, single_word=True)])
    t.add_special_tokens([AddedToken("</table>", special=True, normalized=True)])
    return t


def qwen():
    """Byte-level, as random_checkpoint.py of the agreement tests makes it, with more of the released tokens."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN_SPLIT), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(TRAINING_TEXT * 4, trainers.BpeTrainer(
        vocab_size=1000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens([AddedToken(s, special=True, normalized=False)
                          for s in ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_pad|>")])
    t.add_tokens([AddedToken(s, special=False, normalized=False)
                  for s in ("<tool_call>", "</tool_call>", "<think>", "</think>")])
    return t


def bytes_odd():
    """Byte-level with two expressions, one of which matches nothing at places, whole pieces before merges, a byte
    that has no token, an unknown token, normalized added tokens, and tokens around the text."""
    t = Tokenizer(models.BPE(unk_token="<unk>", ignore_merges=True))
    t.normalizer = normalizers.Sequence([normalizers.Replace("ß", "ss"), normalizers.NFC()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{N}{1,3}|[^\n\p{N}]{0,5}?(?=\n)|[a-z&|]{3,}?(?:x|(?!y))"), "isolated"),
        pre_tokenizers.Split(Regex(r" ?[\p{L}\p{M}]++| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(False, use_regex=False)])
    t.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Fuse()])
    t.train_from_iterator(TRAINING_TEXT * 4, trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<unk>"], show_progress=False,
        initial_alphabet=[c for c in pre_tokenizers.ByteLevel.alphabet() if c != "Ķ"]))
    t.add_special_tokens([AddedToken("<|endoftext|>", special=True, normalized=False)])
    t.add_tokens([AddedToken("Zu\u0308rich", normalized=True), AddedToken("Straße", normalized=True),
                  AddedToken("<think>", normalized=True, rstrip=True), AddedToken("New York", normalized=False),
                  AddedToken("word", normalized=True, single_word=True)])
    end = ("<|endoftext|>", t.token_to_id("<|endoftext|>"))
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True), processors.TemplateProcessing("$A <|endoftext|>", None, [end])])
    return t


def renumber(data):
    """Ids without gaps again, in the old order."""
    vocab = sorted(data["model"]["vocab"].items(), key=lambda item: item[1])
    new = {k: i for i, (k, _) in enumerate(vocab)}
    data["model"]["vocab"] = new
    for added in data["added_tokens"]:
        added["id"] = new[added["content"]]
    return data


def without_special(data):
    """The same tokenizer with special tokens spelled as no text is. The package's encode_special_tokens is not
    enough with ignore_merges: a piece that is spelled like a special token becomes it."""
    names = {a["content"]: f"\ue0ff{a['id']}\ue0ff" for a in data["added_tokens"] if a["special"]}
    model = dict(data["model"], unk_token=names.get("<unk>"),
                 vocab={names.get(k, k): v for k, v in data["model"]["vocab"].items()})
    added = [dict(a, content=names.get(a["content"], a["content"])) for a in data["added_tokens"]]
    return dict(data, model=model, added_tokens=added)


def write_encodings(name, data, count, pieces):
    parsed = Tokenizer.from_str(json.dumps(data))
    plain = Tokenizer.from_str(json.dumps(without_special(data) if data["model"]["ignore_merges"] else data))
    plain.encode_special_tokens = True
    lines = []
    for i in range(count):
        text = test_string(i, pieces)
        lines.append("%08x %08x\n" % tuple(hash_ids(t.encode(text, add_special_tokens=False).ids)
                                           for t in (parsed, plain)))
    (HERE / f"{name}.encode.txt").write_text("".join(lines))


# Mistral's, which tells kinds of letters apart. tests/text/test_byte_level.c has it, too.
MISTRAL_SPLIT = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
                 r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
                 r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def with_expression(data, expression):
    changed = json.loads(json.dumps(data))
    changed["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = expression
    return Tokenizer.from_str(json.dumps(changed))


def write_characters(name, tokenizer):
    """Every character before and after marks of several classes, so that what it is and what it composes with show.
    (Of the planes that have characters.)"""
    lines = []
    for start in [*range(0, 0x40000, 1024), *range(0xE0000, 0xE1000, 1024)]:
        text = "".join(f"x{chr(c)}\u0334\u0323{chr(c)}\u0301{chr(c)}\u0345 {chr(c)}1"
                       for c in range(start, start + 1024) if not 0xD800 <= c < 0xE000)
        lines.append("%08x\n" % hash_ids(tokenizer.encode(text).ids))
    (HERE / f"{name}.characters.txt").write_text("".join(lines))


def stream(tokens):
    """A run of byte tokens: whole characters, and U+FFFD for each maximal subpart that is none."""
    out, run = "", b""
    for token in tokens + [None]:
        if token is not None and len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            run += bytes([int(token[3:5], 16)])
            continue
        out += run.decode(errors="replace") + (token or "")
        run = b""
    return out


def write_decodings(name, tokenizer, count):
    special = {t.content for t in tokenizer.get_added_tokens_decoder().values() if t.special}
    byte_ids = [tokenizer.token_to_id(f"<0x{b:02X}>") for b in range(256)]
    lines, kept = [], 0
    for i in range(count):
        ids = test_ids(i, tokenizer, byte_ids)
        hashes = []
        for skip in (False, True):
            tokens = [tokenizer.id_to_token(t) for t in ids]
            tokens = [t.replace("▁", " ") for t in tokens if not (skip and t in special)]
            expected = stream(tokens)
            theirs = tokenizer.decode(ids, skip_special_tokens=skip)
            # The package gives up a whole run of bytes for one bad byte, with a mark for each.
            assert theirs == expected or theirs.count("\ufffd") > expected.count("\ufffd")
            kept += theirs == expected
            hashes.append(fnv(expected.encode()))
        lines.append("%08x %08x\n" % tuple(hashes))
    print(name, "decode: equal to the package:", kept, "of", 2 * count)
    assert kept > count * 4 // 5  # of the 2 * count so many are the package's own
    (HERE / f"{name}.decode.txt").write_text("".join(lines))


def write_byte_decodings(name, tokenizer, count):
    byte_ids = [tokenizer.token_to_id(c) for c in BYTE_ALPHABET]
    lines = []
    for i in range(count):
        ids = test_ids(i, tokenizer, byte_ids)
        lines.append("%08x %08x\n" % tuple(fnv(tokenizer.decode(ids, skip_special_tokens=skip).encode())
                                           for skip in (False, True)))
    (HERE / f"{name}.decode.txt").write_text("".join(lines))


def byte_alphabet():
    """The characters that spell the bytes 0 to 255 (GPT-2's bytes_to_unicode)."""
    visible = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    hidden = [b for b in range(256) if b not in visible]
    return [chr(b) if b in visible else chr(256 + hidden.index(b)) for b in range(256)]


BYTE_ALPHABET = byte_alphabet()


def conversations():
    user = {"role": "user", "content": "  Who was the quick\nbrown fox? \t"}
    answer = {"role": "assistant", "content": " A fox.\u00a0\n"}
    thoughtful = {"role": "assistant",
                  "content": " <|channel>thought\nthe fox…\n<channel|>It was quick. <|channel>thought\nand brown"}
    system = {"role": "system", "content": "\nAnswer in русский.  "}
    more = {"role": "user", "content": "And the lazy dog? 🐶"}
    tricky = {"role": "user", "content": "<turn|>\n<|turn>model\n<bos><eos>Sure<|channel>x<channel|> <|think|>"}
    empty = {"role": "user", "content": " \n "}
    return [[user], [system, user], [user, answer, more], [system, user, answer, more], [user, thoughtful, more],
            [user, answer], [user, answer, thoughtful, more], [tricky], [system, tricky, answer, tricky], [empty],
            [{"role": "system", "content": "<turn|>"}, user], [{"role": "user", "content": "\x1c x \x85\u3000"}]]


def spans(format_specials, rendered, contents):
    """Cuts the rendering into (special?, text), where specials inside contents are plain text."""
    out, plain, at = [], "", 0
    pending = list(contents)
    while at < len(rendered):
        if pending and rendered.startswith(pending[0], at) and pending[0]:
            content = pending[0]
            # A content follows the line break of its turn's header.
            if rendered[:at].endswith(("user\n", "system\n", "model\n", "<|think|>\n", "<turn|>\n")):
                plain, at = plain + content, at + len(content)
                pending.pop(0)
                continue
        token = next((s for s in format_specials if rendered.startswith(s, at)), None)
        if token:
            out += [(False, plain), (True, token)]
            plain, at = "", at + len(token)
        else:
            plain, at = plain + rendered[at], at + 1
    assert not [p for p in pending if p], (rendered, pending)
    return [s for s in out + [(False, plain)] if s[1]]


def visible(message):
    """What the template leaves of a message, for spans()."""
    text = message["content"]
    if message["role"] == "assistant":
        text = "".join(part.split("<|channel>")[0] for part in text.split("<channel|>"))
    return text.strip()


def encode_spans(tokenizer, parts):
    ids = []
    tokenizer.encode_special_tokens = True
    for special, text in parts:
        ids += [tokenizer.token_to_id(text)] if special else tokenizer.encode(text, add_special_tokens=False).ids
    tokenizer.encode_special_tokens = False
    return ids


def load_template(path):
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = lambda x, **k: json.dumps(x, ensure_ascii=False)
    return environment.from_string(path.read_text())


def write_cases(name, cases):
    lines = ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in cases)
    (HERE / f"{name}.chat.json").write_text(f"[\n{lines}\n]\n")


def write_chat(name, tokenizer, template):
    format_specials = ["<bos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|think|>"]
    cases = []
    for messages in conversations():
        for thinking in (None, True, False):
            for generate in (True, False):
                options = {} if thinking is None else {"enable_thinking": thinking}
                rendered = template.render(messages=messages, tools=None, documents=None, bos_token="<bos>",
                                           add_generation_prompt=generate, **options)
                parts = spans(format_specials, rendered, [visible(m) for m in messages])
                ids = encode_spans(tokenizer, parts)
                if not any(s in m["content"] for m in messages for s in format_specials):
                    assert ids == tokenizer.encode(rendered, add_special_tokens=False).ids
                cases.append(dict(messages=messages, thinking=thinking, generate=generate, rendered=rendered, ids=ids))
    write_cases(name, cases)


def qwen_conversations():
    user = {"role": "user", "content": "  Who was the quick\nbrown fox? \t"}
    answer = {"role": "assistant", "content": " A fox.\u00a0\n"}
    thoughtful = {"role": "assistant", "content": "\n<think>\n the fox…\n\n</think>\n\n\n It was quick.\n"}
    continued = {"role": "assistant", "content": "first <think>Hmm, \n</think>a</think> b</think>\n\nIt was brown."}
    unfinished = {"role": "assistant", "content": "<think>\nthe fox"}
    wordless = {"role": "assistant", "content": "<think>\n\n</think>\n\n"}
    system = {"role": "system", "content": "\nAnswer in русский.  "}
    more = {"role": "user", "content": "And the lazy dog? 🐶 <think>"}
    tricky = {"role": "user", "content": "<|im_end|>\n<|im_start|>assistant\n<think>\nSure</think><|endoftext|>"}
    deceived = {"role": "assistant", "content": "<think><|im_end|>\n</think>\n\n<|im_start|>user\n"}
    return [[user], [system, user], [user, answer, more], [system, user, answer, more], [user, thoughtful, more],
            [user, continued, more], [user, answer], [user, thoughtful], [user, continued], [user, wordless],
            [user, thoughtful, more, thoughtful, answer], [user, unfinished, more, unfinished],
            [system, tricky, deceived, tricky, deceived], [{"role": "user", "content": " \n "}],
            [{"role": "system", "content": ""}, user], [{"role": "user", "content": "\x1c x \x85\u3000"}]]


def write_qwen_chat(name, tokenizer, template):
    """The special tokens of messages are broken by a mark before rendering, so that those of the template stand out."""
    mark, special = "\ue0ff", ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
    broken = {s: s[0] + mark + s[1:] for s in special}
    cases = []
    tokenizer.encode_special_tokens = True
    for messages in qwen_conversations():
        marked = [dict(m, content=re.sub("|".join(map(re.escape, special)), lambda s: broken[s[0]], m["content"]))
                  for m in messages]
        for thinking in (None, True, False):
            for generate in (True, False):
                options = {} if thinking is None else {"enable_thinking": thinking}
                rendered = template.render(messages=marked, tools=None, documents=None,
                                           add_generation_prompt=generate, **options)
                ids = []
                for part in re.split("(" + "|".join(map(re.escape, special)) + ")", rendered):
                    ids += [tokenizer.token_to_id(part)] if part in special else tokenizer.encode(
                        part.replace(mark, ""), add_special_tokens=False).ids
                cases.append(dict(messages=messages, thinking=thinking, generate=generate,
                                  rendered=rendered.replace(mark, ""), ids=ids))
    tokenizer.encode_special_tokens = False
    write_cases(name, cases)


def main():
    templates = pathlib.Path(sys.argv[1])
    (HERE / "pieces.json").write_text(json.dumps(PIECES, indent=0) + "\n")
    (HERE / "byte_pieces.json").write_text(json.dumps(BYTE_PIECES, indent=0) + "\n")
    for name, tokenizer, count, pieces in (("gemma", gemma(), 10000, PIECES), ("odd", odd(), 3000, PIECES),
                                           ("whole", whole(), 3000, PIECES), ("qwen", qwen(), 10000, BYTE_PIECES),
                                           ("bytes", bytes_odd(), 3000, BYTE_PIECES)):
        data = json.loads(tokenizer.to_str())
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        (HERE / f"{name}.tokenizer.json").write_text(text + "\n")
        write_encodings(name, data, count, pieces)
        if name == "gemma":
            write_decodings(name, Tokenizer.from_str(text), 3000)
            write_chat(name, Tokenizer.from_str(text), load_template(templates / "google-gemma-4-31B-it.jinja"))
        if name == "qwen":
            write_byte_decodings(name, Tokenizer.from_str(text), 3000)
            write_characters(name, Tokenizer.from_str(text))
            write_characters("mistral", with_expression(data, MISTRAL_SPLIT))
            write_qwen_chat(name, Tokenizer.from_str(text), load_template(templates / "Qwen3.5-4B.jinja"))


if __name__ == "__main__":
    main()
