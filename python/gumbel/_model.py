"""Programs made ready to answer."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gumbel._errors import ArgumentError, BackendError, OutOfMemoryError, UnsupportedError
from gumbel._library import Memory, Owned, check, create, export_library, ffi, lib, log, struct, text_of
from gumbel._requests import Engine, Use, check_names
from gumbel._streams import AsyncStream, ChatShape, Stream, TextShape
from gumbel._types import Answer, Delta, Info, Piece, Reply

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack

    from gumbel._types import ChatOptions, GenerateOptions

Prompt = str | Sequence[int]
Messages = Sequence[Mapping[str, Any]]


class Model:
    """A program on an engine, which answers requests of any number of threads and tasks at once.

    Made by open(). close(), a with statement, its last reference or the end of Python end it: what is under way
    ends with CancelledError, and later calls raise ArgumentError. In a process forked off, calls raise ArgumentError."""

    def __init__(self, engine: Engine, info: Info) -> None:
        self._engine = engine
        self._stepping = threading.Lock()
        self._info = info
        weakref.finalize(self, engine.close).atexit = False

    @property
    def info(self) -> Info:
        """The program and its engine."""
        return self._info

    def close(self) -> None:
        """Ends the engine, and what is under way; where other threads are just submitting, when they have. May be
        called again. The program's file may be changed then, unless a chat's stream has not ended that still has a name."""
        self._engine.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._engine.is_closed else self._info.engine
        return f"<gumbel.Model {self._info.name}: {state}>"

    # ---- Text ---------------------------------------------------------------------------------------------

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """The ids of a text. add_special puts around it what the model expects (bos), as generate does;
        parse_special makes special tokens of what spells them."""
        with self._engine.use() as engine:
            return engine.encode(text, add_special, parse_special)

    def detokenize(self, tokens: Sequence[int], *, show_special: bool = False) -> str:
        """The text of ids; special tokens give none unless they are to be shown."""
        text, length = ffi.new("char **"), ffi.new("size_t *")
        pieces: list[bytes] = []
        with self._engine.use() as engine:
            tokenizer = engine.need_tokenizer()
            detokenizer = create("detokenizer", tokenizer, show_special, needs=(engine.tokenizer,))
            for token in Memory().tokens(tokens, "tokens"):
                check(lib.gumbel_detokenize, detokenizer.pointer, token, text, length)
                pieces.append(ffi.buffer(text[0], length[0])[:] if length[0] else b"")
            lib.gumbel_detokenize_end(detokenizer.pointer, text, length)
            pieces.append(ffi.buffer(text[0], length[0])[:] if length[0] else b"")
            detokenizer.close()
        return b"".join(pieces).decode("utf-8", "replace")

    # ---- Answers ------------------------------------------------------------------------------------------

    def generate(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> Answer:
        """Continues a text, or token ids as they are. Options: GenerateOptions. No chat template is used.

        Raises ArgumentError, UnsupportedError, FormatError (a grammar), LimitError (the queue is full, the prompt
        longer than the context), and what Stream raises."""
        return self.stream(prompt, **options).wait()

    def stream(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> Stream[Piece, Answer]:
        """generate, token by token. The request is under way when this returns."""
        return Stream(self, self._text(prompt, options), self._engine)

    def chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Reply:
        """Replies to messages as OpenAI's API has them, by the program's chat template. Options: ChatOptions.

        Raises what generate does; what a template refuses is an ArgumentError."""
        return self.chat_stream(messages, **options).wait()

    def chat_stream(self, messages: Messages, **options: Unpack[ChatOptions]) -> Stream[Delta, Reply]:
        """chat, as the parts of the reply become certain. The request is under way when this returns."""
        return Stream(self, self._chat(messages, options), self._engine)

    async def agenerate(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> Answer:
        """generate for asyncio."""
        return await self.astream(prompt, **options).wait()

    def astream(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> AsyncStream[Piece, Answer]:
        """stream for asyncio, within a running loop."""
        return AsyncStream(self, self._text(prompt, options), self._engine)

    async def achat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Reply:
        """chat for asyncio."""
        return await self.achat_stream(messages, **options).wait()

    def achat_stream(self, messages: Messages, **options: Unpack[ChatOptions]) -> AsyncStream[Delta, Reply]:
        """chat_stream for asyncio, within a running loop."""
        return AsyncStream(self, self._chat(messages, options), self._engine)

    def _text(self, prompt: Prompt, options: Mapping[str, Any]) -> TextShape:
        check_names(options, is_chat=False)
        return TextShape(self._engine, options, prompt)

    def _chat(self, messages: Messages, options: Mapping[str, Any]) -> ChatShape:
        check_names(options, is_chat=True)
        if not isinstance(messages, str):
            messages = list(messages)
        return ChatShape(self._engine, options, messages)

    # ---- Logits -------------------------------------------------------------------------------------------

    def logits(self, tokens: Sequence[int], *, last: bool = False) -> npt.NDArray[np.float32]:
        """The logits after each token, [len(tokens), vocab_size]; with last those after the last token, [1, vocab_size].

        Needs numpy, and a program exported with logits=True. All rows are computed one token at a time, with last
        the prompt is run in chunks. One call at a time computes, others wait.
        Raises ArgumentError, UnsupportedError, LimitError (more tokens than the context has positions)."""
        import numpy as np

        with self._engine.use() as engine:
            if engine.scheduler:
                raise UnsupportedError("the program gives no logits: export it with logits=True")
            ids = Memory().tokens(tokens, "tokens")
            if not len(ids):
                raise ArgumentError("logits are of one token at least")
            first = len(ids) - 1 if last else 0
            rows = np.empty((len(ids) - first, self._info.vocab_size), np.float32)
            with self._stepping:
                session = create("session", engine.engine.pointer, needs=(engine.engine,))
                try:
                    if first:
                        check(lib.gumbel_session_append, session.pointer, ids, first)
                    for i in range(first, len(ids)):
                        self._step(engine, session, ids + i, rows[i - first])
                finally:
                    session.close()
        return rows

    def _step(self, engine: Use, session: Owned, token: Any, row: npt.NDArray[np.float32]) -> None:
        result = struct("result")
        request = struct("request", session=session.pointer, tokens=token, token_count=1, result=result)
        check(lib.gumbel_step, engine.engine.pointer, request, 1)
        if not result.logits:
            raise UnsupportedError("this backend gives no logits")
        ffi.memmove(ffi.from_buffer(row), result.logits, row.nbytes)


def open(
    path: str | os.PathLike[str],
    *,
    backend: str | None = None,
    devices: Sequence[int] | None = None,
    threads: int = 0,
    slots: int = 4,
    max_context: int = 0,
    prefill_chunk: int = 0,
    cache: str | None = None,
    draft_tokens: int = 8,
    draft_model: str | os.PathLike[str] | None = None,
    max_queued: int = 0,
    prefix_cache: bool = True,
    host_bytes: int = 0,
) -> Model:
    """Opens a program made by export() or `gumbel export`, and makes it ready to answer.

    backend: "cpu", or "cuda" where the wheel was built with it. devices: their numbers; several share the model.
    threads: of the CPU; 0: one per physical core. slots: answers under way at once; others wait in a queue of
    max_queued (0: 1024). max_context: positions of a sequence; 0: the program's. prefill_chunk: tokens of a prompt
    in one step; 0: as the backend likes. cache: what attention's caches hold, as in export(). draft_tokens: guesses
    that a step verifies for an answer, at most; they change no token; 0: none. draft_model: a smaller program of the
    same vocabulary that guesses, in place of the program's draft head, which does where it has one.
    prefix_cache: keep the states of finished sequences, of which host_bytes (0: 1 GiB) in host memory.

    While the program is open its file must not be changed or made shorter. Notices go to the logger "gumbel".
    Raises FileError, FormatError, UnsupportedError, ArgumentError, OutOfMemoryError, BackendError."""
    program = create("program", Memory().path(path), verb="open", end="close")
    if cache is not None:
        check(lib.gumbel_program_set_cache, program.pointer, Memory().text(cache, "cache"))
    facts = struct("program_info")
    check(lib.gumbel_program_get_info, program.pointer, facts)
    tokenizer = create("tokenizer", program.pointer, needs=(program,)) if facts.has_tokenizer else None
    usual: dict[str, Any] = {"backend": backend, "threads": threads, "slots": slots, "max_context": max_context}
    drafts = draft_tokens if facts.use_sampling else 0
    guesser = _draft_engine(program, draft_model, devices, usual) if drafts else None
    engine = _engine(
        program.pointer,
        needs=(program, guesser),
        devices=devices,
        prefill_chunk=prefill_chunk,
        draft_tokens=drafts,
        draft_engine=guesser.pointer if guesser else ffi.NULL,
        **usual,
    )
    scheduler = None
    if facts.use_sampling:
        schedule = struct(
            "scheduler_options", max_queued=max_queued, host_bytes=host_bytes, no_prefix_cache=not prefix_cache
        )
        scheduler = create("scheduler", engine.pointer, schedule, needs=(engine, tokenizer))
    return Model(Engine(program, tokenizer, engine, scheduler), _info(facts, engine))


def _engine(
    program: Any, needs: tuple[Any, ...], backend: str | None, devices: Sequence[int] | None, **fields: Any
) -> Owned:
    memory = Memory()
    options = memory.struct("engine_options", backend=memory.text(backend, "backend"), log=log, **fields)
    if devices:
        numbers = memory.array("int", devices, "devices has a number that no device has")
        options.devices, options.device_count = numbers, len(numbers)
    return create("engine", program, options, needs=needs)


def _draft_engine(
    program: Owned, path: str | os.PathLike[str] | None, devices: Sequence[int] | None, usual: dict[str, Any]
) -> Owned | None:
    """What guesses, with as many slots: another program, or the program's own head on the same devices."""
    if path is None:
        head = lib.gumbel_program_draft_head(program.pointer)
        return _engine_of_head(program, head, devices, usual) if head else None
    guesser = create("program", Memory().path(path), verb="open", end="close")
    return _engine(guesser.pointer, (guesser,), devices=None, snapshots=True, **_shorter(guesser.pointer, usual))


