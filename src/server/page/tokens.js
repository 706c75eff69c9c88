// SPDX-License-Identifier: Apache-2.0
// The token view: each token of an answer in the colour of its probability, with what else could have been drawn. A token is
// [text, log-probability, the likeliest as [text, log-probability]].
import { find, make } from "./dom.js";

const percent = (logprob) => (100 * Math.exp(logprob)).toFixed(1).padStart(5) + " %";
const level = (logprob) => "p" + [0.1, 0.3, 0.6, 0.9, 2].findIndex((limit) => Math.exp(logprob) < limit);

function lineOf([text, logprob], isDrawn) {
  const mark = isDrawn ? "▸ " : "  ";
  return make("div", { className: isDrawn ? "drawn" : "", textContent: mark + percent(logprob) + "  " + JSON.stringify(text) });
}

function showAlternatives([text, logprob, others], at) {
  hideAlternatives();
  const isDrawn = (other) => other[0] === text && other[1] === logprob; // parts of letters all read alike
  const lines = others.map((other) => lineOf(other, isDrawn(other)));
  if (!others.some(isDrawn)) lines.push(lineOf([text, logprob], true));
  const box = make("div", { id: "alternatives" }, ...lines), place = at.getBoundingClientRect();
  document.body.append(box);
  box.style.left = Math.max(4, Math.min(place.left, innerWidth - box.offsetWidth - 8)) + "px";
  box.style.top = (place.bottom + box.offsetHeight > innerHeight ? place.top - box.offsetHeight : place.bottom) + "px";
}

export function hideAlternatives() {
  find("alternatives")?.remove();
}

function tokenNode(token) {
  const span = make("span", { textContent: token[0], className: level(token[1]), tabIndex: -1 });
  span.onmouseenter = span.onfocus = () => showAlternatives(token, span);
  span.onmouseleave = span.onblur = hideAlternatives;
  return span;
}

// One stop of the Tab key for all: arrows go from token to token.
function turn(event) {
  const { key, target, currentTarget } = event, step = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (!step) return;
  event.preventDefault();
  const tokens = [...currentTarget.children];
  tokens[Math.max(0, tokens.indexOf(target) + step)]?.focus();
}

// Shows the tokens of a message in node, behind what the answer went on from; while it grows only the new ones are added.
export function showTokens(node, message) {
  if (!node.firstChild) node.append(message.content.slice(0, message.begun || 0));
  Object.assign(node, { tabIndex: 0, role: "group", ariaLabel: "Tokens: arrow keys go through them", onkeydown: turn });
  node.append(...message.tokens.slice(node.children.length).map(tokenNode));
}
