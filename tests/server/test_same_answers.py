# SPDX-License-Identifier: Apache-2.0
"""The same answers under load: requests one by one, then by many clients at once, with others between them that are
cancelled, leave, or are no requests at all. Texts, seeds, tokens and log-probabilities are equal.

    python3 test_same_answers.py [REQUESTS [CLIENTS]]"""

import json
import os
import queue
import random
import socket
import sys
import threading
import unittest

from support import GEMMA, PATIENCE, QWEN, Server, events, shortened, wait_until

REQUESTS, CLIENTS = int(os.environ.get("GUMBEL_LOAD_REQUESTS", shortened(200, 70))), 64
WORDS = "Mira Ben Fernhill baker goat lake mill story dog night who where why tell me about the a of".split()


def draw_request(source):
    """(path, body) of any of the four routes."""
    text = " ".join(source.choices(WORDS, k=source.choice((3, 8, 40)))) + "?"
    body = {"seed": source.randrange(2 ** 53), "max_tokens": source.randint(1, 60)}
    if source.random() < 0.5:
        body["temperature"] = source.choice((0, 0.3, 1.0, 2.0))
    if source.random() < 0.3:
        body["repetition_penalty"] = 1.2
    if source.random() < 0.3:
        body["ignore_eos"] = True
    if source.random() < 0.2:
        body["stop"] = ["e", "the "]
    if source.random() < 0.2:
        body["json_schema"] = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "maxItems": 3}
    path = source.choice(("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"))
    if path == "/v1/completions":
        return path, {**body, "prompt": text, **({"logprobs": 2} if source.random() < 0.3 else {})}
    if path == "/v1/responses":
        return path, {**body, "input": text}
    messages = [{"role": "user", "content": text}]
    if source.random() < 0.4:
        messages = [{"role": "user", "content": "Who are you?"}, {"role": "assistant", "content": "I am Mira."},
                    *messages]
    if path == "/v1/chat/completions" and source.random() < 0.3:
        body["n"] = 3
    return path, {**body, "messages": messages}


def outcome(path, reply):
    """What must be equal."""
    if path == "/v1/messages":
        return reply["content"], reply["stop_reason"], reply["usage"]["output_tokens"]
    if path == "/v1/responses":
        items = [{key: value for key, value in item.items() if key != "id"} for item in reply["output"]]
        return items, reply["status"], reply["usage"]["output_tokens"]
    return reply["choices"], reply["usage"]["completion_tokens"]


def ask(server, path, body):
    status, _, reply = server.post(path, body, timeout=PATIENCE)
    if status != 200:
        raise AssertionError(f"{path} {body}: {status} {reply}")
    return outcome(path, reply)


def disturb(server, source):
    """A client that leaves, or sends nonsense."""
    kind = source.randrange(3)
    body = json.dumps({"prompt": "Once", "max_tokens": 500, "ignore_eos": True, "stream": source.random() < 0.7})
    if kind == 2:
        body = body[:source.randrange(len(body))]
    data = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    if kind == 1:
        data = data[:source.randrange(len(data))]
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        connection.sendall(data.encode())
        if kind == 0 and source.random() < 0.5:
            connection.recv(source.randint(1, 2000))


class SameAnswers(unittest.TestCase):
    def compare(self, program, *options):
        source = random.Random(24)
        requests = [draw_request(source) for _ in range(REQUESTS)]
        with Server("--parallel", "1", "--no-prefix-cache", program=program) as server:
            expected = [ask(server, *request) for request in requests]
        with Server(*options, program=program) as server:
            todo, wrong = queue.SimpleQueue(), []
            for i in range(REQUESTS):
                todo.put(i)
            threads = [threading.Thread(target=self.work, args=(server, i, requests, expected, todo, wrong))
                       for i in range(CLIENTS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            self.assertTrue(todo.empty())
            for name in ("gumbel_requests_running", "gumbel_requests_waiting"):
                self.assertTrue(wait_until(lambda: server.metric(name) == 0), name)
            self.assertGreater(server.metric("gumbel_disconnects_total"), 0)
            return server.metric("gumbel_prefix_cache_hits_total")

    def work(self, server, number, requests, expected, todo, wrong):
        source = random.Random(number)
        while True:
            try:
                i = todo.get_nowait()
            except queue.Empty:
                return
            try:
                if source.random() < 0.5:
                    disturb(server, source)
                found = ask(server, *requests[i])
                if found != expected[i]:
                    wrong.append((i, requests[i], found, expected[i]))
            except Exception as error:  # a thread's failure is the test's
                wrong.append((i, repr(error)))

    def test_gemma(self):
        hits = self.compare(GEMMA, "--parallel", "8")
        self.assertGreater(hits, 0)

    def test_qwen(self):
        self.compare(QWEN, "--parallel", "16")


if __name__ == "__main__":
    unittest.main(verbosity=2)
