# SPDX-License-Identifier: Apache-2.0
"""Qwen3-Next as mlx-lm has it. Random weights are drawn as Qwen3.5's are named, and then put into the tensors that are
released: those of a key head and of its value heads stand together, and each expert has tensors of its own."""

import mlx.core as mx
import numpy as np
from mlx_lm.models import qwen3_next

from qwen3_5 import AROUND_ZERO, mixer_tensors, mlp_tensors, swiglu_tensors

# What transformers takes for absent keys. mlx-lm has defaults of its own, so it is always told everything.
DEFAULTS = dict(
    vocab_size=151936, hidden_size=2048, intermediate_size=5632, num_hidden_layers=48, num_attention_heads=16,
    num_key_value_heads=2, head_dim=256, max_position_embeddings=32768, rms_norm_eps=1e-6, attention_bias=False,
    linear_conv_kernel_dim=4, linear_key_head_dim=128, linear_value_head_dim=128, linear_num_key_heads=16,
    linear_num_value_heads=32, decoder_sparse_step=1, moe_intermediate_size=512, shared_expert_intermediate_size=512,
    num_experts_per_tok=10, num_experts=512, norm_topk_prob=True, mlp_only_layers=[], full_attention_interval=4,
    tie_word_embeddings=False)


def explicit(config):
    """mlx-lm's form, with every key."""
    text = {**DEFAULTS, **config}
    if config.get("layer_types"):  # mlx-lm knows the interval alone
        kinds = text.pop("layer_types")
        text["full_attention_interval"] = kinds.index("full_attention") + 1
        assert kinds == ["linear_attention" if (i + 1) % text["full_attention_interval"] else "full_attention"
                         for i in range(len(kinds))]
    rope = text.pop("rope_parameters", None) or {}
    for key, default in (("rope_theta", 10000.0), ("partial_rotary_factor", 0.25)):
        text[key] = rope.get(key, text.get(key, default))
    return text


def build(config):
    return qwen3_next.Model(qwen3_next.ModelArgs.from_dict(explicit(config)))


def has_experts(text, layer):
    return layer not in text["mlp_only_layers"] and (layer + 1) % text["decoder_sparse_step"] == 0


def tensors(config):
    """Shape of each tensor that is drawn, and what random weights are drawn from (None: as usual)."""
    text = explicit(config)
    hidden, vocabulary = text["hidden_size"], text["vocab_size"]
    found = {"embed_tokens.weight": ((vocabulary, hidden), None), "norm.weight": ((hidden,), AROUND_ZERO)}
    for i in range(text["num_hidden_layers"]):
        mlp = mlp_tensors(text) if has_experts(text, i) else swiglu_tensors("mlp.", hidden, text["intermediate_size"])
        layer = {"input_layernorm.weight": ((hidden,), AROUND_ZERO),
                 "post_attention_layernorm.weight": ((hidden,), AROUND_ZERO),
                 **mixer_tensors(text, (i + 1) % text["full_attention_interval"] == 0), **mlp}
        found.update({f"layers.{i}.{name}": about for name, about in layer.items()})
    found = {"model." + name: about for name, about in found.items()}
    if not text["tie_word_embeddings"]:
        found["lm_head.weight"] = ((vocabulary, hidden), None)
    return found


def interleave(key_heads, *matrices):
    """Of each key head its rows of every matrix, one matrix below the other."""
    columns = matrices[0].shape[1]
    return np.concatenate([m.reshape(key_heads, -1, columns) for m in matrices], axis=1).reshape(-1, columns)


def fuse_projections(text, weights, prefix):
    heads, keys = text["linear_num_key_heads"], text["linear_num_key_heads"] * text["linear_key_head_dim"]
    qkv, z, a, b = (weights.pop(f"{prefix}in_proj_{part}.weight") for part in ("qkv", "z", "a", "b"))
    weights[f"{prefix}in_proj_qkvz.weight"] = interleave(heads, qkv[:keys], qkv[keys:2 * keys], qkv[2 * keys:], z)
    weights[f"{prefix}in_proj_ba.weight"] = interleave(heads, b, a)


def split_rows(key_heads, matrix, *rows):
    """The inverse of interleave for so many rows of each key head."""
    parts = np.split(matrix.reshape(key_heads, sum(rows), -1), np.cumsum(rows)[:-1], axis=1)
    return [part.reshape(-1, matrix.shape[1]) for part in parts]


def apart(config, weights):
    """The weights as Qwen3.5 names them: in_proj_qkv, z, a and b."""
    text, weights = explicit(config), dict(weights)
    heads, ratio = text["linear_num_key_heads"], text["linear_num_value_heads"] // text["linear_num_key_heads"]
    keys, values = text["linear_key_head_dim"], ratio * text["linear_value_head_dim"]
    for name in [name for name in weights if name.endswith("in_proj_qkvz.weight")]:
        prefix = name.removesuffix("qkvz.weight")
        q, k, v, z = split_rows(heads, weights.pop(name), keys, keys, values, values)
        b, a = split_rows(heads, weights.pop(f"{prefix}ba.weight"), ratio, ratio)
        parts = dict(qkv=np.concatenate([q, k, v]), z=z, a=a, b=b)
        weights.update({f"{prefix}{part}.weight": value for part, value in parts.items()})
    return weights


def take_experts_apart(weights, prefix):
    both, down = weights.pop(f"{prefix}gate_up_proj"), weights.pop(f"{prefix}down_proj")
    inner = down.shape[2]
    for i, (rows, own) in enumerate(zip(both, down)):
        parts = dict(gate_proj=rows[:inner], up_proj=rows[inner:], down_proj=own)
        weights.update({f"{prefix}{i}.{name}.weight": value for name, value in parts.items()})


def released(config, drawn):
    """A checkpoint's tensors, of those drawn."""
    weights = dict(drawn)
    for name in drawn:
        if name.endswith("in_proj_z.weight"):
            fuse_projections(explicit(config), weights, name.removesuffix("in_proj_z.weight"))
        if name.endswith("experts.gate_up_proj"):
            take_experts_apart(weights, name.removesuffix("gate_up_proj"))
    return weights


def adopt(model, config, weights):
    """Gives the model a checkpoint's tensors."""
    model.load_weights(list(model.sanitize({name: mx.array(value) for name, value in weights.items()}).items()))


def prompt_length(config):
    return 45
