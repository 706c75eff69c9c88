// SPDX-License-Identifier: Apache-2.0
// The messages of the branch that is shown. A message keeps its node while it stays what it is, so that what is selected in
// it stays selected.
import { action, copy, find, make, place } from "./dom.js";
import { goOn, giveResults, isRunning, regenerate, replay, send } from "./answers.js";
import { current, isWritten, messages, path, showBranch } from "./conversations.js";
import { showMarkdown } from "./markdown.js";
import { settings } from "./settings.js";
import { hideAlternatives, showTokens } from "./tokens.js";
import { childrenOf } from "./tree.js";

const nodes = new WeakMap(); // of messages

const SILENT = 10000; // milliseconds after which a tab that was writing is taken to have crashed
const isElsewhere = (message) => message.partial && !isWritten(message) && Date.now() - message.at < SILENT;
const isCut = (message) => ["length", "stopped", "closed"].includes(message.finish) || message.error || message.partial;
const ENDS = { stop: "", tool_calls: "", length: "ended: the limit of tokens or the context", stopped: "ended: stopped",
  closed: "ended: the page was closed" };

function endOf(message) {
  if (!isElsewhere(message)) return ENDS[message.partial ? "closed" : message.finish] ?? (message.finish ? "ended: " + message.finish : "");
  setTimeout(drawMessage, SILENT, message);
  return "being written in another tab";
}

function reportOf(message) {
  const timings = message.timings || {};
  return [message.model, message.seed !== undefined && "seed " + message.seed, timings.tokens && timings.tokens + " tokens",
    timings.speed && timings.speed + " tokens/s",
    timings.cached !== undefined && `${timings.cached} of ${timings.prompt} prompt tokens cached`,
    endOf(message), message.warning, message.note].filter(Boolean).join(" · ");
}

// ---- Parts of an answer --------------------------------------------------------------------------------------------

function showThought(node, message) {
  node.hidden = !message.reasoning;
  node.querySelector(".thought").textContent = message.reasoning || "";
  if (message.content && !node.dataset.isDone) node.open = false; // once, then it is the reader's
  if (message.content) node.dataset.isDone = true;
}

const isJson = (message) => ["json_object", "json_schema"].includes(message.asked?.form?.kind);

// The text as tokens or as Markdown. Each has a node of its own within, which grows with the text.
function showText(node, message) {
  const mode = settings.tokens && message.tokens ? "tokens" : "markdown";
  if (node.dataset.mode !== mode) node.replaceChildren(make("div", { className: mode }));
  node.dataset.mode = mode;
  if (mode === "tokens") showTokens(node.firstChild, message);
  else showMarkdown(node.firstChild, isJson(message) ? "```json\n" + message.content + "\n```" : message.content);
}

function prettyArguments(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 1);
  } catch {
    return text;
  }
}

function callNode(call) {
  const result = make("textarea", { rows: 2, placeholder: "What it returns", ariaLabel: `What ${call.name} returns` });
  return make("div", { className: "call" }, make("strong", { textContent: call.name }),
    make("pre", { textContent: prettyArguments(call.arguments) }), result);
}

// The calls, and once they are whole, what a user says that they returned.
function showCalls(node, message) {
  const isAnswered = childrenOf(messages(), message.id).length > 0, calls = message.calls || [];
  const state = JSON.stringify([calls, isAnswered, isRunning()]);
  if (node.dataset.state === state) return; // with what was typed
  node.dataset.state = state;
  node.replaceChildren(...calls.map(callNode));
  if (isAnswered || isRunning() || !calls.length) {
    for (const box of node.querySelectorAll("textarea")) box.remove();
    return;
  }
  const boxes = [...node.querySelectorAll("textarea")];
  node.append(action("Give results", () => giveResults(message, calls.map((call, index) =>
    ({ call: call.id, name: call.name, content: boxes[index].value })))));
}

const NO_TOKENS = "Tokens were not asked for when this was written. Replay writes the same text with them.";

function answerNode() {
  return make("div", { className: "body" },
    make("details", { open: true, hidden: true }, make("summary", { textContent: "Thought" }), make("div", { className: "thought" })),
    make("p", { className: "hint", textContent: NO_TOKENS }), make("div", { className: "text" }), make("div", { className: "calls" }), make("p", { className: "error" }));
}

function showAnswer(body, message) {
  const [thought, hint, text, calls, error] = body.children;
  hint.hidden = !settings.tokens || message.tokens || message.partial;
  showThought(thought, message);
  showText(text, message);
  showCalls(calls, message);
  error.textContent = message.error || "";
}

