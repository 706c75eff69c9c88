"""Writes gumbel.h as a module that cffi loads without a compiler:  make_header.py gumbel.h _header.py"""

import pathlib
import re
import sys

import cffi


def declarations(header: str) -> str:
    """The header without what only a preprocessor understands."""
    header = re.sub(r"#ifdef __cplusplus.*?#endif", "", header, flags=re.DOTALL)
    header = re.sub(r"^#.*$", "", header, flags=re.MULTILINE)
    return header.replace("GUMBEL_API ", "")


def main() -> None:
    header, module = map(pathlib.Path, sys.argv[1:])
    ffi = cffi.FFI()
    ffi.cdef(declarations(header.read_text(encoding="utf-8")))
    ffi.set_source("gumbel._header", None)
    ffi.emit_python_code(str(module))


main()
