#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the layouts that make_gptq_goldens.py writes with AutoRound's own, packed and read back.

    check_gptq_layouts.py

Needs what make_gptq_goldens.py needs, torch and auto-round (its package's files are enough: `auto_round_extension.torch` and
`auto_round.export.export_to_awq.utils`).
"""
import sys

import mlx.core as mx
import numpy as np
import torch
from auto_round.export.export_to_awq.utils import WQLinear_GEMM
from auto_round_extension.torch.qlinear_torch import QuantLinear as PlainZeros
from auto_round_extension.torch.qlinear_torch_zp import QuantLinear as ZerosLessOne

from make_gptq_goldens import Scheme, pack

ROWS, COLUMNS = 64, 128


def tensors_of(scheme, values, scales, zeros):
    """What AutoRound packs of the numbers that the codes stand for."""
    linear = torch.nn.Linear(COLUMNS, ROWS, bias=False)
    linear.weight.data = torch.from_numpy(values)
    scales, zeros = torch.from_numpy(scales), torch.from_numpy(zeros.astype(np.float32))
    group = scheme.group or COLUMNS
    if scheme.layout == "awq":
        return WQLinear_GEMM.from_linear(linear, 4, group, scales=scales.t().contiguous(), zeros=zeros.t().contiguous())
    layer = (ZerosLessOne if scheme.less_one else PlainZeros)(scheme.bits, group, COLUMNS, ROWS, False)
    layer.device = "cpu"  # which 0.16.1 reads and nothing sets
    layer.pack(linear, scales, zeros, None, "cpu")
    return layer


def check(scheme):
    weight = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    ours, values = pack(scheme, weight, "float16")
    _, zeros, scales, _ = scheme.codes(weight, "float16")
    theirs = tensors_of(scheme, values, scales, zeros)
    return [name for name in ("qweight", "qzeros", "scales")
            if not np.array_equal(np.array(ours[name]), getattr(theirs, name).numpy())]


def main():
    schemes = [Scheme("gptq", 4, 32, True, True), Scheme("gptq", 4, 64, False, True), Scheme("gptq", 4, None, False),
               Scheme("gptq", 8, 128, True, True), Scheme("gptq", 8, 32, False), Scheme("awq", 4, 32, False),
               Scheme("awq", 4, 128, True)]
    different = 0
    for scheme in schemes:
        names = check(scheme)
        different += len(names)
        print(f"{scheme.layout} {scheme.bits} bits, group {scheme.group}: {', '.join(names) or 'the same'}")
    sys.exit(different > 0)


main()
