// SPDX-License-Identifier: Apache-2.0
// The page: conversations in the browser's storage, answers from /v1/chat/completions. What a model writes is
// shown by markdown.js alone, or as nodes of text.
import { copy, make } from "./dom.js";
import { showMarkdown } from "./markdown.js";

const find = (id) => document.getElementById(id);

// ---- State ---------------------------------------------------------------------------------------------------------

const KEY = "gumbel.conversations";
const NUMBERS = [["temperature", "Temperature"], ["top_k", "Top-k"], ["top_p", "Top-p"], ["min_p", "Min-p"],
  ["repetition_penalty", "Repetition penalty"], ["presence_penalty", "Presence penalty"],
  ["frequency_penalty", "Frequency penalty"], ["max_tokens", "Most tokens", "no limit"], ["seed", "Seed", "drawn"]];

let state = { conversations: [], open: 0, settings: {}, theme: "" };
let running = null; // the AbortController of the answer under way

function load() {
  try {
    state = { ...state, ...JSON.parse(localStorage.getItem(KEY) || "{}") };
  } catch { /* a damaged store begins anew */ }
  if (!state.conversations.length) state.conversations.push({ messages: [] });
  state.open = Math.min(state.open, state.conversations.length - 1);
}

function save() {
  try {
    localStorage.setItem(KEY, JSON.stringify(state));
  } catch (error) {
    console.warn("conversations are not kept:", error.message);
  }
}

const conversation = () => state.conversations[state.open];

function title(one) {
  const first = one.messages.find((message) => message.role === "user");
  return first ? first.content.slice(0, 60) : "New conversation";
}

// ---- Tokens --------------------------------------------------------------------------------------------------------

const percent = (logprob) => (100 * Math.exp(logprob)).toFixed(1).padStart(5) + " %";
const level = (logprob) => "p" + [0.1, 0.3, 0.6, 0.9, 2].findIndex((limit) => Math.exp(logprob) < limit);

function showAlternatives(entry, at) {
  hideAlternatives();
  const lines = entry.top_logprobs.map((other) => percent(other.logprob) + "  " + JSON.stringify(other.token));
  if (!entry.top_logprobs.some((other) => other.token === entry.token))
    lines.push(percent(entry.logprob) + "  " + JSON.stringify(entry.token));
  const box = make("div", { id: "alternatives", textContent: lines.join("\n") }), place = at.getBoundingClientRect();
  document.body.append(box);
  box.style.left = Math.max(4, Math.min(place.left, innerWidth - box.offsetWidth - 8)) + "px";
  box.style.top = (place.bottom + box.offsetHeight > innerHeight ? place.top - box.offsetHeight : place.bottom) + "px";
}

function hideAlternatives() {
  const box = find("alternatives");
  if (box) box.remove();
}

function tokenView(entries) {
  const view = make("div", { className: "tokens" });
  for (const entry of entries) {
    const span = make("span", { textContent: entry.token, className: level(entry.logprob), tabIndex: 0 });
    span.onmouseenter = span.onfocus = () => showAlternatives(entry, span);
    span.onmouseleave = span.onblur = hideAlternatives;
    view.append(span);
  }
  return view;
}

// ---- Messages ------------------------------------------------------------------------------------------------------

const action = (text, onclick) => make("button", { type: "button", textContent: text, onclick });

function report(message) {
  const parts = [], timings = message.timings || {};
  if (message.seed !== undefined) parts.push("seed " + message.seed);
  if (timings.predicted_n) parts.push(timings.predicted_n + " tokens");
  if (timings.predicted_per_second) parts.push(timings.predicted_per_second.toFixed(1) + " tokens/s");
  if (timings.cache_n !== undefined) parts.push(timings.cache_n + " of " + (timings.cache_n + timings.prompt_n) +
    " prompt tokens cached");
  if (message.finish && message.finish !== "stop") parts.push("ended: " + message.finish);
  if (message.note) parts.push(message.note);
  return parts.join(" · ");
}

function answerBody(message) {
  const body = make("div", { className: "body" });
  if (message.reasoning)
    body.append(make("details", { open: !message.content && !message.finish },
      make("summary", { textContent: "Thought" }), make("div", { className: "thought", textContent: message.reasoning })));
  const text = find("tokens").checked && message.logprobs ? tokenView(message.logprobs) : make("div");
  if (text.className !== "tokens") showMarkdown(text, message.content);
  body.append(text);
  if (message.error) body.append(make("p", { className: "error", textContent: message.error }));
  return body;
}

