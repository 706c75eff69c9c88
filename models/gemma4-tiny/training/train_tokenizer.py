#!/usr/bin/env python3
"""Trains tokenizer.json: byte-fallback BPE of Gemma's kind on the generated text.

    train_tokenizer.py OUT_DIR [--vocabulary 2048] [--documents 40000]

As in Gemma's tokenizer a space belongs to the word that follows it, digits stand alone, no token spans two words,
and a character that is not in the vocabulary becomes its UTF-8 bytes.
"""
import argparse
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import generate_text

SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>",
           "<|tool_response>", "<tool_response|>", "<|\"|>", "<|think|>", "<|channel>", "<channel|>", "<|turn>", "<turn|>"]
BYTES = [f"<0x{b:02X}>" for b in range(256)]
ASCII = [chr(c) for c in range(33, 127)]

# Where merges may not cross while training. The finished file needs no such rule: it has no merge that crosses.
WORDS = r"▁?[A-Za-z]+|▁\"|'[a-z]+|\n{1,2}|[.,!?]\"|."


def train(vocabulary: int, documents: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), "isolated")
    text = generate_text.documents(seed=7, first=0, count=documents)
    plain = ("\n".join(part for part in strip_special(t)) for t in text)
    tokenizer.train_from_iterator(plain, trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=SPECIAL + BYTES, initial_alphabet=ASCII, show_progress=False))
    return tokenizer


def strip_special(text: str) -> list[str]:
    """The text between special tokens, which the tokenizer must not learn to spell."""
    for token in SPECIAL:
        text = text.replace(token, "\0")
    return [part for part in text.split("\0") if part]


def released_form(tokenizer: Tokenizer) -> dict:
    """The JSON as a released Gemma tokenizer has it."""
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos>:1 $B:1", special_tokens=[("<bos>", tokenizer.token_to_id("<bos>"))])
    data = json.loads(tokenizer.to_str())
    # Byte tokens are ordinary vocabulary entries in the released file, not added tokens.
    data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] not in BYTES]
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--vocabulary", type=int, default=2048)
    parser.add_argument("--documents", type=int, default=40000)
    args = parser.parse_args()
    data = released_form(train(args.vocabulary, args.documents))
    (args.out / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": True, "clean_up_tokenization_spaces": False,
        "model_max_length": 2048, "padding_side": "left", "bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>",
        "unk_token": "<unk>", "mask_token": "<mask>", "sot_token": "<|turn>", "eot_token": "<turn|>", "soc_token": "<|channel>",
        "eoc_token": "<channel|>", "think_token": "<|think|>", "stc_token": "<|tool_call>", "etc_token": "<tool_call|>",
        "std_token": "<|tool>", "etd_token": "<tool|>", "str_token": "<|tool_response>", "etr_token": "<tool_response|>",
        "escape_token": "<|\"|>",
    }
    (args.out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    print(f"{len(data['model']['vocab'])} tokens, {len(data['model']['merges'])} merges")


if __name__ == "__main__":
    main()
