#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/export/packed/fp8_*: checkpoints of 8-bit floats as they are released, and mlx-lm's answers.

    make_fp8_goldens.py [NAME ...]        all checkpoints, or those named

The weights are those that gumbel export --random-weights SEED draws, rounded to E4M3 by MLX with scales of blocks, rows
or whole matrices. What they stand for is code times scale in float32, rounded to bfloat16, as transformers and mlx-lm
have it. Needs mlx[cpu] (or mlx), mlx-lm and numpy.
"""
import json
import pathlib
import shutil
import struct
import sys

import mlx.core as mx
import numpy as np

import qwen3_next
from packed_checkpoints import VOCABULARY, next_model, qwen_moe, to_float32, write_golden
from reference import draw, family_of

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "packed"
LARGEST = 448.0
ENDINGS = ("_proj.weight", "in_proj_qkvz.weight")  # as released: not the embedding, head, routers and in_proj_ba
NAMES = {mx.float32: "F32", mx.bfloat16: "BF16", mx.float16: "F16", mx.uint8: "F8_E4M3"}


def dense(**keys):
    return dict(dict(model_type="qwen3", dtype="bfloat16", vocab_size=VOCABULARY, hidden_size=160, intermediate_size=224,
                     num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, head_dim=32,
                     max_position_embeddings=256, tie_word_embeddings=True), **keys)


def blocks(rows, columns):
    return dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic", weight_block_size=[rows, columns],
                modules_to_not_convert=["lm_head"])


MODELOPT = dict(quant_method="modelopt", quant_algo="FP8", ignore=["lm_head"], producer=dict(name="modelopt"),
                kv_cache_scheme=dict(dynamic=False, num_bits=8, type="float"))
MODELOPT_BLOCKS = dict(quant_method="modelopt", quant_algo="fp8_pb_wo", ignore=["lm_head"],
                       producer=dict(name="modelopt"))
AUTO_FP8 = dict(quant_method="fp8", activation_scheme="static", ignored_layers=["lm_head"], kv_cache_scheme="static")
STATIC = (MODELOPT, AUTO_FP8)


def compressed(strategy):
    weights = dict(num_bits=8, type="float", strategy=strategy, symmetric=True, dynamic=False)
    inputs = dict(num_bits=8, type="float", strategy="token", symmetric=True, dynamic=True)
    return dict(quant_method="compressed-tensors", format="float-quantized", ignore=["lm_head"], kv_cache_scheme=None,
                config_groups=dict(group_0=dict(targets=["Linear"], weights=weights, input_activations=inputs,
                                                output_activations=None)))


EXPERTS = qwen_moe("bfloat16", hidden_size=64, moe_intermediate_size=96, num_experts=3)

# Name: the model, how it is quantized, a scale's rows and columns (None: all), the scales' dtype.
CASES = {
    "fp8_blocks": (dense(), blocks(128, 128), (128, 128), mx.float32),
    "fp8_next": (next_model("bfloat16", hidden_size=64, head_dim=32, linear_num_key_heads=2, linear_key_head_dim=24,
                            num_experts=3, moe_intermediate_size=32, shared_expert_intermediate_size=32),
                 blocks(24, 40), (24, 40), mx.bfloat16),
    "fp8_channel": (dense(hidden_size=96, intermediate_size=64), compressed("channel"), (1, None), mx.bfloat16),
    "fp8_tensor": (dense(hidden_size=96, intermediate_size=64), compressed("tensor"), (None, None), mx.float32),
    "fp8_modelopt": (dense(hidden_size=96, intermediate_size=64), MODELOPT, (None, None), mx.float32),
    "fp8_stack": (EXPERTS, blocks(24, 40), (24, 40), mx.bfloat16),  # experts in one tensor, as transformers saves them
    "fp8_halves": (EXPERTS, blocks(128, 128), (128, 128), mx.float32),
    "fp8_modelopt_blocks": (dense(intermediate_size=64), MODELOPT_BLOCKS, (128, 128), mx.float32),
    "fp8_auto": (dense(hidden_size=96, intermediate_size=64), AUTO_FP8, (None, None), mx.float32),
}


def spread(scales, block, shape):
    """A scale for each weight, of blocks that may be cut off at the edges."""
    rows, columns = (np.arange(size) // length for size, length in zip(shape, block))
    return scales[rows][:, columns]


def convert(weight, block, dtype):
    """Codes, scales and the numbers that they stand for."""
    block = [length or size for length, size in zip(block, weight.shape)]
    padded = np.pad(np.abs(weight), [(0, -size % length) for size, length in zip(weight.shape, block)])
    grid = padded.reshape(padded.shape[0] // block[0], block[0], padded.shape[1] // block[1], block[1])
    scales = mx.array(grid.max(axis=(1, 3)) / LARGEST).astype(dtype)
    wide = spread(np.array(scales.astype(mx.float32)), block, weight.shape)
    codes = mx.to_fp8(mx.array(weight / wide))
    values = mx.from_fp8(codes, mx.float32) * mx.array(wide)
    return codes, scales, values.astype(mx.bfloat16)


def convert_stack(name, weights, block, dtype):
    """The same of a matrix for each expert. Gate and up have a scale each where one block could hold both."""
    rows = weights.shape[1]
    if name.endswith("gate_up_proj") and rows % block[0]:
        block = rows // 2, block[1]
    return (mx.stack(parts) for parts in zip(*(convert(weight, block, dtype) for weight in weights)))


def write_safetensors(path, tensors):
    """MLX writes no tensors of F8_E4M3, which it reads as bytes."""
    header, data = {}, b""
    for name, value in tensors.items():
        raw = np.array(value if value.dtype != mx.bfloat16 else value.view(mx.uint16)).tobytes()
        header[name] = dict(dtype=NAMES[value.dtype], shape=list(value.shape), data_offsets=[len(data), len(data) + len(raw)])
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def as_constants(config, weights):
    """The weights as a program's constants have them."""
    if config["model_type"] != "qwen3_next":
        return weights
    weights, count = qwen3_next.apart(config, weights), config["num_experts"]
    for name in [name for name in weights if name.endswith("experts.0.up_proj.weight")]:
        prefix = name.removesuffix("0.up_proj.weight")
        gate, up, down = (np.stack([weights.pop(f"{prefix}{i}.{part}_proj.weight") for i in range(count)])
                          for part in ("gate", "up", "down"))
        weights[f"{prefix}gate_up_proj"], weights[f"{prefix}down_proj"] = np.concatenate([gate, up], axis=1), down
    return weights


