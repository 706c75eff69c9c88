# SPDX-License-Identifier: Apache-2.0
"""HTTP itself: keys, framing, limits, slow and leaving clients, signals."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

from support import COMMAND, GEMMA, PATIENCE, Server, chat, read_all, wait_until

LONG = chat("Tell me a story.", ignore_eos=True, max_tokens=1800, seed=1)


def request_text(body, *headers, version="HTTP/1.1", path="/v1/completions"):
    lines = [f"POST {path} {version}", "Host: localhost", *headers, "", body]
    return "\r\n".join(lines).encode()


class Framing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--request-timeout", "1", "--idle-timeout", "1", "--max-body", "4096")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def assert_refused(self, data, status, part=""):
        reply = self.server.raw(data).decode()
        self.assertTrue(reply.startswith(f"HTTP/1.1 {status} "), reply)
        self.assertIn(part, reply)
        self.assertEqual(reply.count("HTTP/1.1"), 1, "a second request was read behind it: " + reply)

    def test_two_lengths(self):
        smuggled = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        self.assert_refused(request_text("{}" + smuggled, "Content-Length: 2", "Content-Length: 50"), 400,
                            "2 Content-Length")
        self.assert_refused(request_text("{}" + smuggled, "Content-Length: 2", "Content-Length: 2"), 400)

    def test_length_and_encoding(self):
        smuggled = "0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for headers in (["Content-Length: 4", "Transfer-Encoding: chunked"],
                        ["Transfer-Encoding: chunked", "Content-Length: 4"]):
            self.assert_refused(request_text(smuggled, *headers), 400, "both Content-Length and Transfer-Encoding")

    def test_encodings(self):
        self.assert_refused(request_text("", "Transfer-Encoding: gzip, chunked"), 501)
        self.assert_refused(request_text("", "Transfer-Encoding: xchunked"), 501)
        self.assert_refused(request_text("0\r\n\r\n", "Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
                            400)
        reply = self.server.raw(request_text("0\r\n\r\n", "Transfer-Encoding: chunked", version="HTTP/1.0"))
        self.assertIn(b" 400 ", reply.splitlines()[0])

    def test_bad_lengths(self):
        for length in ("-1", "+2", "0x2", "2, 2", "99999999999999999999999"):
            reply = self.server.raw(request_text("{}", f"Content-Length: {length}"))
            self.assertIn(reply[9:12], (b"400", b"413"), length)

    def test_bad_headers(self):
        for header in ("Bad Name: x", "Content-Length : 2", "Host: other"):
            reply = self.server.raw(request_text("", header))
            self.assertEqual(reply[9:12], b"400", header)

    def test_large_headers(self):
        reply = self.server.raw(request_text("", "X: " + "x" * 100000))
        self.assertIn(reply[9:12], (b"431", b"413", b"400"))
        reply = self.server.raw(b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertIn(reply[9:12], (b"414", b"431"))

    def assert_one_error(self, data, status, part=""):
        """One reply, in JSON, and then the end, also where what was sent is not read whole."""
        reply = self.server.raw(data).decode()
        self.assertTrue(reply.startswith(f"HTTP/1.1 {status} "), reply)
        self.assertEqual(len(re.findall(r"HTTP/1\.\d \d{3} ", reply)), 1, reply)
        head, body = reply.split("\r\n\r\n", 1)
        self.assertIn("Content-Type: application/json\r\n", head)
        self.assertIn(part, json.loads(body)["error"]["message"])

    MALFORMED = (
        (b"GET /health HTTP/1.1\r\n\r\n", 400, "no Host"),
        *((request_text("{}", f"Content-Length: {length}"), 400, "") for length in ("abc", "-1", "1,1", "")),
        *((request_text("{}", f"Content-Length: {length}"), 413, "") for length in (1 << 63, 1 << 64)),
        (request_text("1;x=" + "x" * 100000 + "\r\n{\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), 413, "chunk"),
        (request_text("f" * 17 + "\r\n", "Transfer-Encoding: chunked"), 413, "chunk"),
        (request_text("banana\r\n", "Transfer-Encoding: chunked"), 400, "chunk"),
        (request_text("1\r\n{\r\n0\r\nX: " + "x" * 100000 + "\r\n\r\n", "Transfer-Encoding: chunked"), 431, ""),
        (request_text("", "X\0Y: 1"), 400, ""),
        (request_text("", "X: a\x01b"), 400, "control"),
        (request_text("", "X: a\x7fb"), 400, "control"),
        (request_text("", "banana"), 400, ""),
        (request_text("", "X: " + "x" * 100000), 431, "32 KiB"),
        (b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414, "32 KiB"),
        (b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, ""),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/1.1"),
        (b"GET /health\r\n\r\n", 400, ""))

    def test_malformed(self):
        for data, status, part in self.MALFORMED:
            with self.subTest(data=data[:80]):
                self.assert_one_error(data, status, part)

    def test_malformed_first(self):
        """What only a connection's first request is looked at for."""
        for data, part in ((b"banana\r\n\r\n", "GET /v1/models HTTP/1.1"), (b"\x16\x03\x01\0\xf0\1\0", "control"),
                           (request_text("", "X: a\0b"), "control"), (request_text("", "X: a\rb"), "control")):
            with self.subTest(data=data[:80]):
                self.assert_one_error(data, 400, part)

    def test_malformed_later(self):
        """The same behind a good request, together with it and after its reply."""
        good = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for data, status, _ in self.MALFORMED:
            for apart in (False, True):
                with self.subTest(data=data[:80], apart=apart), \
                        socket.create_connection(("127.0.0.1", self.server.port), 10) as connection:
                    connection.sendall(good if apart else good + data)
                    first = connection.recv(65536).decode() if apart else ""
                    if apart:
                        connection.sendall(data)
                    replies = first + read_all(connection).decode()
                    self.assertEqual(re.findall(r"HTTP/1\.1 (\d{3}) ", replies), ["200", str(status)])
                    json.loads(replies.rsplit("\r\n\r\n", 1)[1])

    def test_head_in_pieces(self):
        """Empty lines before a request are skipped, and its bytes may come one by one."""
        with socket.create_connection(("127.0.0.1", self.server.port), 10) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in b"\r\nGET /health HTTP/1.1\nHost: localhost\r\nConnection: close\r\n\r\n":
                connection.sendall(bytes([byte]))
            self.assertTrue(read_all(connection).startswith(b"HTTP/1.1 200 "))

    def test_slow_request(self):
        """A byte now and then does not keep a connection: the whole request has its time."""
        with socket.create_connection(("127.0.0.1", self.server.port), 10) as connection:
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n")
            begin = time.monotonic()
            with self.assertRaises(OSError):
                for _ in range(100):
                    connection.sendall(b"x")
                    time.sleep(0.1)
                    connection.settimeout(0.01)
                    try:
                        if connection.recv(100) == b"":
                            raise OSError("closed")
                    except socket.timeout:
                        pass
                    connection.settimeout(10)
            self.assertLess(time.monotonic() - begin, 3)

    def test_slow_headers(self):
        with socket.create_connection(("127.0.0.1", self.server.port), 10) as connection:
            connection.sendall(b"POST /v1/comp")
            begin = time.monotonic()
            self.assertEqual(read_all(connection), b"")
            self.assertLess(time.monotonic() - begin, 3)

    def test_chunked_body(self):
        body = json.dumps(chat("Hi", max_tokens=2, seed=1))
        chunks = f"5\r\n{body[:5]}\r\n{len(body) - 5:x}\r\n{body[5:]}\r\n0\r\n\r\n"
        reply = self.server.raw(request_text(chunks, "Transfer-Encoding: chunked", "Connection: close",
                                             path="/v1/chat/completions"))
        self.assertIn(b"chat.completion", reply)

    def test_body_too_large(self):
        for chunked in (False, True):
            body = b"x" * 100000
            headers = {"Transfer-Encoding": "chunked"} if chunked else {}
            data = [body] if chunked else body
            import http.client
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
            connection.request("POST", "/v1/completions", data, headers, encode_chunked=chunked)
            self.assertEqual(connection.getresponse().status, 413)
            connection.close()

    def test_expect(self):
        """Who asks first is told without having to send the body."""
        reply = self.server.raw(request_text("", "Content-Length: 100000", "Expect: 100-continue",
                                             "Connection: close"))
        self.assertTrue(reply.startswith(b"HTTP/1.1 413"), reply)

    def test_origins(self):
        for header, status in (({"Origin": "https://evil.example"}, 403), ({"Host": "evil.example"}, 403),
                               ({"Origin": f"http://127.0.0.1:{self.server.port}"}, 200), ({"Host": "[::1]"}, 200)):
            self.assertEqual(self.server.request("GET", "/v1/models", headers=header)[0], status, header)
        reply = self.server.request("OPTIONS", "/v1/models", headers={"Origin": "https://evil.example"})
        self.assertNotIn("Access-Control-Allow-Origin", reply[1])


    def test_wrong_paths(self):
        """A base URL with /v1 too often or not at all, or another server's, learns the right path."""
        for path in ("/chat/completions", "/v1/v1/chat/completions", "/v1//chat/completions", "/api/chat",
                     "/v1/chat/completions/", "//v1/chat/completions", "/openai/v1/chat/completions"):
            status, _, body = self.server.post(path, {})
            self.assertEqual(status, 404, path)
            self.assertIn("did you mean /v1/chat/completions?", body["error"]["message"], path)
        for path in ("/nothing", "/v1", "/api/", "/v1/chat/completions/more", "/" + "x/" * 300):
            status, _, body = self.server.post(path, {})
            self.assertEqual(status, 404, path)
            self.assertNotIn("did you mean", body["error"]["message"], path)


