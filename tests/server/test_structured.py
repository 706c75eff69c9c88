# SPDX-License-Identifier: Apache-2.0
"""Answers held to schemas, expressions, grammars and choices, by every name that a client may have for them."""

import concurrent.futures
import json
import os
import re
import subprocess
import tempfile
import typing
import unittest

import anthropic
import jsonschema
import openai
import pydantic

from support import COMMAND, GEMMA, PATIENCE, QWEN, Server, chat, events, shortened

REQUESTS = int(os.environ.get("GUMBEL_STRUCTURED_REQUESTS", shortened(48, 16)))
ASK = [{"role": "user", "content": "Who is the baker?"}]
GOAT = {"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 30},
    "kind": {"enum": ["goat", "dog"]}}, "required": ["name", "age", "kind"], "additionalProperties": False}
NUMBERS = {"type": "array", "items": {"type": "integer", "minimum": -99, "maximum": 99}, "minItems": 1, "maxItems": 4}
UNION = {"anyOf": [{"type": "object", "properties": {"born": {"type": "string", "format": "date"}, "mild": {"type": "boolean"}},
                    "required": ["born"], "additionalProperties": False},
                   {"type": "string", "pattern": "^[a-z]{2,6}$"}, {"type": "null"}]}
CHOICES = ["yes", "no", "it depends"]
GRAMMAR = 'root ::= "(" [a-c]{1,6} ")"'


class Animal(pydantic.BaseModel):
    name: typing.Literal["Clover", "Bramble"]
    age: int = pydantic.Field(ge=0, le=30)
    is_mild: bool
    friend: typing.Optional["Animal"] = None


class Goat(pydantic.BaseModel):
    """Without bounds, which the package anthropic leaves out of the schema and then asks for."""
    name: typing.Literal["Clover", "Bramble"]
    is_mild: bool


def named(schema, **more):
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, **more}}


def is_valid(schema, text):
    jsonschema.validate(json.loads(text), schema, jsonschema.Draft202012Validator,
                        format_checker=jsonschema.FormatChecker())
    return True


# Fields of chats and completions, and what says that an answer is as they want it.
WAYS = [
    ({"response_format": named(GOAT, strict=True)}, lambda text: is_valid(GOAT, text)),
    ({"response_format": named(UNION)}, lambda text: is_valid(UNION, text)),
    ({"response_format": {"type": "json_object"}}, lambda text: isinstance(json.loads(text), dict)),
    ({"response_format": {"type": "json_object", "schema": GOAT}}, lambda text: is_valid(GOAT, text)),
    ({"structured_outputs": {"json": NUMBERS}}, lambda text: is_valid(NUMBERS, text)),
    ({"structured_outputs": {"json": json.dumps(NUMBERS), "disable_any_whitespace": True}},
     lambda text: is_valid(NUMBERS, text) and not re.search(r"\s", text)),
    ({"structured_outputs": {"json_object": True}}, lambda text: isinstance(json.loads(text), dict)),
    ({"structured_outputs": {"regex": "[A-Z][a-z]{2,7}!"}}, lambda text: re.fullmatch("[A-Z][a-z]{2,7}!", text)),
    ({"structured_outputs": {"choice": CHOICES}}, lambda text: text in CHOICES),
    ({"structured_outputs": {"grammar": GRAMMAR}}, lambda text: re.fullmatch(r"\([a-c]{1,6}\)", text)),
    ({"guided_json": UNION}, lambda text: is_valid(UNION, text)),
    ({"guided_regex": r"\d{2,3}"}, lambda text: re.fullmatch(r"\d{2,3}", text)),
    ({"guided_choice": CHOICES}, lambda text: text in CHOICES),
    ({"guided_grammar": GRAMMAR}, lambda text: re.fullmatch(r"\([a-c]{1,6}\)", text)),
    ({"grammar": GRAMMAR}, lambda text: re.fullmatch(r"\([a-c]{1,6}\)", text)),
    ({"json_schema": NUMBERS}, lambda text: is_valid(NUMBERS, text)),
]