def _engine_of_head(program: Owned, head: Any, devices: Sequence[int] | None, usual: dict[str, Any]) -> Owned | None:
    try:
        return _engine(head, (program,), devices=devices, **_shorter(head, usual))
    except (BackendError, OutOfMemoryError, UnsupportedError) as error:
        logging.getLogger("gumbel").warning("answers go on without the draft head: %s", error)
        return None


def _shorter(program: Any, usual: dict[str, Any]) -> dict[str, Any]:
    """The options with no longer a context than the program has."""
    facts = struct("program_info")
    check(lib.gumbel_program_get_info, program, facts)
    return usual | {"max_context": min(usual["max_context"] or facts.max_context, facts.max_context)}


def _info(facts: Any, engine: Owned) -> Info:
    made = struct("engine_info")
    check(lib.gumbel_engine_get_info, engine.pointer, made)
    return Info(
        architecture=text_of(facts.architecture),
        name=text_of(facts.name),
        id=bytes(facts.id).hex(),
        vocab_size=facts.vocab_size,
        max_context=made.max_context,
        stop_tokens=tuple(facts.stop_tokens[i] for i in range(facts.stop_token_count)),
        bos_token=facts.bos_token if facts.bos_token >= 0 else None,
        weight_bytes=facts.weight_bytes,
        sequence_state_bytes=facts.session_state_bytes,
        has_sampler=facts.use_sampling,
        has_tokenizer=facts.has_tokenizer,
        has_chat_template=facts.has_chat_template,
        has_mask=facts.has_mask,
        max_top_logprobs=facts.max_top_logprobs,
        backend=text_of(made.backend),
        threads=made.threads,
        slots=made.slots,
        engine=text_of(lib.gumbel_engine_description(engine.pointer)),
    )


