# SPDX-License-Identifier: Apache-2.0
"""Grammars that gumbel and llguidance read alike. \\d, \\w and \\s are ASCII in one and Unicode in the other, so
classes are written out; so are general categories, of which both have tables of different Unicode versions."""

REGEXES = [
    r"a", r"abc", r"a|b|cd", r"(a|b)*c", r"[a-z]+", r"[a-z]{3}", r"[a-z]{2,5}", r"[a-z]{3,}", r"a{0,3}b{2}",
    r"[^a-z]+", r"[^\n]*", r".*", r".{1,20}", r".{10}x", r"(foo|bar|baz){1,4}", r"(ab|a)(bc|c)?", r"(a?){5}b",
    r"[A-Z][a-z]+( [A-Z][a-z]+)*", r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?",
    r"(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])(\.(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])){3}",
    r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}", r"https?://[^ \n/]+(/[^ \n]*)?", r"\+?[0-9 ()-]{7,20}",
    r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", r'"([^"\\\x00-\x1F\x7F]|\\["\\/bfnrt])*"',
    r'"[^"\\\x00-\x1F\x7F]{0,50}"', r'\{"name": "[^"\\\x00-\x1F\x7F]{1,30}", "age": [0-9]{1,3}\}',
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", r"#[0-9A-Fa-f]{3}([0-9A-Fa-f]{3})?", r"(yes|no|maybe)",
    r"(the|then|there|these|they|this|those)( [a-z]+){0,6}\.", r"[\u0400-\u04FF ]{1,40}", r"[\u4E00-\u9FFF]{2,10}。", r"[é-ü]+", r"(é|è|ê)+x", r"\x41\u0042[\x43-\x45]",
    r"(a|(b|(c|d)))+", r"((a|b){2,3}c){2}", r"(|a|bb)c", r"a**"[:2], r"(a*)*b", r"(a*b*){3}", r"(a|ab|abc)*d",
    r"[\-\]\\^]+", r"[a\-z]+", r"[+*?.()|{}$]+", r"\.\*\+\?\(\)\[\]\{\}\|\^\$", r"\t\n\r\f\v"[:6], r"a{2}{1}"[:4],
    r"(?:ab)+", r"(?P<name>ab)+", r"[a-z]*?x", r"x.{0,100}y", r"([a-z]{1,10},){0,20}[a-z]{1,10}", r"(\[[0-9]+\])+",
    r"[^\x00-\x7F]+", r"([a-z]+\n){1,5}", r"( {4}[a-z]+\n)*", r"```(c|python)\n[^`]*```", r"[ab]{30}", r"[01]{64}",
    r"(0|1(01*0)*1)+", r"[a-z]*a[a-z]{6}", r"(a|b)*a(a|b){5}", r"(.*\n){3}", r"(cat|category|catalog|dog|dogma)s?",
    r"[A-Za-z]+(['-][A-Za-z]+)*([,;]? [A-Za-z]+(['-][A-Za-z]+)*){0,20}[.!?]", r"<[a-z]+>[^<]*</[a-z]+>",
    r'\[("[a-z]+"(, "[a-z]+"){0,5})?\]', r"(M{0,3})(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})x",
]

GBNF = [
    'root ::= "a" "b"', 'root ::= "yes" | "no"', 'root ::= [a-z]+ " " [0-9]{2,4}',
    'root ::= "(" root ")" | "x"', 'root ::= item ("," item)*\nitem ::= [a-z]+ | "[" root "]"',
    'root ::= "a" root "b" | "c"',
    'root ::= expr\nexpr ::= term (("+" | "-") term)*\nterm ::= factor (("*" | "/") factor)*\n'
    'factor ::= [0-9]+ | "(" expr ")"\n',
    'root ::= object\nvalue ::= object | array | string | number | "true" | "false" | "null"\n'
    'object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws\n'
    'array ::= "[" ws (value ("," ws value)*)? "]" ws\n'
    'string ::= "\\"" ([^"\\\\\\x7F\\x00-\\x1F] | "\\\\" (["\\\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\\"" ws\n'
    'number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,15})? ws\n'
    'ws ::= | " " | "\\n" [ \\t]{0,20}\n',
    '# a list\nroot ::= ("- " line)+ # of lines\nline ::= [^\\n]{1,80} "\\n"\n',
    'root ::= sentence{1,3}\nsentence ::= word (" " word){1,8} "." " "?\nword ::= [a-zA-Z]+\n',
    'root ::= "<" tag ">" (text | root)* "</" tag ">"\ntag ::= "a" | "div" | "p"\ntext ::= [^<>]+\n',
    'root ::= x x x\nx ::= "a" | "ab" | "b"?\n', 'root ::= a*\na ::= "x" b?\nb ::= "y" a "z"\n',
]
