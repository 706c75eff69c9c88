// SPDX-License-Identifier: Apache-2.0
// The list of conversations: opened, searched, named, deleted.
import { action, find, make, place, say, unsay } from "./dom.js";
import { bringBack, current, forget, keepConversation, list, newConversation, openConversation, removeConversation } from "./conversations.js";
import { isRunning, stopOf } from "./answers.js";
import { readAll } from "./store.js";

let found = null; // ids of those that have what is searched for; null: nothing is

// On a phone. Returns whether it was open.
export function showDrawer(isOpen) {
  const wasOpen = document.body.classList.contains("menu");
  document.body.classList.toggle("menu", isOpen);
  find("menu").ariaExpanded = isOpen;
  return wasOpen;
}

function rename(row, conversation) {
  const box = make("input", { value: conversation.title, ariaLabel: "Name" });
  const done = () => {
    box.onblur = null;
    rows.delete(conversation);
    box.remove();
    conversation.title = box.value.trim() || conversation.title;
    keepConversation(conversation);
  };
  box.onblur = done;
  box.onkeydown = (event) => {
    if (event.key === "Enter" && !event.isComposing) done();
    if (event.key === "Escape") { event.stopPropagation(); box.onblur = null; rows.delete(conversation); box.remove(); drawList(); }
  };
  row.replaceChildren(box);
  box.select();
}

let forgetLast = () => {}; // what was deleted last can be brought back until then

async function remove(conversation) {
  stopOf(conversation);
  forgetLast();
  await removeConversation(conversation);
  const end = () => { clearTimeout(timer); unsay("deleted"); forgetLast = () => {}; };
  const timer = setTimeout(() => forgetLast(), 20000);
  forgetLast = () => { end(); forget(conversation); };
  const undo = action("Undo", () => { end(); bringBack(conversation); });
  say("deleted", `"${conversation.title || "New conversation"}" is deleted.`, [undo], forgetLast);
}

function makeRow(conversation, name) {
  const row = make("div");
  row.append(action(name, () => { showDrawer(false); openConversation(conversation).then(() => find("text").focus()); }),
    action("✎", () => rename(row, conversation), { title: "Rename", ariaLabel: "Rename " + name }),
    action("×", () => remove(conversation), { title: "Delete", ariaLabel: "Delete " + name }));
  return row;
}

const rows = new WeakMap(); // of conversations, with the name that they show

// A row stays the same node while it says the same, so that a click that has begun on it is one.
function rowOf(conversation) {
  const name = (isRunning(conversation) ? "… " : "") + (conversation.title || "New conversation");
  if (rows.get(conversation)?.name !== name) rows.set(conversation, { name, row: makeRow(conversation, name) });
  const { row } = rows.get(conversation);
  row.className = conversation === current() ? "open" : "";
  return row;
}

const nothing = make("p", { className: "hint", textContent: "Nothing found." });

export function drawList() {
  if (find("conversations").querySelector("input")) return; // a name is being typed
  const shown = list().filter((one) => !found || found.has(one.id)).map(rowOf);
  place(find("conversations"), shown.length ? shown : [nothing]);
}

async function search() {
  const text = find("search").value.trim().toLowerCase();
  const has = (...texts) => texts.some((one) => one && one.toLowerCase().includes(text));
  const its = new Set(list().filter((one) => has(one.title)).map((one) => one.id));
  if (text) for (const message of await readAll("messages"))
    if (has(message.content, ...(message.files || []).map((file) => file.name))) its.add(message.conversation);
  if (find("search").value.trim().toLowerCase() !== text) return; // something else is searched for by now
  found = text ? its : null;
  drawList();
}

export function endSearch() {
  find("search").value = "";
  found = null;
}

export function bindSide() {
  find("new").onclick = () => { showDrawer(false); endSearch(); newConversation().then(() => find("text").focus()); };
  find("menu").onclick = () => showDrawer(!document.body.classList.contains("menu"));
  find("shade").onclick = () => showDrawer(false);
  let timer;
  find("search").oninput = () => { clearTimeout(timer); timer = setTimeout(search, 150); };
}
