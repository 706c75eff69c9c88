# SPDX-License-Identifier: Apache-2.0
"""Drives the program grammar_masks (grammar_masks.c)."""
import subprocess

import numpy


class Masks:
    def __init__(self, program, vocabulary, path):
        vocabulary.write(path)
        self.count = len(vocabulary.tokens)
        self.bytes = (self.count + 31) // 32 * 4
        self.process = subprocess.Popen([program, path, str(vocabulary.eos_token_id)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, line, content=b""):
        self.process.stdin.write(line.encode() + b"\n" + content)
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().rstrip("\n")

    def grammar(self, kind, text):
        """Nanoseconds until the first mask could be asked for; ValueError with the message."""
        content = text.encode()
        reply = self.ask(f"{kind} {len(content)}", content)
        if not reply.startswith("ok"):
            raise ValueError(reply)
        return int(reply.split()[1])

    def again(self):
        return int(self.ask("again").split()[1])

    def clone(self):
        return int(self.ask("clone").split()[1])

    def mask(self):
        """The words as bytes, and the nanoseconds that they took."""
        time = int(self.ask("mask").split()[1])
        return self.process.stdout.read(self.bytes), time

    def token(self, token):
        return self.timed_token(token)[0]

    def timed_token(self, token):
        """Whether it is accepted, and the nanoseconds that this took."""
        accepted, time = self.ask(f"token {token}").split()
        return accepted == "1", int(time)

    def rollback(self, count):
        return self.ask(f"rollback {count}") == "1"

    def state(self):
        may_end, forced, where = self.ask("state").split(" ", 2)
        return may_end == "1", int(forced), where

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def bits(mask, count):
    return numpy.unpackbits(numpy.frombuffer(mask, dtype=numpy.uint8), bitorder="little")[:count]
