// SPDX-License-Identifier: Apache-2.0
// Elements: found, made, and said to the reader.

export const find = (id) => document.getElementById(id);

export function make(tag, properties, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

export const action = (text, onclick, more) => make("button", { type: "button", textContent: text, onclick, ...more });

// Brings the children of a node to those wanted; what is in its place is not touched.
export function place(parent, wanted) {
  wanted.forEach((node, index) => {
    if (parent.children[index] !== node) parent.insertBefore(node, parent.children[index] || null);
  });
  while (parent.children.length > wanted.length) parent.lastElementChild.remove();
}

// For pages that plain HTTP brought from another machine: browsers have no navigator.clipboard there.
function copySelected(text) {
  const box = make("textarea", { className: "copied", value: text, readOnly: true });
  const focused = document.activeElement;
  document.body.append(box);
  box.select();
  const isCopied = document.execCommand("copy");
  box.remove();
  if (focused) focused.focus();
  return isCopied;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

// Copies text, and says on the button what came of it.
export async function copy(text, button) {
  button.textContent = await copyText(text) ? "Copied" : "Not allowed";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

// A line above the text box. One of a kind is shown at a time; it goes by its ×, or when its kind is over.
export function say(kind, text, actions = [], onClose = () => {}) {
  unsay(kind);
  const close = action("×", () => { unsay(kind); onClose(); }, { ariaLabel: "Close" });
  const note = make("div", { className: "notice" }, make("span", { textContent: text }), ...actions, close);
  note.dataset.kind = kind;
  find("notices").append(note);
}

export function unsay(kind) {
  for (const note of find("notices").querySelectorAll(`[data-kind=${kind}]`)) note.remove();
}
