// SPDX-License-Identifier: Apache-2.0
// All conversations as a file, and back.
import { find, make, say } from "./dom.js";
import { addConversation, announce, conversationOf, list, newId, openConversation } from "./conversations.js";
import { FORMS } from "./requests.js";
import { endSearch } from "./side.js";
import { readMessages } from "./store.js";

const FORMAT = "gumbel-conversations";

async function exportAll() {
  const conversations = [];
  for (const one of list()) if (one.leaf) conversations.push({ ...one, messages: await readMessages(one.id) });
  const file = new Blob([JSON.stringify({ format: FORMAT, version: 1, conversations }, null, 1)], { type: "application/json" });
  const link = make("a", { href: URL.createObjectURL(file), download: "gumbel-conversations.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const isText = (...values) => values.every((value) => typeof value === "string");
const isList = (value, isOne) => value === undefined || Array.isArray(value) && value.every(isOne);
const isEntry = (entry) => Array.isArray(entry) && isText(entry[0]) && typeof entry[1] === "number";
const isToken = (token) => isEntry(token) && Array.isArray(token[2]) && token[2].every(isEntry);
const isPlain = (value) => value === null || typeof value !== "object";
const isObject = (value) => typeof value === "object" && value !== null;

// Settings of an answer: those that are no plain values are its form and tools; null says that one is not set any more.
function isAsked({ form, tools, ...plain }) {
  return Object.values(plain).every(isPlain) && (!form || form.kind in FORMS && isText(form.text)) &&
    isList(tools ?? undefined, (tool) => isText(tool?.function?.name));
}

// What the page relies on when it draws a message or asks with it.
function isMessage(message) {
  const { id, role, content, reasoning = "", error = "", finish = "", model = "", seed = "", warning = "", note = "", name = "",
    files, calls, tokens, created, begun = 0, asked = {}, timings = {} } = message;
  return isText(id, role, content, reasoning, error, finish, model, seed, warning, note, name) &&
    ["user", "assistant", "tool"].includes(role) && [created, begun].every(Number.isFinite) &&
    isObject(asked) && isAsked(asked) && isObject(timings) && Object.values(timings).every((one) => one === null || Number.isFinite(one)) &&
    isList(files, (file) => isText(file?.name, file?.text)) &&
    isList(calls, (call) => isText(call?.id, call?.name, call?.arguments)) && isList(tokens, isToken);
}

// A conversation with ids of its own, so that none that is here is changed; null where it is none.
function readConversation(one) {
  if (!one || !isText(one.title ?? "", one.system ?? "") || !Array.isArray(one.messages) || !one.messages.every((each) => each && isMessage(each)))
    return null;
  const id = newId(), ids = new Map(one.messages.map((message) => [message.id, newId()]));
  const messages = one.messages.map(({ partial, ...message }) =>
    ({ ...message, id: ids.get(message.id), conversation: id, parent: ids.get(message.parent) ?? null }));
  if (!isTree(messages)) return null;
  const leaf = ids.get(one.leaf) ?? messages.at(-1)?.id ?? null;
  return { conversation: { id, title: one.title || "", system: one.system || "", leaf, draft: { text: "", files: [] },
    changed: Number(one.changed) || Date.now() }, messages };
}

// Whether no message is its own ancestor.
function isTree(messages) {
  const parents = new Map(messages.map((one) => [one.id, one.parent])), rooted = new Set([null]);
  for (const { id } of messages) {
    const path = new Set();
    for (let at = id; !rooted.has(at); at = parents.get(at)) {
      if (path.has(at)) return false;
      path.add(at);
    }
    path.forEach((one) => rooted.add(one));
  }
  return true;
}

function readFile(text) {
  let file = null;
  try {
    file = JSON.parse(text);
  } catch { /* said below */ }
  const isOurs = file && file.format === FORMAT && file.version === 1 && Array.isArray(file.conversations);
  const read = isOurs ? file.conversations.map(readConversation) : [null];
  return read.includes(null) ? null : read;
}

export async function importText(name, text) {
  const read = readFile(text);
  if (!read) return say("import", `${name} has no conversations that this page exported.`);
  for (const { conversation, messages } of read) await addConversation(conversation, messages);
  endSearch();
  say("import", `${read.length} conversation${read.length === 1 ? " is" : "s are"} imported from ${name}.`);
  if (read.length) await openConversation(conversationOf(read[0].conversation.id));
  else announce("list");
}

export function bindTransfer() {
  find("export").onclick = exportAll;
  find("import").onclick = () => find("import_file").click();
  find("import_file").onchange = async () => {
    for (const file of find("import_file").files) await importText(file.name, await file.text());
    find("import_file").value = "";
  };
}
