# SPDX-License-Identifier: Apache-2.0
"""Writes mlx_random.h: random words, uniforms and drawn tokens of MLX for the sampler's tests.

    python make_goldens.py > mlx_random.h

MLX gives the raw words of an even count through random.split; of an odd count it shows the uniforms, which
keep a word's upper 24 significant bits.
"""
import mlx.core as mx
import numpy as np

SEEDS = [0, 1, 42, 0xFFFFFFFF, 0x100000000, 0x0123456789ABCDEF, 0xFFFFFFFFFFFFFFFF]
COUNTS = [1, 2, 3, 4, 5, 31, 32, 33, 50, 255, 256, 257, 511, 512, 513, 1025, 4096, 248320, 262143, 262144]
FIRST = 4


def checksum(words):
    """Sum of word * (2 i + 1) mod 2^64."""
    with np.errstate(over="ignore"):
        return int((words.astype(np.uint64) * (2 * np.arange(words.size, dtype=np.uint64) + 1)).sum())


def words(seed, count):
    if count % 2 == 0:
        return np.array(mx.random.split(mx.random.key(seed), count // 2)).reshape(-1)
    return np.array(mx.random.uniform(shape=(count,), key=mx.random.key(seed))).view(np.uint32)


def row(count):
    """Logits in [-4, 4) that C computes exactly too."""
    return ((np.arange(count, dtype=np.uint64) * 2654435761 % 2**32) >> 8).astype(np.float32) * np.float32(2**-21) - 4


print("/* SPDX-License-Identifier: Apache-2.0")
print(" *")
print(f" * From MLX {mx.__version__}, by make_goldens.py.")
print(" */")
print("/* The first words (even count) or the bits of the first uniforms (odd), and the checksum of all. */")
print("static const struct {")
print("    uint64_t seed;")
print("    uint32_t count;")
print(f"    uint32_t first[{FIRST}];")
print("    uint64_t checksum;")
print("} mlx_words[] = {")
for index, count in enumerate(COUNTS):
    for seed in SEEDS if count < 1000 else SEEDS[index % len(SEEDS):][:1]:
        drawn = words(seed, count)
        first = ", ".join(f"0x{int(word):08x}" for word in drawn[:FIRST])
        print(f"    {{0x{seed:016x}, {count}, {{{first}}}, 0x{checksum(drawn):016x}}},")
print("};")
print("/* random.categorical of x / temperature, x[i] = ((i * 2654435761 mod 2^32) >> 8) * 2^-21 - 4 */")
print("static const struct {")
print("    uint64_t seed;")
print("    uint32_t count;")
print("    float temperature;")
print("    int32_t token;")
print("} mlx_tokens[] = {")
for index in range(48):
    seed = SEEDS[index % len(SEEDS)] + 1000 * (index // len(SEEDS)) & 0xFFFFFFFFFFFFFFFF
    count = [50, 51, 1000, 4097, 262144][index % 5]
    temperature = [1.0, 0.5, 0.25, 2.0][index % 4]
    logits = mx.array(row(count) / np.float32(temperature))
    token = int(mx.random.categorical(logits, key=mx.random.key(seed)))
    print(f"    {{0x{seed:016x}, {count}, {temperature}f, {token}}},")
print("};")
