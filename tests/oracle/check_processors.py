#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares reference.py's repetition penalty and min-p with transformers' logits processors on random rows.

    check_processors.py

Needs transformers with torch, mlx[cpu] (or mlx), mlx-lm and numpy.
"""
import numpy as np
import torch
from transformers import MinPLogitsWarper, RepetitionPenaltyLogitsProcessor

from reference import penalize

ROWS, VOCABULARY = 500, 997


def check_repetition(random, row, tokens):
    penalty = float(random.choice([0.5, 1.0, 1.1, 1.3, 2.0]))
    split = int(random.integers(0, len(tokens) + 1))
    ours = penalize(row, tokens[:split], tokens[split:], penalty, 0.0, 0.0)
    theirs = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([tokens]), torch.tensor(row[None]))[0].numpy()
    assert np.array_equal(ours, theirs)


def check_min_p(random, row):
    """The kept sets, but for tokens within a rounding of the border."""
    min_p = float(random.choice([0.01, 0.05, 0.2, 0.7]))
    theirs = np.isfinite(MinPLogitsWarper(min_p)(torch.tensor([[0]]), torch.tensor(row[None]))[0].numpy())
    share = np.exp((row - row.max()).astype(np.float64))
    clear = np.abs(share - min_p) > 1e-6 * min_p
    assert np.array_equal((share >= min_p)[clear], theirs[clear])


def main():
    random = np.random.default_rng(1)
    for _ in range(ROWS):
        row = (random.standard_normal(VOCABULARY) * random.choice([1, 4, 20])).astype(np.float32)
        check_repetition(random, row, [int(t) for t in random.integers(0, VOCABULARY, 60)])
        check_min_p(random, row)
    print(f"{ROWS} rows: repetition penalty equal to the bit, min-p keeps the same tokens")


main()
