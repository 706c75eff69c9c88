# SPDX-License-Identifier: Apache-2.0
"""OpenAI's own client: chats, completions, responses, streams, errors."""

import concurrent.futures
import json
import unittest

import openai

from support import GEMMA, PATIENCE, QWEN, Server, alone, alone_in_parts

WEATHER = {"type": "function", "function": {"name": "weather", "description": "The weather of a town.",
                                            "parameters": {"type": "object", "properties": {
                                                "town": {"type": "string"}, "days": {"type": "integer"}}}}}
ASK = [{"role": "user", "content": "Who is the baker?"}]


def client_of(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=PATIENCE)


class Predictions(unittest.TestCase):
    def test_first(self):
        """A server that has measured nothing yet tries what is predicted."""
        expected = alone(ASK[0]["content"], 7)["text"]
        with Server() as server:
            reply = client_of(server).chat.completions.create(
                model="tiny", messages=ASK, seed=7, prediction={"type": "content", "content": expected})
            metrics = server.request("GET", "/metrics")[2]
        self.assertEqual(reply.choices[0].message.content, expected)
        accepted = reply.usage.completion_tokens_details.accepted_prediction_tokens
        self.assertGreater(accepted, 0)
        self.assertEqual(reply.timings["draft_n_accepted"], accepted)
        self.assertRegex(metrics, f"gumbel_accepted_tokens_total{{[^}}]*}} {accepted}\n")

    def test_any(self):
        """Wrong predictions change nothing."""
        expected = alone(ASK[0]["content"], 7)["text"]
        with Server() as server:
            def ask(**more):
                return client_of(server).chat.completions.create(model="tiny", messages=ASK, seed=7, **more)
            for content in (expected, [{"type": "text", "text": expected[:9]}, {"type": "text", "text": "goats"}], "",
                            "\n", "x", "\ufdfa", "\U0001f410" * 3):
                reply = ask(prediction={"type": "content", "content": content})
                self.assertEqual(reply.choices[0].message.content, expected)
                self.assertGreaterEqual(reply.usage.completion_tokens_details.rejected_prediction_tokens, 0)
            for off in ({"draft": "off"}, {"draft_max": 0}, {"speculative.n_max": 0}):
                reply = ask(prediction={"type": "content", "content": expected}, extra_body=off)
                self.assertEqual(reply.choices[0].message.content, expected)
                self.assertEqual(reply.usage.completion_tokens_details.accepted_prediction_tokens, 0)
                self.assertNotIn("draft_n", reply.timings)
            for wrong, where in (({"type": "image", "content": ""}, "prediction.type"),
                                 ({"type": "content"}, "prediction.content"),
                                 ({"type": "content", "content": [{"type": "audio"}]}, "prediction.content.type")):
                with self.assertRaises(openai.BadRequestError) as caught:
                    ask(prediction=wrong)
                self.assertIn(where, str(caught.exception))


class DraftModels(unittest.TestCase):
    def test_itself(self):
        """A program that guesses for itself is always right, whoever is answered beside it."""
        asked = [(f"Who is number {i}?", 20 + i) for i in range(6)]
        with Server() as server:
            expected = [self.ask(server, *one) for one in asked]
        with Server("--draft", GEMMA) as server:
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                found = list(pool.map(lambda one: self.ask(server, *one), asked * 2))
            for draft in ("model", "auto", "lookup", "off"):
                self.assertEqual(self.ask(server, *asked[0], draft=draft), expected[0])
            guessed = server.metric("gumbel_draft_tokens_total"), server.metric("gumbel_accepted_tokens_total")
            with self.assertRaises(openai.BadRequestError):
                self.ask(server, *asked[0], draft="somebody")
        self.assertEqual(found, expected * 2)
        self.assertGreater(guessed[1], 0)
        self.assertGreaterEqual(guessed[0], guessed[1])

    def test_none(self):
        with Server() as server:
            with self.assertRaises(openai.BadRequestError) as caught:
                self.ask(server, "Who?", 1, draft="model")
            self.assertIn("no other program guesses for this one", str(caught.exception))
        for words in (("--draft", "heads"), ("--draft", QWEN)):
            with self.assertRaises(RuntimeError):
                Server(*words)

    def ask(self, server, question, seed, **more):
        reply = client_of(server).chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": question}], seed=seed, max_tokens=60, extra_body=more)
        return reply.choices[0].message.content


