# SPDX-License-Identifier: Apache-2.0
"""What a second turn, or a second conversation, does not run again: usage over HTTP, of all routes that have messages,
streamed or not. The answers are those of a server that keeps nothing."""

import unittest

from support import GEMMA, QWEN, Server, events

SYSTEM = "You tell stories of Fernhill, where Mira bakes bread and Ben keeps goats. " * 12
FIRST, SECOND = "Who is the baker?", "And who keeps the goats?"
# The tokens that come behind the last message: the generation prompt.
GENERATION = 8


class Turns:
    @classmethod
    def setUpClass(cls):
        cls.server = Server(program=cls.program)
        cls.cold = Server("--no-prefix-cache", program=cls.program)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.cold.__exit__()

    def ask(self, server, messages, **more):
        """(message, tokens of the prompt, of these cached) of a chat."""
        body = {"messages": messages, "seed": 7, "max_tokens": 24, **more}
        status, _, reply = server.post("/v1/chat/completions", body)
        self.assertEqual(status, 200, reply)
        usage = reply["usage"]
        return reply["choices"][0]["message"], usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]

    def test_second_turn(self):
        for question in (FIRST, FIRST + " She lives near the lake." * 20):
            first = [{"role": "user", "content": question}]
            message, prompt, _ = self.ask(self.server, first)
            second = [*first, {"role": "assistant", "content": message["content"]},
                      {"role": "user", "content": SECOND}]
            reply, _, cached = self.ask(self.server, second)
            self.assertGreaterEqual(cached, prompt - GENERATION, question)
            self.assertEqual(reply, self.ask(self.cold, second)[0])

    def test_shared_system_message(self):
        system = {"role": "system", "content": SYSTEM}
        for i, question in enumerate((FIRST, SECOND, "Tell me of the lake.")):
            messages = [system, {"role": "user", "content": question}]
            reply, prompt, cached = self.ask(self.server, messages)
            self.assertEqual(reply, self.ask(self.cold, messages)[0])
            shared = prompt - self.ask(self.cold, messages[1:])[1] - 4
            self.assertTrue(cached >= shared if i > 0 else cached < 10, (i, prompt, shared, cached))

    def test_turns_of_messages(self):
        """Anthropic's route, streamed."""
        body = {"system": "Be brief.", "max_tokens": 16, "seed": 3, "stream": True,
                "messages": [{"role": "user", "content": "Where is the mill?"}]}
        first = events(self.server.post("/v1/messages", body)[2])
        text = "".join(data["delta"].get("text", "") for name, data in first if name == "content_block_delta")
        prompt = self.total(first)[0]
        body["messages"] += [{"role": "assistant", "content": text or "There."}, {"role": "user", "content": SECOND}]
        self.assertGreaterEqual(self.total(events(self.server.post("/v1/messages", body)[2]))[1], prompt - GENERATION)

    def total(self, found):
        """(tokens of the prompt, of these cached)"""
        usage = next(data["usage"] for name, data in found if name == "message_delta")
        return usage["input_tokens"] + usage["cache_read_input_tokens"], usage["cache_read_input_tokens"]

    def test_turns_of_responses(self):
        first = self.server.post("/v1/responses", {"input": "Who milks the goats?", "max_output_tokens": 24})[2]
        second = self.server.post("/v1/responses", {"input": SECOND, "previous_response_id": first["id"],
                                                    "max_output_tokens": 4})[2]
        self.assertGreaterEqual(second["usage"]["input_tokens_details"]["cached_tokens"],
                                first["usage"]["input_tokens"] - GENERATION)

    def test_not_wanted(self):
        messages = [{"role": "user", "content": "Why is the lake blue?"}]
        for _ in range(2):
            self.assertEqual(self.ask(self.server, messages, cache_prompt=False)[2], 0)


class Gemma(Turns, unittest.TestCase):
    program = GEMMA


class Qwen(Turns, unittest.TestCase):
    program = QWEN


if __name__ == "__main__":
    unittest.main(verbosity=2)
