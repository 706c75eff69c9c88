#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains an assistant of the model, which guesses the tokens after the next, and writes it as released ones are.

    train_assistant.py OUT_DIR [--minutes 14] [--documents 16000] ...

Reads the model and its tokenizer beside this folder. Writes config.json and model.safetensors into OUT_DIR, and
training_log_assistant.csv beside them. Then, or with --measure alone, prints how many guesses on the held-out text are
accepted. Needs torch, numpy, tokenizers and safetensors; one core is enough.

Its layers have queries alone: they attend to keys and values of the model's last sliding and last full layer. A guess
comes from the embedding of a token beside the hidden state before it, the model's or the assistant's own. All guesses
of a draft are made at the position of the first, with the keys before it.
"""
import argparse
import copy
import csv
import json
import math
import os
import pathlib
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import generate_text
from model import CONFIG, FULL, Attention, Gemma4, Layer, Norm, attend, make_masks, rotate
from train import HERE, PREFIX, make_data, optimizer_for, schedule, split_row

KINDS = ["sliding_attention", FULL]
OWN = CONFIG | dict(hidden_size=128, intermediate_size=160, num_hidden_layers=len(KINDS), layer_types=KINDS,
                    num_kv_shared_layers=len(KINDS), vocab_size_per_layer_input=0, final_logit_softcapping=None)
WEIGHTS = [1.0, 0.7, 0.5]         # of the guesses of a draft


# --- models ---

class Target:
    """The model, frozen, and what an assistant sees of it."""

    def __init__(self):
        self.model = Gemma4(CONFIG).requires_grad_(False)
        weights = load_file(HERE.parent / "model.safetensors")
        self.model.load_state_dict({k.removeprefix(PREFIX): v.float() for k, v in weights.items()})
        self.table = self.model.embed_tokens.weight
        types = CONFIG["layer_types"]
        self.last = {len(types) - 1 - types[::-1].index(kind): kind for kind in KINDS}     # in the order of KINDS

    @torch.no_grad()
    def run(self, tokens: Tensor, masks: tuple) -> tuple[Tensor, dict]:
        """Hidden states behind the last norm, and keys and values of the last layer of each kind."""
        x, shared = self.embed(tokens), {}
        for i, layer in enumerate(self.model.layers):
            if i in self.last:
                shared[self.last[i]] = layer.self_attn.keys_and_values(layer.input_layernorm(x))
            x = layer(x, masks)
        return self.model.norm(x), shared

    def embed(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.table) * math.sqrt(CONFIG["hidden_size"])

    @torch.no_grad()
    def logits(self, hidden: Tensor) -> Tensor:
        cap = CONFIG["final_logit_softcapping"]
        return torch.tanh(F.linear(hidden, self.table).float() / cap) * cap


class Queries(Attention):
    """Attention without keys and values of its own. x: [batch, length, hidden]; a place sees what the mask shows."""

    def __init__(self, c: dict, full: bool):
        super().__init__(c, full)
        del self.k_proj, self.v_proj, self.k_norm, self.v_norm

    def forward(self, x: Tensor, seen: tuple) -> Tensor:
        (k, v), mask = seen
        b, n, _ = x.shape
        q = rotate(self.q_norm(self.q_proj(x).view(b, n, self.heads, self.size)).transpose(1, 2), self.angles(x))
        kind = torch.bfloat16 if torch.is_autocast_enabled(x.device.type) else torch.float32
        out = attend(q.to(kind), k.to(kind), v.to(kind), mask)
        return self.o_proj(out.transpose(1, 2).reshape(b, n, -1))


class Assistant(nn.Module):
    def __init__(self, target: Target):
        """Begins with the directions in which the model's embeddings differ most, and hidden states left as they are."""
        super().__init__()
        width, hidden = CONFIG["hidden_size"], OWN["hidden_size"]
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(OWN["vocab_size"], hidden)
        self.model.layers = nn.ModuleList(Layer(OWN, kind == FULL) for kind in KINDS)
        for layer in self.model.layers:
            layer.self_attn = Queries(OWN, layer.full)
        self.model.norm = Norm(hidden, OWN["rms_norm_eps"])
        self.pre_projection = nn.Linear(2 * width, hidden, bias=False)
        self.post_projection = nn.Linear(hidden, width, bias=False)
        for p in self.parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=p.shape[1] ** -0.5)
        size = target.model.norm.weight.mean()            # of hidden states
        directions = torch.linalg.svd(target.table, full_matrices=False)[2][:hidden]
        with torch.no_grad():
            self.model.embed_tokens.weight.copy_(target.table @ directions.T)
            self.model.norm.weight.fill_(size)
            self.post_projection.weight.copy_(directions.T)
            self.pre_projection.weight[:, width:].copy_(directions / size)
            for layer, i in zip(self.model.layers, target.last):
                layer.self_attn.q_norm.weight.copy_(target.model.layers[i].self_attn.q_norm.weight)
                layer.post_attention_layernorm.weight.fill_(1.0)
                layer.post_feedforward_layernorm.weight.fill_(1.0)

    def forward(self, embedding: Tensor, before: Tensor, shared: dict, masks: tuple) -> tuple[Tensor, Tensor]:
        """What its head takes in, and the hidden state of the next guess."""
        x = self.pre_projection(torch.cat([embedding, before], -1))
        for kind, layer in zip(KINDS, self.model.layers):
            x = layer(x, {layer.full: (shared[kind], masks[layer.full])})
        y = self.model.norm(x)
        return y, self.post_projection(y)

    def logits(self, y: Tensor) -> Tensor:
        return F.linear(y, self.model.embed_tokens.weight).float()


