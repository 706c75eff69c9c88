"""One request to a scheduler: what it asks, and the events that come back on the scheduler's thread."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gumbel._errors import ArgumentError, error_of
from gumbel._library import Exit, Memory, Owned, callback, check, create, ffi, in_use, lib, log, struct, text_of, utf8
from gumbel._types import ChatOptions, Finish, GenerateOptions, Usage

FINISHES: tuple[Finish, ...] = ("stop", "length", "context", "stop_string")
_PENALIZED = ("usual", "generated", "all")
_GRAMMARS = ("json_object", "json_schema", "regex", "grammar", "choices")  # by gumbel_grammar_kind, from 1 on
_DRAFTS = ("auto", "off", "lookup", "model")  # by gumbel_drafting
_TOOL_CHOICES = ("auto", "required", "none")


@dataclasses.dataclass(frozen=True)
class Event:
    """A gumbel_event, copied."""

    text: str
    token: int
    seed: int
    logprob: float
    top_logprobs: tuple[tuple[int, float], ...]
    finish: Finish | None
    stop_string: int
    usage: Usage | None
    answer_seed: int
    error: Exception | None

    @property
    def is_last(self) -> bool:
        return self.finish is not None or self.error is not None


def _copy_event(event: Any) -> Event:
    usage = event.usage
    return Event(
        text=text_of(event.text, event.text_length),
        token=event.token,
        seed=event.seed,
        logprob=event.logprob,
        top_logprobs=tuple((event.top_tokens[i], event.top_token_logprob[i]) for i in range(event.top_logprobs)),
        finish=FINISHES[event.finish - 1] if event.type == lib.GUMBEL_EVENT_FINISH else None,
        stop_string=event.stop_string,
        usage=_copy_usage(usage) if usage else None,
        answer_seed=usage.seed if usage else 0,
        error=error_of(event.status, text_of(event.message)) if event.type == lib.GUMBEL_EVENT_ERROR else None,
    )


def _failure(error: BaseException) -> Event:
    """What a waiter gets where its event could not be delivered."""
    if not isinstance(error, Exception):
        error = RuntimeError(f"{type(error).__name__} while an event was delivered")
    return Event("", -1, 0, 0.0, (), None, -1, None, 0, error)


def _copy_usage(usage: Any) -> Usage:
    return Usage(**{field.name: getattr(usage, field.name) for field in dataclasses.fields(Usage)})


class Engine:
    """A scheduler on its engine. Any thread may use it.

    It ends when the last who refers to its parts lets them go: itself, until it is closed, and calls under way.
    There is no count of them that an interrupt could make wrong."""

    def __init__(self, program: Owned, tokenizer: Owned | None, engine: Owned, scheduler: Owned | None) -> None:
        self._process = os.getpid()
        self._parts = [(program, tokenizer, Grammars(), engine, scheduler)]

    @property
    def is_closed(self) -> bool:
        return not self._parts

    def check_process(self) -> None:
        if self._process != os.getpid():
            raise ArgumentError("the model was opened by another process, which this one was forked off: open it here")

    def use(self) -> Use:
        """For a with statement around a call."""
        return Use(self)

    def parts(self) -> tuple[Owned, Owned | None, Grammars, Owned, Owned | None]:
        self.check_process()
        parts = list(self._parts)
        if not parts or Exit.has_begun:
            raise ArgumentError("the model is closed")
        return parts[0]

    def close(self) -> None:
        """Ends it; where others are within a call, the last of them does."""
        if self._process != os.getpid():
            return
        try:
            _, _, _, engine, scheduler = self._parts.pop()
        except IndexError:
            return  # closed before
        if getattr(callback, "is_running", False) or any(of is self for _, of in list(in_use.values())):
            return
        # Here an interrupt that comes meanwhile is raised; a finalizer would swallow it.
        if scheduler:
            scheduler.close()
        engine.close()

    def cancel(self, number: int) -> None:
        if self.is_closed or self._process != os.getpid():
            return  # closing has cancelled it
        try:
            with self.use() as engine:
                if engine.scheduler:
                    lib.gumbel_scheduler_cancel(engine.scheduler.pointer, number)
        except ArgumentError:
            pass  # closed just now


class Use:
    """The parts of an engine, kept for a call."""

    program: Owned
    tokenizer: Owned | None
    grammars: Grammars
    engine: Owned
    scheduler: Owned | None

    def __init__(self, engine: Engine) -> None:
        self._of = engine

    def __enter__(self) -> Use:
        in_use[id(self)] = threading.get_ident(), self._of  # before it looks whether the engine is closed
        try:
            self.program, self.tokenizer, self.grammars, self.engine, self.scheduler = self._of.parts()
        except BaseException:
            in_use.pop(id(self), None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        in_use.pop(id(self), None)
        self.__dict__.clear()  # an exception may refer to the frame that has this

    def need_tokenizer(self) -> Any:
        if not self.tokenizer:
            raise ArgumentError("the program has no tokenizer: prompts are token ids")
        return self.tokenizer.pointer

    def encode(self, text: str, add_special: bool, parse_special: bool) -> list[int]:
        if not isinstance(text, str):
            raise TypeError(f"a text is a str, not {type(text).__name__}")
        data = utf8(text)
        options = struct("encode_options", add_special=add_special, parse_special=parse_special)
        capacity = len(data) + 16  # a token has one byte of text at least
        tokens = ffi.new("int32_t[]", capacity)
        count = ffi.new("size_t *")
        check(lib.gumbel_encode, self.need_tokenizer(), data, len(data), options, tokens, capacity, count)
        return ffi.unpack(tokens, count[0]) if count[0] else []


_live: set[Request] = set()
"""Requests whose last event has not come: the library has their handles."""


class Request:
    """A request under way. deliver gets its events, on the scheduler's thread, and must return soon."""

    def __init__(self, engine: Engine, deliver: Callable[[Event], None]) -> None:
        self._engine = engine
        self._deliver = deliver
        self._handle = ffi.new_handle(self)
        self._number = ffi.new("uint64_t *")  # 0 until the library has queued the request
        self._is_cancelled = False
        self._has_failed = False

    def submit(self, engine: Use, submission: Any) -> None:
        if not engine.scheduler:
            # The library's own words for a program without a sampler.
            raise error_of(
                lib.GUMBEL_ERROR_UNSUPPORTED,
                "the program was exported with logits=True: it gives logits, and draws no tokens",
            )
        submission.callback = _hear
        submission.user = self._handle
        _live.add(self)
        try:
            check(lib.gumbel_scheduler_submit, engine.scheduler.pointer, submission, self._number)
        finally:
            # An interrupt may be raised once the request is queued, whose events need the handle.
            if not self._number[0]:
                _live.discard(self)
        if self._is_cancelled:
            self.cancel()

    def check_process(self) -> None:
        """Raises in a process forked off, where no events come."""
        self._engine.check_process()

    def cancel(self) -> None:
        """Ends it at the next step; nothing where it has ended. Safe in any thread, also before submit."""
        self._is_cancelled = True
        if self._number[0] and self in _live:
            self._engine.cancel(self._number[0])

    def hear(self, event: Any) -> None:
        try:
            if not self._has_failed:
                self._deliver(_copy_event(event))
        except BaseException as error:
            # Raised here it would reach nobody, and who waits would wait for ever.
            self._has_failed = True
            self._deliver(_failure(error))
            self.cancel()
        finally:
            if event.type != lib.GUMBEL_EVENT_TOKEN:
                _live.discard(self)


