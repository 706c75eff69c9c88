// SPDX-License-Identifier: Apache-2.0
// A conversation's messages are a tree: whoever edits or asks again begins a branch, and nothing is lost. Messages are a Map
// by id; each names its parent, those at the root null.

// The messages from the root down to the one of that id.
export function pathTo(messages, id) {
  const path = [];
  for (let message = messages.get(id); message; message = messages.get(message.parent)) path.push(message);
  return path.reverse();
}

const byAge = (a, b) => a.created - b.created || (a.id < b.id ? -1 : 1);

export const childrenOf = (messages, parent) =>
  [...messages.values()].filter((message) => message.parent === parent).sort(byAge);

// The youngest message below: where a reader who turns to this branch goes on.
export function leafBelow(messages, id) {
  for (let children; (children = childrenOf(messages, id)).length;) id = children[children.length - 1].id;
  return id;
}

const apply = (asked, change) => Object.fromEntries(
  Object.entries({ ...asked, ...change }).filter(([, value]) => value !== null));

// What the last answer of a path was asked with: each keeps only what differs from the one before it.
export const askedIn = (path) => path.reduce((asked, message) => message.asked ? apply(asked, message.asked) : asked, {});

export function changeOf(before, after) {
  const change = {};
  for (const name of Object.keys({ ...before, ...after }))
    if (JSON.stringify(before[name]) !== JSON.stringify(after[name])) change[name] = after[name] ?? null;
  return change;
}
