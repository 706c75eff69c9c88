# SPDX-License-Identifier: Apache-2.0
"""What agents and other clients send (tests/server/requests): each turn is answered, or refused as is said there, and
replies have what the client's parser reads of them."""

import json
import pathlib
import unittest

from support import GEMMA, QWEN, Server, events

REQUESTS = pathlib.Path(__file__).parent / "requests"
LIMIT = {"/v1/responses": "max_output_tokens", "/v1/chat/completions": "max_tokens"}
LENGTH = 200  # tokens, where a client leaves it to the server
STOPS = ("end_turn", "max_tokens", "stop_sequence", "tool_use")


class Reply(unittest.TestCase):
    """Checks of replies, by route; streamed or not."""

    def call(self, call):
        self.assertEqual(call["type"], "function")
        self.assertTrue(call["id"] and call["function"]["name"])
        self.assertIsInstance(json.loads(call["function"]["arguments"]), dict)

    def usage(self, usage, before, after):
        self.assertGreater(usage[before], 0)
        self.assertGreaterEqual(usage[after], 0)
        if "total_tokens" in usage:
            self.assertEqual(usage["total_tokens"], usage[before] + usage[after])

    # ---- Chat completions

    def chat(self, reply):
        self.assertEqual((reply["object"], reply["model"]), ("chat.completion", "tiny"))
        message = reply["choices"][0]["message"]
        self.assertEqual(message["role"], "assistant")
        for call in message.get("tool_calls") or []:
            self.call(call)
        self.usage(reply["usage"], "prompt_tokens", "completion_tokens")
        return message

    def chat_stream(self, stream, body):
        self.assertEqual(stream[-1], (None, "[DONE]"))
        chunks, message, calls, reasons = [data for _, data in stream[:-1]], {"role": None, "content": ""}, [], []
        for chunk in chunks:
            self.assertEqual((chunk["object"], chunk["id"]), ("chat.completion.chunk", chunks[0]["id"]))
            for choice in chunk["choices"]:
                delta = choice["delta"]
                message["role"] = message["role"] or delta.get("role")
                message["content"] += delta.get("content") or ""
                reasons += [choice["finish_reason"]] if choice["finish_reason"] else []
                for part in delta.get("tool_calls") or []:
                    if part["index"] == len(calls):
                        calls.append({"id": part["id"], "type": part["type"], "function": {
                            "name": part["function"]["name"], "arguments": ""}})
                    calls[part["index"]]["function"]["arguments"] += part["function"].get("arguments") or ""
        self.assertEqual((message["role"], len(reasons)), ("assistant", 1))
        self.assertIn(reasons[0], ("stop", "length", "tool_calls"))
        self.assertEqual(reasons[0] == "tool_calls", bool(calls))
        if (body.get("stream_options") or {}).get("include_usage"):
            self.assertEqual(chunks[-1]["choices"], [])
            self.usage(chunks[-1]["usage"], "prompt_tokens", "completion_tokens")
        for call in calls:
            self.call(call)
        return {**message, **({"tool_calls": calls} if calls else {})}

    # ---- Responses

    def item(self, item):
        self.assertTrue(item["id"])
        if item["type"] == "message":
            self.assertEqual(item["role"], "assistant")
            self.assertTrue(all(part["type"] == "output_text" for part in item["content"]))
        elif item["type"] == "reasoning":
            self.assertIsInstance(item["summary"], list)
        else:
            self.assertEqual(item["type"], "function_call")
            self.assertTrue(item["call_id"] and item["name"])
            self.assertIsInstance(json.loads(item["arguments"]), dict)

    def response(self, response):
        self.assertEqual(response["object"], "response")
        self.assertIn(response["status"], ("completed", "incomplete"))
        for item in response["output"]:
            self.item(item)
        self.usage(response["usage"], "input_tokens", "output_tokens")
        self.assertGreaterEqual(response["usage"]["input_tokens_details"]["cached_tokens"], 0)
        self.assertGreaterEqual(response["usage"]["output_tokens_details"]["reasoning_tokens"], 0)
        return response["output"]

    def response_stream(self, stream, _):
        self.assertTrue(all(name == data["type"] for name, data in stream))
        names = [name for name, _ in stream]
        self.assertEqual(names[0], "response.created")
        self.assertIn(names[-1], ("response.completed", "response.incomplete"))
        self.assertEqual([data["sequence_number"] for _, data in stream], list(range(len(stream))))
        done, texts = [], {}
        for name, data in stream:
            if name == "response.output_item.added":
                self.assertEqual(data["output_index"], len(done))
            elif name == "response.output_item.done":
                done.append(data["item"])
            elif name == "response.output_text.delta":
                texts[data["item_id"]] = texts.get(data["item_id"], "") + data["delta"]
            elif name == "response.reasoning_text.delta":
                self.assertIsInstance(data["content_index"], int)
        for item in done:
            if item["type"] == "message":
                self.assertEqual(texts.get(item["id"], ""), "".join(part["text"] for part in item["content"]))
        self.assertEqual(done, stream[-1][1]["response"]["output"])
        return self.response(stream[-1][1]["response"])

    # ---- Messages

    def block(self, block):
        if block["type"] == "tool_use":
            self.assertTrue(block["id"] and block["name"])
            self.assertIsInstance(block["input"], dict)
        else:
            self.assertIsInstance(block[{"text": "text", "thinking": "thinking"}[block["type"]]], str)

    def message(self, message):
        self.assertEqual((message["type"], message["role"], message["model"]), ("message", "assistant", "tiny"))
        self.assertIn(message["stop_reason"], STOPS)
        for block in message["content"]:
            self.block(block)
        self.usage(message["usage"], "input_tokens", "output_tokens")
        return message["content"]

    def message_stream(self, stream, _):
        stream = [(name, data) for name, data in stream if name != "ping"]
        self.assertTrue(all(name == data["type"] for name, data in stream))
        self.assertEqual([name for name, _ in stream][0], "message_start")
        self.assertEqual([name for name, _ in stream][-2:], ["message_delta", "message_stop"])
        message, blocks, is_open = stream[0][1]["message"], [], False
        self.assertEqual((message["content"], message["stop_reason"]), ([], None))
        for name, data in stream[1:-2]:
            if name == "content_block_start":
                self.assertEqual((data["index"], is_open), (len(blocks), False))
                blocks.append({**data["content_block"]})
                is_open, json_text = True, ""
            elif name == "content_block_delta":
                self.assertEqual((data["index"], is_open), (len(blocks) - 1, True))
                delta = data["delta"]
                if delta["type"] == "input_json_delta":
                    json_text += delta["partial_json"]
                else:
                    key = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}[delta["type"]]
                    blocks[-1][key] += delta[key]
            else:
                self.assertEqual((name, data["index"]), ("content_block_stop", len(blocks) - 1))
                is_open = False
                if blocks[-1]["type"] == "tool_use":
                    blocks[-1]["input"] = json.loads(json_text or "{}")
        end = stream[-2][1]
        return self.message({**message, "content": blocks, "stop_reason": end["delta"]["stop_reason"],
                             "usage": {**message["usage"], **end["usage"]}})


