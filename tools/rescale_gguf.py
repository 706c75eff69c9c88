#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies a GGUF of float32 weights with channels multiplied by random factors that cancel (numpy, gguf).

    tools/rescale_gguf.py FROM.gguf TO.gguf

The model computes what it did, and no weight of its layers lies on the grid of the format that the file was
widened from, which every quantizer of that format would find again without loss. Embedding and head stay.
"""
import math
import shutil
import sys

import gguf
import numpy as np

MOST = 1.25


class Rescaler:
    def __init__(self, path):
        self.reader = gguf.GGUFReader(path, "r+")
        self.tensors = {tensor.name: tensor.data for tensor in self.reader.tensors}
        self.random = np.random.default_rng(1)

    def factors(self, count):
        return np.exp(self.random.uniform(-math.log(MOST), math.log(MOST), count)).astype(np.float32)

    def setting(self, end):
        name = next(name for name in self.reader.fields if name.endswith(end))
        return int(self.reader.fields[name].parts[-1][0])

    def rows(self, name, factors):
        if name in self.tensors:
            data = self.tensors[name]
            data *= factors if data.ndim == 1 else factors[:, None]

    def columns(self, name, factors):
        self.tensors[name] *= factors[None, :]

    def layer(self, block):
        heads, kv_heads = self.setting("attention.head_count"), self.setting("attention.head_count_kv")
        width, inner = self.tensors[block + "ffn_up.weight"].shape[::-1]
        for norm, readers in (("attn_norm", ("attn_q", "attn_k", "attn_v")), ("ffn_norm", ("ffn_gate", "ffn_up"))):
            factors = self.factors(width)
            self.rows(f"{block}{norm}.weight", factors)
            for reader in readers:
                self.columns(f"{block}{reader}.weight", 1 / factors)
        factors = self.factors(inner)
        self.rows(block + "ffn_up.weight", factors)
        self.columns(block + "ffn_down.weight", 1 / factors)
        factors = self.factors(self.tensors[block + "attn_v.weight"].shape[0])
        self.rows(block + "attn_v.weight", factors)
        self.rows(block + "attn_v.bias", factors)
        of_heads = np.repeat(factors.reshape(kv_heads, -1), heads // kv_heads, axis=0)
        self.columns(block + "attn_output.weight", 1 / of_heads.reshape(-1))

    def run(self):
        layer = 0
        while f"blk.{layer}.attn_q.weight" in self.tensors:
            self.layer(f"blk.{layer}.")
            layer += 1


if len(sys.argv) != 3:
    sys.exit(__doc__)
shutil.copy(sys.argv[1], sys.argv[2])
Rescaler(sys.argv[2]).run()
