#!/usr/bin/env python3
"""Trains the model on generated text and writes a Hugging Face checkpoint.

    train.py OUT_DIR [--steps 9000] [--documents 1800000] ...

Reads the tokenizer beside this folder (train_tokenizer.py makes it). Writes config.json, generation_config.json,
model.safetensors and training_log.csv. Needs torch, numpy, tokenizers and safetensors; some minutes on one large GPU.
"""
import argparse
import csv
import json
import math
import multiprocessing
import os
import pathlib
import time
from functools import partial

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

import generate_text
from model import CONFIG, Gemma4, make_masks

HERE = pathlib.Path(__file__).parent
PAD, BOS, THOUGHT = 0, 2, 13
PREFIX = "model.language_model."


# --- data ---

def pack(documents: list[list[int]], length: int) -> np.ndarray:
    """Rows of whole documents, filled up with <pad>. A document that is longer than a row is cut."""
    rows, open_rows = [], []          # open_rows: the few rows that still have some room
    for ids in documents:
        ids = ids[:length]
        row = next((r for r in open_rows if len(r) + len(ids) <= length), None)
        if row is None:
            row = []
            open_rows.append(row)
            if len(open_rows) > 8:
                rows.append(open_rows.pop(0))
        row.extend(ids)
    out = np.full((len(rows) + len(open_rows), length), PAD, dtype=np.uint16)
    for i, row in enumerate(rows + open_rows):
        out[i, :len(row)] = row
    return out


def make_rows(job: tuple[int, int, int], length: int) -> np.ndarray:
    """The packed rows of documents first..first+count of a seed."""
    seed, first, count = job
    tokenizer = Tokenizer.from_file(str(HERE.parent / "tokenizer.json"))
    encoded = [tokenizer.encode(t, add_special_tokens=False).ids for t in generate_text.documents(seed, first, count)]
    return pack(encoded, length)


def make_data(seed: int, count: int, length: int, workers: int) -> torch.Tensor:
    share = 4000
    jobs = [(seed, first, min(share, count - first)) for first in range(0, count, share)]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        parts = pool.map(partial(make_rows, length=length), jobs, chunksize=1)
    return torch.from_numpy(np.concatenate(parts).astype(np.int16))


