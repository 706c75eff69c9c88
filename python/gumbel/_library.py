"""The shared libraries, and what every call of them needs: errors, structures, texts, owned pointers."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import json
import logging
import os
import pathlib
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from gumbel._errors import ArgumentError, error_of
from gumbel._header import ffi as _ffi

ffi: Any = _ffi
_FOLDER = pathlib.Path(__file__).parent
_SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"

lib: Any = ffi.dlopen(str(_FOLDER / f"libgumbel{_SUFFIX}"))


@functools.cache
def export_library() -> Any:
    """The half that makes programs, loaded when it is first used."""
    return ffi.dlopen(str(_FOLDER / f"libgumbel-export{_SUFFIX}"))


def check(function: Any, *arguments: Any) -> None:
    """Calls a function whose last parameter is a gumbel_error, and raises what it says."""
    error = ffi.new("gumbel_error *")
    status = function(*arguments, error)
    if status:
        raise error_of(status, text_of(error.message))


def struct(kind: str, /, **fields: Any) -> Any:
    """A structure of the library with its size set. Pointers in it stay the caller's to keep."""
    made = ffi.new(f"gumbel_{kind} *")
    made.size = ffi.sizeof(f"gumbel_{kind}")
    for field, value in fields.items():
        try:
            setattr(made, field, value)
        except OverflowError:
            raise ArgumentError(f"{field} is out of its range: {value}") from None
    return made


def text_of(pointer: Any, length: int | None = None) -> str:
    """UTF-8 that ends in a zero byte, or has a length. NULL is an empty text."""
    if not pointer:
        return ""
    data = ffi.string(pointer) if length is None else ffi.buffer(pointer, length)[:]
    return str(data, "utf-8", "replace")


def utf8(text: str) -> bytes:
    """What the library is given of a text: it reads lone surrogates as U+FFFD."""
    return text.encode("utf-8", "surrogatepass")


class Memory:
    """What a call of the library points to; alive as long as this object."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def keep(self, data: Any) -> Any:
        self._kept.append(data)
        return data

    def text(self, text: str | None, what: str) -> Any:
        if text is None:
            return ffi.NULL
        if not isinstance(text, str):
            raise TypeError(f"{what} is a str, not {type(text).__name__}")
        if "\0" in text:
            raise ArgumentError(f"{what} has a zero character")
        return self.keep(ffi.new("char[]", utf8(text)))

    def json(self, value: Any, what: str) -> Any:
        """JSON as text; a str is taken as it is."""
        if value is None or isinstance(value, str):
            return self.text(value, what)
        return self.text(json.dumps(value), what)

    def array(self, kind: str, values: Iterable[Any], refusal: str) -> Any:
        """An array of the library; refusal is what to say of a number that does not fit into it."""
        try:
            return self.keep(ffi.new(f"{kind}[]", list(values)))
        except OverflowError:
            raise ArgumentError(refusal) from None

    def tokens(self, tokens: Iterable[int], what: str) -> Any:
        return self.array("int32_t", tokens, f"{what} has a number that is no token id")

    def struct(self, kind: str, /, **fields: Any) -> Any:
        return self.keep(struct(kind, **fields))

    def path(self, path: str | os.PathLike[str]) -> Any:
        name = os.fsencode(path)
        if b"\0" in name:
            raise ArgumentError("a path has a zero character")
        return self.keep(ffi.new("char[]", name))


callback = threading.local()
"""``is_running`` is true in a thread that is within a callback of a scheduler."""

owned: dict[int, tuple[int, str, Any]] = {}
"""What was not given back yet, in the order of its making: the process that made it, its kind, its pointer."""

in_use: dict[int, tuple[int, object]] = {}
"""Who is within a call that others must not pull something from under: the thread, and the engine it uses.

Where an interrupt loses the end of a call its entry stays: it tells what may be, and nothing waits for it for ever."""

_serials = itertools.count()
_EXIT_SECONDS = 10.0


class Exit:
    """Whether Python exits, from when on nothing begins."""

    has_begun = False


class Owned:
    """A pointer of the library, given back by close(), when nobody refers to it, or when Python exits.

    ``needs`` are the objects that have to live longer: the pointer refers to them until it is given back."""

    def __init__(self, kind: str, pointer: Any, destroy: Callable[[Any], None], needs: tuple[Any, ...]) -> None:
        # Python code may be interrupted at any place, and cffi calls this once, without any.
        ending: Any = functools.partial(destroy)
        ending.needs = needs
        self.pointer = ffi.gc(pointer, ending)
        self._serial = next(_serials)
        owned[self._serial] = os.getpid(), kind, self.pointer
        weakref.finalize(self, _give_back, self._serial).atexit = False

    def close(self) -> None:
        _give_back(self._serial)


def _give_back(serial: int) -> None:
    """What an interrupt leaves here is given back when Python exits."""
    made = owned.get(serial)
    if made is None or made[0] != os.getpid():
        return  # the threads of its engine are not in a process forked off, which would wait for them
    if getattr(callback, "is_running", False):
        # The garbage collector may come here on a scheduler's own thread, which cannot end itself.
        with contextlib.suppress(RuntimeError):  # Python exits
            threading.Thread(target=_give_back, args=(serial,)).start()
        return
    key = object()
    in_use[id(key)] = threading.get_ident(), None
    try:
        if not Exit.has_begun:
            ffi.release(made[2])
            owned.pop(serial, None)
    finally:
        in_use.pop(id(key), None)


def _others_are_within() -> bool:
    alive = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
    return any(thread in alive for thread, _ in list(in_use.values()))


@atexit.register
def _exit() -> None:
    """Ends the threads of the library, which must not call a Python that is gone; the rest goes with the process."""
    Exit.has_begun = True
    end = time.monotonic() + _EXIT_SECONDS
    try:
        while (is_used := _others_are_within()) and time.monotonic() < end:
            time.sleep(0.001)
        for serial in sorted(owned, reverse=True):
            process, kind, pointer = owned[serial]
            if not is_used and process == os.getpid() and kind in ("session", "engine", "scheduler"):
                ffi.release(pointer)
    finally:
        for _, _, pointer in list(owned.values()):
            ffi.gc(pointer, None)


def create(kind: str, *arguments: Any, needs: tuple[Any, ...] = (), verb: str = "create", end: str = "destroy") -> Owned:
    """What gumbel_KIND_create makes."""
    result = ffi.new(f"gumbel_{kind} **")
    destroy = getattr(lib, f"gumbel_{kind}_{end}")
    try:
        check(getattr(lib, f"gumbel_{kind}_{verb}"), *arguments, result)
    except BaseException:
        if result[0]:  # an interrupt, once it was made
            destroy(result[0])
        raise
    return Owned(kind, result[0], destroy, needs)


def written(call: Callable[[Any, Any], Any]) -> str:
    """The text that the library writes through a gumbel_write_callback: call(write, user)."""
    pieces: list[bytes] = []
    user = ffi.new_handle(pieces)
    call(_append, user)
    return b"".join(pieces).decode("utf-8", "replace")


@ffi.callback("gumbel_write_callback")  # type: ignore[untyped-decorator]
def _append(user: Any, text: Any, length: int) -> None:
    ffi.from_handle(user).append(ffi.buffer(text, length)[:])


@ffi.callback("gumbel_log_callback")  # type: ignore[untyped-decorator]
def log(user: Any, level: int, line: Any) -> None:
    """Gives the library's notices to the logger ``gumbel``."""
    is_warning = level == lib.GUMBEL_LOG_WARNING
    logging.getLogger("gumbel").log(logging.WARNING if is_warning else logging.INFO, "%s", text_of(line))
