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

from reference import family_of, generate, load

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "agreement"
SAMPLING = dict(temperature=0.8, top_k=20, top_p=0.9, seed=42)
NEW_TOKENS = 64


def gemma(**keys):
    return dict(
        dict(model_type="gemma4_text", vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=6,
             num_attention_heads=4, num_key_value_heads=2, head_dim=16, global_head_dim=32, sliding_window=16,
             hidden_size_per_layer_input=0, final_logit_softcapping=30.0, max_position_embeddings=1024),
        **keys)


def gemma_wrapper(dtype, text_config):
    return dict(architectures=["Gemma4ForConditionalGeneration"], model_type="gemma4", dtype=dtype,
                vocab_size=text_config["vocab_size"], text_config=text_config)


def gemma_plain(dtype, text_config, **keys):
    return dict(architectures=["Gemma4ForCausalLM"], torch_dtype=dtype, **text_config, **keys)


def qwen(**keys):
    return dict(
        dict(model_type="qwen3_5_moe_text", vocab_size=512, hidden_size=64, num_hidden_layers=4,
             num_attention_heads=4, num_key_value_heads=2, head_dim=32, linear_num_key_heads=2,
             linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16, num_experts=16,
             num_experts_per_tok=4, moe_intermediate_size=32, shared_expert_intermediate_size=48,
             max_position_embeddings=1024),
        **keys)


def qwen_dense(**keys):
    experts = ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size")
    sizes = {k: v for k, v in qwen(model_type="qwen3_5_text", intermediate_size=96).items() if k not in experts}
    return dict(sizes, **keys)


def qwen_wrapper(text_config, **keys):
    return dict(model_type=text_config["model_type"].removesuffix("_text"), text_config=text_config, **keys)


def next_model(**keys):
    return dict(qwen(model_type="qwen3_next", intermediate_size=96), **keys)


def nemotron(pattern, **keys):
    return dict(
        dict(model_type="nemotron_h", vocab_size=512, hidden_size=64, intermediate_size=96, num_attention_heads=4,
             num_key_value_heads=2, head_dim=32, mamba_num_heads=8, mamba_head_dim=16, ssm_state_size=24, n_groups=2,
             n_routed_experts=16, num_experts_per_tok=4, moe_intermediate_size=32,
             moe_shared_expert_intermediate_size=48, max_position_embeddings=1024, hybrid_override_pattern=pattern),
        **keys)


def granite4(kinds, **keys):
    return dense("granitemoehybrid", **dict(
        dict(num_hidden_layers=len(kinds), layer_types=kinds, num_key_value_heads=2, position_embedding_type="nope",
             mamba_n_heads=8, mamba_d_state=24, num_local_experts=16, num_experts_per_tok=4, intermediate_size=32,
             shared_intermediate_size=48), **keys))


def dense(model_type, **keys):
    return dict(dict(model_type=model_type, vocab_size=512, hidden_size=64, intermediate_size=96, num_hidden_layers=4,
                     num_attention_heads=4, max_position_embeddings=1024), **keys)