class Structured(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--parallel", "8")
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0, timeout=PATIENCE)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, way, **more):
        return self.client.chat.completions.create(
            model="tiny", messages=ASK, extra_body=way, **{"max_tokens": 300, "temperature": 1.3, "seed": 7, **more})

    def test_every_way(self):
        """On chats and completions, with several seeds; an answer that ended at a stop is as it should be. Some
        kinds of answers end late, so seeds go on until one does."""
        for way, is_good in WAYS:
            stopped = 0
            for seed in range(24):
                if seed >= 4 and stopped > 0:
                    break
                choice = self.ask(way, seed=seed).choices[0]
                text = self.client.completions.create(model="tiny", prompt="Once", max_tokens=300, temperature=1.3,
                                                      seed=seed, extra_body=way).choices[0]
                for reason, found in ((choice.finish_reason, choice.message.content), (text.finish_reason, text.text)):
                    self.assertIn(reason, ("stop", "length"))
                    if reason == "stop":
                        stopped += 1
                        self.assertTrue(is_good(found), (way, found))
            self.assertGreater(stopped, 0, way)

    def test_stream(self):
        for way, _ in WAYS:
            whole = self.ask(way).choices[0]
            chunks = list(self.ask(way, stream=True))
            self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), whole.message.content)
            self.assertEqual(chunks[-1].choices[0].finish_reason, whole.finish_reason)

    def test_answers_of_one_prompt(self):
        way = {"response_format": named(GOAT)}
        choices = self.ask(way, n=4).choices
        self.assertGreater(len({choice.message.content for choice in choices}), 1)
        for choice in choices:
            one = self.ask({**way, "seed": choice.seed}).choices[0]
            self.assertEqual(one.message.content, choice.message.content)
            if choice.finish_reason == "stop":
                self.assertTrue(is_valid(GOAT, choice.message.content))

    def test_models_of_pydantic(self):
        reply = self.client.chat.completions.parse(model="tiny", messages=ASK, response_format=Animal, seed=3,
                                                   temperature=1.0)
        self.assertIsInstance(reply.choices[0].message.parsed, Animal)
        with self.client.chat.completions.stream(model="tiny", messages=ASK, response_format=Animal, seed=3,
                                                 temperature=1.0) as stream:
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.parsed, reply.choices[0].message.parsed)

    def test_responses(self):
        reply = self.client.responses.parse(model="tiny", input=ASK[0]["content"], text_format=Animal, temperature=1.0,
                                            extra_body={"seed": 3})
        self.assertIsInstance(reply.output_parsed, Animal)
        self.assertEqual(reply.text.format.type, "json_schema")
        reply = self.client.responses.create(model="tiny", input=ASK[0]["content"], max_output_tokens=300,
                                             text={"format": {"type": "json_schema", "name": "n", "schema": NUMBERS}})
        self.assertTrue(is_valid(NUMBERS, reply.output_text))

    def test_messages(self):
        client = anthropic.Anthropic(base_url=self.server.url, api_key="none", max_retries=0, timeout=PATIENCE)
        body = {"model": "tiny", "messages": ASK, "max_tokens": 300}
        reply = client.messages.parse(**body, output_format=Goat, extra_body={"seed": 3})
        self.assertIsInstance(reply.parsed_output, Goat)
        config = {"format": {"type": "json_schema", "schema": NUMBERS}, "effort": "low"}
        reply = client.messages.create(**body, output_config=config)
        self.assertEqual(reply.stop_reason, "end_turn")
        self.assertTrue(is_valid(NUMBERS, reply.content[0].text))
        config["format"]["schema"] = {"type": "banana"}
        with self.assertRaises(anthropic.BadRequestError) as caught:
            client.messages.create(**body, output_config=config)
        self.assertIn("output_config.format: schema: \"type\"", caught.exception.body["error"]["message"])

    def test_order_of_members(self):
        """That of the schema, unless counts of members cannot be had so."""
        for seed in range(6):
            choice = self.ask({"response_format": named(GOAT)}, seed=seed).choices[0]
            if choice.finish_reason == "stop":
                self.assertEqual(list(json.loads(choice.message.content)), ["name", "age", "kind"])
        few = {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"type": "boolean"}, "c": {"type": "null"}},
               "additionalProperties": False, "minProperties": 2, "maxProperties": 2}
        self.assertEqual(len(json.loads(self.ask({"json_schema": few}).choices[0].message.content)), 2)

    def test_beside_other_fields(self):
        bare = self.ask({"guided_choice": CHOICES}, logprobs=True, top_logprobs=2).choices[0]
        self.assertEqual("".join(entry.token for entry in bare.logprobs.content[:-1]), bare.message.content)
        text = self.ask({"response_format": {"type": "text"}, "grammar": GRAMMAR}).choices[0].message.content
        self.assertTrue(text.startswith("("))
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
        self.assertIn(self.ask({"guided_choice": CHOICES}, tools=[tool], tool_choice="none").choices[0].message.content,
                      CHOICES)
        # A stop string ends it early; stop tokens end it where the grammar may end, though they are ignored.
        self.assertEqual(self.ask({"guided_choice": ["a-b"]}, stop=["-"]).choices[0].message.content, "a")
        ends = self.ask({"guided_choice": CHOICES, "ignore_eos": True}).choices[0]
        self.assertIn((ends.message.content, ends.finish_reason), [(text, "stop") for text in CHOICES])

    def test_errors(self):
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
        for way, param, part in (
                ({"response_format": {"type": "yaml"}}, "response_format", "json_schema"),
                ({"response_format": "json"}, "response_format", "an object"),
                ({"response_format": {"type": "json_object", "x": 1}}, "response_format", "response_format.x"),
                ({"response_format": {"type": "json_schema"}}, "response_format", "schema"),
                ({"response_format": {"type": "json_schema", "json_schema": []}}, "response_format", "an object"),
                ({"response_format": named([])}, "response_format", "an object"),
                ({"response_format": named({}, strict="yes")}, "response_format", "true or false"),
                ({"response_format": named({"maxLenght": 3}, strict=True)}, "response_format", '"maxLenght" at #'),
                ({"response_format": named({"type": "object", "format": "banana"}, strict=True)}, "response_format", "banana"),
                ({"response_format": named({"type": "integer", "minimum": 3, "maximum": 2})}, "response_format",
                 "no value"),
                ({"response_format": named({}), "tools": [tool, tool]}, "response_format", "are both"),
                ({"response_format": named({}), "guided_json": {}}, "guided_json", "response_format and guided_json"),
                ({"json_schema": {}, "guided_json": {}}, "guided_json", "json_schema and guided_json"),
                ({"grammar": GRAMMAR, "structured_outputs": {"regex": "a"}}, "structured_outputs.regex",
                 "grammar and structured_outputs.regex"),
                ({"structured_outputs": {"json": {}, "choice": ["a"]}}, "structured_outputs.choice",
                 "structured_outputs.json and structured_outputs.choice"),
                ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs", "structural_tag"),
                ({"guided_json": "{"}, "guided_json", "schema"), ({"guided_json": 5}, "guided_json", "an object"),
                ({"guided_regex": "(a"}, "guided_regex", "regular expression"),
                ({"guided_choice": []}, "guided_choice", "one string"),
                ({"guided_choice": [1]}, "guided_choice", "no string"),
                ({"guided_choice": "yes"}, "guided_choice", "an array"),
                ({"grammar": "root ::= nothing"}, "grammar", "not defined"), ({"grammar": ""}, "grammar", "root"),
                ({"guided_whitespace_pattern": " "}, "guided_whitespace_pattern", "only null is taken")):
            for stream in (False, True):
                status, _, body = self.server.post("/v1/chat/completions", {**chat("Hi"), **way, "stream": stream})
                self.assertEqual((status, body["error"]["param"]), (400, param), (way, body))
                self.assertIn(part, body["error"]["message"])
        strict = {"type": "json_schema", "name": "n", "strict": True, "schema": {"banana": 1}}
        status, _, body = self.server.post("/v1/responses", {"input": "Hi", "text": {"format": strict}})
        self.assertEqual((status, body["error"]["param"]), (400, "text.format"))

    def test_ambiguous(self):
        """A grammar that has too many ways to read one text is wrong, not the server busy."""
        a = self.server.post("/tokenize", {"content": "a"})[2]["tokens"][0]
        body = {"prompt": "Hi", "max_tokens": 400, "seed": 3, "logit_bias": {str(a): 60},
                "grammar": 'root ::= x{1,300} "b"\nx ::= ("a" | "aa" | "aaa"){1,300}'}
        status, _, reply = self.server.post("/v1/completions", body)
        self.assertEqual((status, reply["error"]["param"]), (400, "grammar"))
        self.assertIn("ambiguous", reply["error"]["message"])
        _, error = events(self.server.post("/v1/completions", {**body, "stream": True})[2])[-2]
        self.assertEqual(error["error"]["param"], "grammar")

    def test_compiled_once(self):
        def counts():
            return (self.server.metric("gumbel_grammar_compile_seconds_count"),
                    self.server.metric("gumbel_grammar_cache_hits_total"))
        schema = {"type": "integer", "minimum": 1000, "maximum": 1777}
        compiled, hits = counts()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda seed: self.ask({"json_schema": schema}, seed=seed), range(12)))
        self.ask({"response_format": named(schema)})
        self.assertEqual(counts(), (compiled + 1, hits + 12))
        self.ask({"guided_regex": "1[0-7]{3}"})
        self.assertEqual(counts(), (compiled + 2, hits + 12))
        self.assertGreater(self.server.metric("gumbel_grammar_compile_seconds_sum"), 0)


