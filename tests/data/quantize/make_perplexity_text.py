"""Writes perplexity.txt: documents of the language that both bundled models learned, from the seed that was held out
of their training, one after another, without the conversations. The text is the project's own, like its generator.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[2] / "models" / "gemma4-tiny" / "training"))
import generate_text  # noqa: E402

BYTES = 100_000


def main():
    texts, size, index = [], 0, 0
    while True:
        text = generate_text.one(generate_text.HELD_OUT_SEED, index)
        index += 1
        if text.endswith(generate_text.EOS):
            text = text.removeprefix(generate_text.BOS).removesuffix(generate_text.EOS) + "\n\n"
            if size + len(text.encode()) > BYTES:
                break
            texts.append(text)
            size += len(text.encode())
    (HERE / "perplexity.txt").write_text("".join(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
