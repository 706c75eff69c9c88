// SPDX-License-Identifier: Apache-2.0
// All conversations as a file, and back.
import { find, make, say } from "./dom.js";
import { addConversation, announce, conversationOf, list, newId, openConversation } from "./conversations.js";
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
const isToken = (token) => Array.isArray(token) && isText(token[0]) && typeof token[1] === "number" && Array.isArray(token[2]);

// What the page relies on when it draws a message or asks with it.
function isMessage(message) {
  const { id, role, content, reasoning = "", error = "", finish = "", model = "", seed = "", files, calls, tokens, created } = message;
  return isText(id, role, content, reasoning, error, finish, model, seed) && ["user", "assistant", "tool"].includes(role) &&
    typeof created === "number" && isList(files, (file) => isText(file.name, file.text)) &&
    isList(calls, (call) => isText(call.id, call.name, call.arguments)) && isList(tokens, isToken);
}

// A conversation with ids of its own, so that none that is here is changed; null where it is none.
function readConversation(one) {
  if (!one || !isText(one.title ?? "", one.system ?? "") || !Array.isArray(one.messages) || !one.messages.every((each) => each && isMessage(each)))
    return null;
  const id = newId(), ids = new Map(one.messages.map((message) => [message.id, newId()]));
  const messages = one.messages.map(({ partial, ...message }) =>
    ({ ...message, id: ids.get(message.id), conversation: id, parent: ids.get(message.parent) ?? null }));
  if (messages.some((message) => isInLoop(messages, message))) return null;
  const leaf = ids.get(one.leaf) ?? messages.at(-1)?.id ?? null;
  return { conversation: { id, title: one.title || "", system: one.system || "", leaf, draft: { text: "", files: [] },
    changed: Number(one.changed) || Date.now() }, messages };
}

function isInLoop(messages, message) {
  const parents = new Map(messages.map((one) => [one.id, one.parent]));
  let steps = 0;
  for (let id = message.id; id; id = parents.get(id)) if (steps++ > messages.length) return true;
  return false;
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
