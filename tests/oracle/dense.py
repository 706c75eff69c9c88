# SPDX-License-Identifier: Apache-2.0
"""Llama 3, Mistral, Ministral 3, Qwen2, Qwen3 with and without experts, SmolLM3, Granite, Phi, gpt-oss, OLMo 2 and 3,
as mlx-lm has them."""

import math

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.models import (gpt_oss, granite, granitemoehybrid, llama, ministral3, olmo2, olmo3, phi3, qwen2, qwen3,
                           qwen3_moe, smollm3)
from mlx_lm.models.cache import KVCache, RotatingKVCache

import expert_stacks
import fused_rows

# What transformers takes for absent keys. mlx-lm has defaults of its own, so it is always told everything.
COMMON = dict(rms_norm_eps=1e-6, rope_theta=10000.0, tie_word_embeddings=False)
MULTIPLIERS = dict(embedding_multiplier=1.0, attention_multiplier=1.0, residual_multiplier=1.0, logits_scaling=1.0,
                   attention_bias=False, mlp_bias=False)
DEFAULTS = dict(
    llama=dict(COMMON, vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32,
               num_attention_heads=32, max_position_embeddings=2048),
    mistral=dict(COMMON, vocab_size=32000, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                 num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=131072, sliding_window=4096),
    ministral3=dict(COMMON, vocab_size=131072, hidden_size=4096, intermediate_size=14336, num_hidden_layers=34,
                    num_attention_heads=32, num_key_value_heads=8, head_dim=128, max_position_embeddings=262144,
                    rms_norm_eps=1e-5, sliding_window=None),
    qwen2=dict(COMMON, vocab_size=151936, hidden_size=4096, intermediate_size=22016, num_hidden_layers=32,
               num_attention_heads=32, num_key_value_heads=32, max_position_embeddings=32768,
               sliding_window=4096, max_window_layers=28, use_sliding_window=False),
    qwen3=dict(COMMON, vocab_size=151936, hidden_size=4096, intermediate_size=22016, num_hidden_layers=32,
               num_attention_heads=32, num_key_value_heads=32, head_dim=128, max_position_embeddings=32768,
               sliding_window=4096, max_window_layers=28, use_sliding_window=False),
    qwen3_moe=dict(COMMON, vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=24,
                   num_attention_heads=32, num_key_value_heads=4, max_position_embeddings=32768,
                   decoder_sparse_step=1, moe_intermediate_size=768, num_experts_per_tok=8, num_experts=128,
                   norm_topk_prob=False),
    smollm3=dict(COMMON, vocab_size=128256, hidden_size=2048, intermediate_size=11008, num_hidden_layers=36,
                 num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=32768, rope_theta=2000000.0,
                 no_rope_layer_interval=4, tie_word_embeddings=True),
    phi3=dict(COMMON, vocab_size=32064, hidden_size=3072, intermediate_size=8192, num_hidden_layers=32,
              num_attention_heads=32, max_position_embeddings=4096, original_max_position_embeddings=4096,
              rms_norm_eps=1e-5, sliding_window=None),
    granite=dict(COMMON, **MULTIPLIERS, vocab_size=32000, hidden_size=4096, intermediate_size=11008,
                 num_hidden_layers=32, num_attention_heads=32, max_position_embeddings=2048),
    gpt_oss=dict(COMMON, vocab_size=201088, hidden_size=2880, intermediate_size=2880, num_hidden_layers=36,
                 num_attention_heads=64, num_key_value_heads=8, head_dim=64, max_position_embeddings=131072,
                 sliding_window=128, num_local_experts=128, num_experts_per_tok=4, rope_theta=150000.0, rms_norm_eps=1e-5),
    olmo2=dict(COMMON, vocab_size=50304, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32,
               num_attention_heads=32, max_position_embeddings=2048, rms_norm_eps=1e-5),
    olmo3=dict(COMMON, vocab_size=50304, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32,
               num_attention_heads=32, max_position_embeddings=2048, rms_norm_eps=1e-5, rope_theta=500000.0,
               sliding_window=4096),
    granitemoehybrid=dict(COMMON, **MULTIPLIERS, vocab_size=32000, hidden_size=4096, shared_intermediate_size=1024,
                          num_hidden_layers=32, num_attention_heads=32, max_position_embeddings=2048))
