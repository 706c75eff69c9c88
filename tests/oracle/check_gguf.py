#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the GGUF import against the gguf package.

    check_gguf.py GUMBEL CHECKPOINT_DIR WORK_DIR

Writes the Gemma 4 checkpoint (random_checkpoint.py makes one) as GGUF the way llama.cpp's converter does, with
the package's writer and its table of tensor names: whole, in parts, and as a vocabulary alone. Then the
programs exported from the directory and from the files must give the same logits, bit for bit, and the same
tokens for a text. Needs gguf, numpy, tokenizers; safetensors are read here, so that bfloat16 stays exact.
"""
import argparse
import json
import pathlib
import subprocess

import gguf
import numpy as np

DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
TEXT = "the quick brown fox;  3.14159\n\n\tжы日本語 🙂 <bos> Äpfel"
SPLIT_TENSORS = 20


def read_safetensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        yield name, entry["dtype"], np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])


def write_settings(writer, text):
    sliding = [kind == "sliding_attention" for kind in text["layer_types"]]
    rope = text["rope_parameters"]
    writer.add_block_count(len(sliding))
    writer.add_context_length(text["max_position_embeddings"])
    writer.add_embedding_length(text["hidden_size"])
    writer.add_feed_forward_length(text["intermediate_size"])
    writer.add_head_count(text["num_attention_heads"])
    full_heads = text.get("num_global_key_value_heads") or text["num_key_value_heads"]
    writer.add_head_count_kv([text["num_key_value_heads"] if s else full_heads for s in sliding])
    writer.add_key_length(text["global_head_dim"])
    writer.add_value_length(text["global_head_dim"])
    writer.add_key_length_swa(text["head_dim"])
    writer.add_value_length_swa(text["head_dim"])
    writer.add_layer_norm_rms_eps(text["rms_norm_eps"])
    writer.add_rope_freq_base(rope["full_attention"]["rope_theta"])
    writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    writer.add_rope_dimension_count(text["global_head_dim"])
    writer.add_rope_dimension_count_swa(text["head_dim"])
    writer.add_sliding_window(text["sliding_window"])
    writer.add_sliding_window_pattern(sliding)
    writer.add_shared_kv_layers(0)
    writer.add_embedding_length_per_layer_input(0)
    if text.get("final_logit_softcapping"):
        writer.add_final_logit_softcapping(text["final_logit_softcapping"])


def write_tokenizer(writer, directory):
    tokenizer = json.loads((directory / "tokenizer.json").read_text())
    special = {token["content"] for token in tokenizer["added_tokens"]}
    spellings = [None] * len(tokenizer["model"]["vocab"])
    for spelling, token in tokenizer["model"]["vocab"].items():
        spellings[token] = spelling
    types = [gguf.TokenType.CONTROL if s in special else gguf.TokenType.BYTE if s.startswith("<0x") and len(s) == 6
             else gguf.TokenType.NORMAL for s in spellings]
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gemma4")
    writer.add_token_list(spellings)
    writer.add_token_scores([-1000.0] * len(spellings))
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    for name in ("bos", "eos", "unk"):
        if f"<{name}>" in spellings:
            getattr(writer, f"add_{name}_token_id")(spellings.index(f"<{name}>"))
    writer.add_add_space_prefix(False)
    writer.add_add_bos_token(True)


def write_tensors(writer, directory, text):
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GEMMA4, len(text["layer_types"]))
    half, proportion = text["global_head_dim"] // 2, text["rope_parameters"]["full_attention"]["partial_rotary_factor"]
    turning = int(text["global_head_dim"] * proportion / 2)
    writer.add_tensor("rope_freqs.weight", np.array([1.0] * turning + [1e30] * (half - turning), np.float32))
    for file in sorted(directory.glob("*.safetensors")):
        for name, dtype, values in read_safetensors(file):
            name = name.replace("language_model.", "") + (".weight" if name.endswith("layer_scalar") else "")
            other = names.get_name(name, try_suffixes=(".weight",))
            if other is None:
                raise SystemExit(f"the gguf package has no name for {name}")
            if dtype == "BF16" and values.ndim == 1: # as the converter does
                dtype, values = "F32", (values.astype(np.uint32) << 16).view(np.float32)
            if dtype == "BF16":
                writer.add_tensor(other, values.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
            else:
                writer.add_tensor(other, values)


def write(path, directory, text, with_tensors, **options):
    writer = gguf.GGUFWriter(path, "gemma4", **options)
    write_settings(writer, text)
    write_tokenizer(writer, directory)
    if with_tensors:
        write_tensors(writer, directory, text)
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gumbel")
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    args = parser.parse_args()
    config = json.loads((args.checkpoint / "config.json").read_text())
    text = config.get("text_config", config)
    args.work.mkdir(parents=True, exist_ok=True)

    def run(*words):
        return subprocess.run([args.gumbel, *map(str, words)], check=True, capture_output=True).stdout

    def logits(source, name):
        program, array = args.work / f"{name}.gumbel", args.work / f"{name}.npy"
        run("export", source, "-o", program, "--logits")
        run("logits", program, "--tokens", ",".join(str(7 * i % text["vocab_size"]) for i in range(40)), "-o", array)
        return np.load(array)

    whole, parts, vocabulary = (args.work / f"{name}.gguf" for name in ("whole", "parts", "vocabulary"))
    write(whole, args.checkpoint, text, True)
    write(parts, args.checkpoint, text, True, split_max_tensors=SPLIT_TENSORS)
    write(vocabulary, args.checkpoint, text, False)
    first = sorted(args.work.glob("parts-00001-of-*.gguf"))[0]
    expected = logits(args.checkpoint, "directory")
    for source, name in ((whole, "whole"), (first, "parts")):
        if not np.array_equal(expected.view(np.uint32), logits(source, name).view(np.uint32)):
            raise SystemExit(f"{source}: other logits than the directory's")
    tokens = run("tokenize", args.checkpoint, "--raw", TEXT)
    for source in (whole, vocabulary, args.work / "whole.gumbel"):
        if run("tokenize", source, "--raw", TEXT) != tokens:
            raise SystemExit(f"{source}: other tokens than the directory's")
    print(f"{expected.size} logits and {tokens.count(b',') + 1} tokens are the same")


main()