class Origins(unittest.TestCase):
    """Pages of other sites, where --cors-origins names them."""

    LISTED = ("https://app.example", "vscode-file://vscode-app", "app://obsidian.md", "null")

    def preflight(self, server, origin):
        return server.request("OPTIONS", "/v1/chat/completions", headers={
            "Origin": origin, "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os"})

    def test_listed(self):
        with Server("--cors-origins", ", ".join(self.LISTED), "--api-key", "k") as server:
            for origin in self.LISTED:
                status, headers, body = self.preflight(server, origin)
                self.assertEqual((status, body, headers["Access-Control-Allow-Origin"]), (204, "", origin))
                self.assertEqual(headers["Access-Control-Allow-Headers"], "authorization,content-type,x-stainless-os")
                self.assertIn("POST", headers["Access-Control-Allow-Methods"])
                self.assertGreater(int(headers["Access-Control-Max-Age"]), 0)
                self.assertEqual(headers["Vary"], "Origin")
            status, headers, _ = self.preflight(server, "https://evil.example")
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (401, None))

    def test_replies(self):
        with Server("--cors-origins", "https://app.example/") as server:
            origin = {"Origin": "https://app.example"}
            for body, expected in ((chat("Hi", max_tokens=2), 200), (chat("Hi", max_tokens=2, stream=True), 200),
                                   ({"banana": 1}, 400)):
                status, headers, _ = server.post("/v1/chat/completions", body, headers=origin)
                self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (expected, "https://app.example"))
                self.assertIn("x-request-id", headers["Access-Control-Expose-Headers"])
            for other in ("https://app.example.evil", "https://app", "null"):
                status, headers, _ = server.request("GET", "/v1/models", headers={"Origin": other})
                self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (403, None), other)

    def test_mistakes(self):
        for origins in ("app.example", "https://app.example,x", "https://", "://x", ","):
            words = [COMMAND, "serve", GEMMA, "--port", "0", "--cors-origins", origins]
            refused = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(refused.returncode, 1, origins)
            self.assertIn("expected an origin with its scheme", refused.stderr)

    def test_any(self):
        with Server("--cors-origins", "*") as server:
            status, headers, _ = server.request("GET", "/v1/models", headers={"Origin": "https://any.example"})
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, "https://any.example"))


