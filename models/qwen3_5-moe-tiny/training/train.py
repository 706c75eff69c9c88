#!/usr/bin/env python3
"""Trains the model on generated text and writes a Hugging Face checkpoint.

    train.py OUT_DIR [--minutes 9.2] [--documents 4000000] ...

Reads the tokenizer beside this folder (train_tokenizer.py makes it). Writes config.json, generation_config.json,
model.safetensors, training_log.csv and, to go on from, weights.safetensors in float32. Needs torch, numpy, tokenizers
and safetensors; some minutes on one large GPU. The learning rate follows the clock, so that the run ends when it should,
however fast the machine is; text is made while the model already learns from what there is.
"""
import argparse
import csv
import json
import math
import multiprocessing
import os
import pathlib
import queue
import threading
import time
from typing import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

import generate
from qwen3_5 import CONFIG, Norm, Qwen3_5Moe, places

HERE = pathlib.Path(__file__).resolve().parent
PREFIX = "model.language_model."
END_OF_TEXT, END = 2043, 2045
LEARN, BEGIN = 1 << 11, 1 << 12       # marks beside a token's id: something to learn; the first of its document
BALANCE = 0.02                        # weight of the load-balancing loss


# --- data ---

def encode(tokenizer: Tokenizer, pieces: list[generate.Piece]) -> list[int]:
    """The marked tokens of a document. Pieces meet where no token can span them."""
    codes = []
    for (_, learn), encoding in zip(pieces, tokenizer.encode_batch([t for t, _ in pieces], add_special_tokens=False)):
        codes += [i | LEARN for i in encoding.ids] if learn else encoding.ids
    return [codes[0] & ~LEARN | BEGIN, *codes[1:]]


def pack(documents: list[list[int]], length: int) -> np.ndarray:
    """Rows of whole documents, filled up with <|endoftext|>. A document that is longer than a row is cut."""
    rows, open_rows = [], []          # open_rows: the few rows that still have some room
    for codes in documents:
        codes = codes[:length]
        row = next((r for r in open_rows if len(r) + len(codes) <= length), None)
        if row is None:
            row = []
            open_rows.append(row)
            if len(open_rows) > 8:
                rows.append(open_rows.pop(0))
        row.extend(codes)
    out = np.full((len(rows) + len(open_rows), length), END_OF_TEXT, dtype=np.int16)
    for i, row in enumerate(rows + open_rows):
        out[i, :len(row)] = row
    return out


def make_rows(job: tuple[int, int, int, int]) -> np.ndarray:
    """The packed rows of documents first..first+count of a seed."""
    seed, first, count, length = job
    tokenizer = Tokenizer.from_file(str(HERE.parent / "tokenizer.json"))
    return pack([encode(tokenizer, generate.document(seed, i)) for i in range(first, first + count)], length)


class Data:
    """Rows that other processes make in the background, in batches of random rows of those that there are."""

    def __init__(self, args: argparse.Namespace, device: str):
        self.device, self.batch = device, args.batch
        self.rows = torch.empty(0, args.length, dtype=torch.int16, device=device)
        self.made: queue.Queue = queue.Queue()
        self.generator = torch.Generator().manual_seed(args.seed)
        share = min(2000, args.documents)
        jobs = [(args.seed, first, share, args.length) for first in range(0, args.documents, share)]
        self.pool = multiprocessing.get_context("spawn").Pool(args.workers)
        self.held_out = self.pool.map_async(make_rows, [(generate.HELD_OUT_SEED, first, 500, args.length)
                                                        for first in range(0, args.held_out, 500)])
        parts = self.pool.imap_unordered(make_rows, jobs)
        threading.Thread(target=lambda: [self.made.put(p) for p in parts], daemon=True).start()

    def held_out_rows(self) -> torch.Tensor:
        return torch.from_numpy(np.concatenate(self.held_out.get())).to(self.device)

    def batches(self) -> Iterator[torch.Tensor]:
        while True:
            parts = [self.made.get()] if len(self.rows) < 2 * self.batch else []
            while not self.made.empty():
                parts.append(self.made.get())
            if parts:
                self.rows = torch.cat([self.rows, torch.from_numpy(np.concatenate(parts)).to(self.device)])
            order = torch.randperm(len(self.rows), generator=self.generator).to(self.device)
            for i in range(0, len(order) - self.batch + 1, self.batch):
                yield self.rows[order[i:i + self.batch]]


