// SPDX-License-Identifier: Apache-2.0
// The conversations, and which one is open. A conversation is {id, title, system, leaf, draft, changed}; leaf is the last
// message of the branch that is shown. "conversation" and "list" events say what is to be drawn anew, "deleted" that another
// tab has deleted one.
import { isUnwritten, keepOpen, lastOpen, onOtherTab, readAll, readMessages, readOne, refresh, write, writeSoon } from "./store.js";
import { leafBelow, pathTo } from "./tree.js";

export const changes = new EventTarget();
const all = new Map(); // by id
const loaded = new Map(); // messages of those that were opened: id -> Map by id
const written = new Set(); // ids of messages that this tab is writing
let open = null, wanted = null; // what is shown, and what will be once it is read
let reading = Promise.resolve(); // until that is done: news of other tabs wait for it

export const newId = () => Date.now().toString(36) + [...crypto.getRandomValues(new Uint8Array(6))]
  .map((byte) => byte.toString(16).padStart(2, "0")).join("");
export const announce = (type, detail) => changes.dispatchEvent(new CustomEvent(type, { detail }));

export const current = () => open;
export const messages = (conversation = open) => loaded.get(conversation.id);
export const path = (conversation = open) => pathTo(messages(conversation), conversation.leaf);
export const list = () => [...all.values()].filter((one) => !one.deleted).sort((a, b) => b.changed - a.changed);
export const conversationOf = (id) => all.get(id);
const isEmpty = (conversation) => !conversation.leaf && !conversation.draft.text && !conversation.draft.files.length;

export function keepConversation(conversation) {
  write(["conversations", conversation.id, conversation]);
  announce("list");
}

export const keepDraft = (conversation) => writeSoon(["conversations", conversation.id, conversation]);

const entryOf = (message) => ["messages", message.id, Object.assign(message, { at: Date.now() })];
const isKept = (message) => all.has(message.conversation);
export const keepMessage = async (message) => isKept(message) && write(entryOf(message));
export const keepPart = (message) => isKept(message) && writeSoon(entryOf(message));

// A message behind parent (null: the first one), which is shown from now on.
export function addMessage(conversation, parent, message) {
  Object.assign(message, { id: newId(), conversation: conversation.id, parent, created: Date.now() });
  messages(conversation).set(message.id, message);
  conversation.leaf = message.id;
  conversation.changed = message.created;
  keepMessage(message);
  keepConversation(conversation);
  return message;
}

// While an answer is streamed this tab knows it best.
export function beginWriting(message) {
  written.add(message.id);
}

export function endWriting(message) {
  written.delete(message.id);
  return keepMessage(message);
}

export const isWritten = (message) => written.has(message.id);

export function showBranch(message) {
  open.leaf = leafBelow(messages(), message.id);
  keepConversation(open);
  announce("conversation");
}

async function load(id) {
  if (loaded.has(id)) return;
  const its = await readMessages(id);
  if (!loaded.has(id)) loaded.set(id, new Map(its.map((one) => [one.id, one]))); // it may have been opened twice
}

// The last one that was asked for is shown, however long others take to read.
export async function openConversation(conversation) {
  wanted = conversation;
  reading = load(conversation.id);
  await reading;
  if (wanted !== conversation) return;
  open = conversation;
  keepOpen(conversation.id);
  announce("list");
  announce("conversation");
}

export function newConversation() {
  const empty = list().find((one) => isEmpty(one) && !one.title);
  if (empty) return openConversation(empty);
  const conversation = { id: newId(), title: "", system: "", leaf: null, draft: { text: "", files: [] }, changed: Date.now() };
  all.set(conversation.id, conversation);
  return openConversation(conversation);
}

export function addConversation(conversation, its) {
  all.set(conversation.id, conversation);
  loaded.delete(conversation.id);
  return write(["conversations", conversation.id, conversation], ...its.map((one) => ["messages", one.id, one]));
}

const openNewest = () => list().length ? openConversation(list()[0]) : newConversation();

export async function removeConversation(conversation) {
  conversation.deleted = Date.now(); // it can be brought back until forget
  keepConversation(conversation);
  if (conversation === open) await openNewest();
}

export function bringBack(conversation) {
  delete conversation.deleted;
  keepConversation(conversation);
  return openConversation(conversation);
}

export async function forget(conversation) {
  if (!conversation.deleted) return;
  all.delete(conversation.id);
  const its = await readMessages(conversation.id);
  await write(["conversations", conversation.id, null], ...its.map((one) => ["messages", one.id, null]));
}

// ---- Other tabs ----------------------------------------------------------------------------------------------------

async function takeConversation(id) {
  const fresh = await readOne("conversations", id);
  if (isUnwritten("conversations", id)) return;
  if (!fresh || fresh.deleted) announce("deleted", all.get(id));
  if (!fresh) all.delete(id);
  else all.set(id, refresh(all.get(id) || {}, fresh));
}

async function takeMessage(id, conversation) {
  const its = loaded.get(conversation), fresh = its && await readOne("messages", id);
  if (fresh && !written.has(id)) its.set(id, refresh(its.get(id) || {}, fresh));
}

async function takeFromOtherTab(entries) {
  await reading;
  for (const [store, key, conversation] of entries) {
    if (store === "conversations") await takeConversation(key);
    if (store === "messages") await takeMessage(key, conversation);
    if (store === "settings") announce("settings");
  }
  if (!all.has(open.id) || open.deleted) return openNewest();
  announce("list");
  if (entries.some(([, key, conversation]) => (conversation || key) === open.id)) announce("conversation");
}

export async function loadConversations() {
  for (const one of await readAll("conversations")) all.set(one.id, one);
  for (const one of [...all.values()]) if (one.deleted < Date.now() - 60000) await forget(one);
  onOtherTab(takeFromOtherTab);
  const last = all.get(lastOpen());
  return last && !last.deleted ? openConversation(last) : openNewest();
}
