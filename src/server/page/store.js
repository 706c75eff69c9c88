// SPDX-License-Identifier: Apache-2.0
// The browser's database: conversations, their messages, settings. Other tabs are told what changed.

const STORES = ["conversations", "messages", "settings"];
const MOST_WAIT = 5000; // milliseconds for the database to open
const channel = window.BroadcastChannel ? new BroadcastChannel("gumbel") : null;
const unwritten = new Map(); // what the database does not have yet: store and key -> [store, key, value]
let database = null, timer;
let report = () => {};

const result = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

function makeStores({ result: made }) {
  made.createObjectStore("conversations");
  made.createObjectStore("messages").createIndex("conversation", "conversation");
  made.createObjectStore("settings");
}

// A page left while it made the database, which the browser keeps for "back", can hold up this one.
const tooLate = () => new Promise((_, reject) =>
  setTimeout(() => reject(new Error("its database does not open; load the page again")), MOST_WAIT));

// onFailure is given the error of each write that failed, and null after one that did not.
export async function openStore(onFailure) {
  report = onFailure;
  try {
    const request = indexedDB.open("gumbel", 1);
    request.onupgradeneeded = () => makeStores(request);
    database = await Promise.race([result(request), tooLate()]);
    database.onclose = () => { database = null; };
  } catch (error) {
    report(error);
  }
}

const reading = (store) => database.transaction(store).objectStore(store);

// What the database has of a store, and what it does not have yet.
function withUnwritten(store, written, isOne = () => true) {
  const all = new Map(written.map((one) => [one.id, one]));
  for (const [its, key, value] of unwritten.values()) {
    if (its !== store) continue;
    if (value && isOne(value)) all.set(key, value); else all.delete(key);
  }
  return [...all.values()];
}

export const readAll = async (store) => withUnwritten(store, database ? await result(reading(store).getAll()) : []);
export const readOne = async (store, key) => database ? result(reading(store).get(key)) : undefined;
export const readMessages = async (conversation) => withUnwritten("messages",
  database ? await result(reading("messages").index("conversation").getAll(conversation)) : [],
  (message) => message.conversation === conversation);

function transact(batch) {
  const transaction = database.transaction(STORES, "readwrite");
  for (const [store, key, value] of batch) {
    if (value) transaction.objectStore(store).put(value, key);
    else transaction.objectStore(store).delete(key);
  }
  transaction.commit(); // at once: the page may be about to close
  return new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
}

// A full storage lets transactions through that only delete, so these go first and alone.
function writeBatch(batch) {
  if (!database) throw new Error("this browser has no database for the page");
  const deleted = batch.filter(([, , value]) => !value), kept = batch.filter(([, , value]) => value);
  return Promise.all([deleted, kept].filter((part) => part.length).map(transact));
}

const nameOf = (store, key) => store + " " + key;

function remember(entries) {
  for (const entry of entries) unwritten.set(nameOf(...entry), entry);
}

// Writes [store, key, value] each, whose value is deleted where it is null. What fails is tried again with the next write.
export async function write(...entries) {
  remember(entries);
  clearTimeout(timer);
  timer = undefined;
  const batch = [...unwritten];
  try {
    await writeBatch(batch.map(([, entry]) => entry));
    for (const [name, entry] of batch) if (unwritten.get(name) === entry) unwritten.delete(name);
    report(null);
    if (channel) channel.postMessage(batch.map(([, [store, key, value]]) => [store, key, value && value.conversation]));
  } catch (error) {
    report(error);
  }
}

// The same within half a second, or with the next write: what is written as a page closes may come too late.
export function writeSoon(...entries) {
  remember(entries);
  timer ??= setTimeout(write, 500);
}

// Which conversation this tab shows, over a reload. Browsers that keep nothing for the page throw.
export function keepOpen(id) {
  try {
    sessionStorage.setItem("open", id);
  } catch { /* the newest is opened again */ }
}

export function lastOpen() {
  try {
    return sessionStorage.getItem("open");
  } catch {
    return null;
  }
}

// Whether this tab knows better than the database, as it may after a read that had to wait.
export const isUnwritten = (store, key) => unwritten.has(nameOf(store, key));

addEventListener("pagehide", () => { if (timer) write(); });

// Makes what is known what another tab has written.
export function refresh(known, fresh) {
  for (const name of Object.keys(known)) if (!(name in fresh)) delete known[name];
  return Object.assign(known, fresh);
}

// What another tab has written: [store, key, the message's conversation] each.
export function onOtherTab(callback) {
  if (channel) channel.onmessage = (event) => callback(event.data);
}
