# SPDX-License-Identifier: Apache-2.0
"""A server over several processes, of which one ends or hangs: every client has its answer or an error, and the other
processes end and say which rank it was. While all are there, answers are those of one process.

    GUMBEL_LOST_RANKS=200 GUMBEL_LOST_SEED=7 python3 test_lost_rank.py"""

import http.client
import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from support import COMMAND, GEMMA, PATIENCE, Server, chat, events, shortened, wait_until

RANKS = 4  # three do not divide the heads of the bundled models
SECONDS = 10  # from the loss to the end of all, at most
KILLS = int(os.environ.get("GUMBEL_LOST_RANKS", shortened(50, 4)))
SEED = int(os.environ.get("GUMBEL_LOST_SEED", 1))
OPTIONS = ("--parallel", "4", "--threads", "1", "--backend", "cpu")
WORDS = "Mira Ben Fernhill baker goat lake mill story dog night who where why tell me about the a of".split()
LIST = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "minItems": 2, "maxItems": 5}


def variables(rank, folder):
    """torchrun's, without those of a launcher that has started this test."""
    known = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC_", "OMPI_", "PMI", "MPI_", "SLURM_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(known)}
    return {**kept, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(RANKS), "TMPDIR": folder}


class Launched:
    """The processes of one launch; those that follow are started first."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.processes = [self.start(rank) for rank in range(1, RANKS)]
        try:
            self.server = Server(*OPTIONS, "--launched", env=variables(0, self.folder.name))
        except RuntimeError:
            self.__exit__()
            raise
        self.processes.insert(0, self.server.process)

    def start(self, rank):
        words = [COMMAND, "serve", GEMMA, "--alias", "tiny", *OPTIONS, "--launched", "--port", "0"]
        return subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                env=variables(rank, self.folder.name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stderr.close()
        self.folder.cleanup()

    def statuses(self, ranks, seconds):
        """Of those processes, once they have ended; None: it has not."""
        end = time.monotonic() + seconds
        found = {}
        for rank in ranks:
            try:
                found[rank] = self.processes[rank].wait(max(0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                found[rank] = None
        return found

    def said(self, rank):
        self.processes[rank].kill()  # where it has not ended
        return self.processes[rank].stderr.read()


def draw_body(source):
    """A chat of one of several kinds, some with prompts of several chunks."""
    text = " ".join(source.choices(WORDS, k=source.choice((3, 8, 300)))) + "?"
    body = chat(text, seed=source.randrange(2 ** 53), max_tokens=source.randint(1, 120), temperature=1)
    if source.random() < 0.3:
        body["json_schema"] = LIST
    elif source.random() < 0.7:
        body["ignore_eos"] = True
    return body


def outcome_of_stream(text):
    """(answer, why it ended), or None where there is an error in it or no end."""
    found, parts, reason = events(text[:text.rfind("\n\n") + 2]), [], None
    for _, data in found:
        if data == "[DONE]":
            return "".join(parts), reason
        if "error" in data:
            return None
        for choice in data["choices"]:
            parts.append(choice["delta"].get("content") or "")
            reason = choice.get("finish_reason") or reason
    return None


def read_to_end(reply):
    """What comes before the connection breaks, if it does."""
    parts = []
    try:
        while part := reply.read1(65536):
            parts.append(part)
    except (http.client.HTTPException, OSError):
        pass
    return b"".join(parts).decode(errors="ignore")


class Client(threading.Thread):
    """Sends one request. outcome: (answer, why it ended), "error" or "closed"; errors: what they say."""

    def __init__(self, server, body, streams):
        super().__init__()
        self.server, self.body, self.streams, self.outcome, self.errors = server, body, streams, None, ""

    def run(self):
        try:
            self.outcome = self.ask()
        except (http.client.HTTPException, OSError):
            self.outcome = "closed"

    def ask(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps({**self.body, "stream": self.streams}))
            reply = connection.getresponse()
            text = read_to_end(reply)
        finally:
            connection.close()
        if reply.status != 200:
            self.errors = text
            return "error" if reply.status == 503 else f"{reply.status} {text}"
        return self.of_stream(text) if self.streams else self.of_reply(text)

    def of_stream(self, text):
        found = outcome_of_stream(text)
        if found:
            return found
        self.errors = text
        return "error" if '"error"' in text else "closed"

    def of_reply(self, text):
        try:
            choice = json.loads(text)["choices"][0]
        except json.JSONDecodeError:
            return "closed"
        return choice["message"]["content"], choice["finish_reason"]


def answer_all(server, bodies, streams):
    """Of clients that come at once."""
    clients = [Client(server, body, stream) for body, stream in zip(bodies, streams)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return [client.outcome for client in clients]


class LostRank(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """What one process answers, in which each is asked alone."""
        source = random.Random(SEED)
        cls.bodies = [draw_body(source) for _ in range(24)]
        with Server(*OPTIONS, "--no-prefix-cache") as server:
            cls.expected = [answer_all(server, [body], [False])[0] for body in cls.bodies]
        for outcome in cls.expected:
            assert isinstance(outcome, tuple), outcome

    def assert_named(self, launched, lost, statuses):
        for rank, status in statuses.items():
            said = launched.said(rank)
            self.assertEqual(status, 1, f"rank {rank}: {said}")
            self.assertRegex(said, rf"rank {lost} \([^)]*process {launched.processes[lost].pid}\)", f"rank {rank}")

    def assert_answered(self, clients, picked, lost):
        """A closed connection is an answer of a process that was killed alone."""
        for client, number in zip(clients, picked):
            client.join(SECONDS)
            self.assertFalse(client.is_alive())
            if client.outcome == "error":
                self.assertRegex(client.errors, rf"rank {lost} \(|ending|shutting|takes no more requests")
            elif client.outcome != "closed" or lost != 0:
                self.assertEqual(client.outcome, self.expected[number], client.errors)

    def lose(self, source, how):
        """Clients come, and one rank is lost amid that. Returns how the clients fared."""
        lost, clients = source.randrange(RANKS), []
        with Launched() as launched:
            picked = [source.randrange(len(self.bodies)) for _ in range(6)]
            clients = [Client(launched.server, self.bodies[i], source.random() < 0.5) for i in picked]
            for client in clients:
                client.start()
            time.sleep(source.random() * source.choice((0.02, 0.2, 0.8)))
            launched.processes[lost].send_signal(how)
            begun = time.monotonic()
            others = [rank for rank in range(RANKS) if rank != lost]
            statuses = launched.statuses(others, SECONDS)
            print(f"rank {lost} lost, the others ended after {time.monotonic() - begun:.1f} s", end=": ")
            if how == signal.SIGSTOP:
                launched.processes[lost].kill()  # whose clients wait for it
            self.assert_answered(clients, picked, lost)
            self.assert_named(launched, lost, statuses)
        found = [c.outcome if isinstance(c.outcome, str) else "answered" for c in clients]
        print(", ".join(f"{found.count(what)} {what}" for what in sorted(set(found))), flush=True)
        return found

    def test_killed(self):
        source = random.Random(SEED + 1)
        for number in range(KILLS):
            with self.subTest(number=number):
                self.lose(source, signal.SIGKILL)

    def test_stopped(self):
        source = random.Random(SEED + 2)
        for number in range(max(1, KILLS // 10)):
            with self.subTest(number=number):
                self.lose(source, signal.SIGSTOP)

    def test_idle(self):
        """Nobody has to ask for anything."""
        with Launched() as launched:
            launched.processes[2].kill()
            self.assert_named(launched, 2, launched.statuses((0, 1, 3), SECONDS))

    def test_clean_end(self):
        """A signal drains: the answer under way is whole, and nobody is missed."""
        with Launched() as launched:
            client = Client(launched.server, self.bodies[0] | {"max_tokens": 300, "ignore_eos": True}, True)
            client.start()
            self.assertTrue(wait_until(lambda: launched.server.metric("gumbel_generated_tokens_total") > 3))
            launched.server.process.send_signal(signal.SIGTERM)
            client.join(PATIENCE)
            self.assertIsInstance(client.outcome, tuple, client.errors)
            self.assertEqual(launched.statuses(range(RANKS), PATIENCE), dict.fromkeys(range(RANKS), 0))
            self.assertEqual(os.listdir(launched.folder.name), [])

    def test_signal_for_all(self):
        """Terminals and launchers send it to every process."""
        with Launched() as launched:
            for process in launched.processes:
                process.send_signal(signal.SIGINT)
            self.assertEqual(launched.statuses(range(RANKS), PATIENCE), dict.fromkeys(range(RANKS), 0))

    def test_same_answers(self):
        source = random.Random(SEED + 3)
        with Launched() as launched:
            streams = [source.random() < 0.5 for _ in self.bodies]
            self.assertEqual(answer_all(launched.server, self.bodies, streams), self.expected)
            launched.server.process.send_signal(signal.SIGTERM)
            self.assertEqual(launched.statuses(range(RANKS), PATIENCE), dict.fromkeys(range(RANKS), 0))
        lists = [json.loads(text) for body, (text, why) in zip(self.bodies, self.expected)
                 if "json_schema" in body and why == "stop"]
        self.assertGreater(len(lists), 0)
        for value in lists:
            self.assertTrue(2 <= len(value) <= 5 and all(0 <= number <= 99 for number in value), value)


if __name__ == "__main__":
    unittest.main(verbosity=2)
