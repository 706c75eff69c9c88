"""Answers as they come: to a loop, or to an asyncio task."""

from __future__ import annotations

import asyncio
import json
import queue
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from gumbel._errors import Error
from gumbel._library import Memory, Owned, check, create, ffi, lib, struct, text_of, utf8, written
from gumbel._requests import FINISHES, Engine, Event, Request, Use, hold, make_submission, stop_strings
from gumbel._types import Answer, Delta, Finish, Piece, Reply, ToolCall

Item = TypeVar("Item", covariant=True)
Whole = TypeVar("Whole", covariant=True)


class Shape(Protocol[Item, Whole]):
    """What becomes of a request's events: items, and in the end a whole."""

    def submit(self, request: Request) -> None: ...

    def add(self, event: Event) -> Iterable[Item]: ...

    def whole(self, event: Event) -> Whole: ...


class _Shape:
    def __init__(self, engine: Engine, options: Mapping[str, Any]) -> None:
        self.engine = engine
        self.options = hold(options)
        self._pieces: list[Piece] = []
        self._wants_logprobs = bool(options.get("logprobs") or options.get("top_logprobs"))

    def _submit(self, request: Request, engine: Use, tokens: Iterable[int], branches: list[int]) -> None:
        memory = Memory()
        request.submit(engine, make_submission(engine, tokens, branches, self.options, memory))

    def _note(self, event: Event) -> Piece:
        logprob = event.logprob if self._wants_logprobs else None
        piece = Piece(event.text, event.token, event.seed, logprob, event.top_logprobs)
        self._pieces.append(piece)
        return piece

    def _result(self, event: Event) -> dict[str, Any]:
        return {
            "tokens": tuple(piece.token for piece in self._pieces),
            "finish": event.finish,
            "stop_string": stop_strings(self.options)[event.stop_string] if event.stop_string >= 0 else None,
            "seed": event.answer_seed,
            "usage": event.usage,
            "logprobs": tuple(piece.logprob for piece in self._pieces) if self._wants_logprobs else None,
            "top_logprobs": tuple(piece.top_logprobs for piece in self._pieces)
            if self.options.get("top_logprobs")
            else None,
        }


class TextShape(_Shape):
    """Pieces of text, and an answer."""

    def __init__(self, engine: Engine, options: Mapping[str, Any], prompt: Any) -> None:
        super().__init__(engine, options)
        self._prompt = prompt

    def submit(self, request: Request) -> None:
        with self.engine.use() as engine:
            tokens = self._prompt
            if isinstance(tokens, str):
                tokens = engine.encode(tokens, add_special=True, parse_special=False)
            self._submit(request, engine, tokens, [])

    def add(self, event: Event) -> Iterable[Piece]:
        return () if event.is_last else (self._note(event),)

    def whole(self, event: Event) -> Answer:
        return Answer(**self._result(event), text="".join(piece.text for piece in self._pieces))


class ChatShape(_Shape):
    """Deltas of a reply, and the reply. A gumbel_conversation of its own takes it apart."""

    _TYPES = ("content", "reasoning", "tool_call", "other")  # by gumbel_part_type

    def __init__(self, engine: Engine, options: Mapping[str, Any], messages: Any) -> None:
        super().__init__(engine, options)
        self._messages = messages
        self._conversation: Owned | None = None
        self._reply: Any = None
        self._held: Event | None = None  # where stop strings may cut it, a token waits for the next event

    def submit(self, request: Request) -> None:
        with self.engine.use() as engine:
            tokenizer = engine.need_tokenizer()
            memory = Memory()
            conversation = create("conversation", tokenizer, needs=(engine.tokenizer,))
            check(lib.gumbel_conversation_set_chat, conversation.pointer, self._chat(memory))
            messages = memory.json(self._messages, "messages")
            check(lib.gumbel_conversation_add_json, conversation.pointer, messages)
            turn = struct("turn")
            check(lib.gumbel_conversation_prompt, conversation.pointer, ffi.NULL, 0, turn)
            tokens = ffi.unpack(turn.tokens, turn.count)
            self._reply = lib.gumbel_conversation_reply(conversation.pointer)
            self._conversation = conversation
            self._submit(request, engine, tokens, [turn.stable] if turn.stable else [])

    def _chat(self, memory: Memory) -> Any:
        options = self.options
        tools = options.get("tools")
        made = memory.struct("chat_options")
        made.tools = memory.json(list(tools) if tools else None, "tools")
        made.template_kwargs = memory.json(options.get("template_kwargs"), "template_kwargs")
        made.template_text = memory.text(options.get("chat_template"), "chat_template")
        if (thinking := options.get("thinking")) is not None:
            made.thinking = lib.GUMBEL_THINKING_ON if thinking else lib.GUMBEL_THINKING_OFF
        return made

    def add(self, event: Event) -> Iterable[Delta]:
        if event.error or not self._conversation:
            return
        if not event.is_last:
            self._note(event)
        if stop_strings(self.options):
            if self._held:
                self._add_token(self._conversation.pointer, self._held, event.finish)
            self._held = event
        elif event.is_last:
            check(lib.gumbel_conversation_end_reply, self._conversation.pointer)
        else:
            self._add_token(self._conversation.pointer, event, None)
        delta = struct("reply_delta")
        while lib.gumbel_reply_next(self._reply, delta):
            yield Delta(
                type=self._TYPES[delta.type],  # type: ignore[arg-type]
                text=text_of(delta.separator) + text_of(delta.text, delta.text_length),
                call=delta.call if delta.call >= 0 else None,
                id=text_of(delta.id) if delta.id else None,
                name=text_of(delta.name) if delta.name else None,
            )

    def _add_token(self, conversation: Any, event: Event, finish: Finish | None) -> None:
        generated = struct("generated", token=event.token)
        if stop_strings(self.options):  # the reply then gets no more than the text
            data = utf8(event.text)
            text = ffi.new("char[]", data)
            generated.text, generated.text_length = text, len(data)
            generated.finish = FINISHES.index(finish) + 1 if finish else lib.GUMBEL_FINISH_NONE
        check(lib.gumbel_conversation_add_generated, conversation, generated)

    def whole(self, event: Event) -> Reply:
        message = json.loads(
            written(lambda write, user: check(lib.gumbel_reply_message, self._reply, write, user))
        )
        return Reply(
            **self._result(event),
            content=message.get("content") or "",
            reasoning=message.get("reasoning_content") or "",
            tool_calls=tuple(_tool_call(call) for call in message.get("tool_calls") or ()),
            message=message,
        )


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    arguments = call["function"]["arguments"]
    return ToolCall(
        id=call.get("id") or "",
        name=call["function"]["name"],
        arguments=json.loads(arguments) if isinstance(arguments, str) else arguments,
    )


