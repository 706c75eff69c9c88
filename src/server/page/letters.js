// SPDX-License-Identifier: Apache-2.0
// MathML's variants of letters as Unicode's own characters: browsers take no mathvariant but "normal".

// The characters for A, a and 0, and those letters that Unicode had before the rest.
const VARIANTS = {
  "double-struck": [0x1d538, 0x1d552, 0x1d7d8, { C: "ℂ", H: "ℍ", N: "ℕ", P: "ℙ", Q: "ℚ", R: "ℝ", Z: "ℤ" }],
  script: [0x1d49c, 0x1d4b6, 0, { B: "ℬ", E: "ℰ", F: "ℱ", H: "ℋ", I: "ℐ", L: "ℒ", M: "ℳ", R: "ℛ", e: "ℯ", g: "ℊ", o: "ℴ" }],
  fraktur: [0x1d504, 0x1d51e, 0, { C: "ℭ", H: "ℌ", I: "ℑ", R: "ℜ", Z: "ℨ" }],
  bold: [0x1d400, 0x1d41a, 0x1d7ce, {}],
  "bold-italic": [0x1d468, 0x1d482, 0, {}],
  "sans-serif": [0x1d5a0, 0x1d5ba, 0x1d7e2, {}],
  monospace: [0x1d670, 0x1d68a, 0x1d7f6, {}],
};

function variantOf(letter, [upper, lower, digit, early]) {
  const base = /[A-Z]/.test(letter) ? [upper, "A"] : /[a-z]/.test(letter) ? [lower, "a"] : [digit, "0"];
  if (early[letter]) return early[letter];
  return base[0] ? String.fromCodePoint(base[0] + letter.charCodeAt(0) - base[1].charCodeAt(0)) : letter;
}

// KaTeX's markup with such letters in it.
export function mathLetters(markup) {
  return markup.replace(/ mathvariant="([a-z-]+)">([A-Za-z0-9]+)</g, (all, name, text) =>
    Object.hasOwn(VARIANTS, name) ? ">" + text.replace(/./g, (one) => variantOf(one, VARIANTS[name])) + "<" : all);
}
