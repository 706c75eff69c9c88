#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/export/packed/torchao_* and compressed_*: checkpoints with weights that these packages have
quantized, and the answers of mlx-lm's models for the dequantized weights.

    make_torch_goldens.py [NAME ...]        all checkpoints, or those named

Needs torch, torchao, compressed-tensors, safetensors, mlx[cpu] (or mlx), mlx-lm and numpy.
"""
import json
import pathlib
import shutil
import sys

import numpy as np
import torch
from compressed_tensors.compressors.pack_quantized import PackedQuantizationCompressor, unpack_from_int32
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import save_file
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
from torchao.quantization import Int4Tensor, IntxUnpackedToInt8Tensor
from torchao.quantization.quant_primitives import MappingType, choose_qparams_affine, quantize_affine

from packed_checkpoints import explicit, gemma, qwen, qwen_moe, write_golden
from reference import draw, family_of

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "packed"
WIDE = dict(hidden_size=64, intermediate_size=64, head_dim=32)
WIDE_QWEN = dict(hidden_size=64, head_dim=32, linear_num_key_heads=2, linear_key_head_dim=32, linear_value_head_dim=32)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, shared_expert_intermediate_size=64)


def released(config, seed):
    """The drawn weights in float32. Matrices get rows off the center, so that zero points differ."""
    weights = {}
    for name, value in draw(config, seed).items():
        weights[name] = torch.from_numpy(np.array(value, np.float32))
        if value.ndim == 2:
            rows = torch.arange(value.shape[0]).reshape(-1, 1)
            weights[name] += (rows % 9 - 4) * float(np.abs(value).max()) / 5
    return weights


def write(name, config, seed, tensors, metadata, dense, dequantized):
    """dense and dequantized: float32 weights by their names in the checkpoint."""
    out = OUT / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    save_file({key: value.contiguous() for key, value in tensors.items()}, out / "model.safetensors", metadata)
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    weights = {key: value.numpy() for key, value in {**dense, **dequantized}.items()}
    has_head = "lm_head.weight" in weights
    untied = dict(config, tie_word_embeddings=not has_head)
    family = family_of(untied)
    model = family.build(untied)
    prefix = "model.language_model."
    family.adopt(model, untied, {key if key.startswith(("model.", "lm_head.")) else prefix + key: value
                                 for key, value in weights.items()})
    model.eval()
    write_golden(out, model, seed, {key: value.numpy() for key, value in dequantized.items()})


# ---- torchao, in the manner of ExecuTorch's quantize_and_save --------------------------------------------------------


def torchao_int4(weight, group, is_symmetric):
    low, high = (-8, 7) if is_symmetric else (0, 15)
    kind = MappingType.SYMMETRIC if is_symmetric else MappingType.ASYMMETRIC
    scale, zero = choose_qparams_affine(weight, kind, (1, group), torch.int8, low, high, scale_dtype=torch.bfloat16,
                                        zero_point_dtype=torch.bfloat16)
    codes = quantize_affine(weight, (1, group), scale, zero, torch.int8, low, high) - low
    zero = torch.full_like(scale, 8.0) if is_symmetric else zero
    codes = codes.to(torch.uint8)
    packed = codes[:, ::2] | codes[:, 1::2] << 4
    wide = [x.float().repeat_interleave(group, dim=-1) for x in (scale, zero)]
    tensor = Int4Tensor(qdata=packed, scale=scale.t().contiguous(), zero_point=zero.t().contiguous(),
                        block_size=[1, group], shape=weight.shape)
    return tensor, (codes.float() - wide[1]) * wide[0]


def torchao_int8(weight, group):
    scale, zero = choose_qparams_affine(weight, MappingType.SYMMETRIC, (1, group), torch.int8, -128, 127,
                                        scale_dtype=torch.bfloat16, zero_point_dtype=torch.int8)
    codes = quantize_affine(weight, (1, group), scale, zero, torch.int8, -128, 127)
    scale, zero = (x.reshape(weight.shape[0], -1) for x in (scale, zero))
    tensor = IntxUnpackedToInt8Tensor(qdata=codes, scale=scale, zero_point=zero, target_dtype=torch.int8,
                                      block_size=(1, group), dtype=torch.bfloat16, activation_quantization=None)
    wide = [x.float().repeat_interleave(group, dim=-1) for x in (scale, zero)]
    return tensor, (codes.float() - wide[1]) * wide[0]


def torchao_case(name, config, seed, is_symmetric, int8_names):
    weights = {key.removeprefix("model.language_model."): value for key, value in released(config, seed).items()}
    weights["lm_head.weight"] = weights["embed_tokens.weight"].clone()
    state, dequantized, dense = {}, {}, {}
    for key, value in weights.items():
        if value.ndim != 2:
            state[key] = value.to(torch.bfloat16)
            dense[key] = state[key].float()
        elif key == "embed_tokens.weight":
            state[key], dequantized[key] = torchao_int8(value, value.shape[1])
        elif key.endswith(int8_names):
            state[key], dequantized[key] = torchao_int8(value, 32)
        else:
            state[key], dequantized[key] = torchao_int4(value, 32, is_symmetric)
    tensors, metadata = flatten_tensor_state_dict(state)
    write(name, config, seed, tensors, metadata, dense, dequantized)


# ---- compressed-tensors ----------------------------------------------------------------------------------------------


def compress(weight, arguments, dtype):
    """The tensors of one matrix by the ends of their names, and the matrix dequantized."""
    group = arguments.group_size or weight.shape[1]
    grouped = weight.reshape(weight.shape[0], -1, group)
    scale, zero = calculate_qparams(grouped.amin(-1), grouped.amax(-1), arguments)
    scale = scale.to(dtype)
    scheme = QuantizationScheme(targets=["Linear"], weights=arguments)
    state = dict(weight=weight.to(dtype), weight_scale=scale, weight_zero_point=zero.to(torch.int8))
    packed = PackedQuantizationCompressor.compress(state, scheme)
    codes = unpack_from_int32(packed["weight_packed"], arguments.num_bits, weight.shape).float()
    wide = [x.float().repeat_interleave(group, dim=-1) for x in (scale, zero)]
    return packed, (codes - wide[1]) * wide[0]


def single_experts(weights):
    """Stacked experts as matrices of their own, as llm-compressor leaves them."""
    found = {}
    for key, value in weights.items():
        if key.endswith("experts.down_proj"):
            found.update({f"{key.removesuffix('down_proj')}{i}.down_proj.weight": matrix
                          for i, matrix in enumerate(value)})
        elif key.endswith("experts.gate_up_proj"):
            for part, half in zip(("gate_proj", "up_proj"), value.chunk(2, dim=1)):
                found.update({f"{key.removesuffix('gate_up_proj')}{i}.{part}.weight": matrix
                              for i, matrix in enumerate(half)})
        else:
            found[key] = value
    return found


def stacked(dequantized):
    """The program's name and shape of experts that stand one by one."""
    found, stacks = {}, {}
    for key, value in dequantized.items():
        prefix, point, rest = key.partition(".experts.")
        if point:
            stacks.setdefault(f"{prefix}.switch_mlp.{rest.partition('.')[2]}", []).append(value)
        else:
            found[key] = value
    return {**found, **{key: torch.stack(matrices) for key, matrices in stacks.items()}}


