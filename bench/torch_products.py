# SPDX-License-Identifier: Apache-2.0
"""The yardstick for bench_cuda_products prompt: cuBLAS's products of a prompt's rows with bfloat16 matrices at
both models' sizes, through torch, inputs and results in bfloat16. Microseconds a product, and TFLOP/s; medians.

    python3 bench/torch_products.py
"""
import torch

from torch_timing import median_seconds

SHAPES = [("Gemma q", 8192, 5376), ("Gemma k", 4096, 5376), ("Gemma output", 5376, 8192),
          ("Gemma gate", 21504, 5376), ("Gemma down", 5376, 21504), ("Qwen q, k, v", 8192, 2048),
          ("Qwen z", 4096, 2048), ("Qwen output", 2048, 4096)]
ROWS, PRODUCTS, ROTATED_BYTES = (512, 1505, 2048), 32, 768 << 20


def time_of_product(x, weights):
    def multiply_all():
        for i in range(PRODUCTS):
            torch.mm(x, weights[i % len(weights)].t())

    return median_seconds(multiply_all) / PRODUCTS


def main():
    torch.manual_seed(1)
    print(f"torch {torch.__version__}, microseconds a product, and TFLOP/s")
    print(f"{'':16}" + "".join(f"{rows:10} rows" for rows in ROWS))
    for name, outputs, inputs in SHAPES:
        copies = min(PRODUCTS, ROTATED_BYTES // (outputs * inputs * 2) + 1)
        weights = [torch.randn(outputs, inputs, device="cuda", dtype=torch.bfloat16) / 64 for _ in range(copies)]
        figures = []
        for rows in ROWS:
            seconds = time_of_product(torch.randn(rows, inputs, device="cuda", dtype=torch.bfloat16), weights)
            figures.append(f"{1e6 * seconds:9.1f} {2e-12 * rows * outputs * inputs / seconds:5.0f}")
        print(f"{name:16}" + "".join(figures))


if __name__ == "__main__":
    main()