class Chat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = client_of(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, messages=None, **more):
        return self.client.chat.completions.create(model="tiny", messages=messages or ASK, **more)

    def test_same_as_the_command(self):
        reply, expected = self.ask(seed=7), alone(ASK[0]["content"], 7)
        self.assertEqual(reply.choices[0].message.content, expected["text"])
        self.assertEqual(reply.choices[0].finish_reason, "stop")
        self.assertEqual(reply.usage.completion_tokens, len(expected["tokens"]))
        self.assertEqual(reply.usage.prompt_tokens, expected["prompt_tokens"])
        self.assertIn(expected["program"]["id"], reply.system_fingerprint)
        self.assertTrue(reply.system_fingerprint.startswith("gumbel-"))

    def test_stream(self):
        chunks = list(self.ask(seed=7, stream=True, stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, alone(ASK[0]["content"], 7)["text"])
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual([c.choices[0].finish_reason for c in chunks if c.choices][-1], "stop")
        self.assertEqual(chunks[-1].choices, [])
        self.assertGreater(chunks[-1].usage.completion_tokens, 3)
        self.assertTrue(all(chunk.id == chunks[0].id and chunk.usage is None for chunk in chunks[:-1]))

    def test_usage_and_timings_in_each_chunk(self):
        """vLLM's continuous_usage_stats and llama.cpp's timings_per_token."""
        options = {"include_usage": True, "continuous_usage_stats": True}
        for ask in (lambda **more: self.ask(**more),
                    lambda **more: self.client.completions.create(model="tiny", prompt="Once", **more)):
            chunks = list(ask(seed=7, max_tokens=9, stream=True, stream_options=options,
                              extra_body={"timings_per_token": True}))
            counts = [chunk.usage.completion_tokens for chunk in chunks]
            self.assertEqual(counts, sorted(counts))
            self.assertEqual(counts[-1], chunks[-1].timings["predicted_n"])
            self.assertGreater(len(set(counts)), 4)
            for chunk in chunks:
                self.assertEqual(chunk.usage.total_tokens, chunk.usage.prompt_tokens + chunk.usage.completion_tokens)
                self.assertEqual(chunk.timings["predicted_n"], chunk.usage.completion_tokens)
            times = [chunk.timings["predicted_ms"] for chunk in chunks[:-1]]
            self.assertEqual(times, sorted(times))
            self.assertGreater(times[-1], 0)
            chunks = list(ask(seed=7, max_tokens=9, stream=True, extra_body={"timings_per_token": True}))
            self.assertTrue(all("predicted_n" in chunk.timings for chunk in chunks))
            self.assertTrue(all(chunk.usage is None for chunk in chunks))

    def test_a_drawn_seed_replays(self):
        first = self.ask(temperature=2.0, max_tokens=20)
        settings = first.generation_settings
        self.assertEqual(settings["seed"]["origin"], "drawn")
        self.assertEqual(settings["temperature"], {"value": 2.0, "origin": "request"})
        self.assertEqual(settings["top_k"]["origin"], "program")
        self.assertLess(int(first.choices[0].seed), 2 ** 53)
        again = self.ask(temperature=2.0, max_tokens=20, seed=int(first.choices[0].seed))
        self.assertEqual(again.choices[0].message.content, first.choices[0].message.content)

    def test_answers_of_one_prompt(self):
        reply = self.ask(n=4, temperature=1.5, max_tokens=16, seed=3)
        self.assertEqual([choice.index for choice in reply.choices], [0, 1, 2, 3])
        self.assertEqual(len({choice.seed for choice in reply.choices}), 4)
        self.assertEqual(reply.choices[0].seed, "3")
        for choice in reply.choices:
            one = self.ask(temperature=1.5, max_tokens=16, extra_body={"seed": choice.seed})
            self.assertEqual(one.choices[0].message.content, choice.message.content)
        streamed = {i: "" for i in range(4)}
        for chunk in self.ask(n=4, temperature=1.5, max_tokens=16, seed=3, stream=True):
            streamed[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        self.assertEqual(list(streamed.values()), [choice.message.content for choice in reply.choices])

    def test_logprobs(self):
        reply = self.ask(seed=7, logprobs=True, top_logprobs=3)
        content = reply.choices[0].logprobs.content
        self.assertEqual("".join(entry.token for entry in content[:-1]), reply.choices[0].message.content)
        expected = alone(ASK[0]["content"], 7, "--logprobs", "--top-logprobs", "3")
        self.assertEqual([entry.token_id for entry in content], expected["tokens"])
        for entry in content:
            self.assertEqual(bytes(entry.bytes).decode(), entry.token)
            self.assertEqual(len(entry.top_logprobs), 3)
            self.assertGreaterEqual(entry.top_logprobs[0].logprob, entry.logprob)
        streamed = [entry for chunk in self.ask(seed=7, logprobs=True, top_logprobs=3, stream=True)
                    if chunk.choices[0].logprobs for entry in chunk.choices[0].logprobs.content]
        self.assertEqual(streamed, content)

    def test_stops(self):
        whole = self.ask(seed=7).choices[0].message.content
        self.assertIn("baker", whole)
        for stream in (False, True):
            for include in (False, True):
                extra = {"include_stop_str_in_output": include}
                reply = self.ask(seed=7, stop=["nothing", "ker of"], stream=stream, extra_body=extra)
                text = ("".join(c.choices[0].delta.content or "" for c in reply) if stream
                        else reply.choices[0].message.content)
                expected = whole[:whole.index("ker of")] + ("ker of" if include else "")
                # White space at the end of a reply is left out.
                self.assertEqual(text, expected.strip())

    def test_limits_of_answers(self):
        reply = self.ask(seed=7, max_completion_tokens=3)
        self.assertEqual((reply.usage.completion_tokens, reply.choices[0].finish_reason), (3, "length"))
        reply = self.ask(seed=7, max_tokens=40, extra_body={"min_tokens": 30})
        self.assertGreaterEqual(reply.usage.completion_tokens, 30)
        reply = self.ask(seed=7, max_tokens=40, extra_body={"ignore_eos": True})
        self.assertEqual(reply.usage.completion_tokens, 40)

    def test_settings(self):
        greedy = self.ask(temperature=0).choices[0].message.content
        self.assertEqual(self.ask(extra_body={"top_k": 1}, seed=1).choices[0].message.content, greedy)
        tokens = alone(ASK[0]["content"], 7)["tokens"]
        banned = self.ask(seed=7, logit_bias={str(tokens[0]): -100})
        self.assertNotEqual(banned.choices[0].message.content, self.ask(seed=7).choices[0].message.content)
        stopped = self.ask(seed=7, extra_body={"stop_token_ids": [tokens[2]]})
        self.assertEqual(stopped.usage.completion_tokens, 3)

    def test_cached_tokens(self):
        text = [{"role": "user", "content": "Mira and Ben and Mira and Ben walk to the lake. " * 5}]
        self.ask(text, seed=1, max_tokens=2)
        self.assertGreater(self.ask(text, seed=1, max_tokens=2).usage.prompt_tokens_details.cached_tokens, 30)
        cold = self.ask(text, seed=1, max_tokens=2, extra_body={"cache_prompt": False})
        self.assertEqual(cold.usage.prompt_tokens_details.cached_tokens, 0)

    def test_harmless_fields(self):
        self.ask(seed=7, max_tokens=2, user="me", metadata={"a": "b"}, store=False, service_tier="auto",
                 parallel_tool_calls=False, response_format={"type": "text"}, modalities=["text"], audio=None,
                 prediction=None, extra_body={"best_of": 1, "typical_p": 1, "min_tokens": 1.0, "ignore_eos": False,
                                              "use_beam_search": False, "mirostat": 0, "reasoning_format": "auto"})

    def test_errors(self):
        for more, param in (({"extra_body": {"mirostat": 2}}, "mirostat"), ({"temperature": -1}, "temperature"),
                            ({"n": 0}, "n"), ({"top_logprobs": 3}, "top_logprobs"), ({"stop": [""]}, "stop"),
                            ({"tools": [WEATHER], "tool_choice": "perhaps"}, "tool_choice"),
                            ({"extra_body": {"max_tokens": 3, "max_completion_tokens": 4}}, None),
                            ({"extra_body": {"frequency_penalty": "x"}}, "frequency_penalty"),
                            ({"logit_bias": {"x": 1}}, "logit_bias"), ({"seed": -2}, "seed")):
            for stream in (False, True):
                with self.assertRaises(openai.BadRequestError) as caught:
                    self.ask(stream=stream, **more)
                self.assertEqual(caught.exception.type, "invalid_request_error")
                if param:
                    self.assertEqual(caught.exception.param, param)
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.chat.completions.create(model="gpt-0", messages=ASK)
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.ask([{"role": "wizard", "content": "x"}])
        self.assertIn("0", caught.exception.message)

    def test_constraints(self):
        """What cannot be honoured of calls is refused by its name."""
        for more, param in (({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}},
                             "tool_choice"),
                            ({"tool_choice": {"type": "function", "function": {"name": "moon"}}}, "tools"),
                            ({"extra_body": {"functions": [WEATHER["function"]]}}, "functions")):
            for stream in (False, True):
                with self.assertRaises(openai.BadRequestError, msg=more) as caught:
                    self.ask(tools=[WEATHER], stream=stream, **more)
                self.assertEqual(caught.exception.param, param)
                self.assertIn(param, caught.exception.message)
        for choice in ("auto", "none"):
            self.ask(tools=[WEATHER], tool_choice=choice, max_tokens=2)

    def test_completions(self):
        reply = self.client.completions.create(model="tiny", prompt="Once upon a time", max_tokens=12, seed=7,
                                               logprobs=2)
        choice = reply.choices[0]
        self.assertEqual("".join(choice.logprobs.tokens), choice.text)
        self.assertEqual(choice.logprobs.text_offset[0], 0)
        self.assertEqual(len(choice.logprobs.top_logprobs[0]), 2)
        streamed = "".join(chunk.choices[0].text for chunk in self.client.completions.create(
            model="tiny", prompt="Once upon a time", max_tokens=12, seed=7, stream=True))
        self.assertEqual(streamed, choice.text)
        echoed = self.client.completions.create(model="tiny", prompt="Once upon a time", max_tokens=12, seed=7,
                                                echo=True)
        self.assertEqual(echoed.choices[0].text, "Once upon a time" + choice.text)

    def test_prompts_of_completions(self):
        tokens = self.server.post("/tokenize", {"prompt": "Once upon a time"})[2]["tokens"]
        one = self.client.completions.create(model="tiny", prompt="Once upon a time", max_tokens=9, seed=7, n=2)
        many = self.client.completions.create(model="tiny", prompt=[tokens, tokens], max_tokens=9, seed=7, n=2)
        self.assertEqual([c.text for c in many.choices], 2 * [c.text for c in one.choices])
        self.assertEqual(many.usage.prompt_tokens, 2 * len(tokens))
        for prompt in ("", [], [[]], [1.5], [99999999], 5):
            with self.assertRaises((openai.BadRequestError,), msg=prompt):
                self.client.completions.create(model="tiny", prompt=prompt, extra_body={"add_special_tokens": False})

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["tiny"])
        self.assertEqual(self.client.models.retrieve("tiny").id, "tiny")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("gpt-0")

    def test_text_routes(self):
        tokens = self.server.post("/tokenize", {"content": "Hello, Mira!"})[2]["tokens"]
        self.assertEqual(self.server.post("/detokenize", {"tokens": tokens})[2]["content"], "Hello, Mira!")
        text = self.server.post("/apply-template", {"messages": ASK})[2]["prompt"]
        rendered = self.server.post("/tokenize", {"messages": ASK})[2]
        self.assertEqual(self.server.post("/tokenize", {"content": text, "parse_special": True})[2], rendered)
        self.assertEqual(self.server.post("/tokenize", {"contents": "x"})[2]["error"]["param"], "contents")
        self.assertEqual(self.server.post("/detokenize", {"tokens": [-1]})[0], 400)


