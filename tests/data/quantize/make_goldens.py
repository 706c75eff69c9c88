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


# Where a type's blocks have float16 numbers.
PLACES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208], "Q2_K": [80, 82], "Q3_K": [108], "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64],
          "MXFP4": [], "NVFP4": [], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0],
          "IQ1_S": [0], "IQ1_M": []}


def random_halves(shape):
    return rng.uniform(-2.0, 2.0, shape).astype(np.float16).view(np.uint8)


def random_blocks(kind):
    """Random bytes with finite float16 numbers where the type has them."""
    size, block = gguf.GGML_QUANT_SIZES[kind]
    count = ROWS * COLUMNS // size
    blocks = rng.integers(0, 256, (count, block), dtype=np.uint8)
    for place in PLACES[kind.name]:
        blocks[:, place:place + 2] = random_halves((count, 1))
    if kind.name == "TQ2_0":
        blocks[:, 65] &= 0x7F  # a largest magnitude is the scale
    if kind.name == "MXFP4":
        blocks[0, 0], blocks[1, 0], blocks[2:, 0] = 0, 1, rng.integers(2, 250, count - 2)
    if kind.name == "IQ1_M":  # a float16 number in four high nibbles
        half = random_halves((count, 1)).view(np.uint16)
        for i in range(4):
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | ((half[:, 0] >> 4 * i & 15) << 4).astype(np.uint8)
    return blocks.reshape(ROWS, -1)


def write_blocks(path):
    with open(path, "wb") as file:
        for name in PLACES:
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
