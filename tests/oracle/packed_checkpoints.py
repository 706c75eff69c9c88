# SPDX-License-Identifier: Apache-2.0
"""Small random models for checkpoints that hold quantized weights, and the answers that go with them."""

import json
import shutil

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map

from reference import dtype_of, draw, family_of, generate

VOCABULARY = 96


def gemma(dtype, **keys):
    text = dict(dict(
        model_type="gemma4_text", vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=16, global_head_dim=32, sliding_window=8,
        hidden_size_per_layer_input=0, final_logit_softcapping=30.0, max_position_embeddings=256,
        layer_types=["sliding_attention", "full_attention"], attention_k_eq_v=True), **keys)
    return dict(model_type="gemma4", dtype=dtype, vocab_size=VOCABULARY, text_config=text)


def qwen(dtype, **keys):
    text = dict(dict(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, full_attention_interval=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, linear_num_key_heads=1, linear_num_value_heads=2, linear_key_head_dim=16,
        linear_value_head_dim=16, max_position_embeddings=256), **keys)
    model_type = "qwen3_5_moe" if "num_experts" in text else "qwen3_5"
    text["model_type"] = model_type + "_text"
    return dict(model_type=model_type, dtype=dtype, vocab_size=VOCABULARY, text_config=text)


def qwen_moe(dtype, **keys):
    return qwen(dtype, **{**dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
                                 shared_expert_intermediate_size=32), **keys})


def next_model(dtype, **keys):
    text = qwen_moe(dtype, **{**dict(linear_num_value_heads=4, intermediate_size=64), **keys})["text_config"]
    return dict(text, model_type="qwen3_next", dtype=dtype)


def qwen2(dtype, **keys):
    return dict(dict(
        model_type="qwen2", dtype=dtype, vocab_size=VOCABULARY, hidden_size=64, intermediate_size=64,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256), **keys)


def explicit(config):
    """The configuration with every key that mlx-lm reads, where its defaults are not transformers'."""
    if "text_config" not in config:
        return family_of(config).explicit(config)
    return dict(config, text_config=family_of(config).explicit(config),
                tie_word_embeddings=family_of(config).explicit(config)["tie_word_embeddings"])


def write_released(directory, config, seed):
    """The checkpoint with the weights that the exporter draws for that seed, named as released ones are."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    dtype = getattr(mx, dtype_of(config))
    weights = {name: mx.array(value).astype(dtype) for name, value in draw(config, seed).items()}
    mx.save_safetensors(str(directory / "model.safetensors"), weights, metadata={"format": "pt"})
    (directory / "config.json").write_text(json.dumps(config))


def to_float32(model):
    """The model with float32 arithmetic throughout; codes stay codes."""
    model.update(tree_map(lambda a: a.astype(mx.float32) if mx.issubdtype(a.dtype, mx.floating) else a,
                          model.parameters()))
    model.eval()
    return model


def checksum(values):
    """Of float32 values, in order: the sum of each one's bits times an odd number that tells places apart."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).reshape(-1).astype(np.uint64)
    with np.errstate(over="ignore"):
        total = (bits * (2 * np.arange(bits.size, dtype=np.uint64) + 1)).sum(dtype=np.uint64)
    return f"{int(total):016x}"


def write_golden(directory, model, seed, weights=None):
    """The logits of a prompt's last token by a float32 model, and the checksums of dequantized weights by name."""
    prompt = [(31 * i + seed) % VOCABULARY for i in range(27)]
    logits, _ = generate(model, prompt, 1)
    golden = dict(weights_seed=seed, prompt=prompt, logits=[float(f"{x:.9g}") for x in logits])
    if weights:
        golden["weights"] = {name: checksum(values) for name, values in weights.items()}
    (directory / "golden.json").write_text(json.dumps(golden) + "\n")
    size = sum(file.stat().st_size for file in directory.iterdir())
    print(f"{directory.name}: {size} bytes, logits up to {np.abs(logits).max():.3f}")
