"""The bundled models, exported and opened for the tests of a class.

GUMBEL_MODELS is the folder of their checkpoints; GUMBEL_COMMAND the command gumbel, the package's own where it is not set;
GUMBEL_BACKEND the backend that runs them, cpu unless it says otherwise."""

from __future__ import annotations

import os
import pathlib
import tempfile
import unittest
from collections.abc import Iterable
from typing import ClassVar

import gumbel
from gumbel._command import PROGRAM

CHECKPOINTS = pathlib.Path(os.environ.get("GUMBEL_MODELS") or pathlib.Path(__file__).parents[2] / "models")
COMMAND = os.environ.get("GUMBEL_COMMAND") or (str(PROGRAM) if PROGRAM.exists() else None)
BACKEND = os.environ.get("GUMBEL_BACKEND") or "cpu"
NAMES = ("gemma4-tiny", "qwen3_5-moe-tiny")
HELLO = [{"role": "user", "content": "Hello!"}]


class OfModels(unittest.TestCase):
    folder: ClassVar[tempfile.TemporaryDirectory[str]]
    paths: ClassVar[dict[str, str]]
    models: ClassVar[dict[str, gumbel.Model]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.paths = {name: f"{cls.folder.name}/{name}.gumbel" for name in NAMES}
        for name, path in cls.paths.items():
            gumbel.export(CHECKPOINTS / name, path)
        cls.models = {name: gumbel.open(path, threads=2, backend=BACKEND) for name, path in cls.paths.items()}

    @classmethod
    def tearDownClass(cls) -> None:
        for model in cls.models.values():
            model.close()
        cls.folder.cleanup()

    @staticmethod
    def checkpoint(name: str) -> pathlib.Path:
        return CHECKPOINTS / name

    def each(self) -> Iterable[gumbel.Model]:
        return self.models.values()

    @property
    def gemma(self) -> gumbel.Model:
        return self.models["gemma4-tiny"]

    @property
    def qwen(self) -> gumbel.Model:
        return self.models["qwen3_5-moe-tiny"]
