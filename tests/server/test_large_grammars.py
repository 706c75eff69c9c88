# SPDX-License-Identifier: Apache-2.0
"""Schemas and lists that take long to compile: answered or refused, given up with their client, and no reason to wait."""

import hashlib
import json
import os
import signal
import socket
import threading
import time
import unittest

from support import PATIENCE, Server, chat, wait_until

VALUES = [f"value {i}" for i in range(400000)]
# Each member is looked for in each of the schemas.
SLOW = {"type": "object", "allOf": [{"properties": {value: True}} for value in VALUES[:50000]]}
ENOUGH = "3600"  # seconds, so that only a test ends it


def request_of(body):
    text = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


def threads_of(server):
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


def begin(server, body):
    """A connection whose request is being compiled."""
    connection = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    connection.sendall(request_of(body))
    return connection


class LargeGrammars(unittest.TestCase):
    def test_many_values(self):
        """Of these most end alike."""
        with Server() as server:
            for way in ({"json_schema": {"enum": VALUES}}, {"guided_choice": VALUES}):
                status, _, reply = server.post("/v1/chat/completions", chat("Hi", max_tokens=40, temperature=0, **way))
                self.assertEqual(status, 200, reply)
                choice = reply["choices"][0]
                if choice["finish_reason"] == "stop":
                    self.assertIn(choice["message"]["content"].strip('"'), set(VALUES))

    def test_limits(self):
        """Of states and of time: what is asked is wrong, and asking again is no help."""
        hashes = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(100000)]
        arrays = {"enum": [[value] for value in VALUES[:20000]]}
        for limit, way, message in ((ENOUGH, {"guided_choice": hashes}, "states"),
                                    (ENOUGH, {"json_schema": arrays}, "ways to read"),
                                    ("1", {"json_schema": SLOW}, "longer than 1 seconds")):
            with Server("--grammar-timeout", limit) as server:
                status, headers, reply = server.post("/v1/chat/completions", chat("Hi", **way))
                self.assertEqual((status, reply["error"]["param"]), (400, *way))
                self.assertIn(message, reply["error"]["message"])
                self.assertIsNone(headers["Retry-After"])

    def test_client_leaves(self):
        with Server("--grammar-timeout", ENOUGH) as server:
            before = threads_of(server)
            connection = begin(server, chat("Hi", json_schema=SLOW))
            self.assertTrue(wait_until(lambda: threads_of(server) > before))
            time.sleep(0.5)
            connection.close()
            self.assertTrue(wait_until(lambda: threads_of(server) == before))
            self.assertTrue(wait_until(lambda: server.metric("gumbel_disconnects_total") == 1))
            self.assertEqual(server.metric("gumbel_grammar_compile_seconds_count"), 1)

    def test_termination(self):
        server = Server("--grammar-timeout", ENOUGH)
        connection = begin(server, chat("Hi", json_schema=SLOW))
        time.sleep(1)
        started = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        reply = connection.recv(4096)
        self.assertTrue(reply.startswith(b"HTTP/1.1 503 "), reply)
        connection.close()
        self.assertEqual(server.process.wait(PATIENCE), 0)
        self.assertLess(time.monotonic() - started, PATIENCE / 20)
        server.process.stderr.close()

    def test_another_waiter(self):
        """The client that asked first leaves; the other one gets what both wanted."""
        body = chat("Hi", max_tokens=1, json_schema={"enum": VALUES})
        with Server("--grammar-timeout", ENOUGH) as server:
            first = begin(server, body)
            replies = []
            other = threading.Thread(target=lambda: replies.append(server.post("/v1/chat/completions", body)))
            time.sleep(0.1)
            other.start()
            time.sleep(0.1)
            first.close()
            other.join(PATIENCE)
            self.assertEqual(replies[0][0], 200, replies)


if __name__ == "__main__":
    unittest.main(verbosity=2)
