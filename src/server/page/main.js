// SPDX-License-Identifier: Apache-2.0
// The page: conversations in the browser's database, answers from /v1/chat/completions. This file puts its parts together.
import { action, find, make, say, unsay } from "./dom.js";
import { stop } from "./answers.js";
import { changes, loadConversations, newConversation } from "./conversations.js";
import { bindComposer, drawComposer, hasContext, setContexts } from "./composer.js";
import { drawMessage, drawMessages } from "./messages.js";
import { request } from "./requests.js";
import { bindSettings, keepSettings, settings } from "./settings.js";
import { bindSide, drawList, showDrawer } from "./side.js";
import { openStore } from "./store.js";
import { bindTransfer } from "./transfer.js";

let said = null; // of the storage: once, since a growing answer is written again and again

function sayStorage(error) {
  if (!error) unsay("storage");
  const before = said;
  said = error && String(error);
  if (!error || said === before) return;
  const what = error.name === "QuotaExceededError" ? "The browser's storage is full" : `The browser does not keep conversations (${error.message})`;
  say("storage", what + ": what comes now is lost when this tab closes. Export the conversations first; deleting some makes room.");
}

// The models there are; what is not loaded yet has no length of context.
async function loadModels() {
  try {
    const models = (await (await request("/v1/models")).json()).data;
    const chosen = find("model").value || settings.model;
    find("model").replaceChildren(...models.map((model) => make("option", { value: model.id }, model.id)));
    if (models.some((model) => model.id === chosen)) find("model").value = chosen;
    setContexts(models);
    unsay("models");
  } catch (error) {
    say("models", error.message, [action("Try again", loadModels)]);
  }
}

function bindKeys() {
  document.onkeydown = (event) => {
    const isOwn = event.isComposing || event.target === find("search"); // whose Escape has another meaning
    if (event.key === "Escape" && !isOwn && !showDrawer(false)) stop();
    if (event.key === "n" && event.ctrlKey && event.altKey) newConversation();
  };
}

function bind() {
  bindSide();
  bindTransfer();
  bindComposer();
  bindKeys();
  find("settings").onsubmit = (event) => event.preventDefault();
  find("configure").onclick = () => {
    find("settings").hidden = !find("settings").hidden;
    find("configure").ariaExpanded = !find("settings").hidden;
  };
  find("model").onchange = () => { keepSettings({ model: find("model").value }); drawComposer(); };
  changes.addEventListener("list", drawList);
  changes.addEventListener("message", (event) => drawMessage(event.detail));
  changes.addEventListener("answered", ({ detail: { model } }) => { if (model && !hasContext(model)) loadModels(); }); // it is loaded by now
  changes.addEventListener("conversation", () => { drawMessages(); drawComposer(); drawList(); });
}

async function start() {
  await openStore(sayStorage);
  await bindSettings(drawMessages);
  bind();
  await loadConversations();
  await loadModels();
  document.body.dataset.ready = "yes";
}

start();
