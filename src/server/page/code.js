// SPDX-License-Identifier: Apache-2.0
// Blocks of code: their language, colours where it is a known one, and a button that copies them.
import { copy, make } from "./dom.js";
import { toNodes } from "./sanitize.js";

const MOST_COLOURED = 10000; // letters: the time that some languages' patterns take grows with the square
const MOST_TIME = 100; // milliseconds, after which a language gets no colours any more: a block that grows is coloured each frame
const slow = new Set(); // languages

function colour(code, text, language) {
  const { hljs } = window, begin = performance.now();
  code.textContent = text;
  if (!language || text.length > MOST_COLOURED || slow.has(language) || !hljs.getLanguage(language)) return;
  hljs.configure({ hideUpgradeWarningAcceptNoSupportOrSecurityUpdates: true }); // it is said in the console otherwise
  code.replaceChildren(toNodes(hljs.highlight(language, text, true).value));
  if (performance.now() - begin > MOST_TIME) slow.add(language);
}

function dress(code) {
  const text = code.textContent.replace(/\n$/, ""), language = code.className.replace(/^language-/, "");
  const button = make("button", { type: "button", textContent: "Copy", onclick: () => copy(text, button) });
  const block = make("div", { className: "block" },
    make("div", { className: "bar" }, make("span", { textContent: language }), button));
  colour(code, text, language);
  code.parentNode.replaceWith(block);
  block.append(make("pre", {}, code));
}

// For all blocks of code in a fragment.
export function dressCode(fragment) {
  fragment.querySelectorAll("pre > code").forEach(dress);
}