class SameAnswers(unittest.TestCase):
    """Alone and in a fresh state, then among 8: equal, and as they should be. GUMBEL_STRUCTURED_REQUESTS says how many."""

    def check(self, answer, is_good):
        text = answer["message"]["content"]
        self.assertIn(answer["finish_reason"], ("stop", "length"))
        if answer["finish_reason"] == "stop":
            self.assertTrue(is_good(text), text)
        return answer["finish_reason"] == "stop"

    def compare(self, program):
        requests = [{**chat(f"Who is number {i % 5}?"), **WAYS[i % len(WAYS)][0], "seed": i, "max_tokens": 120,
                     "temperature": (0, 0.7, 1.5)[i % 3]} for i in range(REQUESTS)]

        def outcome(server, request):
            status, _, reply = server.post("/v1/chat/completions", request)
            self.assertEqual(status, 200, reply)
            return reply["choices"]
        with Server("--parallel", "1", "--no-prefix-cache", program=program) as server:
            expected = [outcome(server, request) for request in requests]
        stopped = [self.check(expected[i][0], WAYS[i % len(WAYS)][1]) for i in range(REQUESTS)]
        self.assertGreater(sum(stopped), REQUESTS / 2)
        with Server("--parallel", "8", program=program) as server, concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(lambda request: outcome(server, request), requests)), expected)

    def test_gemma(self):
        self.compare(GEMMA)

    def test_qwen(self):
        self.compare(QWEN)


