#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times mlx-lm and gumbel's MLX backend in turns, on MLX's CPU stream: tokens/s of a prompt and of its answer.

    compare_mlx_lm.py CHECKPOINT GUMBEL NAME=PROGRAM ... [--prompt 256] [--new 64] [--rounds 3] [--chunk 64]
                      [--dtype float32]

CHECKPOINT is a directory that mlx-lm reads, each PROGRAM what `gumbel export CHECKPOINT --quantize none` made of it, GUMBEL
the command. The answer is sampled at temperature 0.8. mlx-lm's activations have the dtype given, float32 as gumbel's;
"as-is" leaves the checkpoint's. Needs mlx (or mlx[cpu]) and mlx-lm.
"""
import argparse
import json
import random
import statistics
import subprocess
import time

import mlx.core as mx
from mlx_lm import load
from mlx_lm.generate import generate_step
from mlx_lm.sample_utils import make_sampler


def time_mlx_lm(model, prompt, args):
    begin = time.perf_counter()
    first = None
    for _ in generate_step(mx.array(prompt), model, max_tokens=args.new, sampler=make_sampler(temp=0.8),
                           prefill_step_size=args.chunk):
        first = first or time.perf_counter()
    return len(prompt) / (first - begin), (args.new - 1) / (time.perf_counter() - first)


def time_gumbel(program, args):
    command = [args.gumbel, "bench", program, "--backend", "mlx", "-p", str(args.prompt), "-n", str(args.new), "-d",
               "0", "-r", "1", "--temperature", "0.8", "--json"]
    tests = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["tests"]
    by_name = {test["test"]: test for test in tests}
    return (by_name["prompt"]["tokens_per_second"]["mean"], by_name["answer"]["decode_tokens_per_second"]["mean"])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("checkpoint")
    ap.add_argument("gumbel")
    ap.add_argument("programs", nargs="+", metavar="NAME=PROGRAM")
    ap.add_argument("--prompt", type=int, default=256)
    ap.add_argument("--new", type=int, default=64)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--chunk", type=int, default=64)
    ap.add_argument("--dtype", default="float32")
    args = ap.parse_args()
    mx.set_default_device(mx.cpu)
    model, _ = load(args.checkpoint)
    if args.dtype != "as-is":
        model.set_dtype(getattr(mx, args.dtype))
    mx.eval(model.parameters())
    prompt = [random.Random(1).randrange(10, 2000) for _ in range(args.prompt)]
    results = {}
    for _ in range(args.rounds):
        results.setdefault(f"mlx-lm {args.dtype}", []).append(time_mlx_lm(model, prompt, args))
        for program in args.programs:
            name, path = program.split("=", 1)
            results.setdefault(f"gumbel {name}", []).append(time_gumbel(path, args))
    for name, rounds in results.items():
        prompts, answers = zip(*rounds)
        print(f"{name:24} prompt best {max(prompts):7.1f} median {statistics.median(prompts):7.1f}   "
              f"decode best {max(answers):6.1f} median {statistics.median(answers):6.1f} tokens/s")


main()
