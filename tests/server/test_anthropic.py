# SPDX-License-Identifier: Apache-2.0
"""Anthropic's own client."""

import unittest

import anthropic

from support import PATIENCE, QWEN, Server, alone

ASK = [{"role": "user", "content": "Who is the baker?"}]
TEMPLATE = ("{% for t in tools or [] %}[{{ t.function.name }} {{ t.function.parameters.type }}]{% endfor %}"
            "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
            "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content or [] %}{{ p.text }}"
            "{% endfor %}{% endif %}{% for c in m.tool_calls or [] %}({{ c.function.name }} "
            "{{ c.function.arguments.town }}){% endfor %}{% endfor %}")


class Messages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = anthropic.Anthropic(base_url=cls.server.url, api_key="none", max_retries=0, timeout=PATIENCE)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, messages=None, **more):
        extra = {"seed": 7, **more.pop("extra_body", {})}
        return self.client.messages.create(model="tiny", messages=messages or ASK, extra_body=extra,
                                           **{"max_tokens": 100, **more})

    def test_accounting_is_left_out(self):
        """A block that differs in each request would keep prompts from beginning alike."""
        def count(system):
            body = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], "system": system}
            return self.server.post("/v1/messages/count_tokens", body)[2]["input_tokens"]
        rules = {"type": "text", "text": "Be brief."}
        line = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=a1b2c;"}
        self.assertEqual(count([line, rules]), count([rules]))
        self.assertEqual(count([line]), count([]))

    def test_text(self):
        reply, expected = self.ask(), alone(ASK[0]["content"], 7)
        self.assertEqual([block.type for block in reply.content], ["text"])
        self.assertEqual(reply.content[0].text, expected["text"])
        self.assertEqual((reply.stop_reason, reply.role), ("end_turn", "assistant"))
        self.assertEqual(reply.usage.output_tokens, len(expected["tokens"]))
        self.assertEqual(reply.usage.input_tokens + reply.usage.cache_read_input_tokens, expected["prompt_tokens"])

    def test_stream(self):
        with self.client.messages.stream(model="tiny", messages=ASK, max_tokens=100,
                                         extra_body={"seed": 7}) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, self.ask().content[0].text)
        self.assertEqual((final.content[0].text, final.stop_reason), (text, "end_turn"))
        self.assertEqual(final.usage.output_tokens, self.ask().usage.output_tokens)

    def test_ends(self):
        cut = self.ask(max_tokens=3)
        self.assertEqual((cut.stop_reason, cut.usage.output_tokens), ("max_tokens", 3))
        stopped = self.ask(stop_sequences=["nothing", "baker"])
        self.assertEqual((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", "baker"))
        self.assertNotIn("baker", stopped.content[0].text)

    def test_count_tokens(self):
        counted = self.client.messages.count_tokens(model="tiny", messages=ASK, system="Be brief.")
        usage = self.ask(system="Be brief.").usage
        self.assertEqual(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens)

    def render(self, messages, **more):
        """What the model is shown, by way of a stored answer's prompt: counted against the same text."""
        counted = self.client.messages.count_tokens(
            model="tiny", messages=messages, extra_body={"chat_template_kwargs": {}}, **more)
        return counted.input_tokens

    def test_system(self):
        """As a text or as blocks."""
        blocks = [{"type": "text", "text": "Be brief."}]
        self.assertEqual(self.ask(system="Be brief.").content[0].text, self.ask(system=blocks).content[0].text)
        self.assertGreater(self.render(ASK, system="Be brief."), self.render(ASK))

    def test_blocks(self):
        blocks = [{"role": "user", "content": [{"type": "text", "text": ASK[0]["content"]}]}]
        self.assertEqual(self.render(blocks), self.render(ASK))
        self.assertEqual(self.ask(blocks).content[0].text, self.ask().content[0].text)

    def test_prefill(self):
        """A last message of the assistant's is the beginning of its answer."""
        whole = self.ask(extra_body={"temperature": 0}).content[0].text
        rest = self.ask([*ASK, {"role": "assistant", "content": whole[:7]}], extra_body={"temperature": 0}).content[0].text
        self.assertEqual(rest.strip(), whole[7:].strip())

    def test_harmless_fields(self):
        self.ask(metadata={"user_id": "me"}, service_tier="auto", output_config={"effort": "low"},
                 cache_control={"type": "ephemeral"})

    def test_a_coding_agent(self):
        """What Claude Code sends beside messages; tools of the provider's own are left out, and that is said."""
        tool = {"name": "look", "description": "d", "input_schema": {"type": "object"}, "defer_loading": True,
                "eager_input_streaming": True, "cache_control": {"type": "ephemeral"}}
        block = {"type": "text", "text": ASK[0]["content"], "cache_control": {"type": "ephemeral"}}
        ask = {"model": "tiny", "messages": [{"role": "user", "content": [block]}], "max_tokens": 3, "system": [block]}
        extra = {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}, "thread": {"id": "x"}}
        raw = self.client.messages.with_raw_response
        reply = raw.create(**ask, extra_body=extra, tools=[{"type": "web_search_20250305", "name": "web_search"}, tool])
        self.assertEqual(reply.headers["X-Gumbel-Warning"], "tools left out: web_search_20250305")
        self.assertNotIn("X-Gumbel-Warning", raw.create(**ask, tools=[tool]).headers)

    def test_errors(self):
        for more, part in (({"extra_body": {"banana": 1}}, "banana"), ({"extra_body": {"temperature": -1.0}}, "temperature"),
                           ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "image"),
                           ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
                           ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "tool_use_id"),
                           ({"tools": [{"type": "web_search_20250305", "name": "web_search"}],
                             "tool_choice": {"type": "any"}}, "tool_choice"),
                           ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format"),
                           ({"output_config": {"banana": 1}}, "output_config.banana"),
                           ({"tool_choice": {"type": "any"}}, "tool_choice"),
                           ({"tool_choice": {"type": "tool", "name": "weather"}}, "tool_choice")):
            with self.assertRaises(anthropic.BadRequestError) as caught:
                self.ask(**more)
            self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
            self.assertIn(part, caught.exception.body["error"]["message"])
        status, _, body = self.server.post("/v1/messages", {"messages": ASK})
        self.assertEqual((status, body["type"]), (400, "error"))
        with self.assertRaises(anthropic.NotFoundError):
            self.client.messages.create(model="claude-0", messages=ASK, max_tokens=3)

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["tiny"])


