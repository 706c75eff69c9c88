# SPDX-License-Identifier: Apache-2.0
"""Muse Glimmer as mlx-lm has it, with transformers' names."""

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models import muse_glimmer

AROUND_ZERO = (-0.25, 0.25)  # norms multiply by 1 + w


def explicit(config):
    """The text model's configuration, with every key that both read."""
    text = {**vars(muse_glimmer.ModelArgs()), **config.get("text_config", config)}
    text["tie_word_embeddings"] = config.get("tie_word_embeddings", text["tie_word_embeddings"])
    return text


def build(config):
    text = explicit(config)
    text.pop("layer_types" if text["layer_types"] is None else "", None)
    return muse_glimmer.Model(muse_glimmer.ModelArgs.from_dict({k: v for k, v in text.items() if v is not None}))


def released_name(config, name):
    return "model.language_model." + name.removeprefix("model.") if "text_config" in config and name.startswith("model.") else name


def tensors(config):
    """Shape of each tensor of a checkpoint, and what random weights are drawn from (None: as usual)."""
    return {released_name(config, name): (value.shape, AROUND_ZERO if name.endswith("layernorm.weight") else None)
            for name, value in tree_flatten(build(config).parameters())}


def adopt(model, config, weights):
    """Gives the model a checkpoint's tensors."""
    names = [name for name, _ in tree_flatten(model.parameters())]
    model.load_weights([(name, mx.array(weights[released_name(config, name)])) for name in names])


def prompt_length(config):
    return 2 * explicit(config)["sliding_window"] + 11
