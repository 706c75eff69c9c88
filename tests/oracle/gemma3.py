# SPDX-License-Identifier: Apache-2.0
"""Gemma 3 as mlx-lm has it, but where it differs from transformers: mlx-lm rounds the scale of embeddings to
bfloat16 whatever the weights are, knows the layers that slide as a pattern alone, and caps no logits."""

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models import gemma3_text
from mlx_lm.models.base import create_attention_mask
from mlx_lm.models.cache import KVCache, RotatingKVCache

# What transformers takes for absent keys. mlx-lm has defaults of its own, so it is always told everything.
DEFAULTS = dict(
    vocab_size=262208, hidden_size=2304, intermediate_size=9216, num_hidden_layers=26, num_attention_heads=8,
    num_key_value_heads=4, head_dim=256, rms_norm_eps=1e-6, max_position_embeddings=131072, rope_theta=1000000.0,
    rope_local_base_freq=10000.0, query_pre_attn_scalar=256, sliding_window=4096, sliding_window_pattern=6)

AROUND_ZERO = (-0.25, 0.25)  # norms multiply by 1 + w


def explicit(config):
    """The text model's configuration in mlx-lm's form, with every key."""
    given = config.get("text_config", config)
    text = {**DEFAULTS, **given}
    kinds = text.get("rope_parameters") or {}
    full, sliding = dict(kinds.get("full_attention", {})), kinds.get("sliding_attention", {})
    text["rope_theta"] = full.pop("rope_theta", text["rope_theta"])
    text["rope_local_base_freq"] = sliding.get("rope_theta", text["rope_local_base_freq"])
    text["rope_scaling"] = text.get("rope_scaling") or (full if full.get("rope_type", "default") != "default" else None)
    text["tie_word_embeddings"] = config.get("tie_word_embeddings", text.get("tie_word_embeddings", True))
    text.setdefault("layer_types", ["sliding_attention" if (i + 1) % text["sliding_window_pattern"] else "full_attention"
                                    for i in range(text["num_hidden_layers"])])
    return text


class Model(gemma3_text.Model):
    def __init__(self, text):
        args = gemma3_text.ModelArgs.from_dict(dict(text, model_type="gemma3_text"))
        super().__init__(args)
        self.text = text
        if text["tie_word_embeddings"]:
            self.sanitize({})
        slides = {True: next(x for x in self.layers if x.self_attn.is_sliding).self_attn.rope,
                  False: next(x for x in self.layers if not x.self_attn.is_sliding).self_attn.rope}
        self.windows = [text["sliding_window"] if x == "sliding_attention" else None for x in text["layer_types"]]
        for layer, window in zip(self.layers, self.windows):
            layer.self_attn.rope = slides[window is not None]

    def make_cache(self):
        return [RotatingKVCache(max_size=window) if window else KVCache() for window in self.windows]

    def __call__(self, inputs, cache):
        h = self.model.embed_tokens(inputs) * self.text["hidden_size"]**0.5
        for layer, window, own in zip(self.layers, self.windows, cache):
            h = layer(h, create_attention_mask(h, own, window_size=window), own)
        h = self.model.norm(h)
        logits = self.model.embed_tokens.as_linear(h) if self.tie_word_embeddings else self.lm_head(h)
        cap = self.text.get("final_logit_softcapping")
        return cap * mx.tanh(logits / cap) if cap else logits


def build(config):
    return Model(explicit(config))


def released_name(config, name):
    prefix = "model.language_model." if "text_config" in config else "model."
    return prefix + name.removeprefix("model.") if name.startswith("model.") else name


def tensors(config):
    """Shape of each tensor of a checkpoint, and what random weights are drawn from (None: as usual)."""
    return {released_name(config, name): (value.shape, AROUND_ZERO if value.ndim == 1 else None)
            for name, value in tree_flatten(build(config).parameters())}


def adopt(model, config, weights):
    """Gives the model a checkpoint's tensors."""
    names = [name for name, _ in tree_flatten(model.parameters())]
    model.load_weights([(name, mx.array(weights[released_name(config, name)])) for name in names])


def prompt_length(config):
    return 2 * explicit(config)["sliding_window"] + 11
