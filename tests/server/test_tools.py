# SPDX-License-Identifier: Apache-2.0
"""Calls of tools that are held to their schemas, by the packages openai and anthropic, checked by jsonschema."""

import concurrent.futures
import json
import os
import unittest

import anthropic
import jsonschema
import openai

from support import GEMMA, PATIENCE, QWEN, Server, chat, shortened

REQUESTS = int(os.environ.get("GUMBEL_TOOL_REQUESTS", shortened(32, 12)))
ASK = [{"role": "user", "content": "How is the weather in Rome?"}]
TOWN = {"type": "string", "maxLength": 10}
SCHEMAS = {
    "weather": {"type": "object", "properties": {"town": TOWN, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
                "required": ["town", "days"], "additionalProperties": False},
    "add": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": ["integer", "null"]}},
            "required": ["a", "b"]},
    "clock": {"type": "object", "properties": {}},
    "search": {"type": "object", "properties": {
        "text": {"anyOf": [{"type": "string", "maxLength": 6}, {"type": "integer", "minimum": 100}]},
        "where": {"enum": ["here", "there", 3, None]}, "exact": {"type": "boolean"}},
        "required": ["text", "where"]},
    "move": {"type": "object", "$defs": {"place": {
        "type": "object", "properties": {"name": {"type": "string", "pattern": "^[A-Z][a-z]{1,6}$"},
                                         "tags": {"type": "array", "items": TOWN, "maxItems": 2}},
        "required": ["name"], "additionalProperties": False}},
        "properties": {"from": {"$ref": "#/$defs/place"}, "to": {"$ref": "#/$defs/place"}}, "required": ["to"]},
    "book": {"type": "object", "properties": {"day": {"type": "string", "format": "date"}, "seats": {"const": 2}},
             "required": ["day", "seats"], "minProperties": 2},
}


def tool(name, **more):
    return {"type": "function", "function": {"name": name, "description": f"What {name} does.",
                                             "parameters": SCHEMAS[name], **more}}


TOOLS = [tool(name) for name in SCHEMAS]
STRICT = [tool(name, strict=True) for name in SCHEMAS]
OFF = {"chat_template_kwargs": {"enable_thinking": False}}
YES = {"type": "json_schema", "json_schema": {"name": "yes", "schema": {"enum": ["yes", "no"]}}}