BIASES = (-1.0, 1.0)  # what random ones are drawn from
MODULES = dict(llama=llama, mistral=llama, qwen2=qwen2, qwen3=qwen3, qwen3_moe=qwen3_moe, smollm3=smollm3,
               granite=granite, granitemoehybrid=granitemoehybrid, phi3=phi3, gpt_oss=gpt_oss, ministral3=ministral3,
               olmo2=olmo2, olmo3=olmo3)


CONTEXT = 8192  # that is exported, where the model has it


def text_of(config):
    return config.get("text_config", config)


def choose_factors(text, rope):
    """mlx-lm has LongRoPE's long factors alone; the short ones stand in their place where the context is short."""
    text["partial_rotary_factor"] = rope.pop("partial_rotary_factor", text.get("partial_rotary_factor", 1.0))
    if "long_factor" in rope:
        is_short = min(text["max_position_embeddings"], CONTEXT) <= text["original_max_position_embeddings"]
        rope.update(type="longrope", long_factor=rope["short_factor" if is_short else "long_factor"])


def explicit(config):
    """The text model's configuration in mlx-lm's form, with every key."""
    given = text_of(config)
    text = {**DEFAULTS[given["model_type"]], **given}
    rope = dict(text.pop("rope_scaling", None) or text.pop("rope_parameters", None) or {})
    text.pop("rope_parameters", None)
    if text["model_type"] == "olmo3":
        text["sliding_theta"] = rope.get("sliding_attention", {}).get("rope_theta", 500000.0)
        text.setdefault("layer_types", ["full_attention" if i % 4 == 3 else "sliding_attention"
                                        for i in range(text["num_hidden_layers"])])
        rope = dict(rope.get("full_attention", rope))
    text["rope_theta"] = rope.pop("rope_theta", text["rope_theta"])
    if text["model_type"] == "phi3":
        choose_factors(text, rope)
    text["rope_scaling"] = rope if rope.get("rope_type", rope.get("type", "default")) != "default" else None
    if text["model_type"] == "ministral3":  # mlx-lm needs keys whose absence means nothing
        text["rope_parameters"] = dict(rope_theta=text["rope_theta"], llama_4_scaling_beta=0.0,
                                       original_max_position_embeddings=1) | rope
    text["num_key_value_heads"] = text.get("num_key_value_heads") or text["num_attention_heads"]
    text["head_dim"] = text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]
    text["intermediate_size"] = text.get("shared_intermediate_size") or text["intermediate_size"]
    text["mlp_only_layers"] = text.get("mlp_only_layers") or []
    text["tie_word_embeddings"] = config.get("tie_word_embeddings", text["tie_word_embeddings"])
    return text


def sliding_layers(text):
    count, kind = text["num_hidden_layers"], text["model_type"]
    if kind in ("mistral", "ministral3"):
        return [text["sliding_window"] is not None] * count
    if kind == "gpt_oss":
        return [name == "sliding_attention" for name in text.get("layer_types") or ["sliding_attention", "full_attention"]]
    if kind == "olmo3":
        return [name == "sliding_attention" for name in text["layer_types"]]
    if kind == "phi3":
        return [(text["sliding_window"] or text["max_position_embeddings"]) < text["max_position_embeddings"]] * count
    if not text.get("use_sliding_window"):
        return [False] * count
    if "layer_types" in text:
        return [name == "sliding_attention" for name in text["layer_types"]]
    return [i >= text["max_window_layers"] for i in range(count)]