function messageNode(message, index) {
  const row = make("div", { className: "row" });
  const node = make("div", { className: message.role });
  if (message.role === "user") {
    node.append(make("div", { className: "body", textContent: message.content }), row);
    row.append(action("Edit", () => edit(node, message, index)));
    return node;
  }
  node.append(answerBody(message), row);
  if (running && index === conversation().messages.length - 1) return node;
  row.append(report(message), action("Replay", () => replay(index)), action("Regenerate", () => regenerate(index)),
    action("Copy", (event) => copy(message.content, event.target)));
  return node;
}

function draw() {
  hideAlternatives();
  find("log").replaceChildren(...conversation().messages.map(messageNode));
  find("conversations").replaceChildren(...state.conversations.map((one, index) =>
    make("div", { className: index === state.open ? "open" : "" },
      action(title(one), () => openConversation(index)),
      Object.assign(action("×", () => removeConversation(index)), { title: "Delete" }))));
  find("system").value = conversation().system || "";
  find("send").hidden = Boolean(running);
  find("halt").hidden = !running;
  find("log").scrollTop = find("log").scrollHeight;
}

// Only the last message changes while it is streamed.
function drawLast() {
  const log = find("log"), isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const messages = conversation().messages;
  log.lastElementChild.replaceWith(messageNode(messages[messages.length - 1], messages.length - 1));
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

function edit(node, message, index) {
  const box = make("textarea", { className: "edit", value: message.content, rows: 3 });
  const done = () => {
    if (running || !box.value.trim()) return;
    conversation().messages.splice(index);
    send(box.value);
  };
  box.onkeydown = (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); done(); }
    if (event.key === "Escape") { event.stopPropagation(); draw(); }
  };
  node.replaceChildren(box, make("div", { className: "row" }, action("Send", done), action("Cancel", draw)));
  box.focus();
}

// ---- Asking --------------------------------------------------------------------------------------------------------

// What the messages before an answer ask, with the settings of now.
function requestOf(messages) {
  const request = { model: find("model").value, messages: [], stream: true };
  if (conversation().system) request.messages.push({ role: "system", content: conversation().system });
  for (const message of messages)
    request.messages.push({ role: message.role, content: message.content,
      ...(message.reasoning ? { reasoning_content: message.reasoning } : {}) });
  for (const [name] of NUMBERS)
    if (state.settings[name]) request[name] = name === "seed" ? state.settings[name] : Number(state.settings[name]);
  if (state.settings.stop) request.stop = [state.settings.stop];
  if (state.settings.thinking) request.chat_template_kwargs = { enable_thinking: state.settings.thinking === "true" };
  return request;
}

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const line = text.slice(0, end).split("\n").find((one) => one.startsWith("data: "));
      if (line && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
    }
  }
}

function take(message, chunk) {
  if (chunk.error) throw new Error(chunk.error.message);
  const choice = chunk.choices[0];
  if (chunk.timings) message.timings = chunk.timings;
  if (!choice) return;
  message.content += choice.delta.content || "";
  message.reasoning = (message.reasoning || "") + (choice.delta.reasoning_content || "");
  if (choice.logprobs) (message.logprobs = message.logprobs || []).push(...choice.logprobs.content);
  if (choice.finish_reason) message.finish = choice.finish_reason;
  if (choice.seed !== undefined) message.seed = choice.seed;
}

// Streams an answer to the request into message, the last of the conversation.
async function stream(request, message) {
  running = new AbortController();
  draw();
  let isDrawn = true;
  const later = () => { if (isDrawn) { isDrawn = false; requestAnimationFrame(() => { isDrawn = true; drawLast(); }); } };
  try {
    const extra = find("tokens").checked ? { logprobs: true, top_logprobs: 5 } : {};
    const response = await fetch(location.origin + "/v1/chat/completions", { method: "POST", signal: running.signal,
      headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...request, ...extra }) });
    if (!response.ok) throw new Error((await response.json()).error.message);
    for await (const chunk of eventsOf(response)) { take(message, chunk); later(); }
  } catch (error) {
    if (error.name === "AbortError") message.finish = "stopped"; else message.error = error.message;
  }
  running = null;
  if (message.seed !== undefined) message.request = { ...request, seed: message.seed };
  save();
  draw();
}

