#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/export/gguf/nemotron_NAME.gguf from each nemotron_NAME.json as llama.cpp's converter does.

    make_nemotron_gguf.py [LLAMA_CPP_PYTHON]

The weights are those that gumbel export --random-weights draws with seed 5; tensors' names are the gguf package's.
Given the source tree of llama-cpp-python (and its libraries by LLAMA_CPP_LIB_PATH) it also compares llama.cpp's
greedy answer and logits with mlx-lm's. Needs gguf, mlx, mlx-lm and numpy.
"""
import json
import pathlib
import sys

import gguf
import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache

import nemotron_h
from random_weights import tensor
from reference import dtype_of, load

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "gguf"
SEED, GREEDY = 5, 12
PROMPT = list(range(3, 40))


def write_settings(writer, text):
    kinds = text["hybrid_override_pattern"]
    writer.add_block_count(len(kinds))
    writer.add_context_length(text["max_position_embeddings"])
    writer.add_embedding_length(text["hidden_size"])
    writer.add_head_count(text["num_attention_heads"])
    writer.add_head_count_kv([text["num_key_value_heads"] if kind == "*" else 0 for kind in kinds])
    writer.add_key_length(text["head_dim"])
    writer.add_value_length(text["head_dim"])
    writer.add_layer_norm_eps(text["layer_norm_epsilon"])
    writer.add_ssm_conv_kernel(text["conv_kernel"])
    writer.add_ssm_state_size(text["ssm_state_size"])
    writer.add_ssm_group_count(text["n_groups"])
    writer.add_ssm_inner_size(text["mamba_num_heads"] * text["mamba_head_dim"])
    writer.add_ssm_time_step_rank(text["mamba_num_heads"])
    writer.add_vocab_size(text["vocab_size"])
    writer.add_tokenizer_model("none")
    if "E" not in kinds:
        writer.add_feed_forward_length([text["intermediate_size"] if kind == "-" else 0 for kind in kinds])
        return
    writer.add_feed_forward_length([text["moe_intermediate_size"] if kind == "E" else 0 for kind in kinds])
    writer.add_expert_used_count(text["num_experts_per_tok"])
    writer.add_expert_feed_forward_length(text["moe_intermediate_size"])
    writer.add_expert_shared_feed_forward_length(text["moe_shared_expert_intermediate_size"])
    writer.add_expert_count(text["n_routed_experts"])
    writer.add_expert_shared_count(text["n_shared_experts"])
    writer.add_expert_weights_norm(text["norm_topk_prob"])
    writer.add_expert_weights_scale(text["routed_scaling_factor"])
    writer.add_expert_group_count(text["n_group"])
    if text["moe_latent_size"]:
        writer.add_moe_latent_size(text["moe_latent_size"])


def converted(name, value, groups):
    if name.endswith("conv1d.weight"):
        return value.squeeze(1)
    if name.endswith("A_log"):
        return -np.exp(value).reshape(-1, 1)
    if name.endswith("mixer.D"):
        return value.reshape(-1, 1)
    return value.reshape(groups, -1) if name.endswith("mixer.norm.weight") else value


def names_of(name):
    """What the package's table knows: experts are stacks, biases have their weight's name."""
    if ".experts." in name:
        return name.replace("backbone.", "model.").replace(".mixer.", ".mlp.") + ".weight"
    return name.replace("dt_bias", "dt.bias").replace("e_score_correction_bias", "e_score_correction.bias")


def write(path, config, text):
    has_experts = "E" in text["hybrid_override_pattern"]
    architecture = gguf.MODEL_ARCH.NEMOTRON_H_MOE if has_experts else gguf.MODEL_ARCH.NEMOTRON_H
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[architecture])
    write_settings(writer, text)
    table = gguf.get_tensor_name_map(architecture, len(text["hybrid_override_pattern"]))
    for name, (shape, bounds) in nemotron_h.tensors(config).items():
        value = np.array(tensor(SEED, name, shape, dtype_of(config), bounds))
        known = names_of(name.replace("model.", "backbone.", 1))
        other = table.get_name(known, try_suffixes=(".weight", ".bias"))
        if other is None:
            raise SystemExit(f"the gguf package has no name for {known}")
        writer.add_tensor(other, np.ascontiguousarray(converted(name, value, text["n_groups"]), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def mlx_answer(config):
    model = load(config, SEED)
    cache, tokens, ids = make_prompt_cache(model), PROMPT, []
    for _ in range(GREEDY):
        logits = np.array(model(mx.array([tokens]), cache=cache)[0, -1].astype(mx.float32))
        first = logits if not ids else first
        ids.append(int(logits.argmax()))
        tokens = ids[-1:]
    return first, ids


def llama_answer(tree, path):
    sys.path.insert(0, tree)
    from llama_cpp import Llama
    model = Llama(str(path), n_ctx=256, logits_all=True, verbose=False)
    tokens, ids = PROMPT, []
    for _ in range(GREEDY):
        model.eval(tokens)
        logits = np.array(model.scores[model.n_tokens - 1])
        first = logits if not ids else first
        ids.append(int(logits.argmax()))
        tokens = ids[-1:]
    return first, ids


def main():
    for path in sorted(DATA.glob("nemotron_*.json")):
        config = json.loads(path.read_text())
        text = nemotron_h.explicit(config)
        write(path.with_suffix(".gguf"), config, text)
        if len(sys.argv) > 1:
            (logits, ids), (theirs, their_ids) = mlx_answer(config), llama_answer(sys.argv[1], path.with_suffix(".gguf"))
            print(path.stem, "difference", np.abs(logits - theirs).max() / np.abs(logits).max(), ids == their_ids)


main()
