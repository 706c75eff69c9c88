# SPDX-License-Identifier: Apache-2.0
"""Granite 4 with Mamba layers or experts, as mlx-lm has it; without both it is one of dense.py."""

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import granitemoehybrid

import dense
from dense import BIASES

# What transformers takes for absent keys, besides those of dense.py. mlx-lm wants every key.
DEFAULTS = dict(
    intermediate_size=11008, num_local_experts=8, num_experts_per_tok=2, mamba_n_heads=128, mamba_n_groups=1,
    mamba_d_state=256, mamba_d_conv=4, mamba_expand=2, mamba_conv_bias=True, mamba_proj_bias=False,
    time_step_limit=(0.0, float("inf")))
KINDS = dict(linear_attention="mamba", full_attention="attention")


def kinds_of(config):
    listed = config.get("layer_types") or config.get("layers_block_type") or ["mamba"] * config["num_hidden_layers"]
    return [KINDS.get(kind, kind) for kind in listed]


def is_family_of(config):
    return config["model_type"] == "granitemoehybrid" and (config.get("num_local_experts", 8) or "mamba" in kinds_of(config))


def explicit(config):
    """mlx-lm's form, with every key."""
    given = {**DEFAULTS, **config}
    text = dense.explicit(given)
    text["layer_types"] = kinds_of(config)
    text.setdefault("mamba_d_head", text["mamba_expand"] * text["hidden_size"] // text["mamba_n_heads"])
    if text["num_local_experts"]:
        text["intermediate_size"] = given["intermediate_size"]
    return text


class GroupNorm(granitemoehybrid.GraniteMoeHybridRMSNormGated):
    """Of each group by itself, as transformers has it; mlx-lm has one norm of all."""

    def __call__(self, x, gate=None):
        x = x * nn.silu(gate)
        parts = mx.fast.rms_norm(x.reshape(*x.shape[:-1], self.groups, -1), None, self.eps)
        return parts.reshape(x.shape) * self.weight


def build(config):
    text = explicit(config)
    model = granitemoehybrid.Model(granitemoehybrid.ModelArgs.from_dict(text))
    for layer in model.layers:
        if layer.layer_type == "mamba":
            layer.mamba.norm.__class__ = GroupNorm
            layer.mamba.norm.groups = text["mamba_n_groups"]
    return model


def mamba_tensors(text):
    hidden, heads = text["hidden_size"], text["mamba_n_heads"]
    inner = heads * text["mamba_d_head"]
    channels = inner + 2 * text["mamba_n_groups"] * text["mamba_d_state"]
    return {
        "in_proj.weight": ((inner + channels + heads, hidden), None),
        "conv1d.weight": ((channels, 1, text["mamba_d_conv"]), None),
        **({"conv1d.bias": ((channels,), BIASES)} if text["mamba_conv_bias"] else {}),
        "A_log": ((heads,), (0.0, 2.5)),
        "dt_bias": ((heads,), (-6.0, -2.0)),
        "D": ((heads,), (0.5, 1.5)),
        "norm.weight": ((inner,), None),
        "out_proj.weight": ((hidden, inner), None),
    }


def attention_tensors(text):
    hidden, heads, keys = (text[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads"))
    dim = text["head_dim"]
    return {"q_proj.weight": ((heads * dim, hidden), None), "k_proj.weight": ((keys * dim, hidden), None),
            "v_proj.weight": ((keys * dim, hidden), None), "o_proj.weight": ((hidden, heads * dim), None)}


def feed_forward_tensors(text):
    hidden, shared, count = text["hidden_size"], text["shared_intermediate_size"], text["num_local_experts"]
    found = {"shared_mlp.input_linear.weight": ((2 * shared, hidden), None),
             "shared_mlp.output_linear.weight": ((hidden, shared), None)}
    if count:
        inner = text["intermediate_size"]
        found.update({"block_sparse_moe.router.layer.weight": ((count, hidden), None),
                      "block_sparse_moe.input_linear.weight": ((count, 2 * inner, hidden), None),
                      "block_sparse_moe.output_linear.weight": ((count, hidden, inner), None)})
    return found


def layer_tensors(text, kind):
    hidden = text["hidden_size"]
    prefix, mixer = ("mamba", mamba_tensors) if kind == "mamba" else ("self_attn", attention_tensors)
    return {"input_layernorm.weight": ((hidden,), None), "post_attention_layernorm.weight": ((hidden,), None),
            **{f"{prefix}.{name}": about for name, about in mixer(text).items()}, **feed_forward_tensors(text)}


def tensors(config):
    """Shape of each tensor of a checkpoint, and what random weights are drawn from (None: as usual)."""
    text = explicit(config)
    hidden, vocabulary = text["hidden_size"], text["vocab_size"]
    found = {"model.embed_tokens.weight": ((vocabulary, hidden), None), "model.norm.weight": ((hidden,), None)}
    for i, kind in enumerate(text["layer_types"]):
        found.update({f"model.layers.{i}.{name}": about for name, about in layer_tensors(text, kind).items()})
    if not text["tie_word_embeddings"]:
        found["lm_head.weight"] = ((vocabulary, hidden), None)
    return found


def adopt(model, config, weights):
    """Gives the model a checkpoint's tensors."""
    named = {name: mx.array(value) for name, value in weights.items()}
    model.load_weights(list(model.sanitize(named).items()))


def prompt_length(config):
    return 45