def shape_scales(scales, quantization, block):
    """As the method's writers have it: modelopt keeps a 1 for each dimension of a block."""
    if quantization is MODELOPT_BLOCKS:
        return scales.reshape(scales.shape[0], 1, scales.shape[1], 1)
    if block == (None, None):
        return scales.reshape(() if quantization in STATIC else (1,))
    return scales


def static_scales(name, quantization):
    """What static methods store of the inputs and caches of a product."""
    module = name.removesuffix("weight")
    names = ["input_scale"] if quantization in STATIC else []
    for part in "kv":
        if names and name.endswith(f"{part}_proj.weight"):
            names.append(f"{part}_scale" if quantization is MODELOPT else "output_scale")
    return {module + name: mx.array(1.0) for name in names}


def make(out, seed, config, quantization, block, scale_dtype):
    suffix = "_scale_inv" if quantization["quant_method"] == "fp8" and quantization is not AUTO_FP8 else "_scale"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    stored, meant = {}, {}
    for name, value in draw(config, seed).items():
        if value.ndim == 2 and name.endswith(ENDINGS):
            stored[name], stored[name + suffix], meant[name] = convert(value, block, scale_dtype)
        elif value.ndim == 3 and name.endswith("_proj"):
            stored[name], stored[name + suffix], meant[name] = convert_stack(name, value, block, scale_dtype)
        else:
            stored[name] = meant[name] = mx.array(value).astype(mx.bfloat16)
        if name + suffix in stored:
            stored[name + suffix] = shape_scales(stored[name + suffix], quantization, block)
            stored.update(static_scales(name, quantization))
    write_safetensors(out / "model.safetensors", stored)
    (out / "config.json").write_text(json.dumps(dict(config, quantization_config=quantization)))
    family = family_of(config)
    model = family.build(config)
    wide = {name: np.array(value.astype(mx.float32)) for name, value in meant.items()}
    family.adopt(model, config, wide)
    constants = as_constants(config, {name: value for name, value in wide.items()
                                      if value.ndim == 2 or name.endswith("_proj")})
    write_golden(out, to_float32(model), seed, constants)


def main():
    for index, (name, case) in enumerate(CASES.items()):
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            make(OUT / name, 3000 + index, *case)


main()
