#!/usr/bin/env python3
"""Trains tokenizer.json: byte-level BPE of Qwen's kind on the generated text.

    train_tokenizer.py OUT_DIR [--vocabulary 2048] [--documents 40000]

As in Qwen's tokenizer text is brought to NFC and split by a regular expression that keeps a space with the word that
follows it and lets digits stand alone; the bytes of each piece are merged.
"""
import argparse
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from generate import END, END_OF_TEXT, START, THINK, THOUGHT, document

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL, VISIBLE = [END_OF_TEXT, START, END], [THINK, THOUGHT]


def texts(documents: int):
    """The text between added tokens, which the tokenizer must not learn to spell."""
    for index in range(documents):
        text = "".join(piece for piece, _ in document(seed=7, index=index))
        for token in SPECIAL + VISIBLE:
            text = text.replace(token, "\0")
        yield from (part for part in text.split("\0") if part)


def train(vocabulary: int, documents: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.train_from_iterator(texts(documents), trainers.BpeTrainer(
        vocab_size=vocabulary - len(SPECIAL + VISIBLE), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in VISIBLE])
    return tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--vocabulary", type=int, default=2048)
    parser.add_argument("--documents", type=int, default=40000)
    args = parser.parse_args()
    tokenizer = train(args.vocabulary, args.documents)
    data = json.loads(tokenizer.to_str())
    (args.out / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    config = dict(
        tokenizer_class="Qwen2Tokenizer", add_bos_token=False, add_prefix_space=False, bos_token=None, unk_token=None,
        eos_token=END, pad_token=END_OF_TEXT, clean_up_tokenization_spaces=False, errors="replace",
        model_max_length=2048, split_special_tokens=False,
        added_tokens_decoder={str(tokenizer.token_to_id(t)): dict(
            content=t, lstrip=False, normalized=False, rstrip=False, single_word=False, special=t in SPECIAL)
            for t in SPECIAL + VISIBLE})
    (args.out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    print(f"{tokenizer.get_vocab_size()} tokens, {len(data['model']['merges'])} merges")


if __name__ == "__main__":
    main()