# --- drafts ---

def guess_masks(document: Tensor) -> tuple[Tensor, Tensor]:
    """The keys before each place, as many as the window in sliding layers. A place without any sees its own."""
    at = torch.arange(document.shape[1])
    before = (at[:, None] > at) & (document[:, :, None] == document[:, None, :])
    before |= torch.eye(len(at), dtype=torch.bool) & ~before.any(-1, keepdim=True)
    return (before & (at[:, None] - at <= OWN["sliding_window"]))[:, None], before[:, None]


def ahead(x: Tensor, places: int) -> Tensor:
    """x of so many places later; what wraps around is never used."""
    return x.roll(-places, 1)


def drafts(target: Target, assistant: Assistant, rows: Tensor, one_document: bool = False):
    """Logits of model and assistant for each guess, [places, vocabulary], where a draft can be made.

    The last ones of a row have no guesses, the first of a document has no hidden state before it.
    """
    tokens, targets, document = split_row(rows)
    document = torch.zeros_like(document) if one_document else document
    hidden, shared = target.run(tokens, make_masks(document, CONFIG["sliding_window"], blocks=False))
    masks, before = guess_masks(document), ahead(hidden, -1)
    inside = torch.arange(tokens.shape[1]) >= 1
    for k in range(len(WEIGHTS)):
        y, before = assistant(target.embed(ahead(tokens, k)), before, shared, masks)
        inside &= torch.arange(tokens.shape[1]) < tokens.shape[1] - k
        same = (ahead(document, -1) == ahead(document, k)) & (ahead(targets, k) != -100) & inside
        yield target.logits(ahead(hidden, k)[same]), assistant.logits(y[same]), same


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """Mean KL divergence of the assistant's distribution from the model's, of logits."""
    return F.kl_div(q.log_softmax(-1), p.log_softmax(-1), log_target=True, reduction="batchmean")


def coupled(p: Tensor, q: Tensor) -> Tensor:
    """How likely two distributions draw the same token with shared noise: sum_i 1 / sum_j max(p_j / p_i, q_j / q_i)."""
    order = (p / q.clamp_min(1e-30)).argsort(-1, descending=True)
    p, q = p.gather(-1, order).clamp_min(1e-30), q.gather(-1, order).clamp_min(1e-30)
    first = p.cumsum(-1)                      # of those whose ratio is as large or larger
    rest = (q.sum(-1, keepdim=True) - q.cumsum(-1)).clamp_min(0)
    return (1 / (first / p + rest / q)).sum(-1)


@torch.no_grad()
def measure(target: Target, assistant: Assistant, data: Tensor) -> None:
    """Prints the acceptance of each guess: alone, and where those before it are all accepted greedily."""
    sums = {}
    for rows in data.split(2):
        agreed = True
        for k, (p, q, at) in enumerate(drafts(target, assistant, rows)):
            same = torch.zeros(at.shape, dtype=torch.bool)
            same[at] = p.argmax(-1) == q.argmax(-1)
            turn = same[at & agreed]
            values = {"greedy": same[at], "greedy in turn": turn}
            for temperature in (0.7, 1.0):
                values[f"temperature {temperature}"] = coupled((p / temperature).softmax(-1), (q / temperature).softmax(-1))
            for name, value in values.items():
                old = sums.get((name, k), (0, 0))
                sums[name, k] = old[0] + value.sum().item(), old[1] + len(value)
            agreed = agreed & same
    for name in dict.fromkeys(name for name, _ in sums):
        print(name, *(f"{100 * sums[name, k][0] / sums[name, k][1]:.1f} %" for k in range(len(WEIGHTS))), sep="\t")