def split_row(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs, targets (-100 where there is nothing to learn) and the number of each token's document.

    A thought is opened by the prompt, never by the model, so <|channel> is no target.
    """
    tokens = rows.long()
    targets = torch.cat([tokens[:, 1:], torch.zeros_like(tokens[:, :1])], 1)
    return tokens, torch.where((targets == PAD) | (targets == THOUGHT), -100, targets), (tokens == BOS).cumsum(1)


# --- training ---

def optimizer_for(model: Gemma4, lr: float, decay: float) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return torch.optim.AdamW([dict(params=matrices, weight_decay=decay), dict(params=vectors, weight_decay=0.0)],
                             lr=lr, betas=(0.9, 0.95), eps=1e-10, fused=torch.cuda.is_available())


def schedule(step: int, steps: int, warm_up: int) -> float:
    """Linear warm-up, then a cosine to 1 % of the peak."""
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up)))


class Trainer:
    """A model, its masks and its precision on one device."""

    def __init__(self, args: argparse.Namespace):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.fast = self.device == "cuda"
        self.blocks = self.fast and not args.dense_masks
        torch.manual_seed(args.seed)
        torch.set_float32_matmul_precision("high")
        self.model = Gemma4(CONFIG).to(self.device)
        self.loss = torch.compile(self.model.loss) if self.fast else self.model.loss

    def batch_loss(self, rows: torch.Tensor, one_document: int = 0) -> torch.Tensor:
        """Mean loss of a batch. In the first `one_document` rows all documents see each other, as in a long session."""
        tokens, targets, document = split_row(rows.to(self.device))
        document[:one_document] = 0
        masks = make_masks(document, CONFIG["sliding_window"], blocks=self.blocks)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.fast):
            return self.loss(tokens, targets, masks)

    @torch.no_grad()
    def held_out_loss(self, rows: torch.Tensor, batch: int) -> float:
        losses = [self.batch_loss(rows[i:i + batch]).item() for i in range(0, len(rows) - batch + 1, batch)]
        return sum(losses) / len(losses)

    @torch.no_grad()
    def round_to_bfloat16(self) -> None:
        for p in self.model.parameters():
            p.copy_(p.bfloat16().float())


def train(args: argparse.Namespace, trainer: Trainer, data: torch.Tensor, held_out: torch.Tensor, log) -> None:
    optimizer = optimizer_for(trainer.model, args.lr, args.decay)
    generator = torch.Generator().manual_seed(args.seed)
    order, position = torch.randperm(len(data), generator=generator), 0
    start, seen, since_log = time.time(), 0, []
    for step in range(args.steps):
        if position + args.batch > len(order):
            order, position = torch.randperm(len(data), generator=generator), 0
        rows = data[order[position:position + args.batch].to(data.device)]
        position += args.batch
        for group in optimizer.param_groups:
            group["lr"] = args.lr * schedule(step, args.steps, args.warm_up)
        loss = trainer.batch_loss(rows, one_document=args.batch // 4)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        since_log.append(loss.detach())
        seen += rows.numel()
        if (step + 1) % args.log_every == 0 or step + 1 == args.steps:
            mean = torch.stack(since_log).mean().item()
            since_log.clear()
            log(step + 1, mean, trainer.held_out_loss(held_out, args.batch), seen, time.time() - start)
        if (step + 1) % args.save_every == 0:
            save(trainer.model, args.out)


# --- checkpoint ---

def save(model: Gemma4, out: pathlib.Path) -> None:
    """The directory as a released checkpoint has it: a wrapper with a text_config, weights in bfloat16."""
    weights = {PREFIX + k: v.detach().cpu().bfloat16().contiguous() for k, v in model.state_dict().items()}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    text = dict(CONFIG, dtype="bfloat16")
    config = dict(architectures=["Gemma4ForConditionalGeneration"], model_type="gemma4", dtype="bfloat16",
                  text_config=text, vocab_size=CONFIG["vocab_size"], tie_word_embeddings=True, eos_token_id=[1, 16],
                  vision_config=None, audio_config=None)
    generation = dict(bos_token_id=2, eos_token_id=[1, 16], pad_token_id=0, do_sample=True, temperature=0.7, top_k=64,
                      top_p=0.95)
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (out / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")


def parse() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--steps", type=int, default=9000)
    p.add_argument("--batch", type=int, default=64, help="rows in a step")
    p.add_argument("--length", type=int, default=2048, help="tokens in a row")
    p.add_argument("--documents", type=int, default=1_800_000)
    p.add_argument("--held-out", type=int, default=8000, help="documents of the held-out text")
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--decay", type=float, default=0.1)
    p.add_argument("--warm-up", type=int, default=200)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--log-every", type=int, default=250)
    p.add_argument("--save-every", type=int, default=1000)
    p.add_argument("--dense-masks", action="store_true", help="do without block masks on a GPU, too")
    p.add_argument("--workers", type=int, default=os.cpu_count())
    return p.parse_args()


def main() -> None:
    args = parse()
    args.out.mkdir(parents=True, exist_ok=True)
    begin = time.time()
    data = make_data(args.seed, args.documents, args.length, args.workers)
    held_out = make_data(generate_text.HELD_OUT_SEED, args.held_out, args.length, args.workers)
    trainer = Trainer(args)
    data, held_out = data.to(trainer.device), held_out.to(trainer.device)
    print(f"{sum(p.numel() for p in trainer.model.parameters()):,} parameters; {(data != PAD).sum():,} tokens of text in "
          f"{len(data):,} rows; data took {time.time() - begin:.0f} s", flush=True)

    with open(args.out / "training_log.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "train_loss", "held_out_loss", "tokens_seen", "seconds"])

        def log(step: int, loss: float, held: float, seen: int, seconds: float) -> None:
            writer.writerow([step, f"{loss:.4f}", f"{held:.4f}", seen, f"{seconds:.1f}"])
            file.flush()
            print(f"step {step}  train {loss:.4f}  held-out {held:.4f}  {seen / seconds / 1e6:.2f} M tokens/s", flush=True)

        train(args, trainer, data, held_out, log)
    trainer.round_to_bfloat16()
    print(f"held-out loss after rounding to bfloat16: {trainer.held_out_loss(held_out, args.batch):.4f}")
    save(trainer.model, args.out)


if __name__ == "__main__":
    main()
