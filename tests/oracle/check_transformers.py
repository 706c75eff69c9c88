#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks goldens of make_goldens.py against transformers, in float32 on the CPU.

    check_transformers.py [NAME ...]

The same weights, the same prompt: the last logits must agree within 2e-4 of the largest, greedy tokens must be
equal. Needs torch, transformers and numpy.
"""
import json
import pathlib
import sys

import numpy as np
import torch
from transformers import Gemma4ForCausalLM, Gemma4TextConfig

from random_weights import tensor

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "agreement"


def load(config, seed):
    text = {k: v for k, v in config.get("text_config", config).items() if k not in ("architectures", "model_type")}
    text.pop("torch_dtype", None)
    text["tie_word_embeddings"] = config.get("tie_word_embeddings", True)
    model = Gemma4ForCausalLM._from_config(Gemma4TextConfig(**text), attn_implementation="eager").float().eval()
    dtype = config.get("dtype", config.get("torch_dtype", "bfloat16"))
    prefix = "model.language_model." if "text_config" in config else "model."
    tied = text["tie_word_embeddings"]
    with torch.no_grad():
        for name, value in model.state_dict(keep_vars=True).items():
            if name == "lm_head.weight" and tied:
                continue
            released = prefix + name.removeprefix("model.") if name.startswith("model.") else name
            value.copy_(torch.from_numpy(np.array(tensor(seed, released, tuple(value.shape), dtype))))
    return model


def check(name):
    config = json.loads((DATA / f"{name}.json").read_text())
    golden = json.loads((DATA / f"{name}.golden.json").read_text())
    model = load(config, golden["weights_seed"])
    tokens = list(golden["prompt"])
    greedy = []
    with torch.no_grad():
        first = logits = model(torch.tensor([tokens])).logits[0, -1].numpy()
        for _ in golden["greedy"]:
            greedy.append(int(np.argmax(logits)))
            logits = model(torch.tensor([tokens + greedy])).logits[0, -1].numpy()
    expected = np.array(golden["logits"], np.float32)
    difference = np.abs(first - expected).max() / np.abs(expected).max()
    print(f"{name}: largest difference {difference:.2g} of the largest logit, greedy tokens "
          f"{'equal' if greedy == golden['greedy'] else 'DIFFER'}")
    return difference <= 2e-4 and greedy == golden["greedy"]


def main():
    names = sys.argv[1:] or sorted(p.name.removesuffix(".golden.json") for p in DATA.glob("*.golden.json"))
    sys.exit(0 if all([check(name) for name in names]) else 1)


main()