class Keys(unittest.TestCase):
    def test_every_route_but_health(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("third\n\n")
            file.flush()
            with Server("--api-key", "first", "--api-key", "second", "--api-key-file", file.name) as server:
                self.assertEqual(server.request("GET", "/health")[0], 200)
                for path in ("/ready", "/version", "/v1/models", "/metrics", "/", "/nothing", "/v1/responses/x"):
                    self.assertEqual(server.request("GET", path)[0], 401, path)
                for path in ("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/tokenize"):
                    status, headers, body = server.post(path, {})
                    self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"), path)
                for wrong in ("", "firs", "firstfirst", "Third"):
                    self.assertEqual(server.request("GET", "/version",
                                                    headers={"Authorization": f"Bearer {wrong}"})[0], 401)
                for key in ("first", "second", "third"):
                    for header in ({"Authorization": f"Bearer {key}"}, {"x-api-key": key}):
                        self.assertEqual(server.request("GET", "/version", headers=header)[0], 200)

    def test_open_metrics(self):
        """They want no key, all else does; a foreign site's page gets them no more than it did."""
        with Server("--api-key", "k", "--open-metrics") as server:
            for headers in ({}, {"Authorization": "Bearer k"}, {"Host": "models.example"}):
                self.assertEqual(server.request("GET", "/metrics", headers=headers)[0], 200)
            for path in ("/v1/models", "/ready", "/metrics/", "/"):
                self.assertEqual(server.request("GET", path)[0], 401, path)
            self.assertEqual(server.post("/metrics", {})[0], 401)
        with Server("--open-metrics") as server:
            self.assertEqual(server.request("GET", "/metrics", headers={"Host": "models.example"})[0], 403)

    def test_addresses(self):
        """An address for others needs a key, or the word that none is wanted."""
        words = [COMMAND, "serve", GEMMA, "--host", "0.0.0.0", "--port", "0"]
        refused = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--api-key KEY", refused.stderr)
        with Server("--host", "0.0.0.0", "--api-key", "k"):
            pass
        with Server("--host", "0.0.0.0", "--no-auth") as server:
            self.assertEqual(server.request("GET", "/version", headers={"Host": "models.example"})[0], 200)


class Limits(unittest.TestCase):
    def test_full_queue(self):
        """What does not fit into the queue is refused with the time to try again; the others are answered."""
        with Server("--parallel", "1", "--max-queued", "1") as server:
            first = open_stream(server, LONG)
            self.assertTrue(wait_until(lambda: server.metric("gumbel_requests_running") == 1))
            self.assertEqual(server.metric("gumbel_cache_use"), 1)
            second = open_stream(server, LONG, wait=False)
            self.assertTrue(wait_until(lambda: server.metric("gumbel_requests_waiting") == 1))
            status, headers, body = server.post("/v1/chat/completions", chat("Hi"))
            self.assertEqual((status, body["error"]["type"]), (429, "rate_limit_error"))
            self.assertGreaterEqual(int(headers["Retry-After"]), 1)
            self.assertEqual(server.post("/v1/messages", chat("Hi", max_tokens=5))[2]["type"], "error")
            first.close()
            second.close()

    def test_long_prompts(self):
        with Server("--max-prompt", "100") as server:
            status, _, body = server.post("/v1/completions", {"prompt": [5] * 101})
            self.assertEqual((status, body["error"]["code"]), (400, "context_length_exceeded"))
            self.assertIn("This model's maximum context length is 100 tokens. However, your prompt resulted in 101",
                          body["error"]["message"])
            status, _, body = server.post("/v1/completions", {"prompt": [5] * 101, "max_tokens": 9})
            self.assertIn("However, you requested 110 tokens (101 in the prompt, 9 in the completion).",
                          body["error"]["message"])
            status, _, body = server.post("/v1/messages", chat("word " * 200, max_tokens=9))
            self.assertEqual((status, body["error"]["type"]), (400, "invalid_request_error"))
            self.assertRegex(body["error"]["message"], r"^prompt is too long: \d+ tokens > 100 maximum$")
        with Server() as server:
            status, _, body = server.post("/v1/completions", {"prompt": [5] * 2049})
            self.assertEqual((status, body["error"]["code"]), (400, "context_length_exceeded"))
            status, _, body = server.post("/v1/completions", {"prompt": [5] * 2048, "seed": 1})
            self.assertEqual((status, body["choices"][0]["finish_reason"]), (200, "length"))

    def test_slow_reader(self):
        """A reader that takes nothing is cancelled, and others are answered meanwhile."""
        with Server("--max-stream-buffer", "100000", "--send-timeout", "2") as server:
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.port))
            # Large chunks fill the sockets' buffers soon.
            body = json.dumps({**LONG, "n": 32, "stream": True, "logprobs": True, "top_logprobs": 20})
            connection.sendall(request_text(body, f"Content-Length: {len(body)}", path="/v1/chat/completions"))
            self.assertTrue(wait_until(lambda: server.metric("gumbel_answers_submitted_total") == 32))
            self.assertEqual(server.post("/v1/chat/completions", chat("Hi", max_tokens=3, priority=-1))[0], 200)
            self.assertTrue(wait_until(lambda: server.metric("gumbel_answers_cancelled_total") > 0))
            self.assertTrue(wait_until(lambda: server.metric("gumbel_requests_running") == 0))
            self.assertLess(server.metric("gumbel_generated_tokens_total"), 32 * 1800)
            self.assertTrue(wait_until(lambda: server.metric("gumbel_slow_readers_total")
                                       + server.metric("gumbel_disconnects_total") == 1, 5))
            connection.close()

    def test_slow_but_steady(self):
        """A reader that takes a reply slowly, and longer than the limit, gets all of it."""
        with Server("--send-timeout", "1") as server, socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.port))
            connection.settimeout(300)
            body = json.dumps({"prompt": [5] * 2, "max_tokens": 1100, "n": 8, "logprobs": 20, "ignore_eos": True,
                               "seed": 1})
            connection.sendall(request_text(body, f"Content-Length: {len(body)}", "Connection: close"))
            length = len(connection.recv(1))
            end = time.monotonic() + 4
            while part := connection.recv(20000 if time.monotonic() < end else 1 << 20):
                length, tail = length + len(part), part
                if time.monotonic() < end:
                    time.sleep(0.1)
            self.assertTrue(tail.endswith(b"}}\n"), tail[-100:])
            self.assertGreater(length, 3 << 20)

    def test_idle_connections(self):
        """Idle ones make room, those that never asked and those that wait for their next request."""
        with Server("--max-connections", "4") as server:
            kept = socket.create_connection(("127.0.0.1", server.port), 10)
            kept.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertTrue(kept.recv(65536).startswith(b"HTTP/1.1 200 "))
            time.sleep(0.3)  # until the server has noted that it is idle
            some = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(20)]
            self.assertTrue(is_healthy(server))
            self.assertEqual(read_all(kept), b"")
            for one in some[:16]:
                self.assertEqual(read_all(one), b"")
            some[-1].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.assertTrue(read_all(some[-1]).startswith(b"HTTP/1.1 200 "))
            for one in (kept, *some):
                one.close()

    def check_full(self, status, *options):
        """Connections that are busy are not closed for new ones, which learn why they are refused."""
        with Server(*options) as server:
            busy = []
            for _ in range(2):
                busy.append(socket.create_connection(("127.0.0.1", server.port), 10))
                busy[-1].sendall(b"POST /v1/completions HTTP/1.1\r\n")
            refused = []
            self.assertTrue(wait_until(lambda: refused.append(server.request("GET", "/health")) or
                                       refused[-1][0] == status, 10), refused)
            self.assertGreaterEqual(int(refused[-1][1]["Retry-After"]), 1)
            self.assertIn(options[-2], refused[-1][2]["error"]["message"])
            for one in busy:
                one.close()
            self.assertTrue(wait_until(lambda: is_healthy(server), 10))

    def test_full(self):
        self.check_full(503, "--max-connections-per-address", "0", "--max-connections", "2")

    def test_full_address(self):
        self.check_full(429, "--max-connections-per-address", "2")

    def test_other_addresses(self):
        """One client's connections, busy, idle or refused, leave room for another address."""
        with Server("--max-connections", "8", "--host", "127.0.0.1") as server:
            some = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(30)]
            for one in some[-4:]:
                one.sendall(b"POST /v1/completions HTTP/1.1\r\n")
            self.assertTrue(wait_until(lambda: server_refuses(server), 10))
            some += [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(30)]
            with socket.create_connection(("127.0.0.1", server.port), 10, ("127.0.0.2", 0)) as other:
                other.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                self.assertTrue(read_all(other).startswith(b"HTTP/1.1 200 "))
            for one in some:
                one.close()


