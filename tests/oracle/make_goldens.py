#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/export/agreement: configurations, and what mlx-lm answers for them.

    make_goldens.py [NAME ...]        all configurations, or those named

Weights are not stored: gumbel export --random-weights SEED and random_weights.py draw the same. Each NAME.json
is a config.json; NAME.golden.json holds the seed, a prompt, the logits of its last token, and the tokens that
follow greedily and sampled. Needs mlx[cpu] (or mlx), mlx-lm and numpy.
"""
import json
import pathlib
import sys

import numpy as np

from reference import explicit, generate, load

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "agreement"
SAMPLING = dict(temperature=0.8, top_k=20, top_p=0.9, seed=42)
NEW_TOKENS = 64


def text(**keys):
    return dict(
        dict(model_type="gemma4_text", vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=6,
             num_attention_heads=4, num_key_value_heads=2, head_dim=16, global_head_dim=32, sliding_window=16,
             hidden_size_per_layer_input=0, final_logit_softcapping=30.0, max_position_embeddings=1024),
        **keys)


def wrapper(dtype, text_config):
    return dict(architectures=["Gemma4ForConditionalGeneration"], model_type="gemma4", dtype=dtype,
                vocab_size=text_config["vocab_size"], text_config=text_config)


def plain(dtype, text_config, **keys):
    return dict(architectures=["Gemma4ForCausalLM"], torch_dtype=dtype, **text_config, **keys)


# Head sizes, KV heads, windows of 8 to 64, weights in each dtype, both kinds of file, both forms of the per-layer
# shapes. Prompts are longer than two windows.
CONFIGS = {
    "released": wrapper("bfloat16", text(
        attention_k_eq_v=True, num_global_key_value_heads=1, num_attention_heads=8, num_key_value_heads=4,
        layer_types=["sliding_attention"] * 5 + ["full_attention"],
        rope_parameters=dict(
            sliding_attention=dict(rope_type="default", rope_theta=10000.0),
            full_attention=dict(rope_type="proportional", partial_rotary_factor=0.25, rope_theta=1000000.0)))),
    "defaults": plain("float32", text(num_hidden_layers=12, head_dim=24, sliding_window=8)),
    "per_layer": plain("float32", {k: v for k, v in text(
        num_hidden_layers=12, attention_k_eq_v=True, num_key_value_heads=4, sliding_window=24,
        per_layer_config={"05": dict(head_dim=64, num_key_value_heads=2), "11": dict(head_dim=64, num_key_value_heads=2)}
    ).items() if k != "global_head_dim"}),
    "wide_window": wrapper("float32", text(
        hidden_size=96, head_dim=32, global_head_dim=64, sliding_window=64, num_key_value_heads=1,
        final_logit_softcapping=2.0, rms_norm_eps=1e-5)),
    "odd_sizes": plain("bfloat16", text(
        vocab_size=389, hidden_size=72, intermediate_size=100, num_attention_heads=6, num_key_value_heads=3, head_dim=10,
        global_head_dim=40, sliding_window=13, num_hidden_layers=5,
        layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"])),
    "half": wrapper("float16", text(
        num_attention_heads=2, num_key_value_heads=2, head_dim=64, global_head_dim=128, sliding_window=32,
        attention_k_eq_v=True, num_hidden_layers=7)),
    "own_head": plain("bfloat16", text(
        sliding_window=48, final_logit_softcapping=None, vocab_size=1000, attention_k_eq_v=True,
        num_global_key_value_heads=4,
        rope_parameters=dict(
            sliding_attention=dict(rope_type="default", rope_theta=500.0),
            full_attention=dict(rope_type="proportional", partial_rotary_factor=0.5, rope_theta=20000.0, factor=2.0))),
        tie_word_embeddings=False),
}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for index, (name, config) in enumerate(CONFIGS.items()):
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        sizes = explicit(config)
        random = np.random.default_rng(index)
        prompt = random.integers(0, sizes["vocab_size"], 2 * sizes["sliding_window"] + 11 + index).tolist()
        seed = 1000 + index
        model = load(config, seed)
        logits, greedy = generate(model, prompt, NEW_TOKENS)
        _, sampled = generate(model, prompt, NEW_TOKENS, **SAMPLING)
        golden = dict(weights_seed=seed, prompt=prompt, greedy=greedy, sampled=sampled, sampling=SAMPLING,
                      logits=[float(f"{x:.9g}") for x in logits])
        (OUT / f"{name}.json").write_text(json.dumps(config, indent=1) + "\n")
        (OUT / f"{name}.golden.json").write_text(json.dumps(golden) + "\n")
        print(f"{name}: {len(prompt)} prompt tokens, {len(set(greedy))} kinds of greedy tokens, "
              f"{len(set(sampled))} of sampled ones, logits up to {np.abs(logits).max():.3f}")


main()