def split_row(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs, targets (-100 where there is nothing to learn) and the marks of documents' first tokens."""
    codes = rows.long()
    tokens = codes & (LEARN - 1)
    targets = torch.where(codes & LEARN != 0, tokens, -100)
    return tokens, F.pad(targets[:, 1:], (0, 1), value=-100), codes & BEGIN != 0


# --- training ---

def optimizer_for(model: Qwen3_5Moe, lr: float, decay: float) -> torch.optim.AdamW:
    matrices = [p for n, p in model.named_parameters() if p.ndim >= 2 and "conv1d" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim < 2 or "conv1d" in n]
    return torch.optim.AdamW([dict(params=matrices, weight_decay=decay), dict(params=others, weight_decay=0.0)],
                             lr=lr, betas=(0.9, 0.95), eps=1e-10, fused=torch.cuda.is_available())


def cross_entropy(model: Qwen3_5Moe, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model.logits(hidden).flatten(0, 1), targets.flatten(), ignore_index=-100)


class Trainer:
    """A model and its precision on one device."""

    def __init__(self, args: argparse.Namespace, device: str):
        self.device, self.fast = device, device == "cuda"
        torch.manual_seed(args.seed)
        torch.set_float32_matmul_precision("high")
        self.model, self.cross_entropy = Qwen3_5Moe(CONFIG).to(device), cross_entropy
        if args.start:
            self.model.load_state_dict(load_file(args.start))
        if self.fast:
            self.cross_entropy = torch.compile(cross_entropy)
            for layer in self.model.layers:
                layer.compile()

    def losses(self, rows: torch.Tensor, one_document: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """A batch's mean loss and load-balancing loss. The first `one_document` rows count as one document each, as a
        long session would."""
        tokens, targets, begins = split_row(rows)
        begins[:one_document] = False
        age, mask = places(begins, torch.bfloat16 if self.fast else torch.float32)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.fast):
            hidden, balance = self.model(tokens, age, mask)
            return self.cross_entropy(self.model, hidden, targets), balance

    def held_out_loss(self, rows: torch.Tensor, batch: int) -> float:
        """Needs no gradients, but what is compiled computes them: turning them off would compile everything again."""
        losses = [self.losses(rows[i:i + batch])[0].item() for i in range(0, len(rows) - batch + 1, batch)]
        return sum(losses) / len(losses)


@torch.no_grad()
def round_to_bfloat16(model: torch.nn.Module) -> None:
    """Rounds so that 1 + w of a norm fits bfloat16, too: runtimes that keep that sum in it then compute the same."""
    for name, p in model.named_parameters():
        offset = 1 if isinstance(model.get_submodule(name.rpartition(".")[0]), Norm) else 0
        if not name.endswith("A_log"):
            p.copy_(((p + offset).bfloat16().float() - offset).bfloat16().float())


def schedule(step: int, warm_up: int, done: float) -> float:
    """Linear warm-up over steps, then a cosine to 1 % of the peak over time. done: share of the time that is over."""
    return min(1, (step + 1) / warm_up) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1, done))))


