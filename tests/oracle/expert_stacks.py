# SPDX-License-Identifier: Apache-2.0
"""Experts' gate and up: one tensor in transformers' checkpoints, two in mlx-lm's models."""

HALVES = {"experts.gate_proj.weight": 0, "experts.up_proj.weight": 1}


def half_of(name):
    return next(((name.removesuffix(end), half) for end, half in HALVES.items() if name.endswith(end)), None)


def tensors(named_shapes):
    """Shape of each tensor of a checkpoint, of the model's names and shapes, and None: drawn as usual."""
    found = {}
    for name, shape in named_shapes:
        about = half_of(name)
        if not about:
            found[name] = (shape, None)
        elif about[1] == 0:
            found[about[0] + "experts.gate_up_proj"] = ((shape[0], 2 * shape[1], shape[2]), None)
    return found


def take(weights, name):
    """The model's tensor of a checkpoint."""
    about = half_of(name)
    if not about:
        return weights[name]
    both = weights[about[0] + "experts.gate_up_proj"]
    return both.reshape(both.shape[0], 2, -1, both.shape[2])[:, about[1]]
