"""The shared libraries, and what every call of them needs: errors, structures, texts, owned pointers."""

from __future__ import annotations

import functools
import json
import logging
import os
import pathlib
import sys
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

    def tokens(self, tokens: Iterable[int], what: str) -> Any:
        try:
            return self.keep(ffi.new("int32_t[]", list(tokens)))
        except OverflowError:
            raise ArgumentError(f"{what} has a number that is no token id") from None

    def struct(self, kind: str, /, **fields: Any) -> Any:
        return self.keep(struct(kind, **fields))

    def path(self, path: str | os.PathLike[str]) -> Any:
        name = os.fsencode(path)
        if b"\0" in name:
            raise ArgumentError("a path has a zero character")
        return self.keep(ffi.new("char[]", name))


class Owned:
    """A pointer of the library, given back by close(), when nobody refers to it, or when Python exits.

    ``needs`` are the objects that have to live longer: the finalizer refers to them."""

    def __init__(self, pointer: Any, destroy: Callable[[Any], None], *needs: Any) -> None:
        self.pointer = pointer
        self.close = weakref.finalize(self, Owned._destroy, pointer, destroy, needs)

    @staticmethod
    def _destroy(pointer: Any, destroy: Callable[[Any], None], needs: tuple[Any, ...]) -> None:
        destroy(pointer)


def create(kind: str, *arguments: Any, needs: tuple[Any, ...] = (), verb: str = "create", end: str = "destroy") -> Owned:
    """What gumbel_KIND_create makes."""
    result = ffi.new(f"gumbel_{kind} **")
    check(getattr(lib, f"gumbel_{kind}_{verb}"), *arguments, result)
    return Owned(result[0], getattr(lib, f"gumbel_{kind}_{end}"), *needs)


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
