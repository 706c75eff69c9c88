# SPDX-License-Identifier: Apache-2.0
"""Matrices that stand above each other in one tensor of a checkpoint, and have one each in mlx-lm's models."""

GRANITE = {"shared_mlp.input_linear.weight": ("mlp.gate_proj.weight", "mlp.up_proj.weight"),
           "shared_mlp.output_linear.weight": ("mlp.down_proj.weight",)}
FUSED = dict(granitemoehybrid=GRANITE)


def tensors(model_type, found):
    """The shapes and bounds of a checkpoint's tensors, of those with one for each matrix."""
    for fused, parts in FUSED.get(model_type, {}).items():
        for first in [name for name in found if name.endswith(parts[0])]:
            prefix = first.removesuffix(parts[0])
            shapes = [found.pop(prefix + part)[0] for part in parts]
            found[prefix + fused] = ((sum(shape[0] for shape in shapes), shapes[0][1]), None)
    return found


def split(model_type, weights):
    """A checkpoint's tensors, taken apart into equal numbers of rows."""
    weights = dict(weights)
    for fused, parts in FUSED.get(model_type, {}).items():
        for name in [name for name in weights if name.endswith(fused)]:
            whole = weights.pop(name)
            for part, rows in zip(parts, whole.reshape(len(parts), -1, whole.shape[1])):
                weights[name.removesuffix(fused) + part] = rows
    return weights
