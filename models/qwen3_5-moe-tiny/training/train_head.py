#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the draft head (multi-token prediction) of the model in DIR and adds it to DIR/model.safetensors.

    train_head.py DIR [--minutes 15] ...

The model itself stays as it is. Its head takes the embedding of a token and the model's hidden state before that token,
and learns what the model would say next; guesses that follow take the head's own hidden state. Text is made as for
train.py, of another seed. Writes model.safetensors, config.json and, beside itself, training_log_head.csv; one core is enough.
"""
import argparse
import csv
import json
import pathlib
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from generate import HELD_OUT_SEED
from qwen3_5 import FullAttention, Layer, Norm, Qwen3_5Moe, places, rotate
from train import BALANCE, PREFIX, make_rows, optimizer_for, round_to_bfloat16, schedule, split_row

HEAD = "mtp."
WEIGHTS = (1.0, 0.7, 0.5)             # of the losses of a draft's first, second and third guess
FITTED = 64                           # rows of text that fc is fitted to at first


# --- the head ---

class ChainedAttention(FullAttention):
    """Full attention of a draft's guess number s, whose keys are those of s passes over the text.

    The last s - 1 tokens before it are guesses and have keys of passes 2 to s; what is before them has the first's.
    """

    def forward(self, x: Tensor, mask: Tensor, passes: list[tuple[Tensor, Tensor]]) -> Tensor:
        b, n, _ = x.shape
        q, gate = self.q_proj(x).view(b, n, self.heads, -1).chunk(2, -1)
        k, v = (p(x).view(b, n, self.kv_heads, -1) for p in (self.k_proj, self.v_proj))
        angles = torch.arange(n, device=x.device).float()[:, None] * self.inverse
        q = rotate(self.q_norm(q).transpose(1, 2), angles) * self.size ** -0.5
        k = rotate(self.k_norm(k).transpose(1, 2), angles)
        k, v = (y.repeat_interleave(self.heads // self.kv_heads, 1) for y in (k, v.transpose(1, 2).float()))
        passes.append((k, v))
        (k, v), *own = passes
        own = [(k.roll(back, 2), v.roll(back, 2)) for back, (k, v) in zip(reversed(range(len(own))), own)]
        scores = [q @ k.mT + mask.roll(len(own), 2), *((q * k).sum(-1, keepdim=True) for k, _ in own)]
        shares = torch.cat(scores, -1).float().softmax(-1)
        out = shares[..., :n] @ v + sum(shares[..., n + i, None] * v for i, (_, v) in enumerate(own))
        return self.o_proj(out.transpose(1, 2).reshape(b, n, -1) * gate.reshape(b, n, -1).sigmoid())


class Head(nn.Module):
    """Names are those of a released checkpoint below `mtp.`."""

    def __init__(self, model: Qwen3_5Moe):
        super().__init__()
        c = model.config
        size, eps = c["hidden_size"], c["rms_norm_eps"]
        self.fc = nn.Linear(2 * size, size, bias=False)
        self.pre_fc_norm_embedding, self.pre_fc_norm_hidden = Norm(size, eps), Norm(size, eps)
        layer = Layer(c, True)
        layer.self_attn = ChainedAttention(c)
        self.layers, self.norm = nn.ModuleList([layer]), Norm(size, eps)
        # It begins as the model's last layer, which ends in the same hidden states.
        layer.load_state_dict(model.layers[-1].state_dict())
        self.norm.load_state_dict(model.norm.state_dict())

    def forward(self, embedding: Tensor, hidden: Tensor, mask: Tensor, passes: list) -> tuple[Tensor, Tensor]:
        """Its hidden states and its load-balancing loss. hidden is kept in bfloat16, as a runtime keeps it."""
        layer = self.layers[0]
        both = self.pre_fc_norm_embedding(embedding), self.pre_fc_norm_hidden(hidden.bfloat16().float())
        x = self.fc(torch.cat(both, -1))
        x = x + layer.self_attn(layer.input_layernorm(x), mask, passes)
        y, balance = layer.mlp(layer.post_attention_layernorm(x))
        return self.norm(x + y), balance


def fit_fc(head: Head, embedding: Tensor, hidden: Tensor, wanted: Tensor) -> None:
    """By least squares: its layer is to get what the model's last layer gets at that token."""
    rows = [head.pre_fc_norm_embedding(embedding), head.pre_fc_norm_hidden(hidden)]
    x, y = torch.cat(rows, -1)[:, :-1].flatten(0, 1), wanted[:, 1:].flatten(0, 1)
    head.fc.weight.data = torch.linalg.solve(x.mT @ x + 1e-3 * len(x) * torch.eye(x.shape[1]), x.mT @ y).mT.contiguous()


