#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What quantizing costs a linear layer's output, ours beside mlx's quantizer (mlx-lm's) on the same weights.

    quantization_errors.py BENCH        BENCH: the built bench_quantization

Runs BENCH, quantizes the weights that it writes with mx.quantize at the same bits and group, multiplies them with the
same activations in float32, and prints both as the tables of docs/quantization-error.md and docs/integer-scales.md. mlx
stores scales in the weights' dtype: bfloat16, as released checkpoints are, or float16. Ends with status 1 where our HQQ is worse than the better of
the two. Needs mlx, numpy.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import mlx.core as mx
import numpy as np

ROW = re.compile(r"(\S+)\s+(\d+)  int(\d) g(\d+) f16(\+bias)?" + r"\s+([\d.]+|-)" * 4)
EXACT = re.compile(r"(\S+)\s+(\d+)  (int\d .*?)\s+per token\s+([\d.]+)\s+rotated\s+([\d.]+)")
ERRORS = "min-max | min-max, int8 x | hqq | hqq, int8 x | mlx, bfloat16 | mlx, float16 |"


def relative_error(y, expected):
    return float(np.linalg.norm(y - expected) / np.linalg.norm(expected))


def mlx_error(weight, x, expected, bits, group, dtype):
    codes, scales, biases = mx.quantize(mx.array(weight).astype(dtype), group_size=group, bits=bits)
    values = mx.dequantize(codes, scales.astype(mx.float32), biases.astype(mx.float32), group_size=group, bits=bits)
    return relative_error(x @ np.array(values).T, expected)


def read(directory, name, ending, inputs):
    return np.fromfile(directory / f"{name}.{ending}", np.float32).reshape(-1, inputs)


def measure(bench):
    """(layer, inputs), (bits, group, bias) and the six errors of each line that BENCH prints; nan: no such method."""
    with tempfile.TemporaryDirectory() as name:
        lines = subprocess.run([bench, name], check=True, capture_output=True, text=True).stdout.splitlines()
        loaded = None
        for line in lines[1:]:
            if EXACT.match(line):
                continue
            layer, inputs, bits, group, bias, *ours = ROW.match(line).groups()
            if layer != loaded:
                weight, x = (read(pathlib.Path(name), layer, ending, int(inputs)) for ending in ("weight", "x"))
                expected, loaded = x @ weight.T, layer
            mlx = [mlx_error(weight, x, expected, int(bits), int(group), dtype) for dtype in (mx.bfloat16, mx.float16)]
            errors = [float("nan") if error == "-" else float(error) for error in ours] + mlx
            yield (layer, int(inputs)), (int(bits), int(group), bool(bias)), errors


def cells(errors):
    return " | ".join("" if np.isnan(error) else f"{error:.4f}" for error in errors) + " |"


def print_layers(rows):
    print("4 bits:\n\n| layer | inputs | group |", ERRORS)
    print("|---|---|---|---|---|---|---|---|---|")
    for (layer, inputs), (bits, group, _), errors in rows:
        if bits == 4:
            print(f"| {layer} | {inputs} | {group} |", cells(errors))


def print_means(rows):
    print("\nMean of the layers:\n\n| bits | group |", ERRORS)
    print("|---|---|---|---|---|---|---|---|")
    for form in dict.fromkeys(form for _, form, _ in rows):
        bits, group, bias = form
        errors = np.mean([errors for _, other, errors in rows if other == form], axis=0)
        print(f"| {bits} | {group}{'' if bias else ', no bias'} |", cells(errors))


def main():
    rows = list(measure(sys.argv[1]))
    print_layers(rows)
    print_means(rows)
    worse = [(layer, *form) for (layer, _), form, errors in rows if errors[2] > min(errors[4:]) + 5e-6]
    for layer, bits, group, _ in worse:
        print(f"{layer}: hqq is worse than mlx with {bits} bits in groups of {group}", file=sys.stderr)
    sys.exit(bool(worse))


if __name__ == "__main__":
    main()
