# SPDX-License-Identifier: Apache-2.0
"""Qwen3.5, with experts and dense, as mlx-lm has it."""

import mlx.core as mx
from mlx_lm.models import qwen3_5, qwen3_5_moe

# What transformers takes for absent keys. mlx-lm has defaults of its own, so it is always told everything.
DEFAULTS = dict(
    vocab_size=248320, num_attention_heads=16, head_dim=256, rms_norm_eps=1e-6, max_position_embeddings=32768,
    linear_conv_kernel_dim=4, linear_key_head_dim=128, linear_value_head_dim=128, linear_num_key_heads=16,
    linear_num_value_heads=32, attention_bias=False, full_attention_interval=4)
DENSE_DEFAULTS = dict(hidden_size=4096, intermediate_size=12288, num_hidden_layers=32, num_key_value_heads=4)
MOE_DEFAULTS = dict(
    hidden_size=2048, num_hidden_layers=40, num_key_value_heads=2, moe_intermediate_size=512,
    shared_expert_intermediate_size=512, num_experts_per_tok=8, num_experts=256)

AROUND_ZERO = (-0.25, 0.25)  # norms that multiply by 1 + w


def has_experts(config):
    return "_moe" in config["model_type"]


def explicit(config):
    """The text model's configuration in mlx-lm's form, with every key."""
    given = config.get("text_config", config)
    text = {**DEFAULTS, **(MOE_DEFAULTS if has_experts(config) else DENSE_DEFAULTS), **given}
    if given.get("layer_types"):  # mlx-lm knows the interval alone
        kinds = text.pop("layer_types")
        text["full_attention_interval"] = kinds.index("full_attention") + 1
        assert kinds == ["linear_attention" if (i + 1) % text["full_attention_interval"] else "full_attention"
                         for i in range(len(kinds))]
    rope = dict(text.get("rope_parameters") or {})
    rope["type"] = rope.pop("rope_type", "default")
    rope.setdefault("rope_theta", text.pop("rope_theta", 10000.0))
    rope.setdefault("partial_rotary_factor", text.pop("partial_rotary_factor", 0.25))
    text["rope_parameters"] = rope
    text["tie_word_embeddings"] = config.get("tie_word_embeddings", text.get("tie_word_embeddings", False))
    return text


def build(config):
    module = qwen3_5_moe if has_experts(config) else qwen3_5
    return module.Model(module.ModelArgs(model_type=config["model_type"], text_config=explicit(config)))


def mixer_tensors(text, is_full):
    hidden, heads, head_dim = text["hidden_size"], text["num_attention_heads"], text["head_dim"]
    if is_full:
        keys = text["num_key_value_heads"] * head_dim
        return {
            "self_attn.q_proj.weight": ((2 * heads * head_dim, hidden), None),
            "self_attn.k_proj.weight": ((keys, hidden), None),
            "self_attn.v_proj.weight": ((keys, hidden), None),
            "self_attn.o_proj.weight": ((hidden, heads * head_dim), None),
            "self_attn.q_norm.weight": ((head_dim,), AROUND_ZERO),
            "self_attn.k_norm.weight": ((head_dim,), AROUND_ZERO),
        }
    heads, value_dim = text["linear_num_value_heads"], text["linear_value_head_dim"]
    keys, values = text["linear_num_key_heads"] * text["linear_key_head_dim"], heads * value_dim
    return {
        "linear_attn.in_proj_qkv.weight": ((2 * keys + values, hidden), None),
        "linear_attn.in_proj_z.weight": ((values, hidden), None),
        "linear_attn.in_proj_a.weight": ((heads, hidden), None),
        "linear_attn.in_proj_b.weight": ((heads, hidden), None),
        "linear_attn.conv1d.weight": ((2 * keys + values, 1, text["linear_conv_kernel_dim"]), None),
        "linear_attn.A_log": ((heads,), (0.0, 2.0)),
        "linear_attn.dt_bias": ((heads,), (-5.0, -1.0)),
        "linear_attn.norm.weight": ((value_dim,), None),
        "linear_attn.out_proj.weight": ((hidden, values), None),
    }


def swiglu_tensors(prefix, hidden, inner):
    return {
        f"{prefix}gate_proj.weight": ((inner, hidden), None),
        f"{prefix}up_proj.weight": ((inner, hidden), None),
        f"{prefix}down_proj.weight": ((hidden, inner), None),
    }


def mlp_tensors(text):
    hidden = text["hidden_size"]
    if "num_experts" not in text:
        return swiglu_tensors("mlp.", hidden, text["intermediate_size"])
    count, inner = text["num_experts"], text["moe_intermediate_size"]
    return {
        "mlp.gate.weight": ((count, hidden), None),
        "mlp.experts.gate_up_proj": ((count, 2 * inner, hidden), None),
        "mlp.experts.down_proj": ((count, hidden, inner), None),
        "mlp.shared_expert_gate.weight": ((1, hidden), None),
        **swiglu_tensors("mlp.shared_expert.", hidden, text["shared_expert_intermediate_size"]),
    }


def tensors(config):
    """Shape of each tensor of a checkpoint, and what random weights are drawn from (None: as usual)."""
    text = explicit(config)
    hidden, vocabulary = text["hidden_size"], text["vocab_size"]
    prefix = "model.language_model." if "text_config" in config else "model."
    found = {"embed_tokens.weight": ((vocabulary, hidden), None), "norm.weight": ((hidden,), AROUND_ZERO)}
    for i in range(text["num_hidden_layers"]):
        is_full = (i + 1) % text["full_attention_interval"] == 0
        layer = {"input_layernorm.weight": ((hidden,), AROUND_ZERO),
                 "post_attention_layernorm.weight": ((hidden,), AROUND_ZERO),
                 **mixer_tensors(text, is_full), **mlp_tensors(text)}
        found.update({f"layers.{i}.{name}": about for name, about in layer.items()})
    found = {prefix + name: about for name, about in found.items()}
    if not text["tie_word_embeddings"]:
        found["lm_head.weight"] = ((vocabulary, hidden), None)
    return found


def adopt(model, config, weights):
    """Gives the model a checkpoint's tensors."""
    prefix = "model.language_model." if "text_config" in config else "model."
    named = {"model.language_model." + name.removeprefix(prefix) if name.startswith(prefix) else name: mx.array(value)
             for name, value in weights.items()}
    model.load_weights(list(model.sanitize(named).items()))


def prompt_length(config):
    return 45