def is_healthy(server):
    try:
        return server.request("GET", "/health", timeout=2)[0] == 200
    except OSError:
        return False


def server_refuses(server):
    return server.request("GET", "/health")[0] == 429


def open_stream(server, body, wait=True):
    connection = socket.create_connection(("127.0.0.1", server.port), 30)
    data = json.dumps({**body, "stream": True})
    connection.sendall(request_text(data, f"Content-Length: {len(data)}", path="/v1/chat/completions"))
    if wait:
        connection.recv(1)
    return connection


class Metrics(unittest.TestCase):
    def test_names(self):
        """Each metric has a type and a help text, and is what the dashboard and the gateway ask for."""
        with Server("--vllm-metrics") as server:
            server.post("/v1/chat/completions", chat("Hi", max_tokens=5))
            text = server.request("GET", "/metrics")[2]
        lines = text.splitlines()
        helped = [line.split()[2] for line in lines if line.startswith("# HELP ")]
        typed = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE "))
        self.assertEqual(len(helped), len(set(helped)))
        self.assertEqual(helped, list(typed))
        samples = [re.match(r"[a-z_:0-9]+", line).group() for line in lines if not line.startswith("#")]
        for sample in samples:
            self.assertIn(re.sub(r"_(bucket|sum|count)$", "", sample), typed)
        for name, kind in (("vllm:num_requests_waiting", "gauge"), ("vllm:kv_cache_usage_perc", "gauge"),
                           ("vllm:generation_tokens_total", "counter"),
                           ("vllm:time_to_first_token_seconds", "histogram")):
            self.assertEqual(typed[name], kind)
        with open(os.path.join(os.path.dirname(__file__), "../../packaging/grafana.json"), encoding="utf-8") as file:
            asked = set(re.findall(r"gumbel_[a-z_]+", file.read()))
        self.assertLessEqual(asked, set(samples))