# Gemma 4: head sizes, KV heads, windows of 8 to 64, weights in each dtype, both kinds of file, both forms of the per-layer
# shapes. Prompts are longer than two windows.
CONFIGS = {
    "released": gemma_wrapper("bfloat16", gemma(
        attention_k_eq_v=True, num_global_key_value_heads=1, num_attention_heads=8, num_key_value_heads=4,
        layer_types=["sliding_attention"] * 5 + ["full_attention"],
        rope_parameters=dict(
            sliding_attention=dict(rope_type="default", rope_theta=10000.0),
            full_attention=dict(rope_type="proportional", partial_rotary_factor=0.25, rope_theta=1000000.0)))),
    "defaults": gemma_plain("float32", gemma(num_hidden_layers=12, head_dim=24, sliding_window=8)),
    "per_layer": gemma_plain("float32", {k: v for k, v in gemma(
        num_hidden_layers=12, attention_k_eq_v=True, num_key_value_heads=4, sliding_window=24,
        per_layer_config={"05": dict(head_dim=64, num_key_value_heads=2), "11": dict(head_dim=64, num_key_value_heads=2)}
    ).items() if k != "global_head_dim"}),
    "wide_window": gemma_wrapper("float32", gemma(
        hidden_size=96, head_dim=32, global_head_dim=64, sliding_window=64, num_key_value_heads=1,
        final_logit_softcapping=2.0, rms_norm_eps=1e-5)),
    "odd_sizes": gemma_plain("bfloat16", gemma(
        vocab_size=389, hidden_size=72, intermediate_size=100, num_attention_heads=6, num_key_value_heads=3, head_dim=10,
        global_head_dim=40, sliding_window=13, num_hidden_layers=5,
        layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"])),
    "half": gemma_wrapper("float16", gemma(
        num_attention_heads=2, num_key_value_heads=2, head_dim=64, global_head_dim=128, sliding_window=32,
        attention_k_eq_v=True, num_hidden_layers=7)),
    "own_head": gemma_plain("bfloat16", gemma(
        sliding_window=48, final_logit_softcapping=None, vocab_size=1000, attention_k_eq_v=True,
        num_global_key_value_heads=4,
        rope_parameters=dict(
            sliding_attention=dict(rope_type="default", rope_theta=500.0),
            full_attention=dict(rope_type="proportional", partial_rotary_factor=0.5, rope_theta=20000.0, factor=2.0))),
        tie_word_embeddings=False),
}

# Qwen3.5: heads and key-to-value ratios, 8 to 64 experts, widths of the convolution, intervals of 2 to 4, a last layer
# of either kind, both kinds of file and both forms of each key.
CONFIGS.update({
    "qwen_released": qwen_wrapper(qwen(
        num_hidden_layers=8, dtype="bfloat16", attn_output_gate=True, mlp_only_layers=[], mamba_ssm_dtype="float32",
        layer_types=["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 2,
        rope_parameters=dict(mrope_interleaved=True, mrope_section=[2, 1, 1], rope_type="default",
                             rope_theta=10000000, partial_rotary_factor=0.25)), tie_word_embeddings=False),
    "qwen_older": qwen(
        dtype="float32", num_experts=8, num_experts_per_tok=2, linear_num_key_heads=4, rope_theta=500000.0,
        partial_rotary_factor=0.5, rms_norm_eps=1e-5),
    "qwen_many_experts": qwen(
        dtype="bfloat16", num_hidden_layers=6, full_attention_interval=2, num_experts=64, num_experts_per_tok=8,
        num_attention_heads=8, num_key_value_heads=1, linear_conv_kernel_dim=3, norm_topk_prob=True),
    "qwen_odd_sizes": qwen(
        torch_dtype="float32", vocab_size=389, hidden_size=72, num_hidden_layers=5, num_attention_heads=6,
        num_key_value_heads=3, head_dim=24, linear_num_key_heads=3, linear_num_value_heads=12, linear_key_head_dim=20,
        linear_value_head_dim=12, linear_conv_kernel_dim=2, num_experts=12, num_experts_per_tok=3,
        moe_intermediate_size=20, shared_expert_intermediate_size=36),
    "qwen_tied": qwen_wrapper(qwen(
        num_hidden_layers=6, full_attention_interval=3, linear_conv_kernel_dim=5, linear_key_head_dim=64,
        linear_value_head_dim=128, num_experts=32), dtype="float16", tie_word_embeddings=True),
    "qwen_dense": qwen_wrapper(qwen_dense(
        dtype="bfloat16", linear_num_key_heads=4, rope_parameters=dict(rope_type="default", rope_theta=10000000.0)),
        tie_word_embeddings=True),
    "qwen_dense_text": qwen_dense(
        dtype="float32", num_hidden_layers=7, full_attention_interval=3, num_attention_heads=2, num_key_value_heads=2),
})

# Qwen3-Next: ratios of heads, both kinds of the last layer, layers without experts that are listed or all but each last of a
# few, tied and not, weights of experts that do not sum to 1, both forms of the layers and of rotary embedding.
CONFIGS.update({
    "next_released": next_model(
        torch_dtype="bfloat16", num_hidden_layers=8, decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True,
        full_attention_interval=4, rope_theta=5000000, rope_scaling=None, partial_rotary_factor=0.25,
        attention_bias=False, use_sliding_window=False, tie_word_embeddings=False),
    "next_some_experts": next_model(
        dtype="float32", num_hidden_layers=6, mlp_only_layers=[1], decoder_sparse_step=2, tie_word_embeddings=True,
        linear_num_key_heads=4, linear_key_head_dim=24, linear_value_head_dim=20, rms_norm_eps=1e-5,
        full_attention_interval=3, rope_parameters=dict(rope_type="default", rope_theta=1e7, partial_rotary_factor=0.5)),
    "next_plain_weights": next_model(
        dtype="float32", vocab_size=389, hidden_size=72, num_hidden_layers=5, num_attention_heads=6,
        num_key_value_heads=3, head_dim=24, linear_num_key_heads=3, linear_num_value_heads=12, linear_key_head_dim=20,
        linear_value_head_dim=12, linear_conv_kernel_dim=2, num_experts=12, num_experts_per_tok=3,
        moe_intermediate_size=20, shared_expert_intermediate_size=36, norm_topk_prob=False),
    "next_listed_layers": next_model(
        dtype="float16", num_hidden_layers=4, linear_num_key_heads=1, num_experts=64, num_experts_per_tok=10,
        mlp_only_layers=[0, 2], layer_types=["linear_attention", "full_attention"] * 2),
})

# The plain decoders: each family, scalings of rotary embedding, tied and not, head sizes that are given and not, windows
# in all layers, in some, and none, layers with experts and without, both kinds of file.
LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
CONFIGS.update({
    "llama_released": dense(
        "llama", torch_dtype="bfloat16", num_key_value_heads=2, rope_theta=500000.0, tie_word_embeddings=True,
        rope_scaling=dict(LLAMA3, rope_type="llama3"), rms_norm_eps=1e-5, attention_bias=False, mlp_bias=False),
    "llama_older": dense("llama", torch_dtype="float16", num_hidden_layers=3, num_attention_heads=8, vocab_size=389,
                         rope_scaling=dict(type="linear", factor=2.5)),
    "mistral_window": dense("mistral", dtype="float32", num_key_value_heads=1, sliding_window=16, hidden_size=72,
                            num_attention_heads=6, rope_parameters=dict(rope_type="default", rope_theta=1000000.0)),
    "mistral_wrapped": dict(model_type="mistral3", dtype="bfloat16", vision_config=dict(model_type="pixtral"),
                            text_config=dense("mistral", num_key_value_heads=4, head_dim=24, sliding_window=None)),
    "qwen3_dense": dense("qwen3", dtype="bfloat16", num_key_value_heads=2, head_dim=32, tie_word_embeddings=True,
                         rope_theta=1000000, use_sliding_window=False, sliding_window=None, max_window_layers=4),
    "qwen3_yarn": dense("qwen3", dtype="float32", num_key_value_heads=4, head_dim=64, num_hidden_layers=5,
                        use_sliding_window=True, sliding_window=24, max_window_layers=3,
                        rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)),
    "qwen3_experts": dense("qwen3_moe", dtype="bfloat16", num_key_value_heads=2, head_dim=32, num_experts=16,
                           num_experts_per_tok=4, moe_intermediate_size=40, norm_topk_prob=True,
                           rope_parameters=dict(rope_type="default", rope_theta=10000000.0)),
    "qwen3_some_experts": dense("qwen3_moe", dtype="float32", num_hidden_layers=6, num_key_value_heads=1, num_experts=8,
                                num_experts_per_tok=3, moe_intermediate_size=24, mlp_only_layers=[1],
                                decoder_sparse_step=2),
})

# Gemma 4 with experts, and the one without encoders.
CONFIGS.update({
    "gemma_experts": gemma_wrapper("bfloat16", gemma(
        enable_moe_block=True, num_experts=16, top_k_experts=4, moe_intermediate_size=24, attention_k_eq_v=True,
        num_global_key_value_heads=1)),
    "gemma_many_experts": gemma_plain("float32", gemma(
        enable_moe_block=True, num_experts=40, top_k_experts=8, moe_intermediate_size=20, num_hidden_layers=4,
        hidden_size=72, layer_types=["full_attention", "sliding_attention", "full_attention", "sliding_attention"])),
    "gemma_shared_keys": gemma_wrapper("bfloat16", gemma(
        hidden_size_per_layer_input=16, vocab_size_per_layer_input=512, num_kv_shared_layers=4, use_double_wide_mlp=True,
        num_hidden_layers=9, num_key_value_heads=1, sliding_window=24,
        layer_types=(["sliding_attention"] * 2 + ["full_attention"]) * 3)),
    "gemma_layer_inputs": gemma_plain("float32", gemma(
        hidden_size_per_layer_input=24, vocab_size_per_layer_input=600, num_kv_shared_layers=2, num_hidden_layers=6,
        hidden_size=72, layer_types=["full_attention", "sliding_attention"] * 3)),
    "gemma_unified": dict(gemma_wrapper("bfloat16", gemma(
        model_type="gemma4_unified_text", num_hidden_layers=7, sliding_window=24, attention_k_eq_v=True,
        num_global_key_value_heads=2)), model_type="gemma4_unified"),
})

# Biases of queries, keys and values.
CONFIGS.update({
    "qwen2_released": dense("qwen2", torch_dtype="bfloat16", num_key_value_heads=2, tie_word_embeddings=True,
                            rope_theta=1000000.0, use_sliding_window=False, sliding_window=32768, max_window_layers=21),
    "qwen2_own_head": dense("qwen2", dtype="float16", vocab_size=389, hidden_size=72, num_attention_heads=6,
                            num_key_value_heads=None, num_hidden_layers=3, rms_norm_eps=1e-5,
                            rope_parameters=dict(rope_type="default", rope_theta=10000.0)),
    "qwen2_window": dense("qwen2", dtype="float32", num_attention_heads=8, num_key_value_heads=1, num_hidden_layers=5,
                          use_sliding_window=True, sliding_window=24, max_window_layers=3,
                          rope_scaling=dict(type="yarn", factor=4.0, original_max_position_embeddings=32)),
})

# Gemma 3: both kinds of file, old and nested parameters of rotary embedding, scaled and not, layers that slide by a pattern
# and listed, both kinds of the last layer, widths whose root is no whole number.
CONFIGS.update({
    "gemma3_released": dict(model_type="gemma3", torch_dtype="bfloat16", vision_config=dict(model_type="siglip_vision_model"),
                            eos_token_id=[1, 106], text_config=dense(
        "gemma3_text", num_hidden_layers=8, num_key_value_heads=2, head_dim=32, sliding_window=16, hidden_size=80,
        rope_scaling=dict(rope_type="linear", factor=8.0))),
    "gemma3_text": dense(
        "gemma3_text", dtype="float32", num_hidden_layers=6, num_key_value_heads=1, head_dim=32, hidden_size=72,
        sliding_window=24, query_pre_attn_scalar=32, rope_theta=1000000.0, rope_local_base_freq=10000.0, rope_scaling=None,
        layer_types=["sliding_attention"] * 5 + ["full_attention"], _sliding_window_pattern=6,
        use_bidirectional_attention=False, attn_logit_softcapping=None, final_logit_softcapping=None),
    "gemma3_nested": dense(
        "gemma3_text", dtype="float16", num_key_value_heads=4, head_dim=16, sliding_window=8, query_pre_attn_scalar=20,
        tie_word_embeddings=False, final_logit_softcapping=5.0, rms_norm_eps=1e-5,
        layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
        sliding_window_pattern=4, rope_parameters=dict(
            full_attention=dict(rope_type="linear", factor=4.0, rope_theta=50000.0),
            sliding_attention=dict(rope_type="default", rope_theta=500.0))),
    "gemma3_odd_sizes": dense(
        "gemma3_text", dtype="bfloat16", vocab_size=389, hidden_size=75, intermediate_size=100, num_hidden_layers=7,
        num_attention_heads=5, num_key_value_heads=1, head_dim=24, sliding_window=13, sliding_window_pattern=3,
        query_pre_attn_scalar=15, rope_theta=20000.0, rope_local_base_freq=300.0),
})

# Layers without rotary embedding: each fourth, of another interval, and listed, the last one too; beside a scaled one whose
# factor is of layers that turn.
CONFIGS.update({
    "smollm3_released": dense(
        "smollm3", torch_dtype="bfloat16", num_hidden_layers=6, num_key_value_heads=2, rope_theta=5000000.0,
        attention_bias=False, mlp_bias=False, rope_scaling=None, sliding_window=None, use_sliding_window=False,
        no_rope_layers=[1, 1, 1, 0, 1, 1], no_rope_layer_interval=4, layer_types=["full_attention"] * 6),
    "smollm3_interval": dense(
        "smollm3", dtype="float16", vocab_size=389, hidden_size=72, num_attention_heads=6, num_key_value_heads=3,
        no_rope_layer_interval=3, num_hidden_layers=5, tie_word_embeddings=False),
    "smollm3_yarn": dense(
        "smollm3", dtype="float32", num_attention_heads=8, num_key_value_heads=None, no_rope_layers=[0, 1, 1, 0],
        rope_parameters=dict(rope_type="yarn", rope_theta=50000.0, factor=4.0, original_max_position_embeddings=32)),
})

# Granite: multipliers that are given, left out in part, and small; the third with two matrices in one tensor, the last of
# its kind without rotary embedding.
CONFIGS.update({
    "granite_released": dense(
        "granite", torch_dtype="bfloat16", num_key_value_heads=2, tie_word_embeddings=False, rope_theta=10000000.0,
        attention_bias=False, mlp_bias=False, rope_scaling=None, rms_norm_eps=1e-5, embedding_multiplier=12.0,
        attention_multiplier=0.0625, residual_multiplier=0.22, logits_scaling=8.0),
    "granite_own_head": dense(
        "granite", dtype="float16", vocab_size=389, hidden_size=72, num_attention_heads=6, num_key_value_heads=None,
        num_hidden_layers=3, attention_multiplier=0.3, rope_parameters=dict(rope_type="default", rope_theta=50000.0)),
    "granite_hybrid": dense(
        "granitemoehybrid", dtype="bfloat16", num_key_value_heads=1, shared_intermediate_size=96, num_local_experts=0,
        num_experts_per_tok=0, layer_types=["attention"] * 4, position_embedding_type="rope", rope_theta=10000000.0,
        tie_word_embeddings=True, attention_bias=False, embedding_multiplier=0.2, attention_multiplier=0.125,
        residual_multiplier=0.246, logits_scaling=4, mamba_n_heads=128, mamba_d_head=1),
    "granite_hybrid_nope": dense(
        "granitemoehybrid", dtype="float32", intermediate_size=80, num_hidden_layers=5, shared_intermediate_size=80,
        num_local_experts=0, layer_types=["attention"] * 5, position_embedding_type="nope", attention_multiplier=0.25,
        residual_multiplier=0.5, mamba_n_heads=128, mamba_d_head=1),
})

# Phi: a part of each head turns, with the long factors and with the short ones; windows as wide as the context, and
# narrower; and a whole head without factors.
CONFIGS.update({
    "phi3_long": dense(
        "phi3", torch_dtype="bfloat16", num_key_value_heads=2, hidden_size=128, tie_word_embeddings=True,
        partial_rotary_factor=0.75, max_position_embeddings=1024, original_max_position_embeddings=32,
        sliding_window=262144, attention_bias=False, rope_scaling=dict(
            type="longrope", short_factor=[1.0] * 12, long_factor=[1 + 0.35 * i * i for i in range(12)])),
    "phi3_short": dense(
        "phi3", dtype="float16", vocab_size=389, hidden_size=96, num_attention_heads=6, num_key_value_heads=3,
        max_position_embeddings=16384, original_max_position_embeddings=8192, num_hidden_layers=3, rms_norm_eps=1e-6,
        rope_parameters=dict(
            rope_type="longrope", rope_theta=5000.0, partial_rotary_factor=0.5, original_max_position_embeddings=8192,
            short_factor=[1.0, 1.25, 1.5, 2.0], long_factor=[3.0, 9.0, 27.0, 81.0])),
    "phi3_window": dense(
        "phi3", dtype="float32", num_key_value_heads=None, num_hidden_layers=3, sliding_window=24, rope_theta=500.0,
        rope_scaling=None),
})

# gpt-oss: windows in every other layer and listed, both kinds of the last one; the ends of YaRN's ramp rounded and not;
# a choice of one expert.
YARN = dict(rope_type="yarn", factor=32.0, beta_fast=32.0, beta_slow=1.0, original_max_position_embeddings=64)
CONFIGS.update({
    "gpt_oss_released": dense(
        "gpt_oss", torch_dtype="bfloat16", num_attention_heads=8, num_key_value_heads=2, head_dim=32, sliding_window=16,
        intermediate_size=48, num_local_experts=8, num_experts_per_tok=4, attention_bias=True, swiglu_limit=7.0,
        experts_per_token=4, initial_context_length=64, rope_theta=150000, rms_norm_eps=1e-5, hidden_act="silu",
        layer_types=["sliding_attention", "full_attention"] * 2, rope_scaling=dict(YARN, truncate=False)),
    "gpt_oss_odd_sizes": dense(
        "gpt_oss", dtype="float32", vocab_size=389, hidden_size=72, intermediate_size=20, num_hidden_layers=5,
        num_attention_heads=6, num_key_value_heads=1, head_dim=24, sliding_window=13, num_local_experts=5,
        num_experts_per_tok=1, rms_norm_eps=1e-6, layer_types=["full_attention"] + ["sliding_attention"] * 4,
        rope_parameters=dict(YARN, rope_theta=5000.0)),
    "gpt_oss_half": dense(
        "gpt_oss", dtype="float16", num_attention_heads=16, num_key_value_heads=2, head_dim=16, sliding_window=48,
        num_local_experts=12, num_experts_per_tok=3, rope_theta=500.0, rope_scaling=dict(YARN, truncate=True)),
})

# Muse Glimmer: wrapped as transformers writes it and flat as mlx-lm does; layers by the pattern and listed, apart from
# those that turn; both kinds of the last layer.
CONFIGS.update({
    "muse_released": dict(model_type="muse_glimmer", dtype="bfloat16", vision_config=dict(model_type="muse_glimmer_vision"),
                          text_config=dense(
        "muse_glimmer_text", num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=2, head_dim=16, sliding_window=16,
        layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 2, layer_rope_theta=[500000.0] * 3 + [0] + [500000.0] * 3 + [0],
        rope_parameters=dict(rope_type="default", rope_theta=500000.0), qk_scale_factor=3.87, hidden_activation="silu",
        output_multiplier=0.5, final_logit_softcapping=20.0, post_norm_eps=1e-8, rms_norm_eps=1e-5, attention_bias=False)),
    "muse_flat": dense(
        "muse_glimmer", dtype="float32", vocab_size=389, hidden_size=72, num_hidden_layers=4, num_attention_heads=6,
        num_key_value_heads=1, head_dim=24, sliding_window=13, rope_theta=3000.0, tie_word_embeddings=True),
    "muse_listed": dense(
        "muse_glimmer_text", dtype="float16", num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=4, head_dim=32,
        sliding_window=24, qk_scale_factor=1.5, output_multiplier=2.0, final_logit_softcapping=4.0, post_norm_eps=1e-3,
        rms_norm_eps=1e-6, rope_theta=900.0,
        layer_types=["full_attention"] + ["sliding_attention"] * 2 + ["full_attention", "sliding_attention"],
        layer_rope_theta=[900.0, 0, 900.0, 0, 900.0]),
})

# Nemotron: layers by the pattern, by transformers' names and by former ones, a last layer of each kind; one group of heads
# and several; weights of experts that sum to a factor or to nothing; narrower experts; no shared one.
CONFIGS.update({
    "nemotron_released": nemotron(
        "MEM*EMEM*E", torch_dtype="bfloat16", routed_scaling_factor=2.5, n_group=1, topk_group=1, norm_topk_prob=True,
        n_shared_experts=1, time_step_limit=[0.0, float("inf")], time_step_min=0.001, time_step_max=0.1, expand=2,
        chunk_size=128, mamba_hidden_act="silu", mlp_hidden_act="relu2", num_hidden_layers=10, residual_in_fp32=False,
        sliding_window=None),
    "nemotron_dense": nemotron("M-M-*-M", dtype="float32", n_groups=8, mamba_num_heads=8, ssm_state_size=16,
                               num_key_value_heads=1, conv_kernel=3, use_conv_bias=False),
    "nemotron_latent": nemotron(
        None, dtype="float16", layers_block_type=["mamba", "moe", "attention", "moe", "mamba", "mlp"], vocab_size=389,
        hidden_size=72, moe_latent_size=40, n_shared_experts=None, norm_topk_prob=False, num_experts_per_tok=3,
        n_routed_experts=10, n_groups=1, mamba_num_heads=6, mamba_head_dim=12, head_dim=18, layer_norm_epsilon=1e-6),
    "nemotron_odd_sizes": nemotron(
        None, dtype="float32", layer_types=["full_attention", "linear_attention", "moe", "full_attention"], vocab_size=389,
        hidden_size=60, n_groups=3, mamba_num_heads=9, mamba_head_dim=10, ssm_state_size=20, moe_intermediate_size=20,
        moe_shared_expert_intermediate_size=28, conv_kernel=5, num_attention_heads=6, num_key_value_heads=3, head_dim=10),
})

# LFM2: layers listed and by number, a last layer of either kind, widths as they are and computed, experts behind dense
# layers and in all, their weights summing to a factor or to nothing.
CONFIGS.update({
    "lfm2_released": dense(
        "lfm2", torch_dtype="bfloat16", num_hidden_layers=6, num_key_value_heads=2, block_ff_dim=96, block_dim=64,
        block_multiple_of=32, block_ffn_dim_multiplier=1.0, block_auto_adjust_ff_dim=True, conv_L_cache=3, conv_bias=False,
        norm_eps=1e-5, full_attn_idxs=[2, 5], rope_theta=1000000.0, tie_embedding=True),
    "lfm2_odd_sizes": dense(
        "lfm2", dtype="float32", vocab_size=389, hidden_size=72, num_hidden_layers=5, num_attention_heads=6,
        num_key_value_heads=3, intermediate_size=100, block_auto_adjust_ff_dim=False, conv_L_cache=5, norm_eps=1e-6,
        layer_types=["conv", "full_attention", "conv", "full_attention", "conv"], rope_parameters=dict(
            rope_type="default", rope_theta=5000.0)),
    "lfm2_moe_released": dense(
        "lfm2_moe", torch_dtype="bfloat16", num_hidden_layers=6, num_key_value_heads=2, moe_intermediate_size=32, num_experts=16,
        num_experts_per_tok=4, num_dense_layers=2, norm_topk_prob=True, use_expert_bias=True, routed_scaling_factor=1.0,
        conv_L_cache=3, conv_bias=False, norm_eps=1e-5, rope_theta=1000000.0, tie_embedding=True,
        layer_types=["conv", "conv", "full_attention", "conv", "full_attention", "conv"]),
    "lfm2_moe_scaled": dense(
        "lfm2_moe", dtype="float32", num_hidden_layers=4, num_key_value_heads=1, moe_intermediate_size=20, num_experts=6,
        num_experts_per_tok=2, num_dense_layers=0, norm_topk_prob=False, routed_scaling_factor=1.75, conv_L_cache=4,
        layer_types=["full_attention", "conv", "conv", "full_attention"]),
})

# Ministral 3: wrapped as released and by itself; queries that grow and do not, within windows and without; YaRN whose
# factors cancel and whose do not, and none.
MINISTRAL_YARN = dict(rope_type="yarn", factor=16.0, beta_fast=32.0, beta_slow=1.0, original_max_position_embeddings=32)
CONFIGS.update({
    "ministral3_released": dict(model_type="mistral3", dtype="bfloat16", vision_config=dict(model_type="pixtral"),
                                text_config=dense(
        "ministral3", num_key_value_heads=2, head_dim=32, max_position_embeddings=512, rms_norm_eps=1e-5, sliding_window=None,
        rope_parameters=dict(MINISTRAL_YARN, type="yarn", rope_theta=1000000.0, max_position_embeddings=512, mscale=1.0,
                             mscale_all_dim=1.0, llama_4_scaling_beta=0.1))),
    "ministral3_window": dense(
        "ministral3", dtype="float32", vocab_size=389, hidden_size=72, num_attention_heads=6, num_key_value_heads=1,
        head_dim=24, num_hidden_layers=3, sliding_window=24, tie_word_embeddings=True, rope_theta=5000.0,
        rope_scaling=dict(MINISTRAL_YARN, llama_4_scaling_beta=0.75)),
    "ministral3_plain": dense(
        "ministral3", dtype="float16", num_key_value_heads=4, head_dim=16, num_hidden_layers=3,
        rope_parameters=dict(rope_type="default", rope_theta=500.0, llama_4_scaling_beta=0.0, original_max_position_embeddings=64)),
})

# OLMo: norms of whole queries and keys; windows by the pattern and listed, both kinds of the last layer; full layers
# scaled, in both forms of the file, and not; each kind with a theta of its own.
CONFIGS.update({
    "olmo2_released": dense(
        "olmo2", dtype="bfloat16", num_key_value_heads=2, head_dim=24, rope_theta=500000.0, rms_norm_eps=1e-6,
        rope_scaling=None, attention_bias=False),
    "olmo3_released": dense(
        "olmo3", dtype="bfloat16", num_hidden_layers=8, num_key_value_heads=4, sliding_window=16, rope_theta=500000.0,
        rms_norm_eps=1e-6, attention_bias=False, layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 2,
        rope_scaling=dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=64, beta_fast=32.0, beta_slow=1.0,
                          attention_factor=1.2079441541679836)),
    "olmo3_nested": dense(
        "olmo3", dtype="float32", vocab_size=389, hidden_size=72, num_attention_heads=6, num_key_value_heads=3,
        sliding_window=13, tie_word_embeddings=True,
        layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"], rope_parameters=dict(
            full_attention=dict(rope_type="yarn", rope_theta=5000.0, factor=4.0, original_max_position_embeddings=32),
            sliding_attention=dict(rope_type="default", rope_theta=300.0))),
    "olmo3_half": dense("olmo3", dtype="float16", num_hidden_layers=5, sliding_window=24),
})

