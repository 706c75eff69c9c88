# SPDX-License-Identifier: Apache-2.0
"""A server under test, and short ways to talk with it. GUMBEL and GUMBEL_PROGRAM name the command and a program."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

COMMAND = os.environ["GUMBEL"]
GEMMA, QWEN = os.environ["GUMBEL_PROGRAMS"].split(os.pathsep)
PATIENCE = 600  # seconds; a sanitizer on a busy machine takes its time


def shortened(most, few):
    """Of requests or cases: most, or few in a short run (tests/Long.cmake)."""
    return few if "GUMBEL_SHORT_TESTS" in os.environ else most


class Server:
    """One process of gumbel serve, on a free port of this machine."""

    def __init__(self, *options, program=GEMMA, port=0, **spawn):
        words = [COMMAND, "serve", program, "--alias", "tiny", *options]
        if "--unix-socket" not in options:
            words += ["--port", str(port)]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, **spawn)
        self.port, self.lines = None, []
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r"listening on (\S+)", line)
            if found:
                port = re.search(r":(\d+)$", found.group(1))
                self.port = int(port.group(1)) if port else None
                break
        else:
            raise RuntimeError("".join(self.lines) + f"status {self.process.wait()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                status = self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
            if status != 0:  # also what a sanitizer has to say
                raise RuntimeError(f"status {status}: {self.process.stderr.read()}")
        self.process.stderr.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def request(self, method, path, body=None, headers=None, timeout=PATIENCE):
        """(status, headers, value) of one request; the value is JSON where the reply is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        data = json.dumps(body) if body is not None and not isinstance(body, (str, bytes)) else body
        try:
            connection.request(method, path, data, headers or {})
            reply = connection.getresponse()
            text = reply.read().decode()
            is_json = reply.getheader("Content-Type", "").startswith("application/json")
            return reply.status, reply.headers, json.loads(text) if is_json else text
        finally:
            connection.close()

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def raw(self, data, timeout=PATIENCE):
        """Sends bytes and reads until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as connection:
            connection.sendall(data)
            return read_all(connection)

    def metric(self, name):
        text = self.request("GET", "/metrics")[2]
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if re.match(re.escape(name) + r"[ {]", line))


def read_all(connection):
    parts = []
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def events(text):
    """(name, data) of the server-sent events in text; data is JSON, or "[DONE]"."""
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith(":")]
        if not lines:
            continue
        name = next((line[7:] for line in lines if line.startswith("event: ")), None)
        data = next(line[6:] for line in lines if line.startswith("data: "))
        found.append((name, data if data == "[DONE]" else json.loads(data)))
    return found


def wait_until(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def chat(text, **more):
    return {"messages": [{"role": "user", "content": text}], **more}


def alone(text, seed, *options, program=GEMMA):
    """What gumbel run answers."""
    words = [COMMAND, "run", program, text, "--seed", str(seed), "--json", "-q", *options]
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def alone_in_parts(text, seed, program):
    """Its thought and its answer."""
    message = alone(text, seed, program=program)["message"]
    return message["reasoning_content"], message["content"]
