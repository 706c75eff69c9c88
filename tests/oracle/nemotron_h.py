# SPDX-License-Identifier: Apache-2.0
"""Nemotron-H and Nemotron 3 as mlx-lm has them. Random experts are drawn as transformers stacks them, and released one
by one."""

import mlx.core as mx
from mlx_lm.models import nemotron_h

from dense import BIASES

# What transformers takes for absent keys. mlx-lm wants every key.
DEFAULTS = dict(
    vocab_size=131072, hidden_size=4096, intermediate_size=21504, max_position_embeddings=4096, num_attention_heads=32,
    num_key_value_heads=8, head_dim=128, attention_bias=False, mamba_num_heads=128, mamba_head_dim=64,
    mamba_proj_bias=False, ssm_state_size=128, conv_kernel=4, n_groups=8, mlp_bias=False, layer_norm_epsilon=1e-5,
    use_bias=False, use_conv_bias=True, n_routed_experts=8, n_shared_experts=1, moe_intermediate_size=7688,
    moe_shared_expert_intermediate_size=7688, num_experts_per_tok=2, routed_scaling_factor=1.0, n_group=1,
    topk_group=1, norm_topk_prob=True, moe_latent_size=None, tie_word_embeddings=False)
LETTERS = nemotron_h.ModelArgs._block_type_to_char


def explicit(config):
    """mlx-lm's form, with every key."""
    text = {**DEFAULTS, **config}
    names = text.pop("layers_block_type", None) or text.pop("layer_types", None)
    pattern = [LETTERS[name] for name in names] if names else list(text["hybrid_override_pattern"])
    return {**text, "hybrid_override_pattern": pattern, "num_hidden_layers": len(pattern)}


def build(config):
    assert not config.get("tie_word_embeddings"), "mlx-lm has a head of its own"
    return nemotron_h.Model(nemotron_h.ModelArgs.from_dict(explicit(config)))


def mamba_tensors(text):
    hidden, heads = text["hidden_size"], text["mamba_num_heads"]
    inner = heads * text["mamba_head_dim"]
    channels = inner + 2 * text["n_groups"] * text["ssm_state_size"]
    return {
        "in_proj.weight": ((inner + channels + heads, hidden), None),
        "conv1d.weight": ((channels, 1, text["conv_kernel"]), None),
        **({"conv1d.bias": ((channels,), BIASES)} if text["use_conv_bias"] else {}),
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


def mlp_tensors(text, prefix, inner):
    hidden = text["hidden_size"]
    return {f"{prefix}up_proj.weight": ((inner, hidden), None), f"{prefix}down_proj.weight": ((hidden, inner), None)}


def expert_tensors(text):
    hidden, count, inner = text["hidden_size"], text["n_routed_experts"], text["moe_intermediate_size"]
    latent, width = text["moe_latent_size"], text["moe_latent_size"] or hidden
    found = {
        "gate.weight": ((count, hidden), None),
        "gate.e_score_correction_bias": ((count,), (-0.1, 0.1)),
        "experts.up_proj": ((count, inner, width), None),
        "experts.down_proj": ((count, width, inner), None),
    }
    if latent:
        found.update({"fc1_latent_proj.weight": ((latent, hidden), None),
                      "fc2_latent_proj.weight": ((hidden, latent), None)})
    if text["n_shared_experts"]:
        found.update(mlp_tensors(text, "shared_experts.", text["moe_shared_expert_intermediate_size"]))
    return found


def mixer_tensors(text, kind):
    if kind == "M":
        return mamba_tensors(text)
    if kind == "*":
        return attention_tensors(text)
    return expert_tensors(text) if kind == "E" else mlp_tensors(text, "", text["intermediate_size"])


def tensors(config):
    """Shape of each tensor that is drawn, and what random weights are drawn from (None: as usual)."""
    text = explicit(config)
    hidden, vocabulary = text["hidden_size"], text["vocab_size"]
    found = {"embeddings.weight": ((vocabulary, hidden), None), "norm_f.weight": ((hidden,), None)}
    for i, kind in enumerate(text["hybrid_override_pattern"]):
        found[f"layers.{i}.norm.weight"] = ((hidden,), None)
        found.update({f"layers.{i}.mixer.{name}": about for name, about in mixer_tensors(text, kind).items()})
    found = {"model." + name: about for name, about in found.items()}
    found["lm_head.weight"] = ((vocabulary, hidden), None)
    return found


def released(config, weights):
    """The tensors as NVIDIA names them, each expert's by themselves."""
    found = {}
    for name, value in weights.items():
        name = name.replace("model.", "backbone.", 1)
        base, matrix = name.rsplit(".", 1)
        if base.endswith(".experts"):
            found.update({f"{base}.{e}.{matrix}.weight": value[e] for e in range(len(value))})
        else:
            found[name] = value
    return found


def adopt(model, config, weights):
    """Gives the model a checkpoint's tensors."""
    named = {name: mx.array(value) for name, value in weights.items()}
    model.load_weights(list(model.sanitize(named).items()))


def prompt_length(config):
    return 45
