"""The command gumbel as pip installs it."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import sysconfig
import unittest
import urllib.request
from typing import Any

import gumbel
from gumbel._command import PROGRAM
from models import BACKEND, HELLO, OfModels

INSTALLED = pathlib.Path(sysconfig.get_path("scripts"), "gumbel")
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
SECONDS = 60


@unittest.skipUnless(PROGRAM.exists(), "a package without the command")
class TestCommand(OfModels):
    def run_installed(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([INSTALLED, *arguments], capture_output=True, text=True, timeout=SECONDS)

    def test_version(self) -> None:
        self.assertEqual(self.run_installed("--version").stdout, f"gumbel {gumbel.__version__}\n")
        module = subprocess.run([sys.executable, "-m", "gumbel", "--version"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(module.stdout, f"gumbel {gumbel.__version__}\n")

    def test_every_command_is_there(self) -> None:
        said = self.run_installed("help").stdout
        for name in ("run", "chat", "serve", "export", "pull", "inspect", "bench"):
            self.assertRegex(said, rf"\n +{name} ")
            self.assertEqual(self.run_installed(name, "--help").returncode, 0)

    def test_same_tokens_as_the_package(self) -> None:
        for name, model in self.models.items():
            path = f"{self.folder.name}/{name}-exported.gumbel"
            made = self.run_installed("export", str(self.checkpoint(name)), "-o", path, "-q")
            self.assertEqual(made.returncode, 0, made.stderr)
            made = self.run_installed("run", path, "Once upon", "--plain", "-n", "40", "--seed", "7", "--backend", BACKEND, "--json", "-q")
            answer = model.generate("Once upon", max_new_tokens=40, seed=7)
            self.assertEqual(json.loads(made.stdout)["tokens"], list(answer.tokens))

    def test_ends_as_the_program_does(self) -> None:
        made = self.run_installed("nonsense")
        self.assertEqual((made.returncode, made.stdout), (2, ""))
        self.assertIn("nonsense", made.stderr)
        for first in (INSTALLED, PROGRAM):
            reader, writer = os.pipe()
            os.close(reader)
            started = subprocess.Popen([first, "help"], stdout=writer)
            os.close(writer)
            self.assertEqual(started.wait(SECONDS), -signal.SIGPIPE)

    def test_serve(self) -> None:
        if "libmicrohttpd" in self.run_installed("serve", "none.gumbel").stderr:
            self.skipTest("a command without the server")
        started = subprocess.Popen(
            [INSTALLED, "serve", self.paths["gemma4-tiny"], "--port", "0", "--backend", BACKEND],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert started.stderr
        with started.stderr:
            try:
                address = next(found[0] for line in started.stderr if (found := re.search(r"http://[\w.:]+", line)))
                self.assertEqual(os.readlink(f"/proc/{started.pid}/exe"), str(PROGRAM.resolve()))
                reply = self.ask(f"{address}/v1/chat/completions", {"messages": HELLO, "seed": 7, "max_tokens": 20})
                content = self.gemma.chat(HELLO, seed=7, max_new_tokens=20).content
                self.assertEqual(reply["choices"][0]["message"]["content"], content)
                with DIRECT.open(address, timeout=SECONDS) as page:
                    self.assertIn(b"<html", page.read())
            finally:
                started.terminate()
                self.assertEqual(started.wait(SECONDS), 0)

    def ask(self, url: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with DIRECT.open(request, timeout=SECONDS) as answer:
            return json.load(answer)


if __name__ == "__main__":
    unittest.main()