class Leaving(unittest.TestCase):
    def check(self, leave):
        with Server() as server:
            leave(server)
            self.assertTrue(wait_until(lambda: server.metric("gumbel_requests_running") == 0))
            self.assertEqual(server.metric("gumbel_answers_finished_total"), 0)
            self.assertLess(server.metric("gumbel_generated_tokens_total"), 1700)
            self.assertTrue(wait_until(lambda: server.metric("gumbel_disconnects_total") == 1))
            self.assertGreater(server.metric("gumbel_answers_cancelled_total"), 0)
            self.assertEqual(server.metric("gumbel_answers_failed_total"), 0)

    def test_stream(self):
        def leave(server):
            open_stream(server, LONG).close()
        self.check(leave)

    def test_stream_of_version_1_0(self):
        """Which libmicrohttpd writes."""
        def leave(server):
            connection = socket.create_connection(("127.0.0.1", server.port), 30)
            data = json.dumps({**LONG, "stream": True})
            connection.sendall(request_text(data, f"Content-Length: {len(data)}", path="/v1/chat/completions",
                                            version="HTTP/1.0"))
            self.assertIn(b"200", connection.recv(4096))
            connection.close()
        self.check(leave)

    def test_whole(self):
        def leave(server):
            connection = socket.create_connection(("127.0.0.1", server.port), 30)
            data = json.dumps({**LONG, "n": 4})
            connection.sendall(request_text(data, f"Content-Length: {len(data)}", path="/v1/chat/completions"))
            self.assertTrue(wait_until(lambda: server.metric("gumbel_requests_running") > 0))
            connection.close()
        self.check(leave)


