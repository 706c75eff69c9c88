#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/export/packed/nvfp4_*: checkpoints of 4-bit floats as modelopt and compressed-tensors have them.

    make_nvfp4_goldens.py [NAME ...]        all checkpoints, or those named

A weight is its code (E2M1) times its group's scale (E4M3) with the matrix's own scale, in float32 and rounded to bfloat16.
Needs mlx[cpu] (or mlx), mlx-lm and numpy.
"""
import json
import pathlib
import shutil
import struct
import sys

import mlx.core as mx
import numpy as np

from packed_checkpoints import explicit, qwen2, qwen_moe, to_float32, write_golden
from make_gptq_goldens import EXPERTS, FLOATS, WIDE_QWEN, single_experts, stacked
from reference import draw, family_of

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "packed"
GROUP = 16
NUMBERS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
NUMBERS = np.concatenate([NUMBERS, -NUMBERS])


def convert(weight, is_divisor):
    """Codes, two a byte, scales in E4M3, the scale of those, and the numbers that they stand for."""
    grouped = weight.reshape(weight.shape[0], -1, GROUP)
    wanted = np.abs(grouped).max(-1) / 6
    factor = np.float32(wanted.max() / 448)
    scales = mx.to_fp8(mx.array(wanted / factor))
    wide = np.array(mx.from_fp8(scales, mx.float32))
    stored = np.float32(1) / factor if is_divisor else factor
    wide = wide / stored if is_divisor else wide * stored
    codes = np.abs(grouped[..., None] / wide[..., None, None] - NUMBERS).argmin(-1).reshape(weight.shape).astype(np.uint8)
    values = NUMBERS[codes].reshape(grouped.shape) * wide[..., None]
    return (codes[:, ::2] | codes[:, 1::2] << 4, np.array(scales), np.array([stored]),
            mx.array(values.reshape(weight.shape)).astype(mx.bfloat16))


def write_safetensors(path, tensors):
    """tensors: dtype as the file spells it, and an array."""
    header, data = {}, b""
    for name, (dtype, value) in tensors.items():
        raw = np.ascontiguousarray(value).tobytes()
        header[name] = dict(dtype=dtype, shape=list(value.shape), data_offsets=[len(data), len(data) + len(raw)])
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


MODELOPT = dict(quant_method="modelopt", quant_algo="NVFP4", ignore=["lm_head"], producer=dict(name="modelopt"))
FOUR_BITS = dict(num_bits=4, type="float", strategy="tensor_group", group_size=16, symmetric=True)
COMPRESSED = dict(
    quant_method="compressed-tensors", format="nvfp4-pack-quantized", ignore=["lm_head"], kv_cache_scheme=None,
    config_groups=dict(group_0=dict(targets=["Linear"], weights=FOUR_BITS, output_activations=None,
                                    input_activations=dict(FOUR_BITS, dynamic="local"), format="nvfp4-pack-quantized")))
# Ends of the names: codes, scales, their own scale and that of inputs.
ENDINGS = {"modelopt": ("weight", "weight_scale", "weight_scale_2", "input_scale"),
           "compressed-tensors": ("weight_packed", "weight_scale", "weight_global_scale", "input_global_scale")}
CASES = {
    "nvfp4_modelopt": (qwen2("bfloat16", tie_word_embeddings=True), MODELOPT),
    "nvfp4_compressed": (explicit(qwen_moe("bfloat16", **WIDE_QWEN, **EXPERTS)), COMPRESSED),
}


def fused(meant):
    """The program's constants of experts."""
    found = {}
    for name, value in stacked(meant).items():
        stem, point, part = name.partition(".switch_mlp.")
        if not point:
            found[name] = value
        elif part == "down_proj.weight":
            found[f"{stem}.experts.down_proj"] = value
        elif part == "gate_proj.weight":
            ups = stacked(meant)[f"{stem}.switch_mlp.up_proj.weight"]
            found[f"{stem}.experts.gate_up_proj"] = np.concatenate([value, ups], axis=1)
    return found


def make(out, seed, config, about):
    method = about["quant_method"]
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    stored, meant = {}, {}
    for name, value in single_experts(draw(config, seed)).items():
        if value.ndim == 2 and not any(part in name for part in FLOATS):
            codes, scales, own, meant[name] = convert(np.array(value, np.float32), method != "modelopt")
            module = name.removesuffix("weight")
            parts = [("U8", codes), ("F8_E4M3", scales), ("F32", own), ("F32", np.ones(1, np.float32))]
            stored.update({module + ending: part for ending, part in zip(ENDINGS[method], parts)})
        else:
            meant[name] = mx.array(value).astype(mx.bfloat16)
            stored[name] = "BF16", np.array(meant[name].view(mx.uint16))
    write_safetensors(out / "model.safetensors", stored)
    (out / "config.json").write_text(json.dumps(dict(config, quantization_config=about)) + "\n")
    wide = {name: np.array(value.astype(mx.float32)) for name, value in meant.items()}
    family = family_of(config)
    model = family.build(config)
    family.adopt(model, config, stacked(wide))
    constants = {name: value for name, value in fused(wide).items() if value.ndim >= 2 and "conv1d" not in name}
    write_golden(out, to_float32(model), seed, constants)


def main():
    for index, (name, case) in enumerate(CASES.items()):
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            make(OUT / name, 5000 + index, *case)


main()
