# SPDX-License-Identifier: Apache-2.0
"""A server whose device is lost: every request is answered, and the process ends so that a supervisor starts it anew."""

import json
import os
import signal
import socket
import tempfile
import threading
import unittest

from support import PATIENCE, Server, chat, read_all, wait_until

SECONDS = 10  # from the loss to the end, at most
LONG = {"max_tokens": 1800, "ignore_eos": True, "seed": 1}


def ask(server, path, body, receive_bytes=None):
    """A connection that has sent a request for a stream."""
    data = json.dumps({**body, "stream": True})
    connection = socket.socket()
    connection.settimeout(30)
    if receive_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       f"Content-Length: {len(data)}\r\n\r\n{data}".encode())
    return connection


class LostDevice(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "lost")
        self.server = Server("--parallel", "2", "--max-stream-buffer", str(1 << 26), env={**os.environ, "LOST_DEVICE": self.file})

    def tearDown(self):
        if self.server.process.poll() is None:
            self.server.process.kill()
        self.server.process.wait()
        self.server.process.stderr.close()
        self.folder.cleanup()

    def lose(self):
        with open(self.file, "w", encoding="utf-8"):
            pass

    def assert_ends(self, seconds=SECONDS):
        self.assertEqual(self.server.process.wait(seconds), 1)
        self.assertIn("device 1: lost", self.server.process.stderr.read())

    def test_next_request(self):
        self.assertEqual(self.server.post("/v1/chat/completions", chat("Hi", max_tokens=4))[0], 200)
        self.lose()
        status, headers, reply = self.server.post("/v1/chat/completions", chat("Hi", max_tokens=4))
        self.assertEqual((status, reply["error"]["message"]), (503, "device 1: lost"))
        self.assertIn("Retry-After", headers)
        self.assert_ends()

    def test_under_way(self):
        """Two streams that have begun, and a request that waits for a slot."""
        chats = ask(self.server, "/v1/chat/completions", chat("Tell me a story.", **LONG))
        messages = ask(self.server, "/v1/messages", chat("Tell me a story.", **LONG))
        begun = [connection.recv(1) for connection in (chats, messages)]
        replies = []
        waiting = threading.Thread(target=lambda: replies.append(
            self.server.post("/v1/messages", chat("Hi", max_tokens=4))))
        waiting.start()
        self.assertTrue(wait_until(lambda: self.server.metric("gumbel_requests_waiting") == 1))
        self.lose()
        texts = [(first + read_all(connection)).decode() for first, connection in zip(begun, (chats, messages))]
        waiting.join(PATIENCE)
        self.assert_ends()
        self.assertIn("device 1: lost", texts[0])
        self.assertIn("[DONE]", texts[0])
        self.assertIn("event: error", texts[1])
        self.assertEqual((replies[0][0], replies[0][2]["type"]), (503, "error"))
        for connection in (chats, messages):
            connection.close()

    def test_slow_reader(self):
        """Nobody who does not read holds the end up."""
        story = chat("Tell me a story.", n=2, logprobs=True, top_logprobs=20, **LONG)
        stream = ask(self.server, "/v1/chat/completions", story, receive_bytes=4096)
        stream.recv(1)
        self.assertTrue(wait_until(lambda: self.server.metric("gumbel_generated_tokens_total") > 3000))
        self.lose()
        self.assert_ends()
        stream.close()

    def test_signal_meanwhile(self):
        """A loss amid a drain is one, too."""
        stream = ask(self.server, "/v1/chat/completions", chat("Tell me a story.", **LONG))
        stream.recv(1)
        self.server.process.send_signal(signal.SIGTERM)
        for line in self.server.process.stderr:
            if "second signal" in line:
                break
        self.lose()
        self.assertIn(b"device 1: lost", read_all(stream))
        self.assert_ends()
        stream.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
