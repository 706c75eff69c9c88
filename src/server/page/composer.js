// SPDX-License-Identifier: Apache-2.0
// Where a question is written: the text, files beside it, and how full the context is. What is not sent yet is kept with its
// conversation.
import { action, find, make, say, unsay } from "./dom.js";
import { isRunning, keepClosed, lastOf, send, stop } from "./answers.js";
import { current, keepConversation, keepDraft, path } from "./conversations.js";
import { contentOf, request } from "./requests.js";

const LARGEST = 2 * 1024 * 1024; // bytes of a file: more than contexts hold
let timer, drawn = null; // the conversation whose draft is in the box
let contexts = new Map(); // tokens by model

const draft = () => current().draft;
const fit = () => { find("text").style.height = ""; find("text").style.height = find("text").scrollHeight + 2 + "px"; };

function changed() {
  draft().text = find("text").value;
  keepDraft(current());
  timer ??= setTimeout(() => { timer = undefined; measure(); }, 300);
}

// ---- The gauge -----------------------------------------------------------------------------------------------------

const usedBy = (message) => message?.timings ? message.timings.prompt + message.timings.tokens : 0;
let typed = 0; // tokens of the draft

function drawGauge() {
  const most = contexts.get(find("model").value), used = usedBy(path().findLast((message) => message.timings)) + typed;
  find("gauge").hidden = !most || !used;
  if (!most) return;
  Object.assign(find("gauge").querySelector("meter"), { max: most, high: most * 0.8, value: used });
  find("gauge").querySelector("span").textContent = `${used} of ${most} tokens` +
    (used > most ? ": too many, begin a new conversation" : used > most * 0.8 ? ": nearly full" : "");
}

async function measure() {
  const conversation = current(), content = contentOf({ ...draft(), content: draft().text });
  let count = 0;
  try {
    if (content) count = (await (await request("/tokenize", { model: find("model").value, content })).json()).tokens.length;
  } catch { /* the gauge can wait; sending will say what is wrong */ }
  if (conversation !== current()) return;
  typed = count;
  drawGauge();
}

// ---- Files ---------------------------------------------------------------------------------------------------------

async function textOf(file) {
  if (file.size > LARGEST) throw new Error(`${file.name} has ${Math.ceil(file.size / 1048576)} MB; 2 MB is the most.`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is no text in UTF-8.`);
  }
}

async function attach(files) {
  unsay("attach");
  const conversation = current();
  for (const file of files) {
    try {
      const text = await textOf(file);
      conversation.draft.files.push({ name: file.name, text }); // the draft of now: one may have been sent meanwhile
    } catch (error) {
      say("attach", error.message);
    }
  }
  keepConversation(conversation);
  drawComposer();
  measure();
}

function fileNode(file) {
  const remove = () => {
    draft().files.splice(draft().files.indexOf(file), 1);
    keepConversation(current());
    drawComposer();
    measure();
  };
  return make("span", { className: "file" }, file.name, action("×", remove, { ariaLabel: "Leave out " + file.name }));
}

// ---- The box -------------------------------------------------------------------------------------------------------

export function drawComposer() {
  const isOther = drawn !== current();
  drawn = current();
  for (const [id, value] of [["system", drawn.system], ["text", draft().text]])
    if (find(id).value !== value) find(id).value = value; // the cursor stays where it is
  find("files").replaceChildren(...draft().files.map(fileNode));
  find("send").hidden = isRunning();
  find("halt").hidden = !isRunning();
  if (isOther) measure();
  drawGauge();
  fit();
}

function submit(event) {
  event?.preventDefault();
  const { text, files } = draft();
  if (!text.trim() && !files.length) return;
  current().draft = { text: "", files: [] };
  if (!send(text, files, lastOf())) {
    current().draft = { text, files };
    return;
  }
  typed = 0;
  find("text").value = "";
  drawComposer();
}

function bindFiles() {
  find("attach").onclick = () => find("attach_file").click();
  find("attach_file").onchange = async () => { await attach([...find("attach_file").files]); find("attach_file").value = ""; };
  const take = (event, { files, types }) => {
    if (!files.length || types.includes("text/plain")) return; // office programs lay a picture beside their text
    event.preventDefault();
    attach([...files]);
  };
  document.ondragover = (event) => { if (event.dataTransfer.types.includes("Files")) event.preventDefault(); };
  document.ondrop = (event) => take(event, event.dataTransfer);
  find("text").onpaste = (event) => take(event, event.clipboardData);
}

export const hasContext = (model) => contexts.get(model) !== undefined;

export function setContexts(models) {
  contexts = new Map(models.map((model) => [model.id, model.max_model_len]));
  drawGauge();
}

export function bindComposer() {
  find("ask").onsubmit = submit;
  find("halt").onclick = stop;
  find("text").onkeydown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  find("text").oninput = () => { changed(); fit(); };
  find("system").oninput = () => { current().system = find("system").value; keepDraft(current()); };
  bindFiles();
  addEventListener("pagehide", keepClosed);
}