def train(args: argparse.Namespace, trainer: Trainer, data: Data, held_out: torch.Tensor, begin: float, log) -> None:
    optimizer = optimizer_for(trainer.model, args.lr, args.decay)
    start, seen, since_log = time.time(), 0, []
    length = max(1.0, begin + 60 * args.minutes - start)
    for step, rows in enumerate(data.batches()):
        if step == 1:        # the first one compiles
            start, length = time.time(), max(1.0, begin + 60 * args.minutes - time.time())
        done = (time.time() - start) / length
        for group in optimizer.param_groups:
            group["lr"] = args.lr * schedule(step, args.warm_up, done)
        loss, balance = trainer.losses(rows, one_document=args.batch // 6)
        (loss + BALANCE * balance).backward()
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        since_log.append(torch.stack([loss.detach(), balance.detach()]))
        seen += rows.numel()
        over = done >= 1 or step + 1 == args.steps
        if (step + 1) % args.log_every == 0 or over:
            mean, balance = torch.stack(since_log).mean(0).tolist()
            since_log.clear()
            log(step + 1, mean, balance, trainer.held_out_loss(held_out, args.batch), seen, time.time() - start)
            if not math.isfinite(mean):
                raise SystemExit("the loss is no number any more; the checkpoint is the last good one")
            save(trainer.model, args.out)
        if over:
            return


# --- checkpoint ---

def save(model: Qwen3_5Moe, out: pathlib.Path) -> None:
    """The directory as a released checkpoint has it: a wrapper with a text_config, weights in bfloat16."""
    state = {k: v.detach().cpu() for k, v in model.state_dict().items()}
    weights = {PREFIX + k: (v if k.endswith("A_log") else v.bfloat16()).contiguous() for k, v in state.items()}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    config = dict(architectures=["Qwen3_5MoeForConditionalGeneration"], model_type="qwen3_5_moe", dtype="bfloat16",
                  text_config=dict(CONFIG, dtype="bfloat16"), vocab_size=CONFIG["vocab_size"],
                  tie_word_embeddings=CONFIG["tie_word_embeddings"])
    generation = dict(eos_token_id=[END, END_OF_TEXT], pad_token_id=END_OF_TEXT, do_sample=True, temperature=0.7,
                      top_k=20, top_p=0.95)
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (out / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")


def parse() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--minutes", type=float, default=9.2, help="from the program's start to the end of training")
    p.add_argument("--steps", type=int, default=0, help="stop earlier, after so many steps")
    p.add_argument("--batch", type=int, default=48, help="rows in a step")
    p.add_argument("--length", type=int, default=2048, help="tokens in a row")
    p.add_argument("--documents", type=int, default=4_000_000)
    p.add_argument("--held-out", type=int, default=8000, help="documents of the held-out text")
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--decay", type=float, default=0.1)
    p.add_argument("--warm-up", type=int, default=200)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--log-every", type=int, default=250)
    p.add_argument("--start", type=pathlib.Path, help="float32 weights to start from: the weights.safetensors that every run leaves")
    p.add_argument("--workers", type=int, default=max(1, os.cpu_count() - 2))
    return p.parse_args()


def main() -> None:
    begin, args = time.time(), parse()
    args.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = Data(args, device)
    trainer = Trainer(args, device)
    held_out = data.held_out_rows()
    count = sum(p.numel() for p in trainer.model.parameters())
    print(f"{count:,} parameters; ready after {time.time() - begin:.0f} s", flush=True)

    with open(args.out / "training_log.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "train_loss", "held_out_loss", "tokens_seen", "seconds"])

        def log(step: int, loss: float, balance: float, held: float, seen: int, seconds: float) -> None:
            writer.writerow([step, f"{loss:.4f}", f"{held:.4f}", seen, f"{seconds:.1f}"])
            file.flush()
            print(f"step {step}  train {loss:.4f}  held-out {held:.4f}  balance {balance:.3f}  "
                  f"{seen / seconds / 1e6:.2f} M tokens/s  {seconds:.0f} s  {len(data.rows)} rows made", flush=True)

        train(args, trainer, data, held_out, begin, log)
    data.pool.terminate()
    save_file(trainer.model.state_dict(), args.out / "weights.safetensors")
    round_to_bfloat16(trainer.model)
    print(f"held-out loss after rounding to bfloat16: {trainer.held_out_loss(held_out, args.batch):.4f}")
    save(trainer.model, args.out)


if __name__ == "__main__":
    main()
