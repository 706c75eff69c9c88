#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/run/penalties.golden.json: what mlx-lm answers under each sampling setting.

    make_penalty_goldens.py

For configurations of make_goldens.py with their random weights, and for the bundled models: prompts, settings, and
the tokens that follow. Penalties are those of reference.py. Needs mlx[cpu] (or mlx), mlx-lm and numpy.
"""
import json
import pathlib

from reference import generate, load, load_checkpoint

TESTS = pathlib.Path(__file__).resolve().parent.parent
AGREEMENT = TESTS / "data" / "export" / "agreement"
MODELS = TESTS.parent / "models"
NEW_TOKENS = 64
SETTINGS = [
    dict(temperature=0.0),
    dict(temperature=1.0, seed=11),
    dict(temperature=0.8, seed=12, top_k=40, top_p=0.95),
    dict(temperature=0.0, repetition_penalty=1.3),
    dict(temperature=0.0, presence_penalty=1.5, frequency_penalty=0.25),
    dict(temperature=0.9, seed=7, min_p=0.08),
    dict(temperature=0.8, seed=2**33 + 5, min_p=0.02, top_k=30, top_p=0.97, repetition_penalty=1.15,
         frequency_penalty=-0.3, presence_penalty=0.7),
]
MODEL_PROMPTS = {
    "gemma4-tiny": [2, 508, 487, 612, 416, 371, 694, 525, 411, 371, 578],
    "qwen3_5-moe-tiny": [508, 487, 612, 416, 371, 694, 525, 411, 371, 578],
}


def answers(model, prompt):
    return [dict(settings=settings, tokens=generate(model, prompt, NEW_TOKENS, **settings)[1]) for settings in SETTINGS]


def main():
    cases = []
    for name in ("defaults", "odd_sizes", "qwen_released"):
        golden = json.loads((AGREEMENT / f"{name}.golden.json").read_text())
        model = load(json.loads((AGREEMENT / f"{name}.json").read_text()), golden["weights_seed"])
        cases.append(dict(config=name, weights_seed=golden["weights_seed"], prompt=golden["prompt"],
                          answers=answers(model, golden["prompt"])))
    for name, prompt in MODEL_PROMPTS.items():
        cases.append(dict(model=name, prompt=prompt, answers=answers(load_checkpoint(MODELS / name), prompt)))
    lines = ",\n".join(json.dumps(case) for case in cases)
    (TESTS / "data" / "run" / "penalties.golden.json").write_text(f"[{lines}]\n")


main()