class Tools(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        if cls.program is None:
            raise unittest.SkipTest("one program at a time")
        cls.server = Server("--parallel", "8", program=cls.program)
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0, timeout=PATIENCE)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, messages=None, extra_body=None, **more):
        return self.client.chat.completions.create(
            model="tiny", messages=messages or ASK, extra_body={**OFF, **(extra_body or {})},
            **{"max_tokens": 400, "temperature": 1.5, "tools": TOOLS, "seed": 7, **more}).choices[0]

    def check(self, calls):
        for call in calls or []:
            jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name],
                                jsonschema.Draft202012Validator, format_checker=jsonschema.FormatChecker())

    def test_required(self):
        """Calls alone, each as its schema says; at most one where they may not be several."""
        ended = 0
        for seed in range(REQUESTS):
            choice = self.ask(seed=seed, tool_choice="required", tools=STRICT if seed % 2 else TOOLS,
                              parallel_tool_calls=seed % 3 == 0)
            self.check(choice.message.tool_calls)
            if choice.finish_reason == "length":
                continue
            ended += 1
            self.assertEqual((choice.finish_reason, choice.message.content), ("tool_calls", None))
            self.assertTrue(seed % 3 == 0 or len(choice.message.tool_calls) == 1)
        self.assertGreater(ended, REQUESTS / 2)

    def test_named(self):
        for name in SCHEMAS:
            ended = 0
            for seed in range(4):
                choice = self.ask(seed=seed, tool_choice={"type": "function", "function": {"name": name}})
                self.check(choice.message.tool_calls)
                if choice.finish_reason != "length":
                    ended += 1
                    self.assertEqual([call.function.name for call in choice.message.tool_calls], [name])
            self.assertGreater(ended, 0, name)

    def test_auto_and_none(self):
        """A model that calls nothing says what it says without a grammar; with none it cannot call."""
        free = self.ask(tools=openai.omit, seed=3, temperature=0.7, messages=[
            {"role": "user", "content": "What is the capital of France?"}])
        self.assertEqual(free.finish_reason, "stop")
        for seed in range(6):
            auto = self.ask(seed=seed, temperature=0.7)
            self.check(auto.message.tool_calls)
            none = self.ask(seed=seed, tool_choice="none")
            self.assertIsNone(none.message.tool_calls)
            self.assertNotIn("tool_call>", none.message.content)

    def test_stream(self):
        for seed in range(4):
            for choice in ("required", "auto", {"type": "function", "function": {"name": "search"}}):
                whole = self.ask(seed=seed, tool_choice=choice)
                stream = self.client.chat.completions.create(
                    model="tiny", messages=ASK, tools=TOOLS, tool_choice=choice, temperature=1.5, seed=seed,
                    max_tokens=400, extra_body=OFF, stream=True)
                calls, text = {}, ""
                for chunk in stream:
                    delta = chunk.choices[0].delta
                    text += delta.content or ""
                    for call in delta.tool_calls or []:
                        entry = calls.setdefault(call.index, ["", ""])
                        entry[0] += call.function.name or ""
                        entry[1] += call.function.arguments or ""
                expected = [[call.function.name, call.function.arguments] for call in whole.message.tool_calls or []]
                self.assertEqual((list(calls.values()), text), (expected, whole.message.content or ""))

    def test_loop(self):
        """A call, its result, and the answer to it."""
        choice = self.ask(tool_choice={"type": "function", "function": {"name": "weather"}})
        call = choice.message.tool_calls[0]
        town = json.loads(call.function.arguments)["town"]
        answer = self.ask([*ASK, choice.message.model_dump(exclude_none=True), {
            "role": "tool", "tool_call_id": call.id, "content": json.dumps({"town": town, "sky": "blue"})}],
            tool_choice="auto", temperature=0.7, response_format=YES)
        if answer.finish_reason == "stop":
            self.assertIn(json.loads(answer.message.content), ("yes", "no"))
        self.check(answer.message.tool_calls)
        self.assertTrue(answer.message.content or answer.message.tool_calls)

    def test_with_a_format(self):
        """Either text as the format says, or calls."""
        kinds = set()
        for seed in range(REQUESTS):
            choice = self.ask(seed=seed, response_format=YES)
            self.check(choice.message.tool_calls)
            kinds.add(choice.finish_reason)
            if choice.finish_reason == "stop":
                self.assertIn(json.loads(choice.message.content), ("yes", "no"))
            only = self.ask(seed=seed, response_format=YES, tool_choice="none")
            self.assertIn(json.loads(only.message.content), ("yes", "no"))
        self.assertTrue(kinds)

    def test_errors(self):
        unfit = {"type": "function", "function": {"name": "f", "strict": True, "parameters": {
            "type": "object", "properties": {"x": {"type": "array", "uniqueItems": True}}}}}
        for more, param, part in (
                ({"tools": [unfit]}, "tools", "uniqueItems"),
                ({"tool_choice": "required", "tools": [TOOLS[0], TOOLS[0]]}, "tools", "both"),
                ({"tool_choice": {"type": "function", "function": {"name": "moon"}}}, "tools", "moon"),
                ({"tools": openai.omit, "tool_choice": "required"}, "tool_choice", "no tools")):
            with self.assertRaises(openai.BadRequestError, msg=more) as caught:
                self.ask(**more)
            self.assertEqual(caught.exception.param, param)
            self.assertIn(part, caught.exception.message)
        unfit["function"]["strict"] = False
        self.check(self.ask(tools=[unfit, TOOLS[2]], max_tokens=4).message.tool_calls)

    def test_responses(self):
        tools = [{"type": "function", "name": name, "parameters": schema, "strict": True}
                 for name, schema in SCHEMAS.items()]
        for choice, names in (("required", set(SCHEMAS)), ({"type": "function", "name": "clock"}, {"clock"})):
            reply = self.client.responses.create(model="tiny", input=ASK[0]["content"], tools=tools, tool_choice=choice,
                                                 parallel_tool_calls=False, temperature=1.0, max_output_tokens=400,
                                                 extra_body={"seed": 3, **OFF})
            calls = [item for item in reply.output if item.type == "function_call"]
            self.assertEqual(len(calls), 1)
            self.assertIn(calls[0].name, names)
            jsonschema.validate(json.loads(calls[0].arguments), SCHEMAS[calls[0].name])

    def test_messages(self):
        client = anthropic.Anthropic(base_url=self.server.url, api_key="none", max_retries=0, timeout=PATIENCE)
        tools = [{"name": name, "input_schema": schema} for name, schema in SCHEMAS.items()]
        for choice, names in (({"type": "any", "disable_parallel_tool_use": True}, set(SCHEMAS)),
                              ({"type": "tool", "name": "weather"}, {"weather"})):
            reply = client.messages.create(model="tiny", messages=ASK, max_tokens=400, tools=tools, tool_choice=choice,
                                           extra_body={"seed": 4, "temperature": 1.0, **OFF})
            self.assertEqual(reply.stop_reason, "tool_use")
            calls = [block for block in reply.content if block.type == "tool_use"]
            self.assertEqual(len(calls), 1)
            self.assertIn(calls[0].name, names)
            jsonschema.validate(calls[0].input, SCHEMAS[calls[0].name])
            results = [{"type": "tool_result", "tool_use_id": calls[0].id, "content": "blue"}]
            answer = client.messages.create(model="tiny", messages=[
                *ASK, {"role": "assistant", "content": [block.model_dump() for block in reply.content]},
                {"role": "user", "content": results}], max_tokens=60, tools=tools, tool_choice={"type": "none"},
                extra_body={"seed": 4, **OFF})
            self.assertNotIn("tool_use", [block.type for block in answer.content])

    def test_budget(self):
        """So many tokens of thought, by every name that a client may have for it, with calls behind and without."""
        for budget in (0, 3):
            for names in ({"reasoning_budget": budget}, {"thinking_token_budget": budget}):
                for more in ({}, {"tool_choice": "required", "tools": TOOLS}):
                    body = {**chat(ASK[0]["content"]), **names, **more, "max_tokens": 400, "seed": 5, "temperature": 1.0,
                            "chat_template_kwargs": {"enable_thinking": True}}
                    reply = self.server.post("/v1/chat/completions", body)[2]
                    usage = reply["usage"].get("completion_tokens_details") or {}
                    self.assertLessEqual(usage.get("reasoning_tokens", 0), budget + 2)
                    if more and reply["choices"][0]["finish_reason"] != "length":
                        self.assertTrue(reply["choices"][0]["message"]["tool_calls"])
        body = {"messages": ASK, "max_tokens": 60, "seed": 5, "thinking": {"type": "enabled", "budget_tokens": 2}}
        status, _, reply = self.server.post("/v1/messages", body)
        self.assertEqual(status, 200, reply)
        thoughts = "".join(block.get("thinking", "") for block in reply["content"])
        self.assertLess(len(thoughts.split()), 4, thoughts)


