"""The package beside the command and beside itself, on the bundled models."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import os
import pathlib
import pickle
import subprocess
import sys
import textwrap
import threading
import unittest
import unittest.mock
from typing import Any, ClassVar

import gumbel
from gumbel import _requests
from gumbel._library import ffi, owned, text_of
from gumbel._requests import SETTINGS
from models import BACKEND, CHECKPOINTS, COMMAND, HELLO, NAMES, OfModels

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather of a town",
            "parameters": {
                "type": "object",
                "properties": {"town": {"enum": ["Rome", "Oslo"]}},
                "required": ["town"],
                "additionalProperties": False,
            },
        },
    }
]


class TestAnswers(OfModels):
    def command(self, name: str, *arguments: str) -> Any:
        assert COMMAND
        made = subprocess.run(
            [COMMAND, "run", self.paths[name], *arguments, "--backend", BACKEND, "--json", "-q"], check=True, capture_output=True, timeout=60
        )
        return json.loads(made.stdout)

    @unittest.skipUnless(COMMAND, "no command gumbel (GUMBEL_COMMAND)")
    def test_same_tokens_as_the_command(self) -> None:
        for name, model in self.models.items():
            for seed in (0, 7, 2**64 - 3):
                with self.subTest(model=name, seed=seed):
                    said = self.command(name, "Once upon", "--plain", "-n", "40", "--seed", str(seed))
                    answer = model.generate("Once upon", max_new_tokens=40, seed=seed)
                    self.assertEqual((list(answer.tokens), answer.text), (said["tokens"], said["text"]))
                    self.assertEqual(answer.seed, seed)
                    said = self.command(name, "Hello!", "-n", "40", "--seed", str(seed))
                    reply = model.chat(HELLO, max_new_tokens=40, seed=seed)
                    self.assertEqual(list(reply.tokens), said["tokens"])
                    self.assertEqual(reply.message, said["message"])
                    self.assertEqual(reply.finish, said["finish_reason"])
                    self.assertEqual(reply.usage.prompt_tokens, said["prompt_tokens"])

    @unittest.skipUnless(COMMAND, "no command gumbel (GUMBEL_COMMAND)")
    def test_same_reply_where_a_stop_string_cuts_it(self) -> None:
        for name, model in self.models.items():
            for stop in ("help", "llo! Ho", "?"):
                with self.subTest(model=name, stop=stop):
                    said = self.command(name, "Hello!", "-n", "40", "--seed", "7", "--stop", stop)
                    reply = model.chat(HELLO, max_new_tokens=40, seed=7, stop=stop)
                    self.assertEqual((reply.message, list(reply.tokens)), (said["message"], said["tokens"]))
                    self.assertEqual(reply.stop_string, said["stop_string"])

    def test_a_stream_is_the_answer(self) -> None:
        for model in self.each():
            whole = model.generate("Once upon", max_new_tokens=40, seed=3)
            stream = model.stream("Once upon", max_new_tokens=40, seed=3)
            pieces = list(stream)
            self.assertEqual("".join(map(str, pieces)), whole.text)
            self.assertEqual(tuple(piece.token for piece in pieces), whole.tokens)
            self.assertEqual((stream.result.text, stream.result.finish), (whole.text, whole.finish))
            reply = model.chat(HELLO, max_new_tokens=40, seed=3)
            deltas = list(model.chat_stream(HELLO, max_new_tokens=40, seed=3))
            self.assertEqual("".join(d.text for d in deltas if d.type == "content"), reply.content)
            self.assertEqual("".join(d.text for d in deltas if d.type == "reasoning"), reply.reasoning)

    def test_text_and_tokens_are_the_same_prompt(self) -> None:
        for model in self.each():
            tokens = model.tokenize("Once upon")
            self.assertEqual(
                model.generate(tokens, max_new_tokens=8, seed=1).tokens,
                model.generate("Once upon", max_new_tokens=8, seed=1).tokens,
            )
            self.assertEqual(model.detokenize(tokens), "Once upon")
            for text in ("", "Grüße 🐐", "<bos> and </think>"):
                self.assertEqual(model.detokenize(model.tokenize(text, add_special=False)), text)

    def test_settings_by_every_name(self) -> None:
        self.assertLessEqual({"temperature", "top_k", "min_p"}, SETTINGS.keys())
        names = {text_of(setting.name) for setting in SETTINGS.values()}
        self.assertEqual(names - gumbel.Options.__annotations__.keys(), set(), "settings without a type")
        for model in self.each():
            greedy = model.generate("Once upon", max_new_tokens=20, temperature=0)
            self.assertEqual(greedy.tokens, model.generate("Once upon", max_new_tokens=20, top_k=1, seed=5).tokens)
            banned = model.generate("Once upon", max_new_tokens=20, temperature=0, bias={greedy.tokens[0]: -float("inf")})
            self.assertNotIn(greedy.tokens[0], banned.tokens)

    def test_logprobs(self) -> None:
        for model in self.each():
            answer = model.generate("Once upon", max_new_tokens=5, temperature=0, top_logprobs=3)
            assert answer.logprobs and answer.top_logprobs
            for token, logprob, top in zip(answer.tokens, answer.logprobs, answer.top_logprobs, strict=True):
                self.assertEqual(len(top), 3)
                self.assertEqual(top[0], (token, logprob))
            self.assertIsNone(model.generate("Once", max_new_tokens=1).logprobs)

    def test_held_to_a_grammar(self) -> None:
        schema = {
            "type": "object",
            "properties": {"age": {"type": "integer", "maximum": 99}},
            "required": ["age"],
            "additionalProperties": False,
        }
        for model in self.each():
            value = json.loads(model.generate("A goat:", json_schema=schema, seed=2, max_new_tokens=400).text)
            self.assertIsInstance(value["age"], int)
            self.assertRegex(model.generate("When?", regex=r"\d{4}-\d\d", seed=2).text, r"^\d{4}-\d\d$")
            self.assertIn(model.generate("Yes?", choices=["yes", "no"], seed=2).text, ("yes", "no"))
            self.assertEqual(model.generate("A:", grammar='root ::= "ab" "c"').text, "abc")
            reply = model.chat(HELLO, json_schema=schema, seed=2, max_new_tokens=400)
            self.assertEqual(json.loads(reply.content).keys(), {"age"})

    def test_chat_calls_a_tool(self) -> None:
        for model in self.each():
            messages: list[dict[str, Any]] = [{"role": "user", "content": "How is the weather in Rome?"}]
            reply = model.chat(messages, tools=TOOLS, tool_choice="weather", seed=7, max_new_tokens=300)
            (call,) = reply.tool_calls
            self.assertEqual(call.name, "weather")
            self.assertIn(call.arguments["town"], ("Rome", "Oslo"))
            messages += [reply.message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
            again = model.chat(messages, tools=TOOLS, seed=7, max_new_tokens=20)
            self.assertGreater(again.usage.prompt_tokens, reply.usage.prompt_tokens)

    def test_thinking(self) -> None:
        self.assertTrue(self.qwen.chat(HELLO, seed=7, max_new_tokens=40, thinking=True).reasoning)
        self.assertFalse(self.qwen.chat(HELLO, seed=7, max_new_tokens=40, thinking=False).reasoning)


class TestMany(OfModels):
    def test_threads(self) -> None:
        for model in self.each():
            alone = [model.generate("Once upon", max_new_tokens=30, seed=seed).tokens for seed in range(8)]
            found: dict[int, tuple[int, ...]] = {}

            def ask(seed: int, model: gumbel.Model = model, found: dict[int, tuple[int, ...]] = found) -> None:
                found[seed] = model.generate("Once upon", max_new_tokens=30, seed=seed).tokens

            threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual([found[seed] for seed in range(8)], alone)

    def test_tasks(self) -> None:
        async def ask(model: gumbel.Model) -> tuple[list[Any], list[Any], str]:
            answers = await asyncio.gather(
                *(model.agenerate("Once upon", max_new_tokens=30, seed=seed) for seed in range(8))
            )
            replies = await asyncio.gather(*(model.achat(HELLO, max_new_tokens=30, seed=seed) for seed in range(8)))
            streamed = [str(piece) async for piece in model.astream("Once upon", max_new_tokens=30, seed=1)]
            return [a.tokens for a in answers], [r.tokens for r in replies], "".join(streamed)

        for model in self.each():
            answers, replies, streamed = asyncio.run(ask(model))
            self.assertEqual(
                answers, [model.generate("Once upon", max_new_tokens=30, seed=seed).tokens for seed in range(8)]
            )
            self.assertEqual(replies, [model.chat(HELLO, max_new_tokens=30, seed=seed).tokens for seed in range(8)])
            self.assertEqual(streamed, model.generate("Once upon", max_new_tokens=30, seed=1).text)


class TestEnds(OfModels):
    ENDLESS: ClassVar[dict[str, Any]] = {"ignore_stop": True, "seed": 1}

    def wait_until_idle(self, model: gumbel.Model) -> None:
        """All slots are free again soon after a cancel: four more answers begin at once."""
        answers = [model.stream("Once", max_new_tokens=2, seed=1, deadline=20) for _ in range(4)]
        for answer in answers:
            answer.wait()

    def test_leaving_the_loop_cancels(self) -> None:
        for _ in range(8):  # more than there are slots
            for _ in self.gemma.stream("Once", **self.ENDLESS):
                break
        self.wait_until_idle(self.gemma)
        with self.gemma.stream("Once", **self.ENDLESS) as stream:
            next(stream)
        with self.assertRaises(StopIteration):
            next(stream)
        with self.assertRaises(gumbel.Error):
            _ = stream.result

    def test_with_cancels_where_a_name_is_kept(self) -> None:
        async def leave() -> None:
            stream = self.gemma.astream("Once", **self.ENDLESS)
            async with stream:
                async for _ in stream:
                    break
            with self.assertRaises(StopAsyncIteration):
                await anext(stream)

        stream = self.gemma.stream("Once", **self.ENDLESS)
        for _ in stream:
            break
        next(stream)  # it goes on, as docs/python.md says
        with stream:
            for _ in stream:
                break
        with self.assertRaises(StopIteration):
            next(stream)
        asyncio.run(leave())
        self.wait_until_idle(self.gemma)

    def test_a_cancelled_task_cancels_its_request(self) -> None:
        async def ask() -> None:
            tasks = [asyncio.create_task(self.gemma.agenerate("Once", **self.ENDLESS)) for _ in range(8)]
            await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertTrue(all(isinstance(error, asyncio.CancelledError) for error in done))
            async for _ in self.gemma.astream("Once", **self.ENDLESS):
                break
            with self.assertRaises(TimeoutError if sys.version_info >= (3, 11) else asyncio.TimeoutError):
                await asyncio.wait_for(self.gemma.achat(HELLO, **self.ENDLESS), 0.05)

        asyncio.run(ask())
        self.wait_until_idle(self.gemma)

    def test_deadline(self) -> None:
        with self.assertRaises(TimeoutError) as caught:
            self.gemma.generate("Once", deadline=0.02, **self.ENDLESS)
        self.assertIsInstance(caught.exception, gumbel.DeadlineError)

    def test_closing_ends_what_is_under_way(self) -> None:
        model = gumbel.open(self.paths["gemma4-tiny"], slots=2, backend=BACKEND)
        streams = [model.stream("Once", **self.ENDLESS) for _ in range(4)]
        chat = model.chat_stream(HELLO, **self.ENDLESS)
        model.close()
        model.close()
        for stream in streams:
            with self.assertRaises(gumbel.CancelledError):
                stream.wait()
        with self.assertRaises(gumbel.CancelledError):
            chat.wait()
        for use in (
            lambda: model.generate("Once"),
            lambda: model.stream("Once"),
            lambda: model.chat(HELLO),
            lambda: model.tokenize("Once"),
            lambda: model.detokenize([5]),
            lambda: model.logits([5]),
            lambda: asyncio.run(model.agenerate("Once")),
        ):
            with self.assertRaisesRegex(gumbel.ArgumentError, "closed"):
                use()
        self.assertIn("closed", repr(model))

    def test_closing_while_threads_ask(self) -> None:
        model = gumbel.open(self.paths["qwen3_5-moe-tiny"], slots=2, backend=BACKEND)
        ended: list[Exception] = []

        def ask() -> None:
            while True:
                try:
                    model.chat(HELLO, max_new_tokens=5)
                except gumbel.Error as error:
                    ended.append(error)
                    if isinstance(error, gumbel.ArgumentError):
                        return

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        threading.Event().wait(0.1)
        model.close()
        for thread in threads:
            thread.join(20)
        self.assertFalse(any(thread.is_alive() for thread in threads))

    def open_kinds(self) -> list[str]:
        return sorted(kind for _, kind, _ in list(owned.values()) if kind in ("program", "engine", "scheduler"))

    def test_a_forgotten_model_ends(self) -> None:
        gc.collect()
        before = self.open_kinds()
        stream = gumbel.open(self.paths["gemma4-tiny"], backend=BACKEND).stream("Once", **self.ENDLESS)
        next(stream)  # the stream keeps its model
        gc.collect()
        self.assertEqual(len(self.open_kinds()), len(before) + 3)
        del stream
        gc.collect()
        self.assertEqual(self.open_kinds(), before)

    @unittest.skipUnless(pathlib.Path("/proc/self/maps").exists(), "no /proc")
    def test_closing_lets_the_file_go(self) -> None:
        path = pathlib.Path(self.folder.name, "closed.gumbel")
        path.write_bytes(pathlib.Path(self.paths["gemma4-tiny"]).read_bytes())
        with gumbel.open(path, backend=BACKEND) as model:
            model.chat(HELLO, max_new_tokens=4)
            model.generate("Yes?", choices=["yes", "no"])
            self.assertTrue(path.name in pathlib.Path("/proc/self/maps").read_text())
        self.assertFalse(path.name in pathlib.Path("/proc/self/maps").read_text())

    def run_python(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = textwrap.dedent(program)
        return subprocess.run(
            [sys.executable, "-c", program, self.paths["gemma4-tiny"], BACKEND, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
        )

    def test_interrupts_at_any_moment(self) -> None:
        program = """
            import gumbel, random, signal, sys, time
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            random.seed(int(sys.argv[3]))
            end = time.monotonic() + 3
            interrupts = 0
            def ask():
                with gumbel.open(sys.argv[1], backend=sys.argv[2], threads=1) as model:
                    while True:
                        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 2e-3))
                        model.tokenize("Once")
                        next(model.stream("Once", ignore_stop=True))
                        for _ in range(20):
                            model.tokenize("upon")
            while time.monotonic() < end:
                try:
                    ask()
                except KeyboardInterrupt:
                    interrupts += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            with gumbel.open(sys.argv[1], backend=sys.argv[2]) as model:
                assert model.generate("Once", seed=1, max_new_tokens=4).tokens
            print("ended" if interrupts > 100 else interrupts)
            """
        for seed in range(2):
            made = self.run_python(program, str(seed))
            self.assertEqual((made.returncode, made.stdout), (0, "ended\n"), made.stderr[-2000:])

    def test_an_interrupted_use_hinders_no_end(self) -> None:
        """Where the end of a call is lost, for which the moments above are too rare."""
        program = """
            import gumbel, sys
            model = gumbel.open(sys.argv[1], backend=sys.argv[2])
            lost = model._engine.use() if hasattr(model._engine, "use") else model._engine
            lost.__enter__()
            model.close()
            try:
                model.tokenize("Once")
            except gumbel.ArgumentError:
                print("closed")
            """
        made = self.run_python(program)
        self.assertEqual((made.returncode, made.stdout, made.stderr), (0, "closed\n", ""))

    def test_an_interrupt_once_the_request_is_queued(self) -> None:
        """The handle lives until the last event, which would use it otherwise: a crash, so in another process."""
        program = """
            import gc, gumbel, sys, threading
            from gumbel import _requests
            check = _requests.check
            def interrupted(function, *arguments):
                check(function, *arguments)
                if function == _requests.lib.gumbel_scheduler_submit:
                    raise KeyboardInterrupt
            with gumbel.open(sys.argv[1], backend=sys.argv[2]) as model:
                _requests.check = interrupted
                for _ in range(8):
                    try:
                        model.generate("Once", ignore_stop=True)
                    except KeyboardInterrupt:
                        pass
                    gc.collect()
                _requests.check = check
                for _ in range(4):
                    model.generate("Once", max_new_tokens=4, seed=1, deadline=20)
                for _ in range(1000):
                    if not _requests._live:
                        break
                    threading.Event().wait(0.01)
                print("cancelled" if not _requests._live else "live")
            """
        made = self.run_python(program)
        self.assertEqual((made.returncode, made.stdout, made.stderr), (0, "cancelled\n", ""))

    def test_an_event_that_cannot_be_delivered(self) -> None:
        copy = _requests._copy_event

        def fail(count: int) -> Any:
            left = [count]

            def copy_or_fail(event: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    raise MemoryError("no memory for an event")
                return copy(event)

            return unittest.mock.patch.object(_requests, "_copy_event", copy_or_fail)

        for count in (0, 3):
            with self.subTest(count=count), fail(count):
                found: list[BaseException] = []

                def ask(found: list[BaseException] = found) -> None:
                    for use in (
                        lambda: self.gemma.generate("Once", **self.ENDLESS),
                        lambda: asyncio.run(self.gemma.achat(HELLO, **self.ENDLESS)),
                    ):
                        try:
                            use()
                        except BaseException as error:
                            found.append(error)

                thread = threading.Thread(target=ask, daemon=True)
                thread.start()
                thread.join(20)
                self.assertEqual([type(error) for error in found], [MemoryError, MemoryError])
        self.wait_until_idle(self.gemma)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_process_forked_off(self) -> None:
        program = """
            import gumbel, os, sys, threading
            model = gumbel.open(sys.argv[1], backend=sys.argv[2], threads=1)
            stream = model.stream("Once", ignore_stop=True, seed=1)
            chat = model.chat_stream([{"role": "user", "content": "Hello!"}], ignore_stop=True)
            next(stream)
            child = os.fork()
            if child == 0:
                for use in (lambda: model.generate("Once"), lambda: model.tokenize("Once"), lambda: next(stream)):
                    try:
                        use()
                    except gumbel.ArgumentError as error:
                        assert "process" in str(error), error
                    else:
                        sys.exit(3)
                stream.close()
                del stream, chat
                if len(sys.argv) > 3:
                    with gumbel.open(sys.argv[1], backend=sys.argv[2]) as own:
                        own.generate("Once", max_new_tokens=4)
                    model.close()
                sys.exit(0)
            for _ in range(500):
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    break
                threading.Event().wait(0.02)
            else:
                os.kill(child, 9)
                sys.exit("the child hangs")
            print("child", os.waitstatus_to_exitcode(status))
            next(stream)
            """
        for more in ((), ("close",)) if BACKEND == "cpu" else ((),):
            made = self.run_python(program, *more)
            self.assertEqual((made.returncode, made.stdout, made.stderr), (0, "child 0\n", ""))

    def test_python_exits_while_answers_are_under_way(self) -> None:
        program = textwrap.dedent(
            """
            import gumbel, sys
            model = gumbel.open(sys.argv[1], backend=sys.argv[2])
            streams = [model.stream("Once", ignore_stop=True) for _ in range(8)]
            chat = model.chat_stream([{"role": "user", "content": "Hello!"}], ignore_stop=True)
            next(streams[0])
            print("bye")
            """
        )
        for _ in range(3):
            made = subprocess.run(
                [sys.executable, "-c", program, self.paths["gemma4-tiny"], BACKEND],
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertEqual((made.returncode, made.stdout, made.stderr), (0, "bye\n", ""))


class TestErrors(OfModels):
    def test_arguments(self) -> None:
        bad: list[tuple[dict[str, Any], str]] = [
            ({"temprature": 1}, "temprature.*there are.*temperature"),
            ({"temperature": -1}, "temperature"),
            ({"seed": -1}, "seed"),
            ({"max_new_tokens": -1}, "max_new_tokens"),
            ({"regex": "a", "json_object": True}, "json_object and regex"),
            ({"penalized": "some"}, "usual, generated, all"),
            ({"stop": ""}, "stop"),
            ({"stop": "a\0b"}, "zero"),
            ({"stop_tokens": [10**12]}, "token"),
            ({"top_logprobs": 1000}, "top_logprobs|log-prob"),
            ({"bias": {999999: 1.0}}, "bias|999999"),
            ({"bias": {2**40: 1.0}}, "bias"),
            ({"priority": 2**40}, "priority"),
            ({"priority": -(2**31) - 1}, "priority"),
        ]
        for options, words in bad:
            with self.subTest(options=options), self.assertRaisesRegex(gumbel.ArgumentError, words):
                self.gemma.generate("Once", **options)
        with self.assertRaises(ValueError):
            self.gemma.generate([10**6])
        with self.assertRaises(ValueError):
            self.gemma.generate([])
        with self.assertRaises(gumbel.LimitError):
            self.gemma.generate([5] * 5000)
        with self.assertRaises(TypeError):
            self.gemma.tokenize(b"Once")  # type: ignore[arg-type]
        with self.assertRaises(gumbel.FormatError):
            self.gemma.generate("Once", regex="(")
        with self.assertRaisesRegex(gumbel.ArgumentError, "role"):
            self.gemma.chat([{"role": "nobody", "content": "x"}])
        with self.assertRaisesRegex(gumbel.ArgumentError, "tools"):
            self.gemma.chat(HELLO, tool_choice="required")

    def test_iterators(self) -> None:
        for model in self.each():
            greedy: dict[str, Any] = {"temperature": 0, "max_new_tokens": 20}
            whole = model.generate("Once upon", **greedy)
            several: dict[str, Any] = {"stop_tokens": iter([whole.tokens[2]])}
            cut = model.generate("Once upon", **several, **greedy)
            self.assertLess(len(cut.tokens), 20)
            self.assertEqual(cut.finish, "stop")
            several = {"predicted": iter(whole.tokens)}
            predicted = model.generate("Once upon", **several, **greedy)
            self.assertEqual(predicted.tokens, whole.tokens)
            text = whole.text[2:5]
            several = {"stop": iter([text])}
            cut = model.generate("Once upon", **several, **greedy)
            self.assertEqual(cut.stop_string, text)
            several = {"choices": iter(["yes", "no"])}
            self.assertIn(model.generate("Yes?", **several, seed=2).text, ("yes", "no"))

    def test_a_class_for_each_status(self) -> None:
        statuses = {int(value) for value in ffi.typeof("gumbel_status").elements}
        self.assertEqual({kind.status for kind in gumbel.Error.__subclasses__()} | {0}, statuses)

    def test_files(self) -> None:
        with self.assertRaises(OSError) as caught:
            gumbel.open(f"{self.folder.name}/missing.gumbel")
        self.assertEqual(caught.exception.status, 2)  # type: ignore[attr-defined]
        self.assertEqual(caught.exception.errno, errno.ENOENT)
        self.assertIsInstance(caught.exception, FileNotFoundError)
        self.assertIsInstance(caught.exception, gumbel.FileError)
        self.assertIn("missing.gumbel", str(caught.exception))
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(again), str(again)), (type(caught.exception), str(caught.exception)))
        with self.assertRaises(gumbel.FileError) as within:
            gumbel.open(f"{__file__}/x.gumbel")
        self.assertEqual(within.exception.errno, errno.ENOTDIR)
        with self.assertRaises(gumbel.ArgumentError):
            gumbel.open(self.paths[NAMES[0]], devices=[2**40])
        with self.assertRaises(gumbel.FormatError):
            gumbel.open(__file__)
        with self.assertRaises(gumbel.Error):
            gumbel.export(self.folder.name, f"{self.folder.name}/none.gumbel")
        with self.assertRaises(gumbel.ArgumentError):
            gumbel.export(CHECKPOINTS / NAMES[0], f"{self.folder.name}/none.gumbel", quantize="int5")
        with self.assertRaises(gumbel.Error):
            gumbel.open(self.paths[NAMES[0]], backend="tpu")

    def test_info(self) -> None:
        info = self.gemma.info
        self.assertEqual((info.architecture, info.backend, info.slots), ("gemma4", BACKEND, 4))
        self.assertTrue(info.has_tokenizer and info.has_chat_template and info.has_sampler)
        self.assertEqual(gumbel.open(self.paths[NAMES[0]], max_context=128, slots=1).info.max_context, 128)


class TestLogits(OfModels):
    def test_logits(self) -> None:
        try:
            import numpy as np
        except ImportError:
            self.skipTest("no numpy")
        with self.assertRaisesRegex(gumbel.UnsupportedError, "logits=True"):
            self.gemma.logits([5])
        for name, model in self.models.items():
            with self.subTest(model=name):
                path = f"{self.folder.name}/{name}-logits.gumbel"
                gumbel.export(self.checkpoint(name), path, logits=True)
                prompt = model.tokenize("Once upon")
                answer = model.generate(prompt, temperature=0, max_new_tokens=12, ignore_stop=True)
                tokens = [*prompt, *answer.tokens]
                with gumbel.open(path, backend=BACKEND) as scores:
                    rows = scores.logits(tokens[:-1])
                    self.assertEqual((rows.shape, rows.dtype), ((len(tokens) - 1, model.info.vocab_size), np.float32))
                    self.assertEqual(rows.argmax(axis=1)[len(prompt) - 1 :].tolist(), list(answer.tokens))
                    # Other backends run a prompt by kernels that round otherwise.
                    tolerance = 0 if BACKEND == "cpu" else 0.05
                    np.testing.assert_allclose(scores.logits(tokens[:-1], last=True)[0], rows[-1], 0, tolerance)
                    with self.assertRaisesRegex(gumbel.UnsupportedError, "logits=True"):
                        scores.generate("Once")
                    with self.assertRaises(gumbel.ArgumentError):
                        scores.logits([])
                    with self.assertRaises(gumbel.ArgumentError):
                        scores.logits([10**6])


if __name__ == "__main__":
    unittest.main()
