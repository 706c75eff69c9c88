# SPDX-License-Identifier: Apache-2.0
"""The exporter's random weights (src/export/random_weights.c) in numpy, bit for bit."""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(z):
    """The output function of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def stream(seed, name):
    with np.errstate(over="ignore"):
        value = mix(np.uint64(seed) + GOLDEN)
        for byte in name.encode():
            value = mix(value + GOLDEN * np.uint64(byte))
    return value


def round_to(values, dtype):
    """float32 values rounded to dtype, as float32."""
    if dtype == "float32":
        return values
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float32)
    bits = values.view(np.uint32)
    bits = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return bits.view(np.float32)


def tensor(seed, name, shape, dtype, bounds=None):
    """The tensor of that name, drawn from bounds, or as usual: gains around 1 where shape has one dimension, else
    variance 1 / inputs, the last dimension."""
    if bounds:
        low, high = np.float32(bounds[0]), np.float32(bounds[1])
    elif len(shape) == 1:
        low, high = np.float32(0.75), np.float32(1.25)
    else:
        high = np.float32(np.sqrt(3.0 / shape[-1]))
        low = -high
    index = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        bits = mix(stream(seed, name) + GOLDEN * index)
    unit = (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return round_to(low + (high - low) * unit, dtype).reshape(shape)
