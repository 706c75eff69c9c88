"""Drafts, which change no token."""

from __future__ import annotations

import gc
import unittest
from typing import Any, Literal

import gumbel
from gumbel._library import check, export_library, ffi, owned, struct
from models import BACKEND, CHECKPOINTS, OfModels

SETTINGS: list[dict[str, Any]] = [{"temperature": 0}, {"seed": 7}, {"seed": 3, "temperature": 1.5, "repetition_penalty": 1.2}]
DRAFTS: list[Literal["auto", "lookup", "model"]] = ["auto", "lookup", "model"]


def export_with_head(path: str) -> None:
    """No bundled checkpoint has a head."""
    config = ffi.new("char[]", str(CHECKPOINTS / "qwen3_5-moe-tiny" / "config.json").encode())
    options = struct("export_options", random_weights=True, draft_head=True)
    check(export_library().gumbel_export, config, path.encode(), options)


class TestDrafts(OfModels):
    def compare(self, model: gumbel.Model, prompt: list[int], drafts: list[Literal["auto", "lookup", "model"]]) -> int:
        accepted = 0
        for settings in SETTINGS:
            plain = model.generate(prompt, draft="off", max_new_tokens=60, ignore_stop=True, **settings)
            self.assertEqual((plain.usage.draft_tokens, plain.usage.accepted_tokens), (0, 0))
            for draft in drafts:
                with self.subTest(settings=settings, draft=draft):
                    answer = model.generate(prompt, draft=draft, max_new_tokens=60, ignore_stop=True, **settings)
                    self.assertEqual(answer.tokens, plain.tokens)
                    accepted += answer.usage.accepted_tokens
        return accepted

    def test_lookup(self) -> None:
        for model in self.each():
            prompt = list(model.tokenize("Once upon a time"))
            told = model.generate(prompt, draft="off", temperature=0, max_new_tokens=60, ignore_stop=True).tokens
            self.assertGreater(self.compare(model, [*prompt, *told, *prompt], ["auto", "lookup"]), 0)

    def test_none(self) -> None:
        for options in ({"draft": "off"}, {"draft_max": 0}):
            given: dict[str, Any] = options
            answer = self.gemma.generate("one two one two one two", max_new_tokens=40, seed=1, **given)
            self.assertEqual(answer.usage.draft_tokens, 0)
        with gumbel.open(self.paths["gemma4-tiny"], backend=BACKEND, draft_tokens=0) as model:
            again = model.generate("one two one two one two", max_new_tokens=40, seed=1)
        self.assertEqual((again.tokens, again.usage.draft_tokens), (answer.tokens, 0))

    def test_a_prediction(self) -> None:
        for model in self.each():
            plain = model.generate("Once upon", max_new_tokens=40, seed=2, draft="off")
            answer = model.generate("Once upon", max_new_tokens=40, seed=2, predicted=plain.tokens, draft_max=4)
            self.assertEqual(answer.tokens, plain.tokens)
            self.assertGreater(answer.usage.accepted_tokens, 10)

    def test_another_program(self) -> None:
        for name, plain in self.models.items():
            path = f"{self.folder.name}/{name}-draft.gumbel"
            gumbel.export(CHECKPOINTS / name, path, quantize="int4")
            gc.collect()
            before = len(owned)
            with gumbel.open(self.paths[name], backend=BACKEND, draft_model=path) as model:
                prompt = list(model.tokenize("Once upon a time"))
                self.assertGreater(self.compare(model, prompt, DRAFTS), 0)
                alone = plain.generate(prompt, seed=7, max_new_tokens=20)
                self.assertEqual(model.generate(prompt, seed=7, max_new_tokens=20).tokens, alone.tokens)
            gc.collect()
            self.assertEqual(len(owned), before)

    def test_a_head(self) -> None:
        path = f"{self.folder.name}/head.gumbel"
        export_with_head(path)
        with gumbel.open(path, backend=BACKEND, max_context=256) as model:
            self.compare(model, list(range(5, 40)), DRAFTS)
            answer = model.generate(list(range(5, 40)), seed=1, draft="model", max_new_tokens=20, ignore_stop=True)
            self.assertGreater(answer.usage.draft_tokens, 0)

    def test_errors(self) -> None:
        unknown: Any = "heads"
        with self.assertRaisesRegex(gumbel.ArgumentError, "auto, off, lookup, model"):
            self.gemma.generate("Once", draft=unknown)
        with self.assertRaisesRegex(gumbel.ArgumentError, "draft"):
            self.gemma.generate("Once", draft="model")
        with self.assertRaises(gumbel.FileError):
            gumbel.open(self.paths["gemma4-tiny"], draft_model=f"{self.folder.name}/none.gumbel")
        with self.assertRaises(gumbel.Error):  # of another vocabulary
            gumbel.open(self.paths["gemma4-tiny"], draft_model=self.paths["qwen3_5-moe-tiny"])
        for options in ({"draft_head": True}, {"assistant": self.folder.name}):
            given: dict[str, Any] = options
            with self.assertRaises(gumbel.Error):
                gumbel.export(CHECKPOINTS / "gemma4-tiny", f"{self.folder.name}/none.gumbel", **given)


if __name__ == "__main__":
    unittest.main()
