"""Writes blocks.bin: for each block type of GGUF some random rows and what the `gguf` package makes of them;
and prints the errors of mlx's quantizer that test_quantizer.c compares with.

For each type: u32 type, u32 rows, u32 columns, the blocks, then float32[rows, columns]. Needs gguf, mlx, numpy.
"""
import pathlib
import struct

import gguf
import mlx.core as mx
import numpy as np

ROWS, COLUMNS = 3, 512
rng = np.random.default_rng(6)


def random_halves(shape):
    return rng.uniform(-2.0, 2.0, shape).astype(np.float16).view(np.uint8)


def random_blocks(kind):
    """Random bytes with finite float16 numbers where the type has them."""
    size, block = gguf.GGML_QUANT_SIZES[kind]
    count = ROWS * COLUMNS // size
    blocks = rng.integers(0, 256, (count, block), dtype=np.uint8)
    places = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
              "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}[kind.name]
    for place in places:
        blocks[:, place:place + 2] = random_halves((count, 1))
    return blocks.reshape(ROWS, -1)


def write_blocks(path):
    with open(path, "wb") as file:
        for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"):
            kind = gguf.GGMLQuantizationType[name]
            blocks = random_blocks(kind)
            values = gguf.dequantize(blocks, kind).astype(np.float32)
            assert values.shape == (ROWS, COLUMNS) and np.isfinite(values).all()
            file.write(struct.pack("<III", int(kind), ROWS, COLUMNS))
            file.write(blocks.tobytes())
            file.write(values.tobytes())


def test_weights(rows, columns):
    """Sums of four uniform numbers of a linear congruential generator, as in test_quantizer.c."""
    state, values = 1, np.empty(rows * columns, np.float32)
    for i in range(values.size):
        total = np.float32(0)
        for _ in range(4):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            total += np.float32((state >> 40) * 2.0**-24) - np.float32(0.5)
        values[i] = total * np.float32(0.04)
    return values.reshape(rows, columns)


def print_mlx_errors():
    weights = test_weights(32, 512)
    for dtype in (mx.float16, mx.bfloat16):
        for bits in (4, 5, 6, 8):
            errors = []
            for group in (32, 64, 128):
                codes, scales, biases = mx.quantize(mx.array(weights).astype(dtype), group_size=group, bits=bits)
                values = np.array(mx.dequantize(codes, scales.astype(mx.float32), biases.astype(mx.float32),
                                                group_size=group, bits=bits))
                errors.append(np.sqrt(((values - weights) ** 2).sum() / (weights**2).sum()))
            print(dtype, bits, ", ".join(f"{error:.6f}" for error in errors))


here = pathlib.Path(__file__).parent
write_blocks(here / "blocks.bin")
print_mlx_errors()
