#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs llama.cpp's own converter on a checkpoint of Qwen's.

    llama_converter.py LLAMA_CPP CHECKPOINT OUT.gguf f32|bf16|f16|q8_0 [OPTION ...]

LLAMA_CPP is its source tree; OPTION goes to convert_hf_to_gguf.py. The converter knows tokenizers by what they
make of a text, and so none of ours: it gets the name of their expression. Needs torch and transformers.
"""
import pathlib
import sys


def main():
    tree, checkpoint, output, dtype, *options = sys.argv[1:]
    sys.path[:0] = [tree, str(pathlib.Path(tree) / "gguf-py")]
    import convert_hf_to_gguf
    from conversion.base import TextModel
    TextModel.get_vocab_base_pre = lambda self, tokenizer: "qwen35"
    sys.argv = ["convert_hf_to_gguf.py", checkpoint, "--outfile", output, "--outtype", dtype, *options]
    convert_hf_to_gguf.main()


main()