def compressed_case(name, config, seed, dtype, ignore, arguments, **others):
    """arguments of all matrices, and others of those whose name has this part."""
    tensors, dequantized, dense = {}, {}, {}
    for key, value in single_experts(released(config, seed)).items():
        if value.ndim != 2 or any(part in key for part in ignore):
            tensors[key] = value.to(dtype)
            dense[key] = tensors[key].float()
            continue
        own = next((choice for part, choice in others.items() if part in key), arguments)
        packed, dequantized[key] = compress(value, own, dtype)
        tensors.update({f"{key.removesuffix('.weight')}.{part}": tensor for part, tensor in packed.items()})
    groups = {f"group_{i}": dict(targets=targets, weights=json.loads(choice.model_dump_json()), input_activations=None,
                                 output_activations=None, format="pack-quantized")
              for i, (targets, choice) in enumerate(
                  [(["Linear"], arguments)] + [([f"re:.*{part}.*"], choice) for part, choice in others.items()])}
    about = dict(quant_method="compressed-tensors", format="pack-quantized", quantization_status="compressed",
                 config_groups=groups, ignore=list(ignore), kv_cache_scheme=None, sparsity_config={},
                 transform_config={}, version="0.20.0")
    write(name, dict(config, quantization_config=about), seed, tensors, {"format": "pt"}, dense, stacked(dequantized))


def scheme(bits, group, is_symmetric):
    return QuantizationArgs(num_bits=bits, type="int", symmetric=is_symmetric, group_size=group,
                            strategy="group" if group else "channel")


CASES = {
    "torchao_gemma4": lambda name, seed: torchao_case(name, gemma("bfloat16", **WIDE), seed, False, ()),
    "torchao_gemma4_symmetric": lambda name, seed: torchao_case(
        name, gemma("bfloat16", **WIDE), seed, True, ("v_proj.weight", "down_proj.weight")),
    "compressed_gemma4": lambda name, seed: compressed_case(
        name, gemma("float16", **WIDE), seed, torch.float16, ("embed_tokens",), scheme(4, 64, True),
        up_proj=scheme(4, None, True), q_proj=scheme(8, None, True), o_proj=scheme(8, 32, True)),
    "compressed_qwen_dense": lambda name, seed: compressed_case(
        name, explicit(qwen("bfloat16", intermediate_size=128, **WIDE_QWEN)), seed, torch.bfloat16,
        ("embed_tokens", "lm_head"), scheme(4, 32, False), down_proj=scheme(4, 128, False)),
    "compressed_gemma4_wide": lambda name, seed: compressed_case(
        name, gemma("float16", **WIDE), seed, torch.float16, ("embed_tokens",), scheme(4, 32, False)),
    "compressed_qwen_moe": lambda name, seed: compressed_case(
        name, explicit(qwen_moe("bfloat16", **WIDE_QWEN, **EXPERTS)), seed, torch.bfloat16,
        ("embed_tokens", "lm_head", "mlp.gate.", "shared_expert_gate", "linear_attn"), scheme(4, 32, False)),
}


def main():
    for index, (name, make) in enumerate(CASES.items()):
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            make(name, 3000 + index)


main()
