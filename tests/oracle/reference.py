# SPDX-License-Identifier: Apache-2.0
"""Reference answers for Gemma 4: mlx-lm's model in float32 on the CPU, and the sampler's contract in numpy."""

import mlx.core as mx
import numpy as np
from mlx_lm.models import gemma4_text
from mlx_lm.models.cache import make_prompt_cache

from random_weights import tensor

mx.set_default_device(mx.cpu)

# What transformers takes for absent keys. mlx-lm has defaults of its own, so it is always told everything.
TEXT_DEFAULTS = dict(
    vocab_size=262144, hidden_size=2304, intermediate_size=9216, num_hidden_layers=30, num_attention_heads=8,
    num_key_value_heads=4, head_dim=256, rms_norm_eps=1e-6, sliding_window=512, final_logit_softcapping=None,
    hidden_size_per_layer_input=256, attention_k_eq_v=False, num_kv_shared_layers=0, enable_moe_block=False,
    use_double_wide_mlp=False, max_position_embeddings=131072, global_head_dim=512,
    num_global_key_value_heads=None)
ROPE_DEFAULTS = dict(
    sliding_attention=dict(rope_type="default", rope_theta=10000.0),
    full_attention=dict(rope_type="proportional", partial_rotary_factor=0.25, rope_theta=1000000.0))


def explicit(config):
    """The text model's configuration in mlx-lm's form, with every key."""
    text = {**TEXT_DEFAULTS, **config.get("text_config", config)}
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


def load(config, seed):
    """mlx-lm's model of config.json's content, with the random weights that the exporter draws for seed."""
    text = explicit(config)
    model = gemma4_text.Model(gemma4_text.ModelArgs.from_dict(text))
    dtype = config.get("dtype", config.get("torch_dtype", "bfloat16"))
    prefix = "model.language_model." if "text_config" in config else "model."
    weights = {}
    for name, parameter in mlx_parameters(model):
        released = prefix + name.removeprefix("model.") if name.startswith("model.") else name
        weights[name] = mx.array(tensor(seed, released, parameter.shape, dtype))
    model.load_weights(list(weights.items()))
    model.eval()
    return model


def load_checkpoint(path):
    """mlx-lm's model of a checkpoint directory, in float32."""
    from mlx_lm.utils import load_model
    from mlx.utils import tree_map
    model, _ = load_model(path)
    model.update(tree_map(lambda a: a.astype(mx.float32), model.parameters()))
    model.eval()
    return model


def mlx_parameters(model):
    from mlx.utils import tree_flatten
    return tree_flatten(model.parameters())


def last_logits(model, tokens, cache):
    return np.array(model(mx.array([tokens]), cache=cache)[0, -1].astype(mx.float32))


def penalize(logits, prompt, generated, repetition, frequency, presence):
    """Repetition as transformers has it, over all tokens; then frequency and presence as OpenAI has them."""
    x = logits.copy()
    for token in set(prompt + generated):
        x[token] = x[token] * np.float32(repetition) if x[token] < 0 else x[token] / np.float32(repetition)
    for token in set(generated):
        x[token] = x[token] - np.float32(frequency) * np.float32(generated.count(token)) - np.float32(presence)
    return x


def gumbel_max(logits, temperature, top_k, top_p, seed, min_p=0.0):
    """docs/sampling.md for finite float32 logits [vocab], with MLX's random bits."""
    if temperature == 0:
        return int(np.argmax(logits))
    scaled = (logits / np.float32(temperature)).astype(np.float32)
    keep = np.ones(scaled.shape, bool)
    if 0 < top_k < scaled.size:
        keep &= scaled >= np.partition(scaled, -top_k)[-top_k]
    if top_p < 1:
        mass = np.where(keep, np.exp((scaled - scaled.max()).astype(np.float64)), 0)
        above = np.array([mass[scaled > s].sum() for s in scaled])
        keep &= above <= top_p * mass.sum()
    keep &= np.exp((scaled - scaled.max()).astype(np.float64)) >= min_p
    u = np.array(mx.random.uniform(shape=scaled.shape, key=mx.random.key(seed)))
    with np.errstate(divide="ignore"):
        noise = -np.log(-np.log(u))
    return int(np.argmax(np.where(keep, scaled + noise, -np.inf)))


def generate(model, prompt, count, temperature=0.0, top_k=0, top_p=1.0, seed=0, min_p=0.0, repetition_penalty=1.0,
             frequency_penalty=0.0, presence_penalty=0.0):
    """The last prompt token's logits, and count tokens, the i-th of them drawn with seed + i."""
    cache = make_prompt_cache(model)
    first = logits = last_logits(model, prompt, cache)
    tokens = []
    for step in range(count):
        row = penalize(logits, prompt, tokens, repetition_penalty, frequency_penalty, presence_penalty)
        tokens.append(gumbel_max(row, temperature, top_k, top_p, seed + step, min_p))
        logits = last_logits(model, [tokens[-1]], cache)
    return first, tokens
