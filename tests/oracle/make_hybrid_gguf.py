#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the GGUFs of Nemotron-H, LFM2 and Granite 4 in tests/data/export/gguf from the JSON files beside them, as llama.cpp's
converter does.

    make_hybrid_gguf.py [LLAMA_CPP_PYTHON]

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

import granite_hybrid
import lfm2
import nemotron_h
from random_weights import tensor
from reference import dtype_of, family_of, load

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "export" / "gguf"
SEED, GREEDY = 5, 12
PROMPT = list(range(3, 40))


def write_nemotron_settings(writer, text):
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


def write_lfm2_settings(writer, text):
    kinds = text["layer_types"]
    writer.add_block_count(len(kinds))
    writer.add_context_length(text["max_position_embeddings"])
    writer.add_embedding_length(text["hidden_size"])
    writer.add_feed_forward_length(lfm2.mlp_width(text))
    writer.add_head_count(text["num_attention_heads"])
    writer.add_head_count_kv([text["num_key_value_heads"] if kind != "conv" else 0 for kind in kinds])
    writer.add_rope_freq_base(text["rope_theta"])
    writer.add_layer_norm_rms_eps(text["norm_eps"])
    writer.add_shortconv_l_cache(text["conv_L_cache"])
    writer.add_vocab_size(text["vocab_size"])
    writer.add_tokenizer_model("none")
    if lfm2.has_experts(text):
        writer.add_expert_count(text["num_experts"])
        writer.add_expert_used_count(text["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(text["moe_intermediate_size"])
        writer.add_leading_dense_block_count(text["num_dense_layers"])
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)


def write_granite_settings(writer, text):
    kinds, count = text["layer_types"], text["num_local_experts"]
    writer.add_block_count(len(kinds))
    writer.add_context_length(2**20)
    writer.add_embedding_length(text["hidden_size"])
    writer.add_feed_forward_length(text["intermediate_size"])
    writer.add_head_count(text["num_attention_heads"])
    writer.add_head_count_kv([text["num_key_value_heads"] if kind == "attention" else 0 for kind in kinds])
    writer.add_rope_dimension_count(text["head_dim"])
    writer.add_rope_freq_base(text["rope_theta"])
    writer.add_rope_scaling_finetuned(text["position_embedding_type"] == "rope")
    writer.add_layer_norm_rms_eps(text["rms_norm_eps"])
    writer.add_attention_scale(text["attention_multiplier"])
    writer.add_embedding_scale(text["embedding_multiplier"])
    writer.add_residual_scale(text["residual_multiplier"])
    writer.add_logit_scale(text["logits_scaling"])
    writer.add_expert_shared_feed_forward_length(text["shared_intermediate_size"])
    writer.add_ssm_conv_kernel(text["mamba_d_conv"])
    writer.add_ssm_state_size(text["mamba_d_state"])
    writer.add_ssm_group_count(text["mamba_n_groups"])
    writer.add_ssm_inner_size(text["mamba_n_heads"] * text["mamba_d_head"])
    writer.add_ssm_time_step_rank(text["mamba_n_heads"])
    writer.add_vocab_size(text["vocab_size"])
    writer.add_tokenizer_model("none")
    if count:
        writer.add_expert_count(count)
        writer.add_expert_used_count(text["num_experts_per_tok"])


def paired(value, heads):
    """Each head's rows that turn together side by side."""
    return value.reshape(heads, 2, -1, value.shape[1]).swapaxes(1, 2).reshape(value.shape)


def converted(name, value, text):
    """What the converter does to a tensor."""
    if text["model_type"] == "granitemoehybrid" and name.endswith(("q_proj.weight", "k_proj.weight")):
        return paired(value, text["num_attention_heads" if "q_proj" in name else "num_key_value_heads"])
    if name.endswith(("conv1d.weight", "conv.conv.weight")):
        return value.squeeze(1)
    if name.endswith("A_log"):
        return -np.exp(value).reshape(-1, 1)
    if name.endswith(("mixer.D", "mamba.D")):
        return value.reshape(-1, 1)
    groups = text.get("n_groups") or text.get("mamba_n_groups")
    return value.reshape(groups, -1) if name.endswith(("mixer.norm.weight", "mamba.norm.weight")) else value


def known_names(name):
    """What the package's table knows: experts are stacks, biases have their weight's name."""
    if ".mamba." in name:
        return name.replace("dt_bias", "dt_proj.bias")
    if ".mixer." not in name:
        name = name.replace("expert_bias", "expert_bias.bias")
        return name.removeprefix("model.") if ".experts." in name else name
    if ".experts." in name:
        return name.replace(".mixer.", ".mlp.") + ".weight"
    name = name.replace("model.", "backbone.", 1)
    return name.replace("dt_bias", "dt.bias").replace("e_score_correction_bias", "e_score_correction.bias")


def granite_parts(name, value, has_experts):
    """What the converter calls the parts of Granite's MLP and experts."""
    prefix, _, rest = name.partition("block_sparse_moe.")
    prefix, _, shared = name.partition("shared_mlp.") if not rest else (prefix, "", "")
    kind = "exps" if rest else "shexp"
    layer = prefix.replace("model.layers.", "blk.")
    end = f"_{kind}.weight" if has_experts else ".weight"
    if (rest or shared) == "output_linear.weight":
        return {f"{layer}ffn_down{end}": value}
    gate, up = np.split(value, 2, axis=-2)
    return {f"{layer}ffn_gate{end}": gate, f"{layer}ffn_up{end}": up}


def parts_of(name, value):
    """The tensors of a file that hold one of the random ones."""
    if name.endswith("feed_forward.experts.gate_up_proj"):
        base, inner = name.removesuffix("gate_up_proj"), value.shape[1] // 2
        return {f"{base}w1.weight": value[:, :inner], f"{base}w3.weight": value[:, inner:]}
    if name.endswith("feed_forward.experts.down_proj"):
        return {name.replace("down_proj", "w2.weight"): value}
    return {name: value}


ARCHITECTURES = {("nemotron_h", False): gguf.MODEL_ARCH.NEMOTRON_H, ("nemotron_h", True): gguf.MODEL_ARCH.NEMOTRON_H_MOE,
                 ("lfm2", False): gguf.MODEL_ARCH.LFM2, ("lfm2_moe", True): gguf.MODEL_ARCH.LFM2MOE,
                 ("granitemoehybrid", False): gguf.MODEL_ARCH.GRANITE_HYBRID}
WRITERS = {nemotron_h: write_nemotron_settings, lfm2: write_lfm2_settings, granite_hybrid: write_granite_settings}


def write(path, config, family, text):
    has_experts = "E" in text.get("hybrid_override_pattern", "") or config["model_type"] == "lfm2_moe"
    architecture = ARCHITECTURES[config["model_type"], has_experts]
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[architecture])
    WRITERS[family](writer, text)
    table = gguf.get_tensor_name_map(architecture, len(text.get("hybrid_override_pattern") or text["layer_types"]))
    for name, (shape, bounds) in family.tensors(config).items():
        value = np.array(tensor(SEED, name, shape, dtype_of(config), bounds))
        if "_linear." in name:
            for own, part in granite_parts(name, value, text["num_local_experts"]).items():
                writer.add_tensor(own, np.ascontiguousarray(part))
            continue
        for own, part in parts_of(name, value).items():
            known = known_names(own)
            other = table.get_name(known, try_suffixes=(".weight", ".bias"))
            if other is None:
                other = table.get_name(known.replace("backbone.", "model."), try_suffixes=(".weight", ".bias"))
            if other is None:
                raise SystemExit(f"the gguf package has no name for {known}")
            writer.add_tensor(other, np.ascontiguousarray(converted(own, part, text), np.float32))
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
    for path in sorted([*DATA.glob("nemotron_*.json"), *DATA.glob("lfm2_*.json"), *DATA.glob("granite_*.json")]):
        config = json.loads(path.read_text())
        family = family_of(config)
        write(path.with_suffix(".gguf"), config, family, family.explicit(config))
        if len(sys.argv) > 1:
            (logits, ids), (theirs, their_ids) = mlx_answer(config), llama_answer(sys.argv[1], path.with_suffix(".gguf"))
            print(path.stem, "difference", np.abs(logits - theirs).max() / np.abs(logits).max(), ids == their_ids)


main()
