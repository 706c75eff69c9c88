// SPDX-License-Identifier: Apache-2.0
// Blocks of code: their language, colours where it is a known one, and a button that copies them.
import { copy, make } from "./dom.js";
import { toNodes } from "./sanitize.js";

const MOST_COLOURED = 30000; // letters: some of the languages' patterns are slow

function colour(code, text, language) {
  const { hljs } = window;
  code.textContent = text;
  if (!language || text.length > MOST_COLOURED || !hljs.getLanguage(language)) return;
  hljs.configure({ hideUpgradeWarningAcceptNoSupportOrSecurityUpdates: true }); // it is said in the console otherwise
  code.replaceChildren(toNodes(hljs.highlight(language, text, true).value));
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