# Granite 4: with experts and without, a last layer of each kind, layers under both names and none listed; groups of heads,
# which have a norm each; attention that turns; heads of the usual size; every multiplier.
CONFIGS.update({
    "granite4_experts": granite4(
        ["mamba", "mamba", "attention", "mamba"], dtype="bfloat16", mamba_n_groups=1, mamba_d_head=16, mamba_d_conv=4,
        mamba_expand=2, mamba_chunk_size=256, mamba_conv_bias=True, mamba_proj_bias=False, attention_bias=False,
        hidden_act="silu", normalization_function="rmsnorm", rms_norm_eps=1e-5, rope_scaling=None, rope_theta=10000,
        tie_word_embeddings=True, embedding_multiplier=0.2, attention_multiplier=0.0625, residual_multiplier=0.22,
        logits_scaling=6),
    "granite4_dense": granite4(
        ["mamba", "attention", "mamba", "attention"], dtype="float32", num_local_experts=0, num_experts_per_tok=0,
        intermediate_size=48, num_key_value_heads=1, mamba_conv_bias=False, mamba_d_conv=3, position_embedding_type="rope",
        rope_theta=5000.0, residual_multiplier=0.246, time_step_limit=[0.0, float("inf")]),
    "granite4_odd_sizes": granite4(
        ["full_attention", "linear_attention", "full_attention", "linear_attention"], dtype="float32", vocab_size=389,
        hidden_size=60, num_attention_heads=6, num_key_value_heads=3, mamba_n_heads=9, mamba_d_head=20, mamba_expand=3,
        mamba_n_groups=3, mamba_d_state=20, mamba_d_conv=5, num_local_experts=10, num_experts_per_tok=3, intermediate_size=20,
        shared_intermediate_size=28, attention_multiplier=0.3),
    "granite4_mamba": granite4(
        ["mamba"] * 3, layer_types=None, dtype="float16", num_experts_per_tok=2, num_local_experts=6, logits_scaling=2.0),
})


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for index, (name, config) in enumerate(CONFIGS.items()):
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        family = family_of(config)
        random = np.random.default_rng(index)
        vocab_size = family.explicit(config)["vocab_size"]
        prompt = random.integers(0, vocab_size, family.prompt_length(config) + index).tolist()
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