class _Stream(Generic[Item, Whole]):
    def __init__(self, owner: object, shape: Shape[Item, Whole], engine: Engine, deliver: Callable[[Event], None]) -> None:
        self._owner = owner  # the model, which is closed when nobody refers to it
        self._shape = shape
        self._request = Request(engine, deliver)
        self._ready: list[Item] = []
        self._ended = False
        self._result: Whole | None = None

    def _take(self, event: Event) -> None:
        """Makes an event's items ready, which stand in reverse order."""
        self._ready = [*self._shape.add(event)][::-1]
        if event.error:
            self._ended = True
            raise event.error
        if event.is_last:
            self._ended = True
            self._result = self._shape.whole(event)

    @property
    def result(self) -> Whole:
        """The whole answer, once the last item was taken. Raises Error before."""
        if self._result is None:
            raise Error("the answer has not ended")
        return self._result

    def _cancel(self) -> None:
        self._ended = True
        self._ready = []
        self._request.cancel()

    def __del__(self) -> None:
        if hasattr(self, "_request"):
            self._request.cancel()


class Stream(_Stream[Item, Whole], Iterator[Item]):
    """An answer's items as they come. The end of a with statement, close(), or its last reference cancel what is left:
    leaving a loop does while nothing else refers to the stream.

    Of one thread at a time. Raises what ends the answer: CancelledError, DeadlineError, NumericError, BackendError."""

    def __init__(self, owner: object, shape: Shape[Item, Whole], engine: Engine) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        super().__init__(owner, shape, engine, self._events.put)
        shape.submit(self._request)

    def __next__(self) -> Item:
        self._request.check_process()
        try:
            while not self._ready:
                if self._ended:
                    raise StopIteration
                self._take(self._events.get())
        except BaseException:
            self._cancel()
            raise
        return self._ready.pop()

    def wait(self) -> Whole:
        """Takes what is left, and gives the whole answer."""
        for _ in self:
            pass
        return self.result

    def close(self) -> None:
        """Cancels what is left of the answer."""
        self._cancel()

    def __enter__(self) -> Stream[Item, Whole]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncStream(_Stream[Item, Whole], AsyncIterator[Item]):
    """The same for a task of asyncio: cancelling the task cancels the request. It begins when it is first awaited."""

    def __init__(self, owner: object, shape: Shape[Item, Whole], engine: Engine) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._has_begun = False
        super().__init__(owner, shape, engine, _deliver_to(self._loop, self._events))

    async def __anext__(self) -> Item:
        self._request.check_process()
        try:
            if not self._has_begun:
                self._has_begun = True
                # Rendering messages and compiling a grammar may take seconds.
                await self._loop.run_in_executor(None, self._submit)
            while not self._ready:
                if self._ended:
                    raise StopAsyncIteration
                self._take(await self._events.get())
        except BaseException:
            self._cancel()
            raise
        return self._ready.pop()

    def _submit(self) -> None:
        """In a thread that so refers to the model, which is not closed meanwhile."""
        self._shape.submit(self._request)

    async def wait(self) -> Whole:
        """Takes what is left, and gives the whole answer."""
        async for _ in self:
            pass
        return self.result

    async def aclose(self) -> None:
        """Cancels what is left of the answer."""
        self._cancel()

    async def __aenter__(self) -> AsyncStream[Item, Whole]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._cancel()


def _deliver_to(loop: asyncio.AbstractEventLoop, events: asyncio.Queue[Event]) -> Callable[[Event], None]:
    def deliver(event: Event) -> None:
        try:
            loop.call_soon_threadsafe(events.put_nowait, event)
        except RuntimeError:
            pass  # the loop was closed, nobody waits

    return deliver