class Thinking(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(program=QWEN)
        cls.client = anthropic.Anthropic(base_url=cls.server.url, api_key="none", max_retries=0, timeout=PATIENCE)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def test_blocks(self):
        ask = {"model": "tiny", "messages": ASK, "max_tokens": 1024 + 1, "extra_body": {"seed": 7}}
        reply = self.client.messages.create(**ask)
        self.assertEqual([block.type for block in reply.content], ["thinking", "text"])
        with self.client.messages.stream(**ask) as stream:
            final = stream.get_final_message()
        self.assertEqual([block.type for block in final.content], ["thinking", "text"])
        self.assertEqual(final.content[0].thinking, reply.content[0].thinking)
        self.assertEqual(final.content[1].text, reply.content[1].text)
        off = self.client.messages.create(**ask, thinking={"type": "disabled"})
        self.assertEqual([block.type for block in off.content], ["text"])
        on = self.client.messages.create(**ask, thinking={"type": "enabled", "budget_tokens": 1024})
        self.assertEqual([block.type for block in on.content], ["thinking", "text"])
        self.client.messages.create(**{**ask, "messages": [*ASK, {"role": "assistant", "content": reply.content},
                                                           {"role": "user", "content": "Thanks"}]})


class Templates(unittest.TestCase):
    """What a template is given for tools, calls, results and thoughts."""

    def test_conversation(self):
        import tempfile
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write(TEMPLATE)
            file.flush()
            with Server("--chat-template-file", file.name) as server:
                client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=PATIENCE)
                tools = [{"name": "weather", "description": "d", "input_schema": {"type": "object", "properties": {}}}]
                messages = [*ASK, {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t1", "name": "weather", "input": {"town": "Bree"}}]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "rain"}]},
                        {"type": "text", "text": "So?"}]}]
                expected = ("[weather object]<system>S<user>Who is the baker?<assistant>(hm)I look.(weather Bree)"
                            "<tool>rain<user>So?")
                counted = client.messages.count_tokens(model="tiny", messages=messages, tools=tools, system="S")
                tokens = server.post("/tokenize", {"content": expected})[2]
                self.assertEqual(counted.input_tokens, tokens["count"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