function send(text) {
  const messages = conversation().messages;
  messages.push({ role: "user", content: text });
  answer(messages);
}

function answer(messages) {
  const request = requestOf(messages), message = { role: "assistant", content: "" };
  messages.push(message);
  return stream(request, message);
}

function regenerate(index) {
  if (running) return;
  conversation().messages.splice(index);
  delete state.settings.seed; // another answer, not the same one
  find("seed").value = "";
  answer(conversation().messages);
}

// The same request with the same seed: the same answer.
async function replay(index) {
  const before = conversation().messages[index];
  if (running || !before.request) return;
  conversation().messages.splice(index);
  const message = { role: "assistant", content: "" };
  conversation().messages.push(message);
  await stream(before.request, message);
  message.note = message.content === before.content ? "replayed: the same text" : "replayed: ANOTHER text";
  save();
  draw();
}

// ---- Conversations, settings, keys ---------------------------------------------------------------------------------

function openConversation(index) {
  if (running) return;
  state.open = index;
  document.body.classList.remove("menu");
  save();
  draw();
  find("text").focus();
}

function newConversation() {
  if (running) return;
  if (conversation().messages.length) state.conversations.unshift({ messages: [] });
  openConversation(conversation().messages.length ? 0 : state.open);
}

function removeConversation(index) {
  if (running) return;
  state.conversations.splice(index, 1);
  if (!state.conversations.length) state.conversations.push({ messages: [] });
  openConversation(Math.min(state.open, state.conversations.length - 1));
}

function exportAll() {
  const file = new Blob([JSON.stringify(state.conversations, null, 1)], { type: "application/json" });
  const link = make("a", { href: URL.createObjectURL(file), download: "gumbel-conversations.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function setTheme(theme) {
  state.theme = theme;
  if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
  find("theme").textContent = "Theme: " + (theme || "system");
}

function bindSettings() {
  for (const [name, label, otherwise] of NUMBERS) {
    const input = make("input", { id: name, inputMode: "decimal", placeholder: otherwise || "the model's own" });
    find("numbers").append(make("label", {}, label, input));
  }
  for (const name of [...NUMBERS.map(([one]) => one), "stop", "thinking"]) {
    find(name).value = state.settings[name] || "";
    find(name).onchange = () => { state.settings[name] = find(name).value.trim(); save(); };
  }
  find("tokens").checked = state.settings.tokens || false;
  find("tokens").onchange = () => { state.settings.tokens = find("tokens").checked; save(); draw(); };
  find("system").onchange = () => { conversation().system = find("system").value; save(); };
}

function submit(event) {
  if (event) event.preventDefault();
  const text = find("text").value;
  if (running || !text.trim()) return;
  find("text").value = "";
  find("text").style.height = "";
  send(text);
}

function bindKeys() {
  find("text").onkeydown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  find("text").oninput = () => {
    find("text").style.height = "";
    find("text").style.height = find("text").scrollHeight + 2 + "px";
  };
  document.onkeydown = (event) => {
    if (event.key === "Escape" && running) running.abort();
    if (event.key === "n" && event.ctrlKey && event.altKey) newConversation();
  };
}

function bind() {
  find("ask").onsubmit = submit;
  find("settings").onsubmit = (event) => event.preventDefault();
  find("halt").onclick = () => running && running.abort();
  find("new").onclick = newConversation;
  find("export").onclick = exportAll;
  find("menu").onclick = () => {
    find("menu").setAttribute("aria-expanded", document.body.classList.toggle("menu"));
  };
  find("configure").onclick = () => {
    find("settings").hidden = !find("settings").hidden;
    find("configure").setAttribute("aria-expanded", !find("settings").hidden);
  };
  find("theme").onclick = () => {
    setTheme({ "": "light", light: "dark", dark: "" }[state.theme]);
    save();
  };
}

async function start() {
  load();
  bind();
  bindSettings();
  bindKeys();
  setTheme(state.theme);
  draw();
  const models = await (await fetch(location.origin + "/v1/models")).json();
  find("model").replaceChildren(...models.data.map((model) => make("option", { value: model.id }, model.id)));
}

start();
