# SPDX-License-Identifier: Apache-2.0
"""Gemma 4 as mlx-lm has it."""

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models import gemma4_text

import expert_stacks

# What transformers takes for absent keys. mlx-lm has defaults of its own, so it is always told everything.
TEXT_DEFAULTS = dict(
    vocab_size=262144, hidden_size=2304, intermediate_size=9216, num_hidden_layers=30, num_attention_heads=8,
    num_key_value_heads=4, head_dim=256, rms_norm_eps=1e-6, sliding_window=512, final_logit_softcapping=None,
    hidden_size_per_layer_input=256, vocab_size_per_layer_input=262144, attention_k_eq_v=False, num_kv_shared_layers=0, enable_moe_block=False,
    use_double_wide_mlp=False, max_position_embeddings=131072, global_head_dim=512,
    num_global_key_value_heads=None)
UNIFIED_DEFAULTS = dict(sliding_window=1024, max_position_embeddings=262144, hidden_size_per_layer_input=0)
ROPE_DEFAULTS = dict(
    sliding_attention=dict(rope_type="default", rope_theta=10000.0),
    full_attention=dict(rope_type="proportional", partial_rotary_factor=0.25, rope_theta=1000000.0))


def explicit(config):
    """The text model's configuration in mlx-lm's form, with every key."""
    given = config.get("text_config", config)
    text = {**TEXT_DEFAULTS, **(UNIFIED_DEFAULTS if "unified" in config["model_type"] else {}), **given}
    count = text["num_hidden_layers"]
    kinds = text.get("layer_types") or ["full_attention" if i % 6 == 5 else "sliding_attention" for i in range(count)]
    text["layer_types"] = list(kinds[:-1]) + ["full_attention"]
    text["rope_parameters"] = text.get("rope_parameters") or ROPE_DEFAULTS
    text["tie_word_embeddings"] = config.get("tie_word_embeddings", text.get("tie_word_embeddings", True))
    if "per_layer_config" in text:  # mlx-lm knows one shape for all full layers
        override = next(iter(text.pop("per_layer_config").values()))
        text["global_head_dim"] = override["head_dim"]
        text["num_global_key_value_heads"] = override.get("num_key_value_heads")
    text["model_type"] = "gemma4_text"
    return text


def build(config):
    return gemma4_text.Model(gemma4_text.ModelArgs.from_dict(explicit(config)))


def released_name(config, name):
    prefix = "model.language_model." if "text_config" in config else "model."
    name = prefix + name.removeprefix("model.") if name.startswith("model.") else name
    return name.replace("experts.switch_glu.", "experts.").replace("experts.down_proj.weight", "experts.down_proj")


def tensors(config):
    """Shape of each tensor of a checkpoint, and what random weights are drawn from (None: as usual)."""
    return expert_stacks.tensors((released_name(config, name), value.shape)
                                 for name, value in tree_flatten(build(config).parameters()))


def adopt(model, config, weights):
    """Gives the model a checkpoint's tensors."""
    names = [name for name, _ in tree_flatten(model.parameters())]
    model.load_weights([(name, mx.array(expert_stacks.take(weights, released_name(config, name)))) for name in names])


def prompt_length(config):
    return 2 * explicit(config)["sliding_window"] + 11
