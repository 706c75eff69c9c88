#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the GGUF import against llama.cpp's own converter and the gguf package.

    check_gguf_converter.py GUMBEL LLAMA_CPP CHECKPOINT_DIR WORK_DIR [FILE.gguf ...]

Converts a checkpoint of Qwen3.5's to float32, bfloat16 and Q8_0. The first two must give the directory's logits
within 1e-5 of the largest, and its tokens for a text. A quantized file, the third and every FILE (llama-quantize
makes them), must give bit for bit the logits of the numbers that the package says its blocks stand for, and a
program not 1 % larger than itself and its tokenizer. Needs gguf, numpy, torch, transformers and llama.cpp's
source tree.
"""
import argparse
import pathlib
import subprocess
import sys

import gguf
import numpy as np

ORACLE = pathlib.Path(__file__).resolve().parent
TEXT = "the quick brown fox;  3.14159\n\n\tжы日本語 🙂 <|im_end|> <think> Äpfel"
CLOSE = 1e-5
OVERHEAD = 100_000  # bytes of graph, tokenizer and alignment that small models have as well


def dequantize(source, target):
    """The same file with every block replaced by its numbers."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), field.types[0], sub_type=inner)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Checker:
    def __init__(self, gumbel, work):
        self.gumbel, self.work = gumbel, work

    def run(self, *words):
        return subprocess.run([self.gumbel, *map(str, words)], check=True, capture_output=True).stdout

    def logits(self, source, name):
        program, array = self.work / f"{name}.gumbel", self.work / f"{name}.npy"
        self.run("export", source, "-o", program, "--logits")
        self.run("logits", program, "--tokens", ",".join(str(7 * i % 251) for i in range(40)), "-o", array)
        return np.load(array), program.stat().st_size

    def check_original(self, checkpoint, file):
        expected, _ = self.logits(checkpoint, "directory")
        found, _ = self.logits(file, file.stem)
        difference = np.abs(expected - found).max() / np.abs(expected).max()
        same = all(self.run("tokenize", checkpoint, *flag, TEXT) == self.run("tokenize", file, *flag, TEXT)
                   for flag in ((), ("--parse-special",)))
        print(f"{file.name}: largest difference {difference:.2g} of the largest logit, tokens "
              f"{'equal' if same else 'DIFFER'}")
        return difference <= CLOSE and same

    def check_blocks(self, file):
        numbers = self.work / f"{file.stem}-numbers.gguf"
        dequantize(file, numbers)
        expected, _ = self.logits(numbers, numbers.stem)
        found, size = self.logits(file, file.stem)
        same = np.array_equal(expected.view(np.uint32), found.view(np.uint32))
        ratio = (size - OVERHEAD) / file.stat().st_size
        print(f"{file.name}: logits of the blocks and of their numbers {'equal' if same else 'DIFFER'}, program "
              f"{size} bytes of {file.stat().st_size}")
        return same and ratio <= 1.01


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gumbel")
    parser.add_argument("llama_cpp")
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("files", type=pathlib.Path, nargs="*")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    converted = {dtype: args.work / f"{dtype}.gguf" for dtype in ("f32", "bf16", "q8_0")}
    for dtype, file in converted.items():
        subprocess.run([sys.executable, ORACLE / "llama_converter.py", args.llama_cpp, args.checkpoint, file, dtype,
                        "--no-mtp"], check=True, capture_output=True)
    checker = Checker(args.gumbel, args.work)
    results = [checker.check_original(args.checkpoint, converted[dtype]) for dtype in ("f32", "bf16")]
    results += [checker.check_blocks(file) for file in (converted["q8_0"], *args.files)]
    sys.exit(0 if all(results) else 1)


main()
