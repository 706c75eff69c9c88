# SPDX-License-Identifier: Apache-2.0
"""The yardstick for bench_cuda_sampler: what sampling from 1, 16 and 64 rows of 262,144 logits takes in torch,
as usually written, each way in a captured graph of several steps. Microseconds a step, medians.

    python3 bench/torch_sampler.py
"""
import torch

from torch_timing import median_seconds

VOCABULARY, STEPS = 262144, 10


def argmax(x):
    return x.argmax(-1)


def gumbel(x):
    noise = -torch.log(-torch.log(torch.rand_like(x)))
    return (x / 0.8 + noise).argmax(-1)


def multinomial(x):
    return torch.multinomial(torch.softmax(x / 0.8, -1), 1)


def top_k(x):
    values, ids = torch.topk(x / 0.8, 64, -1)
    return ids.gather(-1, torch.multinomial(torch.softmax(values, -1), 1))


def top_p_sorted(x):
    values, ids = torch.sort(torch.softmax(x / 0.8, -1), -1, descending=True)
    values[values.cumsum(-1) - values > 0.95] = 0
    return ids.gather(-1, torch.multinomial(values, 1))


def time_of_step(way, x):
    def all_steps():
        for _ in range(STEPS):
            way(x)

    return 1e6 * median_seconds(all_steps) / STEPS


def main():
    torch.manual_seed(1)
    rows = torch.randn(64, VOCABULARY, device="cuda") - 20
    rows[:, :40] = -0.3 * torch.arange(40, device="cuda")
    rows = rows[:, torch.randperm(VOCABULARY, device="cuda")].contiguous()
    ways = [("argmax", argmax), ("T=0.8, Gumbel-max", gumbel), ("T=0.8, softmax + multinomial", multinomial),
            ("T=0.8, top-k 64: topk + multinomial", top_k), ("T=0.8, top-p 0.95: softmax + sort + cumsum", top_p_sorted)]
    print(f"torch {torch.__version__}, {VOCABULARY} logits, microseconds a step")
    print(f"{'':44}{'1 row':>10}{'16 rows':>10}{'64 rows':>10}")
    for name, way in ways:
        figures = []
        for count in (1, 16, 64):
            try:
                figures.append(f"{time_of_step(way, rows[:count]):10.1f}")
            except RuntimeError as error:
                figures.append(f"{'-':>10}")
                print(f"{name}, {count} rows: {str(error).splitlines()[0]}")
        print(f"{name:44}" + "".join(figures))


if __name__ == "__main__":
    main()