class Clients(Reply):
    program = None

    @classmethod
    def setUpClass(cls):
        if cls.program is None:
            raise unittest.SkipTest("one program at a time")
        cls.server = Server("--parallel", "2", program=cls.program)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def turns(self, client):
        """Of its file: what turns have in common, under their own."""
        data = json.loads((REQUESTS / f"{client}.json").read_text())
        for turn in data["turns"]:
            body = {key: value for key, value in data["body"].items() if key not in turn.get("without", [])}
            yield {"path": data["path"], "method": "POST", "headers": data["headers"], "expect": {}, **turn,
                   "body": {**body, **turn.get("body", {})}}

    def send(self, turn):
        """(status, headers, value), where a turn without a length or a seed of its own has ours."""
        path, body = turn["path"], {"seed": 7, **turn["body"]}
        if turn["method"] == "GET":
            return self.server.request("GET", path, headers=turn["headers"])
        if path in LIMIT and not any(name in body for name in (LIMIT[path], "max_completion_tokens")):
            body[LIMIT[path]] = LENGTH
        return self.server.post(path, body, headers={"Content-Type": "application/json", **turn["headers"]})

    def check(self, turn, headers, value):
        """What the client goes on with: a message, blocks, or items."""
        path, body = turn["path"].split("?")[0], turn["body"]
        if path == "/v1/models":
            return self.assertIn("tiny", [model["id"] for model in value["data"]])
        if path.endswith("count_tokens"):
            return self.assertGreater(value["input_tokens"], 10)
        route = {"/v1/chat/completions": "chat", "/v1/responses": "response", "/v1/messages": "message"}[path]
        if not body.get("stream"):
            return getattr(self, route)(value)
        self.assertTrue(headers["Content-Type"].startswith("text/event-stream"), headers["Content-Type"])
        return getattr(self, route + "_stream")(events(value), body)

    def replay(self, client):
        for turn in self.turns(client):
            expect = turn["expect"]
            refusal = expect.get("refused")
            with self.subTest(client=client, turn=turn["name"]):
                status, headers, value = self.send(turn)
                self.assertEqual(status, 400 if refusal else 200, value)
                self.assertEqual(headers.get("X-Gumbel-Warning"), expect.get("warning"))
                if refusal:
                    self.assertIn(refusal, value["error"]["message"])
                else:
                    self.check(turn, headers, value)

    def test_codex(self):
        self.replay("codex")

    def test_claude_code(self):
        self.replay("claude_code")

    def test_opencode(self):
        self.replay("opencode")

    def test_aider(self):
        self.replay("aider")

    def test_open_webui(self):
        self.replay("open_webui")

    def test_langchain(self):
        self.replay("langchain")

    # ---- Loops: what came is sent back, as these clients do, with a result for each call.

    def turn(self, client, name):
        return next(turn for turn in self.turns(client) if turn["name"] == name)

    def go_on(self, turn):
        status, headers, value = self.send(turn)
        self.assertEqual(status, 200, value)
        return self.check(turn, headers, value)

    def test_loop_of_codex(self):
        turn = self.turn("codex", "the first turn")
        turn["body"]["tool_choice"] = "required"
        for _ in range(3):
            items = self.go_on(turn)
            calls = [item for item in items if item["type"] == "function_call"]
            ours = ("id", "status")  # what Codex leaves out
            turn["body"]["input"] += [{key: value for key, value in item.items() if key not in ours} for item in items]
            turn["body"]["input"] += [{"type": "function_call_output", "call_id": call["call_id"], "output": "7"}
                                      for call in calls]
            turn["body"]["tool_choice"] = "auto"

    def test_loop_of_claude_code(self):
        turn = self.turn("claude_code", "the first turn")
        turn["body"].update(max_tokens=LENGTH, tool_choice={"type": "any"}, seed=7)
        for _ in range(3):
            blocks = self.go_on(turn)
            results = [{"type": "tool_result", "tool_use_id": block["id"], "content": [{"type": "text", "text": "7"}]}
                       for block in blocks if block["type"] == "tool_use"]
            turn["body"]["messages"] += [{"role": "assistant", "content": blocks},
                                         {"role": "user", "content": [*results, {"type": "text", "text": "Go on."}]}]
            turn["body"]["tool_choice"] = {"type": "auto"}

    def test_loop_of_opencode(self):
        turn = self.turn("opencode", "the first turn")
        turn["body"].update(max_tokens=LENGTH, tool_choice="required")
        for _ in range(3):
            message = self.go_on(turn)
            turn["body"]["messages"] += [message, *(
                {"role": "tool", "tool_call_id": call["id"], "content": "7"} for call in message.get("tool_calls", []))]
            turn["body"]["messages"].append({"role": "user", "content": "Go on."})
            turn["body"]["tool_choice"] = "auto"


class Gemma(Clients):
    program = GEMMA


class Qwen(Clients):
    program = QWEN


if __name__ == "__main__":
    unittest.main(verbosity=2)
