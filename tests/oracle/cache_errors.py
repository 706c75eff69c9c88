#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/cache-quantization.md's table of attention's error over caches of codes, as Markdown (numpy; no model).

Relative error |y_c - y| / |y| of attention's output at the widths of the large models: 4,096 positions, 16 query
heads of one kv head. Keys and values are drawn from Student's t-distribution with 5 degrees of freedom. Each key
channel has a width exp(normal / 2) and one of 32 is 8 times as wide, as the outlier channels of trained keys are;
queries are scaled so that scores have a standard deviation of 2. Codes are those of src/tensor/cache_codes.h.
"""
import numpy as np

POSITIONS, QUERIES = 4096, 16


def hadamard(x):
    size = min(256, x.shape[-1] & -x.shape[-1])
    y = x.reshape(-1, size).copy()
    h = 1
    while h < size:
        pairs = y.reshape(-1, size // (2 * h), 2, h)
        y = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], 2).reshape(-1, size)
        h *= 2
    return (y / np.sqrt(size)).reshape(x.shape)


def rounded(x, bits, group):
    groups = x.reshape(-1, group)
    if bits == 8:
        scale = np.abs(groups).max(1, keepdims=True) / 127
        low, high = -127, 127
    else:
        largest = np.take_along_axis(groups, np.abs(groups).argmax(1)[:, None], 1)
        scale = largest / -8
        low, high = -8, 7
    scale = scale.astype(np.float16).astype(np.float64)
    codes = np.clip(np.rint(groups / np.where(scale == 0, 1, scale)), low, high)
    return (codes * scale).reshape(x.shape)


def bfloat16(x):
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1) & 0xffff0000).astype(np.uint32)).view(np.float32).astype(np.float64)


def attention(q, k, v):
    scores = q @ k.T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights @ v / weights.sum(1, keepdims=True)


def stored(x, bits, group, rotated):
    return hadamard(rounded(hadamard(x), bits, group)) if rotated else rounded(x, bits, group)


def error(q, k, v, exact, keys, values):
    return np.linalg.norm(attention(q, keys, values) - exact) / np.linalg.norm(exact)


def main():
    print("| head | cache | group | as they are | keys rotated | values rotated | both |")
    print("|---|---|---|---|---|---|---|")
    for size in (128, 256, 512):
        random = np.random.default_rng(size)
        width = np.exp(random.normal(size=size) / 2) * np.where(np.arange(size) % 32 == 5, 8, 1)
        k = random.standard_t(5, (POSITIONS, size)) * width
        v = random.standard_t(5, (POSITIONS, size))
        q = random.normal(size=(QUERIES, size))
        q *= 2 / (q @ k.T).std(1, keepdims=True)
        exact = attention(q, k, v)
        print(f"| {size} | bfloat16 | | {error(q, k, v, exact, bfloat16(k), bfloat16(v)):.5f} | | | |")
        for bits in (8, 4):
            for group in (32, 64):
                row = [error(q, k, v, exact, stored(k, bits, group, a), stored(v, bits, group, b))
                       for a, b in ((0, 0), (1, 0), (0, 1), (1, 1))]
                print(f"| {size} | q{bits} | {group} | " + " | ".join(f"{e:.5f}" for e in row) + " |")


main()