class Gemma(Tools):
    program = GEMMA


class Qwen(Tools):
    program = QWEN


class SameAnswers(unittest.TestCase):
    """Thinking, a schema and tools together, alone and then among 8 and 32."""

    def compare(self, program, among):
        requests = []
        for i in range(REQUESTS):
            request = {**chat(f"Who is number {i % 5}?"), "seed": i, "max_tokens": 160, "temperature": (0.7, 1.5)[i % 2],
                       "chat_template_kwargs": {"enable_thinking": i % 3 != 0}, "tools": STRICT if i % 2 else TOOLS,
                       "tool_choice": ("auto", "required", "auto", {"type": "function", "function": {"name": "add"}})[i % 4]}
            if i % 4 in (1, 2):
                request["response_format"] = YES
            if i % 5 == 0:
                request["reasoning_budget"] = i % 7
            requests.append(request)

        def outcome(server, request):
            status, _, reply = server.post("/v1/chat/completions", request, timeout=PATIENCE)
            self.assertEqual(status, 200, reply)
            for choice in reply["choices"]:
                for call in choice["message"].get("tool_calls") or []:
                    call.pop("id")
            return reply["choices"]
        with Server("--parallel", "1", "--no-prefix-cache", program=program) as server:
            expected = [outcome(server, request) for request in requests]
        self.check(requests, [choices[0] for choices in expected])
        for count in among:
            with Server("--parallel", str(count), program=program) as server, \
                    concurrent.futures.ThreadPoolExecutor(count) as pool:
                self.assertEqual(list(pool.map(lambda request: outcome(server, request), requests)), expected)

    def check(self, requests, choices):
        called = 0
        for request, choice in zip(requests, choices):
            message = choice["message"]
            for call in message.get("tool_calls") or []:
                called += 1
                jsonschema.validate(json.loads(call["function"]["arguments"]), SCHEMAS[call["function"]["name"]])
            if choice["finish_reason"] == "stop" and "response_format" in request:
                self.assertIn(json.loads(message["content"]), ("yes", "no"))
            if request["tool_choice"] != "auto":
                self.assertIn(choice["finish_reason"], ("tool_calls", "length"))
        self.assertGreater(called, REQUESTS / 5)

    def test_gemma(self):
        self.compare(GEMMA, (8, 32))

    def test_qwen(self):
        self.compare(QWEN, (8, 32))


if __name__ == "__main__":
    unittest.main(verbosity=2)