// ---- A message -----------------------------------------------------------------------------------------------------

function userNode(message) {
  const files = (message.files || []).map((file) => make("details", {}, make("summary", { textContent: file.name }),
    make("pre", { textContent: file.text })));
  return make("div", { className: "body" }, ...files, message.content);
}

const toolNode = (message) => make("details", { className: "body" },
  make("summary", { textContent: `${message.name} returned` }), make("pre", { textContent: message.content }));

// The reader's next key turns on.
function focusTurn(message, text) {
  const turns = [...nodes.get(message).querySelectorAll(".branches button")];
  (turns.find((one) => one.textContent === text && !one.disabled) || turns.find((one) => !one.disabled))?.focus();
}

function branchesOf(message) {
  const branches = childrenOf(messages(), message.parent), at = branches.indexOf(message);
  if (branches.length < 2) return [];
  const turn = (text, to, label) => action(text, () => { showBranch(branches[to]); focusTurn(branches[to], text); }, { disabled: !branches[to], ariaLabel: label });
  return [make("span", { className: "branches" }, turn("‹", at - 1, "Branch before"), ` ${at + 1}/${branches.length} `,
    turn("›", at + 1, "Branch behind"))];
}

function edit(node, message) {
  const box = make("textarea", { className: "edit", value: message.content, rows: 3, ariaLabel: "Message" });
  const before = [...node.children];
  const cancel = () => node.replaceChildren(...before);
  const done = () => {
    if ((box.value.trim() || message.files) && send(box.value, message.files || [], message.parent)) cancel();
  };
  box.onkeydown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); done(); }
    if (event.key === "Escape") { event.stopPropagation(); cancel(); }
  };
  node.replaceChildren(box, make("div", { className: "row" }, action("Send", done), action("Cancel", cancel)));
  box.focus();
}

function actionsOf(node, message) {
  if (message.role === "user") return [action("Edit", () => edit(node, message))];
  if (message.role === "tool") return [];
  const canGoOn = isCut(message) && message.content && !message.calls && (message.asked?.form === undefined);
  return [action("Replay", () => replay(message)), action("Regenerate", () => regenerate(message)),
    ...(canGoOn ? [action("Continue", () => goOn(message))] : []),
    action("Copy", (event) => copy(message.content, event.target))];
}

function partsOf(row, message) {
  if (isWritten(message)) return branchesOf(message);
  return [...branchesOf(message), ...(message.role === "assistant" ? [reportOf(message)] : []),
    ...(isRunning() ? [] : actionsOf(row.parentElement, message))];
}

function showRow(row, message) {
  const parts = partsOf(row, message), state = JSON.stringify(parts.map((part) => part.textContent ?? part));
  if (row.dataset.state === state) return; // with what has the focus
  row.dataset.state = state;
  row.replaceChildren(...parts);
}

const bodyOf = { user: userNode, tool: toolNode, assistant: answerNode };

// The node of a message as it is now.
function nodeOf(message) {
  let node = nodes.get(message);
  if (!node) {
    node = make("div", { className: message.role }, bodyOf[message.role](message), make("div", { className: "row" }));
    nodes.set(message, node);
  }
  if (node.querySelector(":scope > .edit")) return node;
  const [body, row] = node.children;
  if (message.role === "assistant") showAnswer(body, message);
  showRow(row, message);
  return node;
}

// ---- The log -------------------------------------------------------------------------------------------------------

const isAtEnd = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < 80;
let shown = null; // the conversation

const welcome = () => make("div", { className: "welcome" },
  make("p", { textContent: "Ask something. What you write and read here stays in this browser; the model runs on the server." }));

export function drawMessages() {
  hideAlternatives();
  const log = find("log"), its = path(), last = its.at(-1), isBegun = last && isWritten(last) && !nodes.has(last);
  const wasAtEnd = isAtEnd(log) || isBegun || shown !== current(), wanted = its.map(nodeOf);
  shown = current();
  log.ariaBusy = isRunning(); // read to its listener once it is whole
  place(log, wanted.length ? wanted : [welcome()]);
  if (wasAtEnd) log.scrollTop = log.scrollHeight;
}

const waiting = new Set(); // messages to be drawn with the next frame

function drawWaiting() {
  const log = find("log"), wasAtEnd = isAtEnd(log);
  for (const message of waiting) if (nodes.get(message)?.isConnected) nodeOf(message);
  waiting.clear();
  if (wasAtEnd) log.scrollTop = log.scrollHeight;
}

export function drawMessage(message) {
  if (!waiting.size) requestAnimationFrame(drawWaiting);
  waiting.add(message);
}
