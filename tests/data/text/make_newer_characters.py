#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print the table of src/text/tokenizer/newer_characters.c: letters, marks, numbers, punctuation and symbols that came to
Unicode after version 9.0, as the regular expressions of the `tokenizers` package (Oniguruma) know them.

    make_newer_characters.py >src/text/tokenizer/newer_characters.def

Needs: tokenizers; perl, whose Unicode tables know since when a character exists.
"""
import subprocess
import unicodedata

from tokenizers import Regex, pre_tokenizers

CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
PERL = r"for (0 .. 0x10FFFF) { no warnings; print qq($_\n) if chr($_) !~ /\p{Present_In: 9.0}/ }"

HEADER = """\
/* SPDX-License-Identifier: Apache-2.0
 *
 * Letters, marks, numbers, punctuation and symbols that Unicode has had since some version after 9.0, up to 16.0.
 *
 *     GB_NEWER(first, last, class)
 *
 * In ascending order. Inert older characters of the same class are inside of ranges, which saves some of them. U+180E
 * is here because pcre2 calls it white space, and Oniguruma does not. Made by tests/data/text/make_newer_characters.py.
 */
"""


def matching(expression):
    remover, found = pre_tokenizers.Split(Regex(expression), "removed"), set()
    for i in range(0, len(CHARACTERS), 4096):
        block = CHARACTERS[i:i + 4096]
        kept = {ord(c) for text, _ in remover.pre_tokenize_str("".join(map(chr, block))) for c in text}
        found.update(c for c in block if c not in kept)
    return found


def is_inert(c):
    """Whether the NFC of any text has the character where the text has it, without regard to its neighbours."""
    return unicodedata.combining(chr(c)) == 0 and unicodedata.normalize("NFD", chr(c)) == chr(c) and c not in PARTS


# No title case letter is newer.
KINDS = (("UPPER", r"\p{Lu}"), ("LOWER", r"\p{Ll}"), ("MODIFIER", r"\p{Lm}"), ("LETTER", r"\p{Lo}"), ("MARK", r"\p{M}"),
         ("NUMBER", r"\p{N}"), ("PUNCTUATION", r"\p{P}"), ("SYMBOL", r"\p{S}"))
PARTS = {ord(p) for c in CHARACTERS for d in [unicodedata.normalize("NFD", chr(c))] if len(d) > 1 for p in d}


def main():
    newer = set(map(int, subprocess.run(["perl", "-e", PERL], capture_output=True, text=True).stdout.split()))
    ranges = []
    for name, expression in KINDS:
        members, run = matching(expression), None
        for c in CHARACTERS:
            if c not in members or (c not in newer and not (run and is_inert(c))):
                run = None
            elif run is None:
                run = [c, c, name]
                ranges.append(run)
            elif c in newer:
                run[1] = c
    ranges.append([0x180E, 0x180E, "OTHER"])
    lines = [f"GB_NEWER({first:#x}, {last:#x}, {name})" for first, last, name in sorted(ranges)]
    print(HEADER + "\n".join(" ".join(lines[i:i + 3]) for i in range(0, len(lines), 3)))


main()
