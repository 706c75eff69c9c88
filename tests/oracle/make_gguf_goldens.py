#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/export/gguf/NAME.gguf from each NAME.json with llama.cpp's own converter.

    make_gguf_goldens.py LLAMA_CPP [NAME ...]

The weights are those that gumbel export --random-weights draws from NAME.json with seed 5, so that a test needs
no checkpoint to compare with. Where the configuration asks for layers that guess further tokens, they are there
as well. Needs mlx, mlx-lm, numpy, tokenizers, torch, transformers and llama.cpp's source tree.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import mlx.core as mx
import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from reference import draw

ORACLE = pathlib.Path(__file__).resolve().parent
DATA = ORACLE.parent / "data" / "export" / "gguf"
SEED = 5
EXPRESSION = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
              r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
MERGES = ["t h", "th e", "Ġ the", "i n", "a n", "Ġ a", "e r", "o u"]
TEMPLATE = ORACLE.parent.parent / "models" / "qwen3_5-moe-tiny" / "chat_template.jinja"


def guessing_tensors(config, weights):
    """mtp.*: a full layer as the model's, and what leads into it and out of it."""
    text = config.get("text_config", config)
    if not text.get("mtp_num_hidden_layers"):
        return {}
    hidden, prefix = text["hidden_size"], "model.language_model." if "text_config" in config else "model."
    full = next(name for name in weights if name.endswith("q_proj.weight")).split("self_attn")[0]
    found = {f"mtp.layers.0.{name.removeprefix(full)}": value for name, value in weights.items() if name.startswith(full)}
    found["mtp.fc.weight"] = np.ones((hidden, 2 * hidden), np.float32)
    for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        found[f"mtp.{name}.weight"] = weights[prefix + "norm.weight"]
    return found


def write_tokenizer(directory):
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    pairs = [tuple(merge.split(" ")) for merge in MERGES]
    spellings = letters + ["".join(pair) for pair in pairs]
    tokenizer = Tokenizer(models.BPE({s: i for i, s in enumerate(spellings)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(EXPRESSION), "isolated"), pre_tokenizers.ByteLevel(False, False, False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokens = json.loads(tokenizer.to_str())
    tokens["added_tokens"] = [
        dict(id=len(spellings) + i, content=s, single_word=False, lstrip=False, rstrip=False, normalized=False,
             special=not s.endswith("think>"))
        for i, s in enumerate(specials)]
    (directory / "tokenizer.json").write_text(json.dumps(tokens))
    (directory / "tokenizer_config.json").write_text(json.dumps(dict(
        tokenizer_class="PreTrainedTokenizerFast", eos_token="<|im_end|>", pad_token="<|endoftext|>",
        add_bos_token=False, chat_template=TEMPLATE.read_text())))
    (directory / "generation_config.json").write_text(json.dumps(dict(temperature=0.6, top_k=20, top_p=0.95)))


def make(llama_cpp, path, directory):
    config = json.loads(path.read_text())
    weights = draw(config, SEED)
    weights |= guessing_tensors(config, weights)
    mx.save_safetensors(str(directory / "model.safetensors"),
                        {name: mx.array(value).astype(mx.bfloat16) for name, value in weights.items()},
                        metadata={"format": "pt"})
    (directory / "config.json").write_text(path.read_text())
    write_tokenizer(directory)
    options = [] if any(name.startswith("mtp.") for name in weights) else ["--no-mtp"]
    subprocess.run([sys.executable, ORACLE / "llama_converter.py", llama_cpp, directory, path.with_suffix(".gguf"),
                    "bf16", "--model-name", path.stem, *options], check=True)


def main():
    llama_cpp, *names = sys.argv[1:]
    for path in [DATA / f"{name}.json" for name in names] or sorted(DATA.glob("*.json")):
        with tempfile.TemporaryDirectory() as directory:
            make(llama_cpp, path, pathlib.Path(directory))


main()