@ffi.callback("gumbel_event_callback")  # type: ignore[untyped-decorator]
def _hear(user: Any, event: Any) -> None:
    callback.is_running = True
    try:
        ffi.from_handle(user).hear(event)
    finally:
        callback.is_running = False


# ---- What a request asks ----------------------------------------------------------------------------------


def _settings() -> dict[str, Any]:
    """Those of gumbel_setting_at, by name and by what others call them."""
    found: dict[str, Any] = {}
    index = 0
    while setting := lib.gumbel_setting_at(index):
        for name in [text_of(setting.name), *text_of(setting.aliases).split()]:
            found.setdefault(name, setting)
        index += 1
    return found


SETTINGS = _settings()


def check_names(options: Mapping[str, Any], is_chat: bool) -> None:
    """Refuses an option that does not exist, and says which do."""
    known = (ChatOptions if is_chat else GenerateOptions).__annotations__.keys() | SETTINGS.keys()
    for name in options:
        if name not in known:
            raise ArgumentError(f"there is no option {name!r}; there are {', '.join(sorted(known))}")


_SEVERAL = ("stop", "stop_tokens", "predicted", "choices", "tools")


def hold(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options as they are now; an iterator among them gives its items only once."""
    return {
        name: list(value) if name in _SEVERAL and isinstance(value, Iterable) and not isinstance(value, str) else value
        for name, value in options.items()
    }


def _choose(name: str, value: str, names: Sequence[str]) -> int:
    if value not in names:
        raise ArgumentError(f"{name} is one of {', '.join(names)}, not {value!r}")
    return names.index(value)


def _sampling(engine: Use, options: Mapping[str, Any], memory: Memory) -> Any:
    sampling = memory.struct("sampling")
    check(lib.gumbel_sampling_defaults, engine.program.pointer, sampling)
    for name, value in options.items():
        if name in SETTINGS and value is not None:
            check(lib.gumbel_setting_set, SETTINGS[name], float(value), sampling)
    if (penalized := options.get("penalized")) is not None:
        sampling.penalized = _choose("penalized", penalized, _PENALIZED)
    if bias := options.get("bias"):
        pairs = [{"token": token, "value": value} for token, value in bias.items()]
        entries = memory.array("gumbel_bias", pairs, "bias has a number that is no token id")
        sampling.bias, sampling.bias_count = entries, len(entries)
    return sampling


class Grammars:
    """The grammars that were asked for last, compiled. Any thread may use them."""

    MOST = 32

    def __init__(self) -> None:
        self._compiled: dict[tuple[Any, ...], Owned] = {}
        self._lock = threading.Lock()

    def get(self, engine: Use, key: tuple[Any, ...], options: Any) -> Owned:
        with self._lock:
            grammar = self._compiled.pop(key, None)
        grammar = grammar or create("grammar", engine.need_tokenizer(), options, needs=(engine.tokenizer,))
        with self._lock:
            self._compiled[key] = grammar
            while len(self._compiled) > self.MOST:
                del self._compiled[next(iter(self._compiled))]
        return grammar


def _grammar(engine: Use, options: Mapping[str, Any], memory: Memory) -> Owned | None:
    """What the answer is held to; None: nothing."""
    given = [name for name in _GRAMMARS if options.get(name) not in (None, False)]
    if len(given) > 1:
        raise ArgumentError(f"an answer is held to one of {' and '.join(given)}, not to both")
    tools = options.get("tools")
    choice = options.get("tool_choice")
    if choice is not None and not tools:
        raise ArgumentError("tool_choice needs tools")
    is_strict = any(tool.get("function", tool).get("strict") is True for tool in tools or ())
    if not given and choice in (None, "auto", "none") and not (is_strict and choice != "none"):
        return None
    made = memory.struct("grammar_options", log=log)
    key: list[Any] = [None, None, None, None]
    if given:
        made.kind = _GRAMMARS.index(given[0]) + 1
        value = options[given[0]]
        if given[0] in ("json_schema", "choices"):
            value = value if isinstance(value, str) else json.dumps(value)
        if given[0] != "json_object":
            made.text = memory.text(value, given[0])
        key[:2] = given[0], value
    else:
        made.kind = lib.GUMBEL_GRAMMAR_TEXT
    if tools:
        text = json.dumps(list(tools))
        made.tools = memory.text(text, "tools")
        if choice in _TOOL_CHOICES:
            made.tool_choice = _TOOL_CHOICES.index(choice)
        elif choice is not None:
            made.tool_choice = lib.GUMBEL_TOOLS_REQUIRED
            made.tool_name = memory.text(choice, "tool_choice")
        key[2:] = text, choice
    return engine.grammars.get(engine, tuple(key), made)


def stop_strings(options: Mapping[str, Any]) -> list[str]:
    stop = options.get("stop")
    if stop is None:
        return []
    return [stop] if isinstance(stop, str) else list(stop)


def make_submission(
    engine: Use,
    tokens: Iterable[int],
    branches: Sequence[int],
    options: Mapping[str, Any],
    memory: Memory,
) -> Any:
    """The gumbel_submission of a prompt; memory has what it points to, the grammar too."""
    prompt = memory.tokens(tokens, "the prompt")
    made = memory.struct("submission", tokens=prompt, token_count=len(prompt))
    made.sampling = _sampling(engine, options, memory)
    if engine.tokenizer:
        made.tokenizer = engine.tokenizer.pointer
    if (seed := options.get("seed")) is not None:
        if not 0 <= seed < 2**64:
            raise ArgumentError(f"seed is within 0 .. 2^64 - 1, not {seed}")
        made.has_seed, made.seed = True, seed
    made.top_logprobs = _count(options, "top_logprobs")
    made.wants_logprob = bool(options.get("logprobs") or made.top_logprobs)
    made.max_new_tokens = _count(options, "max_new_tokens")
    made.min_new_tokens = _count(options, "min_new_tokens")
    made.ignore_stop = bool(options.get("ignore_stop"))
    made.show_special = bool(options.get("show_special"))
    made.include_stop_string = bool(options.get("include_stop"))
    made.no_prefix_cache = options.get("prefix_cache") is False
    priority = options.get("priority") or 0
    if not -(2**31) <= priority < 2**31:
        raise ArgumentError(f"priority is within -2^31 .. 2^31 - 1, not {priority}")
    made.priority = priority
    if (deadline := options.get("deadline")) is not None:
        made.deadline_seconds = max(deadline, 1e-9)  # 0 is none for the library
    if strings := stop_strings(options):
        engine.need_tokenizer()
        pointers = [memory.text(text, "stop") for text in strings]
        made.stop_strings = memory.keep(ffi.new("char *[]", pointers))
        made.stop_string_count = len(strings)
    if stop_tokens := options.get("stop_tokens"):
        made.stop_tokens = ends = memory.tokens(stop_tokens, "stop_tokens")
        made.stop_token_count = len(ends)
    if branches:
        made.branch_positions = memory.keep(ffi.new("uint32_t[]", branches))
        made.branch_position_count = len(branches)
    if grammar := _grammar(engine, options, memory):
        made.grammar = memory.keep(grammar).pointer
        made.reasons = options.get("thinking") is True
    if (budget := options.get("reasoning_budget")) is not None:
        made.has_reasoning_budget, made.reasoning_budget = True, _count(options, "reasoning_budget")
    if (draft := options.get("draft")) is not None:
        made.drafting = _choose("draft", draft, _DRAFTS)
    made.max_draft = _count(options, "draft_max")
    if options.get("draft_max") == 0:
        made.drafting = lib.GUMBEL_DRAFTING_OFF
    if predicted := options.get("predicted"):
        if isinstance(predicted, str):
            predicted = engine.encode(predicted, add_special=False, parse_special=False)
        made.predicted_tokens = guesses = memory.tokens(predicted, "predicted")
        made.predicted_count = len(guesses)
    return made


def _count(options: Mapping[str, Any], name: str) -> int:
    value = options.get(name)
    if value is None:
        return 0
    if not 0 <= value < 2**32:
        raise ArgumentError(f"{name} is 0 or more, not {value}")
    return int(value)
