#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/export/draft_head: what draft heads of Qwen3.5 and Qwen3-Next guess for configurations of
tests/data/export/agreement.

    make_head_goldens.py [NAME ...]        all of them, or those named

Weights are drawn as in make_goldens.py. Hidden states of a prompt, behind the last norm, are mlx-lm's. The head is
written down here in numpy from its equations: no library at hand has one. It begins with the second token, whose hidden
state before it is the first. NAME.golden.json holds the seed, a prompt,
the head's logits for its last token, and the tokens that it guesses one after the other, each from its own hidden
state. Needs mlx[cpu] (or mlx), mlx-lm and numpy.
"""
import json
import pathlib
import sys

import mlx.core as mx
import numpy as np

from qwen3_5 import AROUND_ZERO, mixer_tensors, mlp_tensors, swiglu_tensors
from random_weights import round_to, tensor
from reference import draw, dtype_of, family_of, load

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "export"
NAMES = ("qwen_released", "qwen_dense_text", "qwen_odd_sizes", "next_released")
GUESSES = 8


def head_weights(config, text, seed):
    hidden, gains = text["hidden_size"], ("input_layernorm.weight", "post_attention_layernorm.weight")
    mlp = mlp_tensors(text) if text.get("num_experts") else swiglu_tensors("mlp.", hidden, text["intermediate_size"])
    layer = {**{name: ((hidden,), AROUND_ZERO) for name in gains}, **mixer_tensors(text, True), **mlp}
    names = ("pre_fc_norm_embedding.weight", "pre_fc_norm_hidden.weight", "norm.weight")
    shapes = {"fc.weight": ((hidden, 2 * hidden), None), **{name: ((hidden,), AROUND_ZERO) for name in names},
              **{"layers.0." + name: about for name, about in layer.items()}}
    return {name: tensor(seed, "mtp." + name, shape, dtype_of(config), bounds).astype(np.float64)
            for name, (shape, bounds) in shapes.items()}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


class Head:
    """One sequence, token by token."""

    def __init__(self, config, seed):
        text = self.text = family_of(config).explicit(config)
        model = draw(config, seed)
        prefix = "model.language_model." if "text_config" in config else "model."
        self.table = model[prefix + "embed_tokens.weight"].astype(np.float64)
        self.output = self.table if text["tie_word_embeddings"] else model["lm_head.weight"].astype(np.float64)
        self.weights = head_weights(config, text, seed)
        self.keys, self.values = [], []
        rope = text.get("rope_parameters") or text
        self.pairs = int(text["head_dim"] * rope["partial_rotary_factor"]) // 2
        self.frequencies = rope["rope_theta"] ** (-np.arange(self.pairs) / self.pairs)

    def norm(self, name, x):
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + self.text["rms_norm_eps"]) * (1 + self.weights[name])

    def rotate(self, x):
        a, b, rest = np.split(x, [self.pairs, 2 * self.pairs], -1)
        angle = len(self.keys) * self.frequencies
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle), rest], -1)

    def attention(self, x):
        w, size = {n.split(".")[-2]: v for n, v in self.weights.items() if "self_attn" in n}, self.text["head_dim"]
        query, gate = np.split((w["q_proj"] @ x).reshape(-1, 2 * size), 2, -1)
        query = self.rotate(self.norm("layers.0.self_attn.q_norm.weight", query))
        key = self.rotate(self.norm("layers.0.self_attn.k_norm.weight", (w["k_proj"] @ x).reshape(-1, size)))
        self.keys.append(key)
        self.values.append((w["v_proj"] @ x).reshape(-1, size))
        shared = len(query) // len(key)
        keys, values = (np.repeat(np.array(part), shared, 1) for part in (self.keys, self.values))
        scores = np.einsum("hd,nhd->hn", query, keys) / np.sqrt(size)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hn,nhd->hd", shares / shares.sum(-1, keepdims=True), values)
        return w["o_proj"] @ (mixed * sigmoid(gate)).reshape(-1)

    def swiglu(self, prefix, x):
        gate, up, down = (self.weights[f"layers.0.{prefix}{name}_proj.weight"] for name in ("gate", "up", "down"))
        return down @ (silu(gate @ x) * (up @ x))

    def mlp(self, x):
        if not self.text.get("num_experts"):
            return self.swiglu("mlp.", x)
        w = {name.removeprefix("layers.0.mlp."): value for name, value in self.weights.items()}
        logits = w["gate.weight"] @ x
        chosen = np.argsort(-logits)[:self.text["num_experts_per_tok"]]
        shares = np.exp(logits[chosen] - logits.max())
        y = sigmoid(w["shared_expert_gate.weight"] @ x) * self.swiglu("mlp.shared_expert.", x)
        for expert, share in zip(chosen, shares / shares.sum()):
            gate, up = np.split(w["experts.gate_up_proj"][expert] @ x, 2)
            y = y + share * (w["experts.down_proj"][expert] @ (silu(gate) * up))
        return y

    def step(self, token, before):
        """Logits of what follows the token, and its own hidden state; before is that of the token before it."""
        kept = round_to(np.asarray(before, np.float32), "bfloat16").astype(np.float64)
        x = self.weights["fc.weight"] @ np.concatenate([self.norm("pre_fc_norm_embedding.weight", self.table[token]),
                                                        self.norm("pre_fc_norm_hidden.weight", kept)])
        x = x + self.attention(self.norm("layers.0.input_layernorm.weight", x))
        x = x + self.mlp(self.norm("layers.0.post_attention_layernorm.weight", x))
        x = self.norm("norm.weight", x)
        return self.output @ x, x


def hidden_states(config, seed, tokens):
    model = load(config, seed)
    inner = getattr(model, "language_model", model).model
    return np.array(inner(mx.array([tokens])).astype(mx.float32))[0]


def make(name):
    config = json.loads((DATA / "agreement" / f"{name}.json").read_text())
    seed = 2000 + NAMES.index(name)
    head = Head(config, seed)
    prompt = np.random.default_rng(seed).integers(0, head.text["vocab_size"], 45).tolist()
    for token, hidden in zip(prompt[1:], hidden_states(config, seed, prompt)):
        first, own = head.step(token, hidden)
    guesses, logits = [], first
    while len(guesses) < GUESSES:
        guesses.append(int(np.argmax(logits)))
        logits, own = head.step(guesses[-1], own)
    golden = dict(config=name, weights_seed=seed, prompt=prompt, guesses=guesses, logits=[float(f"{x:.6g}") for x in first])
    (DATA / "draft_head").mkdir(exist_ok=True)
    (DATA / "draft_head" / f"{name}.golden.json").write_text(json.dumps(golden) + "\n")
    print(name, guesses)


def main():
    for name in sys.argv[1:] or NAMES:
        make(name)


main()
