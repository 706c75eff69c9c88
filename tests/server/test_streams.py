# SPDX-License-Identifier: Apache-2.0
"""Streams on the wire: chunks of HTTP/1.1, one after another on a connection, HTTP/1.0, socket files."""

import http.client
import json
import os
import socket
import tempfile
import unittest

from support import PATIENCE, Server, chat, events, read_all

BODY = chat("Who is the baker?", seed=7, stream=True)


def text_of(found):
    return "".join(data["choices"][0]["delta"].get("content") or "" for _, data in found if data != "[DONE]")


def request_bytes(version):
    data = json.dumps(BODY)
    return (f"POST /v1/chat/completions HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\n"
            f"Content-Length: {len(data)}\r\n\r\n{data}").encode()


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.text = text_of(events(cls.server.post("/v1/chat/completions", BODY)[2]))

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def test_one_after_another(self):
        """A connection goes on behind a stream."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        for body in (BODY, BODY, {**BODY, "stream": False}, BODY):
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            reply = connection.getresponse()
            text = reply.read().decode()
            if body["stream"]:
                self.assertEqual(reply.getheader("Transfer-Encoding"), "chunked")
                self.assertTrue(text.endswith("data: [DONE]\n\n"))
                self.assertEqual(text_of(events(text)), self.text)
            else:
                self.assertEqual(json.loads(text)["choices"][0]["message"]["content"], self.text)
        connection.close()

    def test_closed_behind(self):
        head, _, body = self.server.raw(request_bytes("1.1"), timeout=PATIENCE).partition(b"\r\n\r\n")
        self.assertIn(b"chunked", head)
        self.assertTrue(body.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), body[-60:])

    def test_version_1_0(self):
        """Which knows no chunks: the end of the connection is the end."""
        head, _, body = self.server.raw(request_bytes("1.0"), timeout=PATIENCE).partition(b"\r\n\r\n")
        self.assertNotIn(b"chunked", head)
        self.assertEqual(text_of(events(body.decode())), self.text)

    def test_socket_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "socket")
            with Server("--unix-socket", path), socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(request_bytes("1.1"))
                self.assertTrue(read_all(connection).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
