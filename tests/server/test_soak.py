# SPDX-License-Identifier: Apache-2.0
"""Clients that do anything in any order: answers, streams, cancels, disconnects, malformed bodies, slow readers. In the
end the server has the descriptors and threads that it began with, holds no slot, and ends well.

GUMBEL_SOAK_REQUESTS says how many, GUMBEL_SOAK_SECONDS how long each model has for them; with a command built with a sanitizer its end is the sanitizer's verdict."""

import json
import os
import random
import socket
import threading
import time
import unittest

from support import GEMMA, PATIENCE, QWEN, Server, read_all, shortened, wait_until
from test_same_answers import draw_request

REQUESTS, CLIENTS = int(os.environ.get("GUMBEL_SOAK_REQUESTS", shortened(400, 100))), 24
SECONDS = float(os.environ.get("GUMBEL_SOAK_SECONDS", "inf"))
KINDS = ("whole", "stream", "leave", "half", "malformed", "slow", "unknown", "many")


class Client:
    def __init__(self, server, source, counts):
        self.server, self.source, self.counts = server, source, counts

    def send(self, path, data, part=None):
        connection = socket.create_connection(("127.0.0.1", self.server.port), PATIENCE)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
        whole = head.encode() + data
        connection.sendall(whole if part is None else whole[:part])
        return connection

    def act(self):
        kind = self.source.choice(KINDS)
        path, body = draw_request(self.source)
        body = {**body, "stream": kind in ("stream", "leave", "slow", "many")}
        if kind == "many" and path in ("/v1/chat/completions", "/v1/completions"):
            body["n"] = 4
        if kind == "unknown":
            body["banana"] = 1
        data = json.dumps(body).encode()
        if kind == "malformed":
            at = self.source.randrange(len(data))
            data = data[:at] + self.source.randbytes(self.source.randrange(8)) + data[at + 1:]
        part = self.source.randrange(len(data)) if kind == "half" else None
        with self.send(path, data, part) as connection:
            self.read(kind, connection)
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def read(self, kind, connection):
        if kind == "leave":
            connection.recv(self.source.randint(1, 3000))
        elif kind == "slow":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            for _ in range(10):
                connection.recv(100)
                time.sleep(0.02)
        elif kind != "half":
            reply = read_all(connection)
            assert reply.startswith(b"HTTP/1.1 "), reply[:200]
            assert kind != "unknown" or reply.startswith(b"HTTP/1.1 400"), reply[:200]
            assert b"HTTP/1.1 5" not in reply[:12], reply[:400]


def resources(server):
    folder = f"/proc/{server.process.pid}"
    return len(os.listdir(folder + "/fd")), len(os.listdir(folder + "/task"))


def resident_bytes(server):
    with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Soak(unittest.TestCase):
    def soak(self, program, *options):
        with Server("--parallel", "4", "--request-timeout", "5", "--max-stored", "100000", "--cache-ram", "8", *options,
                    program=program) as server:
            before, counts, failures = resources(server), {}, []
            left, end = threading.Semaphore(REQUESTS), time.monotonic() + SECONDS

            def work(number):
                client = Client(server, random.Random(number), counts)
                while time.monotonic() < end and left.acquire(blocking=False):
                    try:
                        client.act()
                    except Exception as error:  # a thread's failure is the test's
                        failures.append(repr(error))
            threads = [threading.Thread(target=work, args=(i,)) for i in range(CLIENTS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            for name in ("gumbel_requests_running", "gumbel_requests_waiting", "gumbel_requests_spilled"):
                self.assertTrue(wait_until(lambda: server.metric(name) == 0), name)
            self.assertEqual(server.metric("gumbel_answers_submitted_total"),
                             server.metric("gumbel_answers_finished_total")
                             + server.metric("gumbel_answers_cancelled_total")
                             + server.metric("gumbel_answers_failed_total"))
            self.assertTrue(wait_until(lambda: resources(server) == before), f"{before}, {resources(server)}")
            print(f"{sum(counts.values())} requests: {counts}; {resident_bytes(server) / 1e6:.0f} MB resident")
            server.process.terminate()
            self.assertEqual(server.process.wait(PATIENCE), 0, server.process.stderr.read())

    def test_gemma(self):
        self.soak(GEMMA)

    def test_qwen(self):
        self.soak(QWEN, "--no-prefix-cache")


if __name__ == "__main__":
    unittest.main(verbosity=2)
