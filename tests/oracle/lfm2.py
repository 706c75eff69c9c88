# SPDX-License-Identifier: Apache-2.0
"""LFM2, dense and with experts, as mlx-lm has it. Random experts are drawn as transformers stacks them, and released
one by one."""

import mlx.core as mx
from mlx_lm.models import lfm2, lfm2_moe

# What transformers takes for absent keys. mlx-lm wants every key.
DEFAULTS = dict(
    vocab_size=65536, hidden_size=2560, intermediate_size=12288, num_hidden_layers=32, num_attention_heads=32,
    num_key_value_heads=8, max_position_embeddings=128000, norm_eps=1e-5, conv_bias=False, conv_L_cache=3,
    block_multiple_of=256, block_ffn_dim_multiplier=1.0, block_auto_adjust_ff_dim=True, rope_theta=1000000.0)
MOE_DEFAULTS = dict(
    hidden_size=2048, intermediate_size=7168, moe_intermediate_size=1792, num_dense_layers=2, num_experts_per_tok=4,
    num_experts=32, use_expert_bias=True, routed_scaling_factor=1.0, norm_topk_prob=True)


def has_experts(config):
    return config["model_type"] == "lfm2_moe"


def explicit(config):
    """mlx-lm's form, with every key."""
    text = {**DEFAULTS, **(MOE_DEFAULTS if has_experts(config) else {}), **config}
    text["rope_parameters"] = text.get("rope_parameters") or dict(rope_theta=text["rope_theta"])
    text.setdefault("block_dim", text["hidden_size"])
    if not text.get("layer_types"):
        full = text.get("full_attn_idxs") or []
        text["layer_types"] = ["full_attention" if i in full else "conv" for i in range(text["num_hidden_layers"])]
    return text


def build(config):
    module = lfm2_moe if has_experts(config) else lfm2
    return module.Model(module.ModelArgs.from_dict(explicit(config)))


def mlp_width(text):
    width = text.get("block_ff_dim", text["intermediate_size"])
    if has_experts(text) or not text["block_auto_adjust_ff_dim"]:
        return width
    multiple = text["block_multiple_of"]
    return -(-int(text["block_ffn_dim_multiplier"] * int(2 * width / 3)) // multiple) * multiple


def mixer_tensors(text, attends):
    hidden, heads, keys = (text[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads"))
    dim = hidden // heads
    if attends:
        return {"self_attn.q_proj.weight": ((hidden, hidden), None), "self_attn.k_proj.weight": ((keys * dim, hidden), None),
                "self_attn.v_proj.weight": ((keys * dim, hidden), None), "self_attn.out_proj.weight": ((hidden, hidden), None),
                "self_attn.q_layernorm.weight": ((dim,), None), "self_attn.k_layernorm.weight": ((dim,), None)}
    return {"conv.in_proj.weight": ((3 * hidden, hidden), None), "conv.out_proj.weight": ((hidden, hidden), None),
            "conv.conv.weight": ((hidden, 1, text["conv_L_cache"]), None)}


def mlp_tensors(text, layer):
    hidden = text["hidden_size"]
    if not has_experts(text) or layer < text["num_dense_layers"]:
        inner = mlp_width(text)
        return {"w1.weight": ((inner, hidden), None), "w3.weight": ((inner, hidden), None),
                "w2.weight": ((hidden, inner), None)}
    count, inner = text["num_experts"], text["moe_intermediate_size"]
    return {"gate.weight": ((count, hidden), None), "expert_bias": ((count,), (-0.1, 0.1)),
            "experts.gate_up_proj": ((count, 2 * inner, hidden), None),
            "experts.down_proj": ((count, hidden, inner), None)}


def tensors(config):
    """Shape of each tensor that is drawn, and what random weights are drawn from (None: as usual)."""
    text = explicit(config)
    hidden, vocabulary = text["hidden_size"], text["vocab_size"]
    found = {"embed_tokens.weight": ((vocabulary, hidden), None), "embedding_norm.weight": ((hidden,), None)}
    for i, kind in enumerate(text["layer_types"]):
        layer = {"operator_norm.weight": ((hidden,), None), "ffn_norm.weight": ((hidden,), None),
                 **mixer_tensors(text, kind == "full_attention"),
                 **{f"feed_forward.{name}": about for name, about in mlp_tensors(text, i).items()}}
        found.update({f"layers.{i}.{name}": about for name, about in layer.items()})
    return {"model." + name: about for name, about in found.items()}


def released(config, weights):
    """The tensors as Liquid AI names them, each expert's by themselves."""
    found = {}
    for name, value in weights.items():
        if name.endswith("experts.gate_up_proj"):
            inner, base = value.shape[1] // 2, name.removesuffix("gate_up_proj")
            for e in range(len(value)):
                found[f"{base}{e}.w1.weight"], found[f"{base}{e}.w3.weight"] = value[e][:inner], value[e][inner:]
        elif name.endswith("experts.down_proj"):
            found.update({f"{name.removesuffix('down_proj')}{e}.w2.weight": value[e] for e in range(len(value))})
        else:
            found[name] = value
    return found


def adopt(model, config, weights):
    """Gives the model a checkpoint's tensors."""
    named = {name: mx.array(value) for name, value in weights.items()}
    model.load_weights(list(model.sanitize(named).items()))


def prompt_length(config):
    return 45