def use_windows(model, text):
    """Windows where mlx-lm has none: in every layer of Mistral, in some of Qwen."""
    slides = sliding_layers(text)

    def make_cache():
        return [RotatingKVCache(max_size=text["sliding_window"]) if s else KVCache() for s in slides]

    def attend(layer, is_sliding):
        inner = layer.__class__.__call__

        class Windowed(layer.__class__):
            def __call__(self, x, *rest, cache=None):
                *scales, _, cache = rest if cache is None else (*rest, cache)
                window = text["sliding_window"] if is_sliding else None
                mask = cache.make_mask(x.shape[1], window_size=window, return_array=True)
                return inner(self, x, *scales, mask, cache)
        layer.__class__ = Windowed

    if any(slides):
        for layer, is_sliding in zip(model.layers, slides):
            attend(layer, is_sliding)
        model.__class__ = type("WindowedModel", (model.__class__,), dict(make_cache=lambda self: make_cache()))


def keep_ends_of_ramp(model, text):
    """YaRN between numbers that are not whole, as transformers has it; mlx-lm does not read the key."""
    rope = text["rope_scaling"]
    if not rope or rope.get("truncate", True):
        return
    dims, base, factor = text["head_dim"], text["rope_theta"], rope["factor"]
    first, last = (dims * math.log(rope["original_max_position_embeddings"] / (turns * 2 * math.pi)) / (2 * math.log(base))
                   for turns in (rope.get("beta_fast", 32), rope.get("beta_slow", 1)))
    first, last = max(first, 0), min(last, dims - 1)
    slowed = mx.clip((mx.arange(dims // 2) - first) / (last - first), 0, 1)
    plain = base ** (-2 * mx.arange(dims // 2) / dims)
    for layer in model.layers:
        layer.self_attn.rope._freqs = 1 / (plain * (slowed / factor + 1 - slowed))


def turn_by_kind(model, text):
    """Layers that slide have a theta of their own, which mlx-lm does not read."""
    for layer, is_sliding in zip(model.layers, sliding_layers(text)):
        if is_sliding:
            layer.self_attn.rope = nn.RoPE(text["head_dim"], traditional=False, base=text["sliding_theta"])


def build(config):
    text = explicit(config)
    module = MODULES[text["model_type"]]
    unread = () if module in (granitemoehybrid, gpt_oss, olmo3) else ("layer_types", "sliding_window")
    model = module.Model(module.ModelArgs.from_dict({k: v for k, v in text.items() if k not in unread}))
    if module is gpt_oss:
        keep_ends_of_ramp(model, text)
    elif module is olmo3:
        turn_by_kind(model, text)
    else:
        use_windows(model, text)
    return model


def released_name(config, name):
    if "text_config" in config and name.startswith("model."):
        name = "model.language_model." + name.removeprefix("model.")
    return name.replace("mlp.switch_mlp.", "mlp.experts.").replace("experts.down_proj.weight", "experts.down_proj")


def tensors(config):
    """Shape of each tensor of a checkpoint, and what random weights are drawn from (None: as usual)."""
    found = expert_stacks.tensors((released_name(config, name), value.shape)
                                  for name, value in tree_flatten(build(config).parameters()))
    found = fused_rows.tensors(text_of(config)["model_type"], found)
    return {name: (shape, BIASES if name.endswith((".bias", ".sinks")) else bounds)
            for name, (shape, bounds) in found.items()}


def adopt(model, config, weights):
    """Gives the model a checkpoint's tensors."""
    weights = fused_rows.split(text_of(config)["model_type"], weights)
    names = [name for name, _ in tree_flatten(model.parameters())]
    model.load_weights([(name, mx.array(expert_stacks.take(weights, released_name(config, name)))) for name in names])


def prompt_length(config):
    text = explicit(config)
    return 2 * text["sliding_window"] + 11 if any(sliding_layers(text)) else 45
