// SPDX-License-Identifier: Apache-2.0
// /v1/chat/completions: a request from a path of messages, the events of its answer, and what went wrong in words.

// A fence longer than any in the text.
function fenced(file) {
  const longest = Math.max(2, ...(file.text.match(/`+/g) || []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${file.name}:\n${fence}\n${file.text}\n${fence}\n\n`;
}

export const contentOf = (message) => (message.files || []).map(fenced).join("") + message.content;

const callOf = (call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } });

function messageOf(message) {
  const { role, reasoning, calls, call, name } = message;
  if (role === "tool") return { role, tool_call_id: call, name, content: message.content };
  return { role, content: contentOf(message), ...(reasoning ? { reasoning_content: reasoning } : {}),
    ...(calls ? { tool_calls: calls.map(callOf) } : {}) };
}

export const FORMS = {
  json_object: () => ({ response_format: { type: "json_object" } }),
  json_schema: (text) => ({ response_format: { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(text) } } }),
  regex: (text) => ({ structured_outputs: { regex: text } }),
  choice: (text) => ({ structured_outputs: { choice: text.split("\n").filter((line) => line) } }),
  grammar: (text) => ({ structured_outputs: { grammar: text } }),
};

// What an answer behind the path is asked for; begun is what it has already, of an answer that is gone on with.
export function requestOf(path, asked, seed, begun) {
  const { system, stop, thinking, form, ...plain } = asked;
  const request = { ...plain, seed, stream: true, messages: path.map(messageOf) };
  if (system) request.messages.unshift({ role: "system", content: system });
  if (begun) {
    request.messages.push(messageOf(begun));
    Object.assign(request, { continue_final_message: true, add_generation_prompt: false });
  }
  if (stop) request.stop = [stop];
  if (thinking !== undefined) request.chat_template_kwargs = { enable_thinking: thinking };
  return form ? { ...request, ...FORMS[form.kind](form.text) } : request;
}

export class Failure extends Error {}

const gone = () => new Failure(`The server has gone: nothing answers at ${location.origin}. Start it again, then ask again.`);

async function failureOf(response) {
  let message = "";
  try {
    message = (await response.json()).error.message;
  } catch { /* not the server's own words: a proxy's */ }
  const hint = response.status === 401 ? " Load the page again to be asked for the key."
    : /maximum context length/.test(message) ? " Begin a new conversation, or edit an earlier turn." : "";
  return new Failure((message || `The server answered ${response.status} ${response.statusText} without saying why.`) + hint);
}

// The reply of the server, or a Failure in words. What else is thrown is AbortError.
export async function request(path, body, signal) {
  let response;
  try {
    response = await fetch(location.origin + path, body === undefined ? { signal } : { signal, method: "POST",
      headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  } catch (error) {
    throw error.name === "AbortError" ? error : gone();
  }
  if (!response.ok) throw await failureOf(response);
  return response;
}

async function readPart(reader) {
  try {
    return await reader.read();
  } catch (error) {
    throw error.name === "AbortError" ? error : gone();
  }
}

// The JSON of each event. A stream that ends before [DONE] was cut.
export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { value, done } = await readPart(reader);
    if (done) throw new Failure("The server ended the answer before it was whole.");
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const line = text.slice(0, end).split("\n").find((one) => one.startsWith("data: "));
      if (line === "data: [DONE]") return;
      if (line) yield JSON.parse(line.slice(6));
    }
  }
}