def export(
    checkpoint: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    quantize: str | None = None,
    activations: str | None = None,
    cache: str | None = None,
    backend: str | None = None,
    max_context: int = 0,
    layers: int = 0,
    logits: bool = False,
    name: str | None = None,
    size_target: int = 0,
    draft_head: bool = False,
    assistant: str | os.PathLike[str] | None = None,
) -> None:
    """Writes a program from a checkpoint: a Hugging Face directory or a GGUF.

    quantize: a recipe such as "int4", or a file with one; None: weights stay as they are. activations: "none",
    "int8" or "bfloat16". cache: "float32", "bfloat16", "q8", "q4" or "q4-all". backend: the one that weights are
    laid out for. max_context: positions; 0: the model's own, 8192 at most. layers: keep the first ones only; 0: all.
    logits: end in logits in place of the sampler, for Model.logits. size_target: bytes of the file up to which
    matrices get 8 bits. draft_head: with the checkpoint's own head that guesses further tokens (mtp.*). assistant:
    the directory or GGUF of the model's assistant, which becomes that head. The file appears when it is whole. Notices go to the
    logger "gumbel".
    Raises ArgumentError, FileError, FormatError, UnsupportedError, OutOfMemoryError, LimitError (the disk)."""
    memory = Memory()
    options = memory.struct(
        "export_options",
        quantize=memory.text(quantize, "quantize"),
        activations=memory.text(activations, "activations"),
        cache=memory.text(cache, "cache"),
        backend=memory.text(backend, "backend"),
        max_context=max_context,
        layers=layers,
        logits=logits,
        name=memory.text(name, "name"),
        size_target=size_target,
        draft_head=draft_head,
        assistant=ffi.NULL if assistant is None else memory.path(assistant),
        log=log,
    )
    check(export_library().gumbel_export, memory.path(checkpoint), memory.path(path), options)