# --- training ---

def train(args: argparse.Namespace, target: Target, assistant: Assistant, data: Tensor, log) -> None:
    """The learning rate follows the clock, so that the run ends when it should."""
    target.run, distance = torch.compile(target.run), torch.compile(divergence, dynamic=True)
    assistant.compile()
    optimizer = optimizer_for(assistant, args.lr, args.decay)
    generator = torch.Generator().manual_seed(args.seed)
    start, step, seen, since_log, order = time.time(), 0, 0, [], []
    while (done := (time.time() - start) / (60 * args.minutes)) < 1:
        if len(order) < args.batch:
            order = torch.randperm(len(data), generator=generator).tolist()
        rows, order = data[order[:args.batch]], order[args.batch:]
        rate = min((step + 1) / args.warm_up, 1) * schedule(int(1e6 * done), int(1e6), 0)
        for group in optimizer.param_groups:
            group["lr"] = args.lr * rate
        with torch.autocast("cpu", torch.bfloat16):
            losses = [distance(p, q) for p, q, _ in drafts(target, assistant, rows, step % 4 == 3)]
        sum(w * loss for w, loss in zip(WEIGHTS, losses)).backward()
        torch.nn.utils.clip_grad_norm_(assistant.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        since_log.append([loss.item() for loss in losses])
        step, seen = step + 1, seen + rows.numel()
        if step % args.log_every == 0:
            log(step, torch.tensor(since_log).mean(0).tolist(), seen, time.time() - start)
            since_log.clear()


def save(assistant: Assistant, out: pathlib.Path) -> None:
    """The directory as a released assistant has it, weights in bfloat16."""
    weights = {k: v.detach().bfloat16().contiguous() for k, v in assistant.state_dict().items()}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    config = dict(architectures=["Gemma4AssistantForCausalLM"], model_type="gemma4_assistant", dtype="bfloat16",
                  backbone_hidden_size=CONFIG["hidden_size"], use_ordered_embeddings=False, tie_word_embeddings=True,
                  text_config=dict(OWN, dtype="bfloat16"))
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def parse() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--minutes", type=float, default=14, help="of training, compiling included")
    p.add_argument("--batch", type=int, default=2, help="rows in a step")
    p.add_argument("--length", type=int, default=512, help="tokens in a row")
    p.add_argument("--documents", type=int, default=16_000)
    p.add_argument("--held-out", type=int, default=600, help="documents of the held-out text")
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--decay", type=float, default=0.1)
    p.add_argument("--warm-up", type=int, default=30)
    p.add_argument("--seed", type=int, default=1, help="of the text and the weights")
    p.add_argument("--log-every", type=int, default=100)
    p.add_argument("--measure", action="store_true", help="do not train, but measure the assistant in OUT_DIR")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--workers", type=int, default=os.cpu_count())
    return p.parse_args()


def main() -> None:
    args = parse()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    target = Target()
    assistant = Assistant(target)
    if not args.measure:
        args.out.mkdir(parents=True, exist_ok=True)
        begin = time.time()
        data = make_data(args.seed, args.documents, args.length, args.workers)
        print(f"{sum(p.numel() for p in assistant.parameters()):,} parameters; {data.numel():,} tokens; data took "
              f"{time.time() - begin:.0f} s", flush=True)
        with open(args.out / "training_log_assistant.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["step", "kl_1", "kl_2", "kl_3", "tokens_seen", "seconds"])

            def log(step: int, losses: list[float], seen: int, seconds: float) -> None:
                writer.writerow([step, *(f"{loss:.4f}" for loss in losses), seen, f"{seconds:.0f}"])
                file.flush()
                print(f"step {step}  KL", *(f"{loss:.4f}" for loss in losses), f"{seen / seconds:.0f} tokens/s", flush=True)

            train(args, target, assistant, data, log)
        save(assistant, args.out)
    target, assistant = Target(), Assistant(target)
    weights = load_file(args.out / "model.safetensors")
    assistant.load_state_dict({k: v.float() for k, v in weights.items()})
    measure(target, assistant, make_data(generate_text.HELD_OUT_SEED, args.held_out, args.length, args.workers))


if __name__ == "__main__":
    main()
