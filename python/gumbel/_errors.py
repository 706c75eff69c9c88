"""Errors, one class for each status of the library."""

from __future__ import annotations

import errno
import os
from typing import ClassVar


class Error(Exception):
    """What the library refused or could not do; its text says what to do about it."""

    status: ClassVar[int] = 0
    """The number of the ``gumbel_status``, such as 1 for ARGUMENT."""


class ArgumentError(Error, ValueError):
    """A value given by the caller is out of its range, or the model is closed."""

    status = 1


class FileError(Error, OSError):
    """The system refused a file operation. Where a file is missing it is a FileNotFoundError too, and where it may
    not be used a PermissionError; errno is the system's number, None where the library names none."""

    status = 2

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.errno = _errno_of(message)


class FormatError(Error, ValueError):
    """A file, JSON or a grammar is not what it claims to be."""

    status = 3


class UnsupportedError(Error, NotImplementedError):
    """Valid, but not in this version, build or program."""

    status = 4


class OutOfMemoryError(Error, MemoryError):
    """No memory, of the machine or its device."""

    status = 5


class LimitError(Error):
    """The context, the queue, a buffer or a disk are full."""

    status = 6


class NumericError(Error, ArithmeticError):
    """A row of logits has a NaN, or no finite value."""

    status = 7


class CancelledError(Error):
    """The request was cancelled, or its model was closed meanwhile."""

    status = 8


class BackendError(Error, RuntimeError):
    """A backend's library or device failed."""

    status = 9


class DeadlineError(Error, TimeoutError):
    """The time given by the caller is over."""

    status = 10


class MissingFileError(FileError, FileNotFoundError):
    """A FileError with ENOENT."""


class ForbiddenFileError(FileError, PermissionError):
    """A FileError with EACCES or EPERM."""


def _errno_of(message: str) -> int | None:
    """The library tells the system's words, not its number."""
    return next((code for code in errno.errorcode if message.endswith(f": {os.strerror(code)}")), None)


_BY_STATUS = {kind.status: kind for kind in Error.__subclasses__()}
_BY_ERRNO = {errno.ENOENT: MissingFileError, errno.EACCES: ForbiddenFileError, errno.EPERM: ForbiddenFileError}


def error_of(status: int, message: str) -> Error:
    """The exception for a status of the library."""
    kind = _BY_STATUS.get(status, Error)
    if kind is FileError:
        kind = _BY_ERRNO.get(_errno_of(message) or 0, FileError)
    return kind(message)
