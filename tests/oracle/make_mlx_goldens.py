#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/export/packed/mlx_*: checkpoints as mlx-lm's convert leaves them, and its answers.

    make_mlx_goldens.py [NAME ...]        all checkpoints, or those named

The weights are those that gumbel export --random-weights SEED draws. Needs mlx[cpu] (or mlx), mlx-lm and numpy.
"""
import json
import pathlib
import sys
import tempfile

import mlx.core as mx
import numpy as np
from mlx_lm.utils import load_model, quantize_model, save_config, save_model

import qwen3_next
from packed_checkpoints import explicit, gemma, next_model, qwen, qwen2, qwen_moe, to_float32, write_golden, write_released

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "packed"
WIDE = dict(hidden_size=64, intermediate_size=64, head_dim=32)
WIDE_QWEN = dict(hidden_size=64, head_dim=32, linear_num_key_heads=2, linear_key_head_dim=32, linear_value_head_dim=32)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, shared_expert_intermediate_size=64)


def mixed(model, **by_ending):
    """A predicate: what mlx-lm has for the model, but for modules whose path ends in one of these names."""
    own = getattr(model, "quant_predicate", None) or (lambda path, module: True)

    def choose(path, module):
        for ending, choice in by_ending.items():
            if path.endswith(ending):
                return choice
        return own(path, module)
    return choose


def scheme(bits, group):
    return dict(bits=bits, group_size=group)


# Unquantized in float32, where 1 + w is what the norm computes with, so that the logits have the same bits as those
# of the released form.
CASES = {
    "mlx_gemma4": (gemma("float32"), None),
    "mlx_qwen_moe": (qwen_moe("float32"), None),
    "mlx_qwen_dense": (qwen("float32", intermediate_size=48, tie_word_embeddings=True), None),
    "mlx_gemma4_int4": (gemma("bfloat16", **WIDE), dict(v_proj=scheme(8, 32), k_proj=scheme(6, 64), up_proj=False)),
    "mlx_qwen_moe_int4": (qwen_moe("bfloat16", **WIDE_QWEN, **EXPERTS),
                          {"switch_mlp.up_proj": scheme(5, 32), "out_proj": scheme(4, 32)}),
    "mlx_qwen_dense_int8": (qwen("float16", intermediate_size=128, tie_word_embeddings=True, **WIDE_QWEN),
                            dict(down_proj=scheme(4, 128))),
    "mlx_qwen_moe_even": (qwen_moe("bfloat16", **WIDE_QWEN, **EXPERTS), {}),
    "mlx_qwen2_int4": (qwen2("bfloat16", tie_word_embeddings=True), dict(q_proj=scheme(8, 32), v_proj=False)),
    "mlx_next": (next_model("float32", mlp_only_layers=[1]), None),
    "mlx_next_int4": (next_model("bfloat16", **WIDE_QWEN, **EXPERTS), dict(in_proj_ba=scheme(8, 32))),
    "mlx_mxfp4": (qwen2("bfloat16", tie_word_embeddings=True), dict(v_proj=scheme(8, 32))),
    "mlx_nvfp4": (qwen_moe("bfloat16", **WIDE_QWEN, **EXPERTS), dict(q_proj=dict(scheme(4, 32), mode="mxfp4"))),
    "mlx_mxfp8": (qwen_moe("bfloat16", **WIDE_QWEN, **EXPERTS), {"mlp.gate": False, "shared_expert_gate": False}),
}


FLOAT_MODES = ("mxfp4", "nvfp4", "mxfp8")

# Where 2000 + the case's number makes two experts of a token so equal that 8-bit inputs choose another one.
SEEDS = {"mlx_qwen_moe_even": 2011}


def convert(config, seed, overrides, out):
    """What mlx-lm's convert does, but for the tokenizer."""
    bits, mode = 8 if "int8" in out.name else 4, next((mode for mode in FLOAT_MODES if mode in out.name), None)
    with tempfile.TemporaryDirectory() as temporary:
        write_released(pathlib.Path(temporary) / "released", config, seed)
        model, loaded = load_model(pathlib.Path(temporary) / "released", lazy=False)
    if overrides is not None:
        size = dict(mode=mode, group_size=None, bits=None) if mode else dict(group_size=64, bits=bits)
        model, loaded = quantize_model(model, loaded, **size, quant_predicate=mixed(model, **overrides))
    save_model(out, model)
    (out / "model.safetensors.index.json").unlink()
    save_config(loaded, out / "config.json")
    return loaded


def dequantized(out):
    """Each packed matrix in float32 by name: mlx's definition on scales and biases widened to float32."""
    weights, config = mx.load(str(out / "model.safetensors")), json.loads((out / "config.json").read_text())
    found = {}
    for name in weights:
        if not name.endswith(".scales"):
            continue
        path = name.removesuffix(".scales")
        own = config["quantization"].get(path, config["quantization"])
        parts = [weights[f"{path}.{part}"] for part in ("weight", "scales", "biases") if f"{path}.{part}" in weights]
        wide = [part.astype(mx.float32) if mx.issubdtype(part.dtype, mx.floating) else part for part in parts]
        about = {key: own[key] for key in ("group_size", "bits", "mode") if key in own}
        values = mx.dequantize(*wide, **about, dtype=mx.float32)
        found[f"{path}.weight"] = np.array(values if about.get("mode") == "mxfp8" else values + 0.0)  # of books 0 is +0
    if "mxfp8" in out.name:
        found = fused(found)
    return qwen3_next.apart(config, found) if config["model_type"] == "qwen3_next" else found


def fused(weights):
    """Experts as a program's constants of floats have them."""
    found = dict(weights)
    for name in [name for name in weights if name.endswith("switch_mlp.down_proj.weight")]:
        prefix = name.removesuffix("switch_mlp.down_proj.weight")
        down, gate, up = (found.pop(f"{prefix}switch_mlp.{part}_proj.weight") for part in ("down", "gate", "up"))
        found[f"{prefix}experts.down_proj"] = down
        found[f"{prefix}experts.gate_up_proj"] = np.concatenate([gate, up], axis=1)
    return found


def main():
    for index, (name, (config, overrides)) in enumerate(CASES.items()):
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        out, seed = OUT / name, SEEDS.get(name, 2000 + index)
        convert(explicit(config), seed, overrides, out)
        model, _ = load_model(out, lazy=False)
        write_golden(out, to_float32(model), seed, dequantized(out))


main()
