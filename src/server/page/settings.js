// SPDX-License-Identifier: Apache-2.0
// What answers are asked with: numbers, thinking, the answer's form, tools. A field that makes no sense says so, and nothing
// is sent until it does.
import { find, make, say, unsay } from "./dom.js";
import { isUnwritten, readOne, refresh, write } from "./store.js";
import { changes } from "./conversations.js";

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const number = (least, most) => (text) => !NUMBER.test(text)
  ? "not a number" + (/^\d*,\d+$/.test(text) ? ": write " + text.replace(",", ".") : "")
  : Number(text) < least ? "less than " + least : Number(text) > most ? "more than " + most : "";
const whole = (least) => (text) => number(least)(text) || (Number.isInteger(Number(text)) ? "" : "not a whole number");
const seed = (text) => /^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n ? "" : "not a whole number from 0 to 2^64 - 1";

export const NUMBERS = [["temperature", "Temperature", number(0)], ["top_k", "Top-k", whole(0)], ["top_p", "Top-p", number(0, 1)],
  ["min_p", "Min-p", number(0, 1)], ["repetition_penalty", "Repetition penalty", number(0)],
  ["presence_penalty", "Presence penalty", number()], ["frequency_penalty", "Frequency penalty", number()],
  ["max_tokens", "Most tokens", whole(1), "no limit"], ["seed", "Seed", seed, "drawn"]];

const EXAMPLES = {
  json_schema: { type: "object", properties: { name: { type: "string" }, age: { type: "integer", minimum: 0 } },
    required: ["name", "age"], additionalProperties: false },
  regex: "(yes|no), because [a-z ]{1,80}\\.",
  choice: "yes\nno\nperhaps",
  grammar: 'root ::= "The answer is " number "."\nnumber ::= [0-9]{1,6}',
  tools: [{ type: "function", function: { name: "get_weather", description: "The weather of a city now.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } } }],
};
const exampleOf = (name) => typeof EXAMPLES[name] === "string" ? EXAMPLES[name] : JSON.stringify(EXAMPLES[name], null, 1);

function jsonProblem(text) {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return "not JSON: " + error.message;
  }
}

// Functions as the API has them, or bare.
const toolsOf = (text) => [JSON.parse(text)].flat().map((tool) => tool.function ? tool : { type: "function", function: tool });

function toolsProblem(text) {
  const problem = jsonProblem(text);
  if (problem) return problem;
  const names = [JSON.parse(text)].flat().map((tool) => tool && (tool.function || tool).name);
  return names.every((name) => typeof name === "string") ? "" : `tool ${names.findIndex((name) => typeof name !== "string") + 1} has no name`;
}

const hasForm = (kind) => kind && kind !== "json_object";
const formProblem = (text) => !hasForm(settings.form) ? ""
  : !text ? "empty" : settings.form === "json_schema" ? jsonProblem(text) : "";
const CHECKS = { ...Object.fromEntries(NUMBERS.map(([name, , check]) => [name, check])), tools: toolsProblem };
const LABELS = { ...Object.fromEntries(NUMBERS), tools: "Tools", form_text: "Answers are" };
const FIELDS = [...NUMBERS.map(([name]) => name), "stop", "thinking", "form", "form_text", "tools", "tool_choice"];

export const settings = {};

const problemOf = (name) => name === "form_text" ? formProblem(settings.form_text || "")
  : settings[name] && CHECKS[name] ? CHECKS[name](settings[name]) : "";

export function keepSettings(change) {
  Object.assign(settings, change);
  write(["settings", "all", settings]);
}

function showProblem(name) {
  const problem = problemOf(name), field = find(name);
  field.ariaInvalid = Boolean(problem);
  field.parentElement.querySelector(".problem").textContent = problem;
  unsay("settings");
}

function showForm() {
  find("form_text").parentElement.hidden = !hasForm(settings.form);
  find("form_text").placeholder = exampleOf(settings.form) || "";
  find("tool_choice").parentElement.hidden = !settings.tools;
  for (const name of FIELDS) showProblem(name);
}

// A setting that hinders sending is said and shown.
export function saySettingsProblem() {
  const name = FIELDS.find(problemOf);
  if (!name) return false;
  say("settings", `${LABELS[name]}: ${problemOf(name)}`);
  find("settings").hidden = false;
  find("configure").ariaExpanded = true;
  find(name).focus();
  return true;
}

// The settings as an answer keeps them: what is not set is not there.
export function askedNow(model, system) {
  const asked = { model, system };
  for (const [name] of NUMBERS) if (name !== "seed" && settings[name]) asked[name] = Number(settings[name]);
  if (settings.stop) asked.stop = settings.stop;
  if (settings.thinking) asked.thinking = settings.thinking === "true";
  if (settings.form) asked.form = { kind: settings.form, text: hasForm(settings.form) ? settings.form_text : "" };
  if (settings.tools) Object.assign(asked, { tools: toolsOf(settings.tools), tool_choice: settings.tool_choice || "auto" });
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== "" && value !== undefined));
}

export function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
  find("theme").textContent = "Theme: " + (theme || "system");
}

function showSettings() {
  for (const name of FIELDS) find(name).value = settings[name] || "";
  find("tokens").checked = settings.tokens || false;
  setTheme(settings.theme || "");
  showForm();
}

async function takeSettings() {
  const kept = await readOne("settings", "all");
  if (isUnwritten("settings", "all")) return;
  refresh(settings, kept || {});
  showSettings();
}

function bindExample(button, name, nameOf) {
  find(button).onclick = () => {
    find(name).value = exampleOf(nameOf());
    find(name).onchange();
  };
}

export async function bindSettings(onTokens) {
  for (const [name, label, , otherwise] of NUMBERS) {
    const input = make("input", { id: name, inputMode: "decimal", placeholder: otherwise || "the model's own" });
    find("numbers").append(make("label", {}, label, input, make("span", { className: "problem" })));
  }
  for (const name of FIELDS)
    find(name).onchange = () => { keepSettings({ [name]: find(name).value.trim() }); showForm(); };
  find("tokens").onchange = () => { keepSettings({ tokens: find("tokens").checked }); onTokens(); };
  find("theme").onclick = () => {
    keepSettings({ theme: { "": "light", light: "dark", dark: "" }[settings.theme || ""] });
    setTheme(settings.theme);
  };
  bindExample("form_example", "form_text", () => settings.form);
  bindExample("tools_example", "tools", () => "tools");
  changes.addEventListener("settings", async () => { await takeSettings(); onTokens(); });
  await takeSettings();
}
