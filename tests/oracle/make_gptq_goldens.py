#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/export/packed/gptq_* and awq_*: checkpoints in the layouts of GPTQ and AWQ, and mlx-lm's answers.

    make_gptq_goldens.py [NAME ...]        all checkpoints, or those named

Weights are rounded to the nearest code, which is enough for comparing numbers; the layouts are written from their
published definitions (check_gptq_layouts.py compares them with AutoRound's own). Needs mlx[cpu] (or mlx), mlx-lm and numpy.
"""
import json
import pathlib
import shutil
import sys

import mlx.core as mx
import numpy as np

from packed_checkpoints import explicit, gemma, qwen2, qwen_moe, write_golden
from reference import draw, dtype_of, family_of

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "packed"
WIDE = dict(hidden_size=64, intermediate_size=64, head_dim=32)
WIDE_QWEN = dict(hidden_size=64, head_dim=32, linear_num_key_heads=2, linear_key_head_dim=32, linear_value_head_dim=32)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, shared_expert_intermediate_size=64)
FLOATS = ("embed_tokens", "lm_head", "mlp.gate.", "shared_expert_gate", "linear_attn")
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


class Scheme:
    def __init__(self, layout, bits, group, is_symmetric, less_one=False):
        self.layout, self.bits, self.group, self.is_symmetric, self.less_one = layout, bits, group, is_symmetric, less_one

    def codes(self, weight, dtype):
        """Codes [rows, columns], zero points and scales [rows, groups]: integers, integers and float32 of dtype."""
        group, most = self.group or weight.shape[1], 2 ** self.bits - 1
        grouped = weight.reshape(weight.shape[0], -1, group)
        low, high = np.minimum(grouped.min(-1), 0), np.maximum(grouped.max(-1), 0)
        if self.is_symmetric:
            high = np.maximum(high, -low)
            low = -high
        scales = np.array(mx.array((high - low) / most).astype(getattr(mx, dtype)).astype(mx.float32))
        zeros = np.full_like(scales, 2 ** (self.bits - 1)) if self.is_symmetric else np.round(-low / scales)
        zeros = np.clip(zeros, 1 if self.less_one else 0, most)
        codes = np.clip(np.round(grouped / scales[..., None] + zeros[..., None]), 0, most)
        codes, zeros = codes.astype(np.uint32), zeros.astype(np.uint32)  # so that there is no -0
        values = (codes.astype(np.float32) - zeros[..., None].astype(np.float32)) * scales[..., None]
        return codes.reshape(weight.shape), zeros, scales, values.reshape(weight.shape)


def words(codes, bits, order=None):
    """[n, m] as 32-bit words along the last dim."""
    count = 32 // bits
    groups = codes.reshape(codes.shape[0], -1, count)
    groups = groups[:, :, order] if order else groups
    shifts = (np.arange(count, dtype=np.uint32) * bits).reshape(1, 1, -1)
    return np.bitwise_or.reduce(groups << shifts, axis=-1).astype(np.uint32).view(np.int32)


def pack(scheme, weight, dtype):
    """The tensors of one matrix by the ends of their names, and the matrix dequantized."""
    codes, zeros, scales, values = scheme.codes(weight, dtype)
    parts = dict(scales=mx.array(scales.T).astype(getattr(mx, dtype)))
    if scheme.layout == "awq":
        parts.update(qweight=words(codes.T, 4, AWQ_ORDER), qzeros=words(zeros.T, 4, AWQ_ORDER))
    else:
        parts.update(qweight=np.ascontiguousarray(words(codes, scheme.bits).T),
                     qzeros=words(zeros.T - np.uint32(scheme.less_one), scheme.bits),
                     g_idx=np.arange(weight.shape[1], dtype=np.int32) // (scheme.group or weight.shape[1]))
    return {name: mx.array(np.ascontiguousarray(part)) if isinstance(part, np.ndarray) else part
            for name, part in parts.items()}, values


def released(config, seed):
    """The drawn weights. Matrices get rows off the center, so that zero points differ."""
    weights = {}
    for name, value in draw(config, seed).items():
        weights[name] = np.array(value, np.float32)
        if value.ndim == 2:
            rows = np.arange(value.shape[0]).reshape(-1, 1)
            weights[name] += ((rows % 9 - 4) * float(np.abs(value).max()) / 5).astype(np.float32)
    return weights


def single_experts(weights):
    """Stacked experts as matrices of their own."""
    found = {}
    for key, value in weights.items():
        stem, _, last = key.rpartition(".")
        if last == "down_proj":
            found.update({f"{stem}.{i}.down_proj.weight": matrix for i, matrix in enumerate(value)})
        elif last == "gate_up_proj":
            for part, half in zip(("gate_proj", "up_proj"), np.split(value, 2, axis=1)):
                found.update({f"{stem}.{i}.{part}.weight": matrix for i, matrix in enumerate(half)})
        else:
            found[key] = value
    return found


def stacked(dequantized):
    """The golden's name and shape of experts that stand one by one."""
    found, stacks = {}, {}
    for key, value in dequantized.items():
        prefix, point, rest = key.partition(".experts.")
        if point:
            stacks.setdefault(f"{prefix}.switch_mlp.{rest.partition('.')[2]}", []).append(value)
        else:
            found[key] = value
    return {**found, **{key: np.stack(matrices) for key, matrices in stacks.items()}}


def make(out, seed, config, about, scheme, others=(), empty_biases=()):
    """others: schemes of the matrices whose name has a part; empty_biases: modules that get one, as AutoGPTQ has it."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    dtype, tensors, dequantized, dense = dtype_of(config), {}, {}, {}
    for key, value in single_experts(released(config, seed)).items():
        module = key.removesuffix(".weight")
        if value.ndim != 2 or any(part in key for part in FLOATS):
            tensors[key] = mx.array(value).astype(getattr(mx, dtype))
            dense[key] = np.array(tensors[key].astype(mx.float32))
            continue
        own = next((choice for part, choice in dict(others).items() if part in key), scheme)
        parts, dequantized[key] = pack(own, value, dtype)
        tensors.update({f"{module}.{part}": tensor for part, tensor in parts.items()})
        if module.endswith(empty_biases or "-"):
            tensors[module + ".bias"] = mx.zeros(value.shape[0], getattr(mx, dtype))
    mx.save_safetensors(str(out / "model.safetensors"), tensors, metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(dict(config, quantization_config=about), indent=1) + "\n")
    dequantized = stacked(dequantized)
    family = family_of(config)
    model = family.build(config)
    family.adopt(model, config, {**dense, **dequantized})
    model.eval()
    write_golden(out, model, seed, dequantized)


def gptq(**keys):
    return dict(dict(quant_method="gptq", bits=4, group_size=32, desc_act=False, sym=True, lm_head=False), **keys)


def auto_round(packing, **keys):
    return dict(dict(quant_method="auto-round", bits=4, group_size=32, sym=False, data_type="int", autoround_version="0.16.1",
                     block_name_to_quantize="model.layers", packing_format=packing), **keys)


def awq(**keys):
    return dict(dict(quant_method="awq", bits=4, group_size=32, zero_point=True, version="gemm",
                     modules_to_not_convert=None), **keys)


QWEN2 = dict(tie_word_embeddings=True)
CASES = {
    "gptq_qwen2": (qwen2("float16", **QWEN2), gptq(dynamic={"+:.*v_proj": dict(bits=8)}), Scheme("gptq", 4, 32, True, True),
                   {"v_proj": Scheme("gptq", 8, 64, True, True), "up_proj": Scheme("gptq", 4, 64, True, True)},
                   ("o_proj", "mlp.down_proj")),
    "gptq_gemma4": (gemma("float16", **WIDE), gptq(checkpoint_format="gptq_v2", sym=False, group_size=-1),
                    Scheme("gptq", 4, None, False), {"q_proj": Scheme("gptq", 8, None, True),
                                                     "k_proj": Scheme("gptq", 4, 32, False)}),
    "gptq_qwen_moe": (explicit(qwen_moe("bfloat16", **WIDE_QWEN, **EXPERTS)), auto_round("auto_round:auto_gptq"),
                      Scheme("gptq", 4, 32, False, True)),
    "awq_qwen2": (qwen2("float16", intermediate_size=128), awq(), Scheme("awq", 4, 32, False),
                  {"down_proj": Scheme("awq", 4, 128, False)}),
    "awq_qwen_moe": (explicit(qwen_moe("float16", **WIDE_QWEN, **EXPERTS)), auto_round("auto_round:auto_awq", sym=True),
                     Scheme("awq", 4, 32, True)),
}


def main():
    for index, (name, case) in enumerate(CASES.items()):
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            make(OUT / name, 4000 + index, *case)


if __name__ == "__main__":
    main()
