// SPDX-License-Identifier: Apache-2.0
// Answers as Markdown: markdown-it's markup, which DOMPurify makes nodes of. Markup in the text itself stays text.
import { dressCode } from "./code.js";
import { addMath } from "./math.js";
import { isLink, toNodes } from "./sanitize.js";

const LIBRARIES = ["markdownit", "DOMPurify", "hljs", "katex"];
const MOST_RENDERED = 100000; // letters: markdown-it's time for some texts grows with the square
const MOST_CELLS = 20000; // a short row has a cell for each column of the head
const shown = new WeakMap(); // of a node: its text, and the blocks: their markup, and the nodes it became
let parser = null;

// A link says where it leads, and what it opens learns nothing of this page.
function linkOpening(md, address) {
  const text = md.utils.escapeHtml(address);
  return `<a href="${text}" title="${text}" target="_blank" rel="noopener noreferrer">`;
}

function isInLink(tokens, at) {
  const before = tokens.slice(0, at);
  return before.filter((one) => one.type === "link_open").length > before.filter((one) => one.type === "link_close").length;
}

// Images would be requests that the reader did not make, so they are links.
function addLinks(md) {
  md.validateLink = (address) => isLink(address.trim());
  md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
  md.renderer.rules.link_open = (tokens, at) => linkOpening(md, tokens[at].attrGet("href"));
  md.renderer.rules.image = (tokens, at) => {
    const address = tokens[at].attrGet("src"), text = md.utils.escapeHtml(tokens[at].content || address);
    return isInLink(tokens, at) ? text : linkOpening(md, address) + text + "</a>";
  };
}

// A column's alignment becomes a class, since the page takes no inline styles. Pipes in a cell's code may be escaped.
function addTables(md) {
  const opening = (tokens, at) => {
    const style = tokens[at].attrGet("style");
    return style ? `<${tokens[at].tag} class="${style.replace("text-align:", "align-")}">` : `<${tokens[at].tag}>`;
  };
  md.renderer.rules.th_open = md.renderer.rules.td_open = opening;
  md.core.ruler.push("pipes", ({ tokens }) => tokens.filter((_, at) => at > 0 && /^t[hd]_open$/.test(tokens[at - 1].type))
    .flatMap((cell) => cell.children).filter((one) => one.type === "code_inline")
    .forEach((code) => { code.content = code.content.replaceAll("\\|", "|"); }));
}

function makeParser() {
  const md = window.markdownit({ html: false, linkify: true, breaks: true });
  addLinks(md);
  addTables(md);
  addMath(md);
  return md;
}

// The markup of each block that stands in no other one.
function blocksOf(text) {
  parser = parser || makeParser();
  const env = {}, tokens = parser.parse(text, env), blocks = [];
  for (let begin = 0, depth = 0, at = 0; at < tokens.length; at++) {
    depth += tokens[at].nesting;
    if (depth > 0) continue;
    blocks.push(parser.renderer.render(tokens.slice(begin, at + 1), parser.options, env).trim());
    begin = at + 1;
  }
  return blocks;
}

function nodesOf(markup) {
  const fragment = toNodes(markup);
  dressCode(fragment);
  return fragment.hasChildNodes() ? [...fragment.childNodes] : [document.createTextNode("")];
}

function replaceBlock(node, old, markup) {
  const nodes = nodesOf(markup);
  if (old) old.nodes[0].before(...nodes); else node.append(...nodes);
  if (old) old.nodes.forEach((one) => one.remove());
  return { markup, nodes };
}

function showBlocks(node, text) {
  if (!shown.has(node)) node.replaceChildren();
  const before = shown.get(node)?.blocks || [], blocks = blocksOf(text);
  before.slice(blocks.length).forEach((one) => one.nodes.forEach((child) => child.remove()));
  node.classList.add("markdown");
  node.classList.remove("plain");
  shown.set(node, { text, blocks: blocks.map((markup, at) =>
    before[at] && before[at].markup === markup ? before[at] : replaceBlock(node, before[at], markup)) });
}

// The cells of all tables, or more.
function countCells(text) {
  let cells = 0, columns = 0;
  for (const line of text.split("\n")) {
    if (!line.includes("|")) columns = 0;
    else if (/^[\s>|:-]+$/.test(line)) columns = Math.max(columns, line.split("|").length);
    cells += columns;
  }
  return cells;
}

const isTooLong = (text) => text.length > MOST_RENDERED || countCells(text) > MOST_CELLS;

function showPlain(node, text) {
  shown.delete(node);
  node.classList.add("markdown", "plain");
  node.textContent = text;
}

// Fills node with what text says. Blocks that are as they were before stay the same nodes, with what is selected in
// them. Without the libraries, and where the text or its tables are too long, it is shown as it is.
export function showMarkdown(node, text) {
  if (shown.get(node)?.text === text) return;
  if (isTooLong(text) || !LIBRARIES.every((name) => window[name])) showPlain(node, text);
  else showBlocks(node, text);
}