# --- drafts ---

def read(model: Qwen3_5Moe, rows: Tensor, fast: bool) -> tuple[Tensor, Tensor]:
    """The model's hidden states, in bfloat16, and what its last layer gets in the first rows."""
    hidden, last = [], []
    for part in rows.split(4):
        tokens, _, begins = split_row(part)
        age, mask = places(begins, torch.float32)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=fast):
            x = model.embed_tokens(tokens)
            for layer in model.layers[:-1]:
                x = layer(x, age, mask)[0]
            hidden.append(model.norm(model.layers[-1](x, age, mask)[0]).bfloat16())
            last += [x.float()] if len(last) < FITTED // 4 else []
    return torch.cat(hidden), torch.cat(last)


def guesses(model: Qwen3_5Moe, head: Head, rows: Tensor, hidden: Tensor, count: int, fast: bool):
    """Of each place in a draft: the head's logits, the model's, and the load-balancing loss.

    Row i of the head has token i + 1 and guesses token i + 2. Logits are those of tokens that the model writes itself.
    """
    tokens, targets, begins = split_row(rows)
    age, mask = places(begins, torch.float32)
    embedding, said, passes = model.embed_tokens(tokens.roll(-1, 1)), hidden.roll(-1, 1).float(), []
    with torch.autocast("cpu", torch.bfloat16, enabled=fast):
        for place in range(count):
            hidden, balance = head(embedding, hidden.roll(1, 1) if place else hidden, mask, passes)
            # Its document must have begun before all hidden states of the draft.
            learned = ((targets != -100) & (age > place)).roll(-1, 1)
            learned[:, -1] = False
            yield model.logits(hidden[learned]), model.logits(said[learned]), balance


def accepted(right: Tensor, guess: Tensor, temperature: float) -> Tensor:
    """How often two distributions draw the same with the same noise: sum_i 1 / sum_j max(p_j / p_i, q_j / q_i).

    With tokens in the order of q / p, p is the greater one for all up to i and q for all behind it.
    """
    if temperature == 0:
        return (right.argmax(-1) == guess.argmax(-1)).double()
    p, q = ((x.double() / temperature).log_softmax(-1) for x in (right, guess))
    order = (q - p).argsort(-1)
    p, q = p.gather(-1, order).exp(), q.gather(-1, order).exp()
    behind = q.flip(-1).cumsum(-1).flip(-1) - q
    return (1 / (p.cumsum(-1) / p + behind / q)).sum(-1)


@torch.no_grad()
def acceptance(model: Qwen3_5Moe, head: Head, rows: Tensor, hidden: Tensor, temperatures: list[float]) -> list[list[float]]:
    """Of each temperature, the share of guesses that is accepted at each place."""
    sums, counts = torch.zeros(len(temperatures), len(WEIGHTS), dtype=torch.float64), torch.zeros(len(WEIGHTS))
    for at in range(0, len(rows), 2):
        parts = guesses(model, head, rows[at:at + 2], hidden[at:at + 2], len(WEIGHTS), False)
        for place, (guess, right, _) in enumerate(parts):
            counts[place] += len(guess)
            sums[:, place] += torch.stack([accepted(right, guess, t).sum() for t in temperatures])
    return (sums / counts).tolist()


# --- training ---

