// SPDX-License-Identifier: Apache-2.0
// Nodes, and texts that are copied.

export function make(tag, properties, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
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
