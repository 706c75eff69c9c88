"""gumbel: language-model programs that sample their own next token.

    import gumbel

    gumbel.export("SmolLM2-135M-Instruct", "smollm2.gumbel")
    with gumbel.open("smollm2.gumbel") as model:
        print(model.chat([{"role": "user", "content": "Why is the sky blue?"}], seed=7))
"""

from gumbel._errors import (
    ArgumentError,
    BackendError,
    CancelledError,
    DeadlineError,
    Error,
    FileError,
    FormatError,
    LimitError,
    NumericError,
    OutOfMemoryError,
    UnsupportedError,
)
from gumbel._library import lib as _lib
from gumbel._library import text_of as _text_of
from gumbel._model import Model, export, open
from gumbel._streams import AsyncStream, Stream
from gumbel._types import (
    Answer,
    ChatOptions,
    Delta,
    Finish,
    GenerateOptions,
    Info,
    Options,
    Piece,
    Reply,
    Result,
    ToolCall,
    Usage,
)

__version__: str = _text_of(_lib.gumbel_version())

__all__ = [
    "Answer",
    "ArgumentError",
    "AsyncStream",
    "BackendError",
    "CancelledError",
    "ChatOptions",
    "DeadlineError",
    "Delta",
    "Error",
    "FileError",
    "Finish",
    "FormatError",
    "GenerateOptions",
    "Info",
    "LimitError",
    "Model",
    "NumericError",
    "Options",
    "OutOfMemoryError",
    "Piece",
    "Reply",
    "Result",
    "Stream",
    "ToolCall",
    "UnsupportedError",
    "Usage",
    "export",
    "open",
]
