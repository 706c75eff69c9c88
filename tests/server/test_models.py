# SPDX-License-Identifier: Apache-2.0
"""Several programs in one server."""

import re
import subprocess
import threading
import unittest

from support import COMMAND, GEMMA, PATIENCE, QWEN, Server, alone, chat, wait_until
from test_http import LONG, open_stream

ASK = "Who is the baker?"


def answer(server, model, **more):
    status, _, reply = server.post("/v1/chat/completions", chat(ASK, seed=7, model=model, **more))
    return reply["choices"][0]["message"]["content"] if status == 200 else status


def refusal(*words):
    """What a server says that does not begin to serve."""
    result = subprocess.run([COMMAND, "serve", *words, "--port", "0"], capture_output=True, text=True, timeout=PATIENCE)
    return result.returncode, result.stderr


def megabytes(program):
    """What a program takes, as the server counts it."""
    return float(re.search(r"takes ([0-9.]+) MB", refusal(program, "--models-memory", "1KB")[1]).group(1))


class Models(unittest.TestCase):
    def test_names(self):
        with Server(QWEN, "--alias", "other,second") as server:
            models = server.request("GET", "/v1/models")[2]["data"]
            self.assertEqual([(one["id"], one["is_loaded"]) for one in models], [("tiny", True), ("other", True)])
            gemma = alone(ASK, 7)["text"]
            qwen = alone(ASK, 7, program=QWEN)["text"]
            for name in ("tiny", "gemma4-tiny"):
                self.assertEqual(answer(server, name), gemma)
            for name in ("other", "second", "qwen3_5-moe-tiny"):
                self.assertEqual(answer(server, name), qwen)
            self.assertEqual(answer(server, "third"), 404)
            self.assertIn('model_name="other"', server.request("GET", "/metrics")[2])

    def test_conversations(self):
        """The start says what conversations take in this engine, of the lengths that it can hold."""
        lengths = {}
        for cache in ("bfloat16", "q8"):
            with Server("--cache", cache, "--max-context", "2048") as server:
                found = re.findall(r"memory at (\d+) tokens: ([0-9.]+) kB a conversation, (\d+) have room",
                                   "".join(server.lines))
            self.assertEqual([tokens for tokens, _, _ in found], ["1024"])
            self.assertGreater(int(found[0][2]), 0)
            lengths[cache] = float(found[0][1])
        self.assertLess(lengths["q8"], 0.7 * lengths["bfloat16"])

    def test_on_demand(self):
        """One is loaded at a time; answers are the same whenever it was loaded."""
        with Server(QWEN, "--alias", "other", "--models-max", "1") as server:
            loaded = lambda: [one["is_loaded"] for one in server.request("GET", "/v1/models")[2]["data"]]
            self.assertEqual(loaded(), [True, False])
            first = {name: answer(server, name) for name in ("tiny", "other")}
            self.assertEqual(loaded(), [False, True])
            for name in ("tiny", "other", "other", "tiny"):
                self.assertEqual(answer(server, name), first[name])
            self.assertEqual(loaded(), [True, False])

    def test_memory(self):
        """As many are loaded as there is memory for; who is not asked for gives way."""
        sizes = megabytes(GEMMA), megabytes(QWEN)
        for most, both in ((max(sizes) + 0.1, False), (sum(sizes) + 0.2, True)):
            with Server(QWEN, "--alias", "other", "--models-memory", f"{most}MB") as server:
                loaded = lambda: [one["is_loaded"] for one in server.request("GET", "/v1/models")[2]["data"]]
                self.assertEqual(loaded(), [True, both])
                first = {name: answer(server, name) for name in ("tiny", "other")}
                self.assertEqual(loaded(), [both, True])
                self.assertEqual(answer(server, "tiny"), first["tiny"])
                self.assertEqual(loaded(), [True, both])
                stream = open_stream(server, {**LONG, "n": 8})
                self.assertEqual(answer(server, "other"), first["other"] if both else 503)
                stream.close()

    def test_refusals(self):
        """What cannot be served is known before anything is loaded."""
        for words, part in (((GEMMA, QWEN, "--models-memory", "1MB"), f"{GEMMA} takes "),
                            ((GEMMA, QWEN, "--models-memory", "lots"), "--models-memory lots: expected a size"),
                            ((GEMMA, GEMMA), "are both named gemma4-tiny"),
                            ((GEMMA, QWEN, "--alias", "a", "--alias", "a"), "are both named a: give each an --alias"),
                            ((GEMMA, QWEN + ".none"), QWEN + ".none: ")):
            status, text = refusal(*words)
            self.assertNotEqual(status, 0)
            self.assertIn(part, text)
            self.assertNotIn("positions", text)  # which a loaded program's note has

    def test_in_use(self):
        """A model that answers is not unloaded."""
        with Server(QWEN, "--alias", "other", "--models-max", "1") as server:
            stream = open_stream(server, {**LONG, "n": 8})
            self.assertEqual(answer(server, "other"), 503)
            stream.close()
            self.assertTrue(wait_until(lambda: answer(server, "other") != 503))

    def test_together(self):
        """Clients of both models at once: each is answered, or told to come again."""
        with Server(QWEN, "--alias", "other", "--models-max", "1") as server:
            expected = {name: answer(server, name) for name in ("tiny", "other")}
            found = []

            def ask(name):
                for _ in range(10):
                    found.append((name, answer(server, name)))
            threads = [threading.Thread(target=ask, args=(name,)) for name in ("tiny", "other") * 3]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(len(found), 60)
            self.assertTrue(all(text in (expected[name], 503) for name, text in found), found)
            self.assertTrue(any(text != 503 for _, text in found))


if __name__ == "__main__":
    unittest.main(verbosity=2)
