# SPDX-License-Identifier: Apache-2.0
"""Reference answers: mlx-lm's models in float32 on the CPU, and the sampler's contract in numpy."""

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache

import dense
import gemma3
import gemma4
import granite_hybrid
import lfm2
import muse_glimmer
import nemotron_h
import qwen3_5
import qwen3_next
from random_weights import tensor

mx.set_default_device(mx.cpu)


def family_of(config):
    """The module of this folder that knows the model."""
    kind = config.get("text_config", config).get("model_type", config["model_type"])
    if granite_hybrid.is_family_of(config):
        return granite_hybrid
    if kind in dense.DEFAULTS:
        return dense
    if kind.startswith("muse_glimmer"):
        return muse_glimmer
    if kind == "qwen3_next":
        return qwen3_next
    if kind.startswith("lfm2"):
        return lfm2
    if kind == "nemotron_h":
        return nemotron_h
    return qwen3_5 if kind.startswith("qwen3_5") else gemma3 if kind.startswith("gemma3") else gemma4


def dtype_of(config):
    text = config.get("text_config", config)
    return next(c[key] for c in (config, text) for key in ("dtype", "torch_dtype") if key in c)


def draw(config, seed):
    """A checkpoint's tensors by name, in float32: the random weights that the exporter draws for seed."""
    dtype, family = dtype_of(config), family_of(config)
    drawn = {name: np.array(tensor(seed, name, shape, dtype, bounds))
             for name, (shape, bounds) in family.tensors(config).items()}
    return family.released(config, drawn) if hasattr(family, "released") else drawn


def load(config, seed):
    """mlx-lm's model of config.json's content, with those weights."""
    family = family_of(config)
    model = family.build(config)
    family.adopt(model, config, draw(config, seed))
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
