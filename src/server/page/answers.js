// SPDX-License-Identifier: Apache-2.0
// Answers: asked, streamed into a message, asked again. Each conversation streams for itself. "message" events say that a
// message has changed.
import { find, say, unsay } from "./dom.js";
import { addMessage, announce, beginWriting, changes, current, endWriting, keepMessage, keepPart, messages, path } from "./conversations.js";
import { Failure, eventsOf, request, requestOf } from "./requests.js";
import { askedNow, saySettingsProblem, settings } from "./settings.js";
import { askedIn, changeOf, pathTo } from "./tree.js";

const running = new Map(); // by conversation: its answer and the AbortController of that

export const isRunning = (conversation = current()) => running.has(conversation);
export const stopOf = (conversation) => running.get(conversation)?.controller.abort();

let isClosing = false; // requests then fail by themselves, some before "pagehide", which is no fault of the server's
addEventListener("beforeunload", () => { isClosing = true; });

export function keepClosed() {
  isClosing = true; // also where a browser asks nobody before
  running.forEach(({ message }) => keepMessage({ ...message, partial: undefined, finish: "closed" }));
}

export const stop = () => stopOf(current());
changes.addEventListener("deleted", (event) => stopOf(event.detail));

// 53 bits, which the server could have drawn as well: so it is known of an answer that does not come to its end.
const drawSeed = () => {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return String((BigInt(high) << 32n | BigInt(low)) >> 11n);
};

const compact = (entry) => [entry.token, Number(entry.logprob.toFixed(4)),
  entry.top_logprobs.map((other) => [other.token, Number(other.logprob.toFixed(4))])];

function takeCall(message, delta) {
  const calls = message.calls ??= [], call = calls[delta.index] ??= { id: delta.id, name: "", arguments: "" };
  if (delta.function.name) call.name = delta.function.name;
  call.arguments += delta.function.arguments || "";
}

function takeTimings(message, timings) {
  message.timings = { tokens: timings.predicted_n, speed: Math.round(10 * timings.predicted_per_second) / 10,
    prompt: timings.prompt_n + timings.cache_n, cached: timings.cache_n };
}

function take(message, chunk) {
  if (chunk.error) throw new Failure(chunk.error.message);
  if (chunk.model) message.model = chunk.model;
  if (chunk.timings) takeTimings(message, chunk.timings);
  const choice = chunk.choices[0];
  if (!choice) return;
  message.content += choice.delta.content || "";
  if (choice.delta.reasoning_content) message.reasoning = (message.reasoning || "") + choice.delta.reasoning_content;
  for (const call of choice.delta.tool_calls || []) takeCall(message, call);
  if (choice.logprobs) (message.tokens ??= []).push(...choice.logprobs.content.map(compact));
  if (choice.finish_reason) message.finish = choice.finish_reason;
}

async function receive(message, body, signal) {
  const response = await request("/v1/chat/completions", body, signal);
  const warning = response.headers.get("X-Gumbel-Warning");
  if (warning) message.warning = warning;
  for await (const chunk of eventsOf(response)) {
    take(message, chunk);
    announce("message", message);
    keepPart(message);
  }
}

const ALIVE = 4000; // milliseconds between the words to other tabs that an answer is awaited

// Streams an answer into the message, which is in its place; bodyOf makes the request.
async function stream(conversation, message, bodyOf) {
  const controller = new AbortController(), timer = setInterval(() => keepPart(message), ALIVE);
  isClosing = false;
  running.set(conversation, { controller, message });
  beginWriting(message);
  announce("conversation");
  try {
    await receive(message, { ...bodyOf(), ...(settings.tokens ? { logprobs: true, top_logprobs: 5 } : {}) }, controller.signal);
  } catch (error) {
    if (isClosing) message.finish = "closed";
    else if (error.name === "AbortError") message.finish = "stopped";
    else message.error = error instanceof Failure ? error.message : `The page failed: ${error.message}`;
  }
  clearInterval(timer);
  delete message.partial;
  running.delete(conversation);
  await endWriting(message);
  announce("conversation");
  announce("answered", message);
}

// An answer behind parent, with these settings; begun is what it has already.
async function answer(parent, asked, seed, begun) {
  const conversation = current(), before = pathTo(messages(), parent);
  const message = { role: "assistant", content: "", partial: true, seed, asked: changeOf(askedIn(before), asked) };
  if (begun) Object.assign(message, { content: begun.content, reasoning: begun.reasoning, begun: begun.content.length });
  addMessage(conversation, parent, message);
  await stream(conversation, message, () => requestOf(before, asked, seed, begun));
  return message;
}

const asked = () => askedNow(find("model").value, current().system);

function isHindered() {
  unsay("running");
  if (!isRunning()) return saySettingsProblem();
  say("running", "An answer is being written. It can be stopped (Esc), or wait: what you wrote stays.");
  return true;
}

// Sends what a user says behind parent. False: it could not be.
export function send(text, files, parent) {
  if (isHindered()) return false;
  const conversation = current();
  conversation.title ||= (text.trim() || files[0].name).split("\n")[0].slice(0, 60);
  const message = { role: "user", content: text, ...(files.length ? { files } : {}) };
  addMessage(conversation, parent, message);
  answer(message.id, asked(), settings.seed || drawSeed());
  return true;
}

export function regenerate(message) {
  if (!isHindered()) answer(message.parent, asked(), drawSeed());
}

// What an answer had when it was gone on with.
const begunOf = (message) => message.begun
  ? { role: "assistant", content: message.content.slice(0, message.begun), reasoning: message.reasoning } : undefined;
const askedOf = (message) => askedIn(pathTo(messages(), message.id));

const isPart = (message) => ["stopped", "closed"].includes(message.finish) || message.error || message.partial;

const isBeginning = (before, after) => before.content
  ? after.content.startsWith(before.content) && (after.reasoning || "") === (before.reasoning || "")
  : (after.reasoning || "").startsWith(before.reasoning || "");

function compare(before, after) {
  if (isPart(after)) return "";
  const text = (message) => JSON.stringify([message.reasoning || "", message.content,
    (message.calls || []).map(({ name, arguments: its }) => [name, its])]);
  if (isPart(before) && isBeginning(before, after)) return "replayed: the same text, and the rest";
  return text(before) === text(after) ? "replayed: the same text" : "replayed: ANOTHER text";
}

// The same request with the same seed: the same answer, beside the old one.
export async function replay(message) {
  if (isRunning()) return;
  const again = await answer(message.parent, askedOf(message), message.seed, begunOf(message));
  again.note = compare(message, again);
  await keepMessage(again);
  announce("message", again);
}

// Goes on with an answer that was cut, beside it.
export function goOn(message) {
  if (!isHindered()) answer(message.parent, asked(), settings.seed || drawSeed(), message);
}

// What functions returned, for the calls of an answer: [{call, name, content}]. The model goes on behind them.
export function giveResults(message, results) {
  if (isHindered()) return;
  let parent = message.id;
  for (const result of results) parent = addMessage(current(), parent, { role: "tool", ...result }).id;
  answer(parent, asked(), settings.seed || drawSeed());
}

// What is shown last, behind which a new turn goes.
export const lastOf = (conversation = current()) => path(conversation).at(-1)?.id ?? null;
