#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record what other programs make of a real model, for tests/models.

    make_model_facts.py NAME FILE.gguf --llama-bin DIR

Writes tests/data/models/NAME.json:

    tokens      a text of more than 1 MB (code, many scripts, emoji, CRLF, lone bytes): its size, how many tokens, their hash.
                From the `tokenizers` package where it can be said what the tokenizer is, else from llama-tokenize.
    greedy      prompts, their ids (llama-tokenize), 64 greedy tokens of transformers over the widened weights in float32, and
                the first step at which the two best logits differ by less than 1e-3 (64: none)
    perplexity  of tests/data/models/text.txt in windows of 256, their second halves, as llama-perplexity finds it over the
                file itself and over the file widened to float32: after the first window, after two, ...

Needs: torch, transformers, accelerate, gguf, tokenizers, jinja2; llama-tokenize, llama-quantize and llama-perplexity.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import gguf
import torch
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
sys.path.insert(0, str(DATA / "text"))
from make_goldens import test_string  # noqa: E402

STEPS, NEAR, WINDOW, LEAST_BYTES = 64, 1e-3, 256, 1_100_000
PROMPTS = [
    "The capital of France is", "Once upon a time", "def fibonacci(n):\n", "Water boils at", "1, 2, 3, 4,",
    "The quick brown fox", "In 1969, the first", "Q: What is 2 + 2?\nA:", "Dear Sir or Madam,\n\n", "#include <stdio.h>\n",
    "El perro corre por", "Die Hauptstadt von Deutschland ist", "日本の首都は", "Столица России —", "SELECT name FROM users WHERE",
    "Photosynthesis is the process by which", "import numpy as np\n\nx =", "Roses are red,", "To be, or not to be,",
    "The three primary colors are",
]
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
STEPS_OF = {
    "smollm": lambda: [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "qwen2": lambda: [pre_tokenizers.Split(Regex(QWEN2), "isolated"),
                      pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)],
}


def mixed_text():
    """Strings 0, 1, ... of make_goldens.py, until there are enough."""
    pieces = json.loads((DATA / "text" / "byte_pieces.json").read_text())
    strings, size = [], 0
    while size < LEAST_BYTES:
        strings.append(test_string(len(strings), pieces))
        size += len(strings[-1].encode())
    return "".join(strings), len(strings)


def hash_of(ids):
    """FNV-1a over the ids' bytes, as tests/text/golden.h has it."""
    value = 0x811C9DC5
    for token in ids:
        for byte in token.to_bytes(4, "little"):
            value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def llama_ids(args, text, bos):
    with tempfile.NamedTemporaryFile("w", newline="", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        flags = ["--ids", "--no-parse-special", "--log-disable"] + ([] if bos else ["--no-bos"])
        out = subprocess.run([args.llama_bin / "llama-tokenize", "-m", args.file, "-f", file.name, *flags],
                             capture_output=True, text=True, check=True).stdout
    return json.loads(out[out.index("["):])


def package_tokenizer(reader):
    """The `tokenizers` package's, without special tokens; None where the file does not say how texts are split."""
    value = {key: field.contents() for key, field in reader.fields.items() if key.startswith("tokenizer.ggml.")}
    value = {key.removeprefix("tokenizer.ggml."): v for key, v in value.items()}
    if value["model"] != "gpt2":
        return None
    tokens, types = value["tokens"], value["token_type"]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens) if types[i] not in (4, 5)},
                                     merges=[tuple(m.split(" ")) for m in value["merges"]]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(STEPS_OF[value["pre"]]())
    tokenizer.add_tokens([AddedToken(t, normalized=False) for i, t in enumerate(tokens) if types[i] == 4])
    real = {tokenizer.token_to_id(t): i for i, t in enumerate(tokens) if types[i] == 4}
    return lambda text: [real.get(i, i) for i in tokenizer.encode(text, add_special_tokens=False).ids]


def token_facts(args):
    text, strings = mixed_text()
    encode = package_tokenizer(gguf.GGUFReader(args.file))
    ids = encode(text) if encode else llama_ids(args, text, False)
    return dict(strings=strings, bytes=len(text.encode()), count=len(ids), hash=hash_of(ids),
                source="tokenizers" if encode else "llama-tokenize")


def greedy_facts(args):
    model = AutoModelForCausalLM.from_pretrained(args.file.parent, gguf_file=args.file.name, dtype=torch.float32)
    facts = []
    for prompt in PROMPTS:
        ids, answer, near = llama_ids(args, prompt, True), [], STEPS
        cache, fed = None, ids
        with torch.no_grad():
            for step in range(STEPS):
                out = model(torch.tensor([fed]), past_key_values=cache, use_cache=True)
                best = out.logits[0, -1].topk(2)
                if best.values[0] - best.values[1] < NEAR:
                    near = min(near, step)
                answer.append(int(best.indices[0]))
                cache, fed = out.past_key_values, answer[-1:]
        facts.append(dict(prompt=prompt, ids=ids, answer=answer, near=near))
        print(len(facts), near, flush=True)
    return facts


def perplexity(args, file):
    out = subprocess.run([args.llama_bin / "llama-perplexity", "-m", file, "-f", DATA / "models" / "text.txt", "-c",
                          str(WINDOW), "-ctk", "f32", "-ctv", "f32", "-fa", "off"], capture_output=True, text=True, check=True)
    return [float(value) for value in re.findall(r"\[\d+\]([0-9.]+),", out.stdout + out.stderr)]


def perplexity_facts(args):
    with tempfile.TemporaryDirectory() as folder:
        wide = pathlib.Path(folder) / "f32.gguf"
        subprocess.run([args.llama_bin / "llama-quantize", "--allow-requantize", args.file, wide, "F32"], check=True,
                       capture_output=True)
        return dict(window=WINDOW, file=perplexity(args, args.file), float32=perplexity(args, wide))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--llama-bin", type=pathlib.Path, required=True)
    args = parser.parse_args()
    facts = dict(file=args.file.name, size=args.file.stat().st_size, tokens=token_facts(args),
                 perplexity=perplexity_facts(args), greedy=greedy_facts(args))
    lines = json.dumps(facts, ensure_ascii=False, indent=1)
    lines = re.sub(r"\[\s+([-\d,\s]+?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m.group(1)) + "]", lines)
    (DATA / "models" / f"{args.name}.json").write_text(lines + "\n")


main()
