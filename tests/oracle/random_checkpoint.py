#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a Hugging Face checkpoint with the weights that gumbel export --random-weights draws.

    random_checkpoint.py CONFIG.json OUT_DIR [--seed N] [--shards N]

config.json is copied, tensors get their released names. For trying other programs on the same weights. Needs
mlx[cpu] (or mlx), mlx-lm and numpy.
"""
import argparse
import json
import pathlib
import shutil

import mlx.core as mx

from reference import draw, dtype_of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shards", type=int, default=1)
    args = parser.parse_args()
    config = json.loads(args.config.read_text())
    dtype = getattr(mx, dtype_of(config))
    weights = {name: mx.array(value).astype(dtype) for name, value in draw(config, args.seed).items()}
    args.out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(args.config, args.out / "config.json")
    if args.shards == 1:
        mx.save_safetensors(str(args.out / "model.safetensors"), weights, metadata={"format": "pt"})
        return
    names, index = sorted(weights), {}
    for shard in range(args.shards):
        file = f"model-{shard + 1:05}-of-{args.shards:05}.safetensors"
        part = {name: weights[name] for name in names[shard::args.shards]}
        index.update(dict.fromkeys(part, file))
        mx.save_safetensors(str(args.out / file), part, metadata={"format": "pt"})
    (args.out / "model.safetensors.index.json").write_text(json.dumps(dict(metadata={}, weight_map=index), indent=1))


main()
