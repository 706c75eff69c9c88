#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks goldens of make_goldens.py against transformers, in float32 on the CPU.

    check_transformers.py [NAME ...]

The same weights, the same prompt: the last logits must agree within 2e-4 of the largest, greedy tokens must be
equal. Needs torch and transformers besides what make_goldens.py needs.
"""
import json
import pathlib
import sys

import numpy as np
import torch
import transformers

from reference import draw, family_of

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "agreement"


NAMES = dict(gemma3="Gemma3", gemma4="Gemma4", qwen3_5="Qwen3_5", qwen3_5_moe="Qwen3_5Moe", smollm3="SmolLM3",
             granite="Granite", granitemoehybrid="GraniteMoeHybrid", phi3="Phi3", qwen2="Qwen2",
             mistral3="Ministral3", ministral3="Ministral3", olmo2="Olmo2", olmo3="Olmo3")

RELEASED = {"experts.gate_up_proj": "input_linear.weight", "experts.down_proj": "output_linear.weight",
            "router.weight": "router.layer.weight"}  # of Granite 4's experts


def released_name(name):
    base, separator, rest = name.partition("block_sparse_moe.")
    return base + separator + RELEASED[rest] if separator else name


def load(config, seed):
    ignored = ("architectures", "model_type", "dtype", "torch_dtype")
    text = {"pad_token_id": None} | {k: v for k, v in config.get("text_config", config).items() if k not in ignored}
    text["tie_word_embeddings"] = family_of(config).explicit(config)["tie_word_embeddings"]
    name = NAMES[config["model_type"].removesuffix("_text")]
    kind = name + "TextConfig" if hasattr(transformers, name + "TextConfig") else name + "Config"
    text_config = getattr(transformers, kind)(**text)
    model = getattr(transformers, name + "ForCausalLM")._from_config(text_config, attn_implementation="eager")
    model = model.float().eval()
    model.config.use_cache = False  # which models of Mamba layers alone cannot have
    prefix = "model.language_model." if "text_config" in config else "model."
    weights = draw(config, seed)
    with torch.no_grad():
        for name, value in model.state_dict(keep_vars=True).items():
            if name == "lm_head.weight" and text["tie_word_embeddings"]:
                continue
            released = prefix + name.removeprefix("model.") if name.startswith("model.") else name
            value.copy_(torch.from_numpy(weights.pop(released_name(released))))
    assert not weights, f"not in the model: {sorted(weights)}"
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