class Thinking(unittest.TestCase):
    def test_thoughts_come_first(self):
        with Server(program=QWEN) as server:
            body = {**chat("Who is the baker?"), "json_schema": NUMBERS, "max_tokens": 300}
            for seed in range(4):
                choice = server.post("/v1/chat/completions", {**body, "seed": seed})[2]["choices"][0]
                self.assertTrue(choice["message"]["reasoning_content"])
                self.assertTrue(is_valid(NUMBERS, choice["message"]["content"]))
            off = server.post("/v1/chat/completions", {**body, "chat_template_kwargs": {"enable_thinking": False}})[2]
            self.assertFalse(off["choices"][0]["message"].get("reasoning_content"))
            self.assertTrue(is_valid(NUMBERS, off["choices"][0]["message"]["content"]))
            text = server.post("/v1/chat/completions", {**body, "stream": True})[2]
            deltas = [data["choices"][0]["delta"] for _, data in events(text) if data != "[DONE]"]
            self.assertTrue("".join(delta.get("reasoning_content") or "" for delta in deltas))
            self.assertTrue(is_valid(NUMBERS, "".join(delta.get("content") or "" for delta in deltas)))

    def test_thoughts_that_the_answer_opens(self):
        """Gemma's template leaves it to the model to open a thought, which a bias has it do where it may."""
        with Server() as server:
            mark = server.post("/tokenize", {"content": "<|channel>", "parse_special": True})[2]["tokens"][0]
            body = {"guided_choice": CHOICES, "logit_bias": {str(mark): 90}, "max_tokens": 1, "seed": 7}
            talk = {**chat("Who is the baker?"), "logprobs": True, **body}
            for more, is_open in (({}, False), ({"reasoning_effort": "high"}, True), ({"reasoning_effort": "none"}, False),
                                  ({"chat_template_kwargs": {"enable_thinking": True}}, True),
                                  ({"chat_template_kwargs": {"enable_thinking": False}}, False)):
                choice = server.post("/v1/chat/completions", {**talk, **more})[2]["choices"][0]
                self.assertEqual(choice["logprobs"]["content"][0]["token_id"] == mark, is_open, more)
            text = server.post("/v1/completions", {**body, "prompt": "Once", "logprobs": 0})[2]["choices"][0]
            self.assertNotEqual(text["logprobs"]["tokens"], ["<|channel>"])


class Minimal(unittest.TestCase):
    def test_refused(self):
        """A program without masks."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "minimal.gumbel")
            models = os.environ["GUMBEL_MODELS"]
            subprocess.run([COMMAND, "export", os.path.join(models, "gemma4-tiny"), "-o", path, "--sampler", "minimal"],
                           check=True, capture_output=True)
            with Server(program=path) as server:
                status, _, body = server.post("/v1/chat/completions", chat("Hi", guided_choice=["a"]))
                self.assertEqual(status, 400)
                self.assertIn("--sampler minimal", body["error"]["message"])
                self.assertEqual(body["error"]["param"], "guided_choice")
                self.assertEqual(server.post("/v1/chat/completions", chat("Hi", max_tokens=2))[0], 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