class Responses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = client_of(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, text="Who is the baker?", **more):
        extra = {"seed": 7, **more.pop("extra_body", {})}
        return self.client.responses.create(model="tiny", input=text, extra_body=extra, **more)

    def test_text(self):
        reply = self.ask()
        self.assertEqual(reply.output_text, alone("Who is the baker?", 7)["text"])
        self.assertEqual((reply.status, reply.object), ("completed", "response"))
        self.assertGreater(reply.usage.output_tokens, 3)
        cut = self.ask(max_output_tokens=3)
        self.assertEqual((cut.status, cut.incomplete_details.reason), ("incomplete", "max_output_tokens"))

    def test_stream(self):
        with self.client.responses.stream(model="tiny", input="Who is the baker?", extra_body={"seed": 7}) as stream:
            events = list(stream)
            final = stream.get_final_response()
        self.assertEqual(final.output_text, alone("Who is the baker?", 7)["text"])
        self.assertEqual([event.sequence_number for event in events if hasattr(event, "sequence_number")],
                         list(range(len(events))))
        types = [event.type for event in events]
        self.assertEqual(types[:4], ["response.created", "response.in_progress", "response.output_item.added",
                                     "response.content_part.added"])
        self.assertEqual(types[-4:], ["response.output_text.done", "response.content_part.done",
                                      "response.output_item.done", "response.completed"])

    def test_previous_response(self):
        """Going on from a response is the same as sending all of it again."""
        first = self.ask(instructions="Answer briefly.")
        second = self.ask("And the miller?", previous_response_id=first.id, instructions="Answer briefly.")
        whole = self.ask([{"role": "user", "content": "Who is the baker?"},
                          {"role": "assistant", "content": first.output_text},
                          {"role": "user", "content": "And the miller?"}], instructions="Answer briefly.")
        self.assertEqual(second.output_text, whole.output_text)
        self.assertEqual(second.usage.input_tokens, whole.usage.input_tokens)
        self.assertEqual(self.client.responses.retrieve(first.id).output_text, first.output_text)
        self.client.responses.delete(first.id)
        with self.assertRaises(openai.NotFoundError):
            self.ask("x", previous_response_id=first.id)
        unstored = self.ask(store=False)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(unstored.id)

    def test_a_coding_agent(self):
        """What Codex sends: tools of the provider's own beside functions, some of these in namespaces."""
        function = {"type": "function", **WEATHER["function"], "strict": False}
        tools = [{"type": "web_search", "external_web_access": False}, function, {"type": "custom", "name": "patch"},
                 {"type": "namespace", "name": "sky", "description": "d", "tools": [function]}]
        ask = {"model": "tiny", "input": "Rain?", "tools": tools, "store": False, "max_output_tokens": 60,
               "extra_body": {"client_metadata": {"a": "b"}, "context_management": []}}
        reply = self.client.responses.with_raw_response.create(**ask)
        self.assertEqual(reply.headers["X-Gumbel-Warning"], "tools left out: web_search, custom")
        alone = self.client.responses.create(**{**ask, "tools": [function]})
        both = reply.parse().usage.input_tokens
        self.assertGreaterEqual(both, alone.usage.input_tokens)

    def test_constraints(self):
        for more, param in (({"tool_choice": "perhaps"}, "tool_choice"),
                            ({"tool_choice": {"type": "function", "name": "moon"}}, "tools")):
            with self.assertRaises(openai.BadRequestError, msg=more) as caught:
                self.ask(tools=[{"type": "function", **WEATHER["function"], "strict": False}], **more)
            self.assertEqual(caught.exception.param, param)
        self.ask(extra_body={"text": {"format": {"type": "text"}, "verbosity": "medium"}}, max_output_tokens=2)

    def test_errors(self):
        for more, param in (({"background": True}, "background"), ({"truncation": "auto"}, "truncation"),
                            ({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "tool_choice"),
                            ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice"),
                            ({"tools": [{"type": "function"}]}, "tools"),
                            ({"text": [{"type": "item_reference", "id": "x"}]}, "input")):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.ask(**more)
            self.assertEqual(caught.exception.param, param)


class Thinking(unittest.TestCase):
    """A model that thinks first, and templates with tools."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(program=QWEN)
        cls.client = client_of(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, **more):
        return self.client.chat.completions.create(model="tiny", messages=ASK, seed=7, **more)

    def test_reasoning(self):
        message = self.ask().choices[0].message
        thought, answer = alone_in_parts(ASK[0]["content"], 7, QWEN)
        self.assertEqual((message.reasoning_content, message.content), (thought, answer))
        self.assertGreater(self.ask().usage.completion_tokens_details.reasoning_tokens, 2)
        chunks = list(self.ask(stream=True))
        deltas = [chunk.choices[0].delta for chunk in chunks]
        self.assertEqual("".join(getattr(d, "reasoning_content", None) or "" for d in deltas), thought)
        self.assertEqual("".join(d.content or "" for d in deltas), answer)

    def test_no_reasoning(self):
        for extra in ({"chat_template_kwargs": {"enable_thinking": False}}, {"reasoning_effort": "none"}):
            message = self.ask(extra_body=extra).choices[0].message
            self.assertFalse(getattr(message, "reasoning_content", None), extra)
            self.assertTrue(message.content)

    def test_stop_within_a_mark(self):
        """A stop string ends a thought, whose mark is a token, where it is asked to."""
        thought = self.ask().choices[0].message.reasoning_content
        whole = self.ask(stop=[thought[5:9]]).choices[0].message
        self.assertEqual(whole.reasoning_content, thought)
        cut = self.ask(stop=[thought[5:9]], extra_body={"stop_in_reasoning": True}).choices[0].message
        self.assertEqual((cut.reasoning_content or "").strip(), thought[:5].strip())
        self.assertFalse(cut.content)

    def test_responses(self):
        reply = self.client.responses.create(model="tiny", input=ASK[0]["content"], extra_body={"seed": 7})
        self.assertEqual([item.type for item in reply.output], ["reasoning", "message"])
        with self.client.responses.stream(model="tiny", input=ASK[0]["content"], extra_body={"seed": 7}) as stream:
            for _ in stream:
                pass
            final = stream.get_final_response()
        self.assertEqual([item.type for item in final.output], ["reasoning", "message"])
        self.assertEqual(final.output_text, reply.output_text)
        self.assertEqual(final.output[0].content[0].text, reply.output[0].content[0].text)
        again = self.client.responses.create(model="tiny", input=[ASK[0], *reply.output,
                                                                  {"role": "user", "content": "Thanks"}])
        self.assertEqual(again.status, "completed")

    def test_scores_of_a_prompt(self):
        """An answer that is sent again as a prompt has the log-probabilities that it was drawn with."""
        prompt = self.server.post("/tokenize", {"prompt": "Once upon a time"})[2]["tokens"]
        ask = {"model": "tiny", "temperature": 1.0, "seed": 7, "logprobs": 2}
        drawn = self.server.post("/v1/completions", {**ask, "prompt": prompt, "max_tokens": 12})[2]["choices"][0]
        whole = prompt + drawn["logprobs"]["token_ids"]
        for stream in (False, True):
            body = {**ask, "prompt": whole, "echo": True, "max_tokens": 0, "stream": stream}
            if stream:
                chunks = list(self.client.completions.create(**body))
                logprobs = next(c.choices[0].logprobs for c in chunks if c.choices and c.choices[0].logprobs).to_dict()
                self.assertEqual(chunks[-1].choices[0].finish_reason, "length")
            else:
                reply = self.server.post("/v1/completions", body)[2]
                logprobs = reply["choices"][0]["logprobs"]
                self.assertEqual(reply["usage"]["completion_tokens"], 0)
            self.assertEqual(logprobs["token_ids"], whole)
            self.assertIsNone(logprobs["token_logprobs"][0])
            for name in ("token_logprobs", "top_logprobs", "tokens"):
                self.assertEqual(logprobs[name][len(prompt):], drawn["logprobs"][name])
        more = self.server.post("/v1/completions", {**ask, "prompt": whole, "echo": True, "max_tokens": 3})[2]
        self.assertEqual(len(more["choices"][0]["logprobs"]["tokens"]), len(whole) + 3)

    def test_prompt_logprobs(self):
        """As vLLM has them, in completions and chats."""
        prompt = self.server.post("/tokenize", {"prompt": "Once upon a time"})[2]["tokens"]
        body = {"prompt": [prompt, prompt[:1]], "max_tokens": 1, "prompt_logprobs": 2}
        choices = self.server.post("/v1/completions", body)[2]["choices"]
        found = choices[0]["prompt_logprobs"]
        self.assertEqual(len(found), len(prompt))
        self.assertIsNone(found[0])
        for token, entry in zip(prompt[1:], found[1:]):
            self.assertIn(str(token), entry)
            self.assertLessEqual(entry[str(token)]["logprob"], 0)
            self.assertLessEqual({1, 2}, {e["rank"] for e in entry.values()})
        self.assertEqual(choices[1]["prompt_logprobs"], [None])
        reply = self.server.post("/v1/chat/completions", {"messages": ASK, "max_tokens": 1, "prompt_logprobs": 0})[2]
        self.assertEqual(len(reply["prompt_logprobs"]), reply["usage"]["prompt_tokens"])

    def test_tokenizer_info(self):
        info = self.server.request("GET", "/tokenizer_info")[2]
        tokens = self.server.post("/tokenize", {"prompt": info["eos_token"], "add_special_tokens": False})[2]["tokens"]
        self.assertEqual(len(tokens), 1)
        self.assertIn("messages", info["chat_template"])

    def test_template_without_tools(self):
        """Where the model may call it does not know the tools; where it must they are listed in the prompt."""
        template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
        schema = {"type": "object", "properties": {"town": {"enum": ["Bree", "Rome"]}}, "required": ["town"]}
        strict = {"type": "function", "function": {"name": "weather", "parameters": schema, "strict": True}}
        body = {"messages": ASK, "tools": [strict], "chat_template": template}
        status, headers, _ = self.server.post("/v1/chat/completions", {**body, "max_tokens": 4})
        self.assertEqual(status, 200)
        self.assertEqual(headers["X-Gumbel-Warning"], "tools left out: the chat template has no place for them")
        self.assertNotIn("weather", self.server.post("/apply-template", body)[2]["prompt"])
        for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
            asked = {**body, "tool_choice": choice}
            self.assertIn("You can call these functions", self.server.post("/apply-template", asked)[2]["prompt"])
            status, headers, reply = self.server.post("/v1/chat/completions", {**asked, "max_tokens": 100})
            self.assertEqual(status, 200, reply)
            self.assertNotIn("X-Gumbel-Warning", headers)
            call, = reply["choices"][0]["message"]["tool_calls"]
            self.assertEqual(call["function"]["name"], "weather")
            self.assertEqual(list(json.loads(call["function"]["arguments"])), ["town"])

    def test_tools_and_results(self):
        """The bundled templates know no tools, so one comes with the request."""
        template = ("{% for t in tools or [] %}[{{ t.function.name }}: {{ t.function.description }}]{% endfor %}"
                    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}"
                    "({{ c.function.name }} {{ c.function.arguments.town }}){% endfor %}{% endfor %}")
        messages = [*ASK, {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"town\": \"Bree\"}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "rain"}]
        body = {"messages": messages, "tools": [WEATHER], "chat_template": template}
        prompt = self.server.post("/apply-template", body)[2]["prompt"]
        self.assertTrue(prompt.startswith("[weather: The weather of a town.]<user>Who is the baker?"), prompt)
        self.assertTrue(prompt.endswith("(weather Bree)<tool>rain"), prompt)
        prompt = self.server.post("/apply-template", {**body, "tool_choice": "none"})[2]["prompt"]
        self.assertTrue(prompt.startswith("<user>"), prompt)


if __name__ == "__main__":
    unittest.main(verbosity=2)
