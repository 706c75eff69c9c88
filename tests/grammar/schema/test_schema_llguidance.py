# SPDX-License-Identifier: Apache-2.0
"""Schemas by the package llguidance: after each byte of a text both allow the same bytes to follow."""
import collections
import re
import unittest

from cases import Probe, all_schemas, need

llguidance = need("llguidance")
WALKS = 4
END = 256


class Bytes:
    """A tokenizer whose tokens are the bytes."""
    eos_token_id, bos_token_id, unk_token_id = END, None, None
    tokens = [bytes([byte]) for byte in range(256)] + [b"<end>"]
    special_token_ids = [END]
    all_special_tokens, all_special_ids = ["<end>"], [END]

    def __call__(self, text):
        return list(text if isinstance(text, bytes) else text.encode())


TOKENIZER = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()), n_vocab=257)


def peer_masks(schema, text):
    """The masks of each prefix, or None for a schema that is refused."""
    grammar = llguidance.LLMatcher.grammar_from_json_schema(
        schema if isinstance(schema, dict) else {"anyOf": [schema]},
        overrides={"whitespace_flexible": False, "json_allow_general_unicode_escapes": True})
    matcher = llguidance.LLMatcher(TOKENIZER, grammar, log_level=0)
    if matcher.is_error():
        return None
    masks = []
    for byte in [*text.encode(), None]:
        bits = matcher.compute_bitmask()
        masks.append({token for token in range(257) if bits[token // 8] >> token % 8 & 1})
        if byte is None or not matcher.consume_token(byte):
            break
    return masks


def own_masks(answer, index):
    def read(text):
        bits = bytes.fromhex(text[:64])
        return {byte for byte in range(256) if bits[byte // 8] >> byte % 8 & 1} | ({END} if text[64] == "1" else set())
    return [read(text) for text in answer["masks"][index]]


def has(schema, keyword, *values):
    """Whether the keyword stands anywhere in the schema, with one of the values."""
    if isinstance(schema, dict):
        return ((keyword in schema and (not values or schema[keyword] in values)) or
                any(has(part, keyword, *values) for part in schema.values()))
    return isinstance(schema, list) and any(has(part, keyword, *values) for part in schema)


def codes(characters):
    return set(map(ord, characters))


BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "not")
EXCLUSIVE = ("exclusiveMinimum", "exclusiveMaximum", "not")


def is_bounded(schema):
    return any(has(schema, keyword) for keyword in BOUNDS)


# Why masks differ: name, and a function of the schema, the text so far, what is allowed here alone and by the peer alone.
REASONS = [
    ("U+007F stands in a string as it is; not with llguidance",
     lambda schema, text, more, less: more == {127} and not less),
    ("multiples of few units have at most 40 digits before the point",
     lambda schema, text, more, less: has(schema, "multipleOf") and not more and less <= codes("0123456789") and
     re.search(rb"[0-9]{39}$", text)),
    ("\\/ is an escape; not with llguidance",
     lambda schema, text, more, less: more == {ord("/")} and not less and text.endswith(b"\\")),
    ("a key that is not named, a listed string or one under a pattern has one spelling; llguidance has \\u00xx as well",
     lambda schema, text, more, less: not more and less <= codes("u0123456789abcdefABCDEF") and
     re.search(rb"\\(u[0-9a-f]{0,3})?$", text)),
    ("-0 is a number at least 0, and no integer under a bound; the other way round with llguidance",
     lambda schema, text, more, less: ((more | less) <= codes("-0") or text.endswith(b"-0")) and
     (is_bounded(schema) or has(schema, "format", "int32"))),
    ("zeros may stand behind the decimals of a number under a bound; not always with llguidance",
     lambda schema, text, more, less: not less and more <= codes("0.") | {END} and is_bounded(schema)),
    ("a number below 1 may have an exponent under a bound; not with llguidance",
     lambda schema, text, more, less: not less and more <= codes("-0123456789.eE") | {END} and is_bounded(schema) and
     re.search(rb"(^|[^0-9.-])-?([1-9](\.\d*)?([eE](-\d*)?)?)?$", text)),
    ("beside an exclusive bound a number has no more digits than a double tells apart",
     lambda schema, text, more, less: not more and less <= codes("0123456789") and
     any(has(schema, keyword) for keyword in EXCLUSIVE)),
    ("\\s has U+FEFF and not U+0085, as in ECMA 262",
     lambda schema, text, more, less: more <= {0xEF} and less <= {0x85} and has(schema, "pattern")),
    ("a leap second is one before midnight alone",
     lambda schema, text, more, less: not more and less <= codes("6") and has(schema, "format", "time", "date-time")),
    ("02-29 is in leap years alone, and there is no year 0000",
     lambda schema, text, more, less: not more and less <= codes("09") and has(schema, "format", "date", "date-time")),
    ("no address in brackets in email",
     lambda schema, text, more, less: not more and less == {ord("[")} and has(schema, "format", "email")),
    ("an IPv6 address may end in an IPv4 address",
     lambda schema, text, more, less: not less and more <= codes(".0123456789") and has(schema, "format", "ipv6", "uri")),
    ("nullable is honoured",
     lambda schema, text, more, less: more == {ord("n")} and not less and has(schema, "nullable")),
]


def reason_of(schema, text, own, peer):
    more, less = own - peer, peer - own
    for name, holds in REASONS:
        # U+007F comes along with the other reasons.
        if holds(schema, text, more, less) or (127 in more and holds(schema, text, more - {127}, less)):
            return name
    return None


class Agreement(unittest.TestCase):
    def test_masks(self):
        probe = Probe()
        options = {"space": "none", "in_order": True}
        counts, reasons = collections.Counter(), collections.Counter()
        for number, schema in enumerate(all_schemas()):
            drawn = probe.ask(schema, options, walks=WALKS, seed=number)
            if "error" in drawn:
                counts["refused here"] += 1
                continue
            texts = [text for is_whole, text in drawn["walks"] if is_whole]
            if peer_masks(schema, "") is None:
                counts["refused by llguidance"] += 1
                continue
            answer = probe.ask(schema, options, texts=texts, masks=True)
            counts["schemas"] += 1
            for index, text in enumerate(texts):
                for position, (own, peer) in enumerate(zip(own_masks(answer, index), peer_masks(schema, text))):
                    prefix = text.encode()[:position]
                    counts["masks"] += 1
                    counts["equal masks"] += own == peer
                    if own != peer:
                        reason = reason_of(schema, prefix, own, peer)
                        reasons[reason] += 1
                        with self.subTest(schema=schema, text=prefix, more=sorted(own - peer), less=sorted(peer - own)):
                            self.assertIsNotNone(reason)
        self.assertEqual(probe.close(), 0)
        print(dict(counts), *(f"{count} {reason}" for reason, count in reasons.most_common()), sep="\n")
        self.assertGreaterEqual(counts["schemas"], 300)


if __name__ == "__main__":
    unittest.main()