def train(args: argparse.Namespace, model: Qwen3_5Moe, head: Head, rows: Tensor, hidden: Tensor, log) -> None:
    """In the first half of the time only the first guess learns: that is quick, and the others begin with what it knows."""
    optimizer = optimizer_for(head, args.lr, args.decay)
    start, step, done, since_log = time.time(), 0, 0.0, [0.0, 0]
    while done < 1:
        for batch in torch.randperm(len(rows)).split(args.batch):
            done = (time.time() - start) / (60 * args.minutes)
            for group in optimizer.param_groups:
                group["lr"] = args.lr * schedule(step, args.warm_up, done)
            loss = 0
            parts = guesses(model, head, rows[batch], hidden[batch], 1 if done < 0.5 else len(WEIGHTS), True)
            for place, (weight, (guess, right, balance)) in enumerate(zip(WEIGHTS, parts)):
                divergence = F.kl_div(guess.log_softmax(-1), right.log_softmax(-1), log_target=True, reduction="batchmean")
                loss = loss + weight * (divergence + BALANCE * balance)
                since_log[0] += divergence.item() if place == 0 else 0
            loss.backward()
            torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step, since_log[1] = step + 1, since_log[1] + 1
            if step % args.log_every == 0 or done >= 1:
                log(step, since_log[0] / since_log[1], step * rows.shape[1] * args.batch, time.time() - start)
                since_log = [0.0, 0]
            if done >= 1:
                break


def save(head: Head, out: pathlib.Path) -> None:
    """All that is not the head's stays as it was."""
    weights = {k: v for k, v in load_file(out / "model.safetensors").items() if not k.startswith(HEAD)}
    weights |= {HEAD + k: v.detach().bfloat16().contiguous() for k, v in head.state_dict().items()}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((out / "config.json").read_text())
    config["text_config"] |= dict(mtp_num_hidden_layers=1, mtp_use_dedicated_embeddings=False)
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def load(path: pathlib.Path) -> Qwen3_5Moe:
    model = Qwen3_5Moe(json.loads((path / "config.json").read_text())["text_config"])
    weights = load_file(path / "model.safetensors").items()
    model.load_state_dict({k.removeprefix(PREFIX): v.float() for k, v in weights if k.startswith(PREFIX)})
    return model.requires_grad_(False)


def parse() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=pathlib.Path)
    p.add_argument("--minutes", type=float, default=13.5, help="of training, after the model has read the text")
    p.add_argument("--batch", type=int, default=1, help="rows in a step")
    p.add_argument("--length", type=int, default=512, help="tokens in a row")
    p.add_argument("--documents", type=int, default=8000)
    p.add_argument("--held-out", type=int, default=200, help="documents of the held-out text")
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--decay", type=float, default=0.1)
    p.add_argument("--warm-up", type=int, default=50)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--log-every", type=int, default=250)
    p.add_argument("--threads", type=int, default=1)
    return p.parse_args()


def main() -> None:
    args = parse()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    model = load(args.dir)
    head = Head(model)
    rows, held_out = (torch.from_numpy(make_rows((seed, 0, count, args.length)))
                      for seed, count in ((args.seed, args.documents), (HELD_OUT_SEED, args.held_out)))
    hidden, last = read(model, rows, True)
    held_hidden, _ = read(model, held_out, False)
    with torch.no_grad():
        fit_fc(head, model.embed_tokens(split_row(rows[:FITTED])[0].roll(-1, 1)), hidden[:FITTED].float(), last)
    print(f"{sum(p.numel() for p in head.parameters()):,} parameters; {rows.numel():,} tokens", flush=True)

    with open(pathlib.Path(__file__).with_name("training_log_head.csv"), "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "divergence", "accepted_1", "accepted_2", "accepted_3", "tokens_seen", "seconds"])

        def log(step: int, divergence: float, seen: int, seconds: float) -> None:
            (rates,) = acceptance(model, head, held_out[:4], held_hidden[:4], [1.0])
            row = [step, f"{divergence:.4f}", *(f"{x:.4f}" for x in rates), seen, f"{seconds:.0f}"]
            writer.writerow(row)
            file.flush()
            print(*row, flush=True)

        train(args, model, head, rows, hidden, log)
    round_to_bfloat16(head)
    save(head, args.dir)
    temperatures = [0.0, 0.7, 1.0]
    for temperature, rates in zip(temperatures, acceptance(model, head, held_out, held_hidden, temperatures)):
        print(f"temperature {temperature}: accepted " + " ".join(f"{x:.4f}" for x in rates))


if __name__ == "__main__":
    main()
