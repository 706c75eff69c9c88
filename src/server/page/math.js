// SPDX-License-Identifier: Apache-2.0
// TeX between $..$, $$..$$, \(..\) and \[..\] as MathML. Dollars are those of mathematics by pandoc's rule: the opening
// one stands before no blank, the closing one behind no blank and before no digit.
import { mathLetters } from "./letters.js";

const MARKS = [["$$", "$$"], ["\\[", "\\]"], ["\\(", "\\)"], ["$", "$"]];
const MOST_INLINE = 2000, MOST_LINES = 200; // where no closing mark is, the search for it ends
const MOST_KEPT = 1000;
const kept = new Map(); // markup by source: an answer that grows is rendered again and again

const escape = (text) => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);

// TeX's texts for the console are left out. The annotation is the source once more, and styles are not for the page.
function renderTex(tex, displayMode) {
  const leaveOut = (context) => { context.consumeArgs(1); return ""; };
  const macros = { "\\message": leaveOut, "\\errmessage": leaveOut, "\\show": leaveOut };
  const markup = window.katex.renderToString(tex, { output: "mathml", displayMode, throwOnError: true, trust: false,
    strict: "ignore", maxExpand: 1000, maxSize: 20, macros });
  return mathLetters(markup.replace(/^.*?(?=<math)/s, "").replace(/<\/span>$/, "")
    .replace(/<annotation[^>]*>[^<]*<\/annotation>/, "").replace(/ style="[^"]*"/g, ""));
}

function render(tex, [open, close]) {
  const source = open + tex + close;
  if (kept.size > MOST_KEPT) kept.clear();
  if (!kept.has(source)) {
    try {
      kept.set(source, renderTex(tex, open === "$$" || open === "\\["));
    } catch {
      kept.set(source, `<code>${escape(source)}</code>`);
    }
  }
  return kept.get(source);
}

function isEscaped(text, at) {
  let count = 0;
  while (text[at - count - 1] === "\\") count++;
  return count % 2 === 1;
}

// text: what follows the opening mark, and no more than may be looked through.
function findClosing(text, mark) {
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) {
    if (isEscaped(text, at)) continue;
    if (mark !== "$" || (/\S/.test(text[at - 1] || " ") && !/\d/.test(text[at + 1] || ""))) return at;
  }
  return -1;
}

function inlineRule(state, silent) {
  const marks = MARKS.find(([open]) => state.src.startsWith(open, state.pos));
  if (!marks) return false;
  const begin = state.pos + marks[0].length;
  const text = state.src.slice(begin, Math.min(state.posMax, begin + MOST_INLINE));
  if (marks[0] === "$" && !/^\S/.test(text)) return false;
  const length = findClosing(text, marks[1]), tex = text.slice(0, length);
  if (length < 0 || !tex.trim() || (marks[0] === "$" && tex.includes("`"))) return false;
  if (!silent) Object.assign(state.push("math_inline", "math", 0), { content: tex, meta: marks });
  state.pos = begin + length + marks[1].length;
  return true;
}

const lineOf = (state, line) => state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]).trimEnd();

// The line that ends with the closing mark; -1: none in this block, or more stands behind it.
function findLastLine(state, begin, end, [open, close]) {
  for (let line = begin; line < Math.min(end, begin + MOST_LINES); line++) {
    if (line > begin && (state.isEmpty(line) || state.sCount[line] < state.blkIndent)) return -1;
    const text = lineOf(state, line).slice(line === begin ? open.length : 0), at = findClosing(text, close);
    if (at >= 0) return at + close.length === text.length ? line : -1;
  }
  return -1;
}

function blockRule(state, begin, end, silent) {
  if (state.sCount[begin] - state.blkIndent >= 4) return false;
  const marks = MARKS.slice(0, 2).find(([open]) => lineOf(state, begin).startsWith(open));
  const last = marks ? findLastLine(state, begin, end, marks) : -1;
  if (last < 0) return false;
  const tex = state.getLines(begin, last + 1, state.blkIndent, false).trim().slice(2, -2);
  if (!tex.trim()) return false;
  if (silent) return true;
  state.line = last + 1;
  Object.assign(state.push("math_block", "math", 0), { block: true, content: tex, meta: marks, map: [begin, last + 1] });
  return true;
}

// Adds the rules to markdown-it.
export function addMath(md) {
  md.inline.ruler.before("escape", "math", inlineRule);
  md.block.ruler.before("fence", "math", blockRule, { alt: ["paragraph", "reference", "blockquote", "list"] });
  md.renderer.rules.math_inline = (tokens, at) => render(tokens[at].content, tokens[at].meta);
  md.renderer.rules.math_block = (tokens, at) => `<div class="math">${render(tokens[at].content, tokens[at].meta)}</div>\n`;
}