class Signals(unittest.TestCase):
    def test_drain(self):
        """SIGTERM: what is under way is answered to its end, and nothing new begins."""
        with Server() as server:
            port = server.port
            stream = open_stream(server, LONG)
            server.process.send_signal(signal.SIGTERM)
            rest = read_all(stream).decode()
            self.assertIn("[DONE]", rest)
            self.assertIn('"finish_reason":"length"', rest)
            self.assertEqual(server.process.wait(PATIENCE), 0)
            with self.assertRaises(OSError):
                socket.create_connection(("127.0.0.1", port), 2)

    def test_second_signal(self):
        with Server() as server:
            stream = open_stream(server, {**LONG, "n": 4})
            server.process.send_signal(signal.SIGTERM)
            for line in server.process.stderr:
                if "second signal" in line:
                    break
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(PATIENCE), 130)
            stream.close()

    def test_killed(self):
        """The port is free at once."""
        with Server() as server:
            port = server.port
            stream = open_stream(server, LONG)
            server.process.kill()
            server.process.wait()
            with Server(port=port) as again:
                self.assertEqual(again.request("GET", "/health")[0], 200)
            stream.close()


class Sockets(unittest.TestCase):
    def talk(self, path):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return read_all(connection)

    def test_unix(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s")
            with Server("--unix-socket", path) as server:
                self.assertIn(b'"version"', self.talk(path))
                second = subprocess.run([COMMAND, "serve", GEMMA, "--unix-socket", path], capture_output=True,
                                        text=True, timeout=PATIENCE)
                self.assertEqual(second.returncode, 1, "two servers on one socket")
                server.process.kill()
                server.process.wait()
            with Server("--unix-socket", path):
                self.assertIn(b'"version"', self.talk(path))
            self.assertFalse(os.path.exists(path))

    def test_systemd(self):
        """A socket of systemd's is taken over, and it is told when the server is ready and when it stops."""
        with tempfile.TemporaryDirectory() as folder, socket.socket() as listener, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            notices.bind(os.path.join(folder, "n"))
            notices.settimeout(30)
            # The shell's process becomes the server's, so that its id is known.
            script = 'exec 3<&"$1"; LISTEN_PID=$$ LISTEN_FDS=1 exec "$2" serve "$3"'
            process = subprocess.Popen(["bash", "-c", script, "sh", str(listener.fileno()), COMMAND, GEMMA],
                                       pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL,
                                       env={**os.environ, "NOTIFY_SOCKET": os.path.join(folder, "n")})
            try:
                self.assertEqual(notices.recv(100), b"READY=1")
                with socket.create_connection(listener.getsockname(), 10) as connection:
                    connection.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    self.assertIn(b'"ready"', read_all(connection))
            finally:
                process.terminate()
                self.assertEqual(process.wait(PATIENCE), 0)
            self.assertEqual(notices.recv(100), b"STOPPING=1")

    def test_sandbox(self):
        """The kernel filters what the server may ask of it, where this build can, but with --no-sandbox."""
        if "libseccomp" not in subprocess.run(["ldd", COMMAND], capture_output=True, text=True).stdout:
            self.skipTest("this build has no sandbox")

        def filtered(*options):
            with Server(*options) as server:
                if any("no sandbox: the kernel" in line for line in server.lines):
                    self.skipTest("this kernel has no seccomp")
                self.assertEqual(server.post("/v1/chat/completions", chat("Hi", max_tokens=3))[0], 200)
                with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as status:
                    return "Seccomp:\t2" in status.read()

        self.assertTrue(filtered())
        if not filtered("--no-sandbox"):
            return  # whoever runs the tests has no filter of its own
        with open("/proc/self/status", encoding="utf-8") as status:
            self.assertIn("Seccomp:\t2", status.read())

    def test_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = (os.path.join(folder, name) for name in ("key.pem", "certificate.pem"))
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
                            certificate, "-days", "2", "-subj", "/CN=localhost", "-addext",
                            "subjectAltName=DNS:localhost"], check=True, capture_output=True)
            with Server("--ssl-cert-file", certificate, "--ssl-key-file", key) as server:
                context = ssl.create_default_context(cafile=certificate)
                with socket.create_connection(("127.0.0.1", server.port), 10) as plain, \
                        context.wrap_socket(plain, server_hostname="localhost") as connection:
                    body = json.dumps(chat("Hi", max_tokens=4, stream=True))
                    connection.sendall(request_text(body, f"Content-Length: {len(body)}", "Connection: close",
                                                    path="/v1/chat/completions"))
                    self.assertIn(b"[DONE]", read_all(connection))
                with socket.create_connection(("127.0.0.1", server.port), 10) as plain, \
                        context.wrap_socket(plain, server_hostname="localhost") as connection:
                    connection.sendall(b"GET /health HTTP/1.1\r\n\r\n")
                    self.assertIn(b"no Host", read_all(connection))


if __name__ == "__main__":
    unittest.main(verbosity=2)
