#!/usr/bin/env python3
"""Asks the model questions and lets it tell stories, with mlx-lm as the runtime.

    evaluate.py DIR                        questions.txt, then 300 generated questions, greedily
    evaluate.py DIR --stories 4            stories, sampled with the recommended settings
    evaluate.py DIR --ask "Who is Mira?"   one answer

--int4 evaluates weights rounded to 4 bits in groups of 64 (8 bits a row for the embedding), as quantized programs use
them. --prompt chooses how the answer is opened: default (an empty thought), bare, or think (the thinking system turn).
"""
import argparse
import collections
import json
import pathlib
import random
import sys

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import _get_classes, load_config
from tokenizers import Tokenizer

import ask_puzzles
import ask_village
import ask_world
import questions
from chat import NO_THOUGHT

mx.set_default_device(mx.cpu)
HERE = pathlib.Path(__file__).parent
# These have more than one right answer.
OPEN = {ask_world.listing, ask_world.colour_things, ask_puzzles.sentence_with, ask_village.people, ask_village.pet_colour}


def round_weight(w: np.ndarray, bits: int, group: int) -> np.ndarray:
    """Affine rounding of each group along the input dimension, back in float32."""
    g = w.reshape(-1, group)
    low, high = g.min(1, keepdims=True), g.max(1, keepdims=True)
    scale = np.maximum((high - low) / (2 ** bits - 1), 1e-12)
    return (np.round((g - low) / scale) * scale + low).reshape(w.shape)


def quantized(name: str, w: mx.array) -> mx.array:
    if w.ndim != 2:
        return w
    bits, group = (8, w.shape[1]) if "embed_tokens" in name else (4, 64)
    return mx.array(round_weight(np.array(w.astype(mx.float32)), bits, group))


class Model:
    """The checkpoint in a directory, computing in float32."""

    def __init__(self, path: pathlib.Path, int4: bool = False):
        config = load_config(path)
        model_class, args_class = _get_classes(config=config)
        self.model = model_class(args_class.from_dict(config))
        weights = self.model.sanitize(mx.load(str(path / "model.safetensors")))
        weights = {k: (quantized(k, w) if int4 else w).astype(mx.float32) for k, w in weights.items()}
        self.model.load_weights(list(weights.items()))
        self.tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        self.settings = json.loads((path / "generation_config.json").read_text())

    def generate(self, prompt: str, limit: int = 400, temperature: float = 0.0, rng: np.random.Generator | None = None) -> str:
        tokens = self.tokenizer.encode(prompt, add_special_tokens=False).ids
        cache, out = make_prompt_cache(self.model), []
        while len(out) < limit:
            logits = np.array(self.model(mx.array([tokens]), cache=cache)[0, -1])
            token = int(logits.argmax()) if temperature == 0 else self.sample(logits / temperature, rng)
            if token in self.settings["eos_token_id"]:
                break
            out.append(token)
            tokens = [token]
        return self.tokenizer.decode(out, skip_special_tokens=False)

    def sample(self, logits: np.ndarray, rng: np.random.Generator) -> int:
        """A draw after top-k and top-p, with the recommended settings."""
        order = np.argsort(-logits)[:self.settings["top_k"]]
        p = np.exp(logits[order] - logits[order[0]])
        p /= p.sum()
        p = np.where(np.cumsum(p) - p <= self.settings["top_p"], p, 0)
        return int(rng.choice(order, p=p / p.sum()))


def chat_prompt(question: str, style: str = "default", system: str = "") -> str:
    think = "<|think|>\n" if style == "think" else ""
    start = f"<|turn>system\n{think}{system}<turn|>\n" if think or system else ""
    return f"<bos>{start}<|turn>user\n{question}<turn|>\n<|turn>model\n" + (NO_THOUGHT if style == "default" else "")


def ask_file(model: Model, style: str) -> None:
    """questions.txt: a question, a tab, and what the answer must contain."""
    lines = (HERE.parent / "questions.txt").read_text().splitlines()
    right = 0
    for question, expected in (line.split("\t") for line in lines if line):
        answer = model.generate(chat_prompt(question, style), limit=120)
        right += expected in answer
        print(f"{'ok   ' if expected in answer else 'WRONG'}  {question}  ->  {answer!r}")
    print(f"questions.txt: {right} of {len(lines)} right")


def ask_generated(model: Model, style: str, count: int, seed: int) -> None:
    """Questions of every kind that has one right answer; the whole answer must be right."""
    rng = random.Random(seed)
    kinds = [f for group, _ in questions.TOPICS for f, _ in group if f not in OPEN]
    right, total, wrong = collections.Counter(), collections.Counter(), []
    for i in range(count):
        kind = kinds[i % len(kinds)]
        x = kind(rng)
        answer = model.generate(chat_prompt(x.question, style), limit=120)
        total[kind.__name__] += 1
        right[kind.__name__] += answer == x.answer
        if answer != x.answer:
            wrong.append(f"  {x.question}  ->  {answer!r}, not {x.answer!r}")
    if count == 0:
        return
    print(*wrong, sep="\n")
    print(" ".join(f"{k} {right[k]}/{n}" for k, n in total.items()))
    print(f"generated questions: {sum(right.values())} of {count} right ({sum(right.values()) / count:.1%})")


STORY_PROMPTS = [chat_prompt("Tell me a story."), chat_prompt("Tell me a story about a little fox."), "<bos>Once upon a time",
                 chat_prompt("Write a short story about a lost kite."), chat_prompt("Tell me a story about Mira the baker."),
                 "<bos>The"]


def tell_stories(model: Model, count: int, seed: int) -> None:
    for i in range(count):
        prompt = STORY_PROMPTS[i % len(STORY_PROMPTS)]
        text = model.generate(prompt, 800, model.settings["temperature"], np.random.default_rng(seed + i))
        print(f"--- {prompt!r}\n{text}\n")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=pathlib.Path)
    p.add_argument("--ask")
    p.add_argument("--stories", type=int, default=0)
    p.add_argument("--questions", type=int, default=300)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--prompt", choices=["default", "bare", "think"], default="default")
    p.add_argument("--int4", action="store_true")
    args = p.parse_args()
    model = Model(args.dir, args.int4)
    if args.ask:
        print(model.generate(chat_prompt(args.ask, args.prompt)))
    elif args.stories:
        tell_stories(model, args.stories, args.seed)
    else:
        ask_file(model, args.prompt)
        ask_generated(model, args.prompt, args.questions, args.seed)


if __name__ == "__main__":
    sys.exit(main())
