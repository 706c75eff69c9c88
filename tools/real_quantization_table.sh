#!/bin/sh
# Prints docs/quantization-quality.md's table of what recipes and llama.cpp's formats cost real models, as Markdown:
#     tools/real_quantization_table.sh LLAMA_QUANTIZE [GUMBEL]
# LLAMA_QUANTIZE is llama.cpp's llama-quantize; GUMBEL the built program (default build/release/src/cli/gumbel). The models
# are those of tools/models.sh; python3 needs numpy and gguf. Hours on two cores, and 12 GB of disk in TMPDIR.
set -eu
cd "$(dirname "$0")/.."

quantize=$1
gumbel=${2:-build/release/src/cli/gumbel}
text=tests/data/quantize/prose_and_code.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# NAME PROGRAM FILE: one row, against $work/none; FILE is what is counted.
row() {
    "$gumbel" perplexity "$2" -f "$text" -c 256 --batch 64 -n 20480 --against "$work/none" |
        awk -v name="$1" -v bytes="$(wc -c <"$3")" '
            /^perplexity/ { perplexity = $2 " ± " $4 }
            /^kl/ { divergence = sprintf("%.4f ± %.4f", $3, $5) }
            /^top-1/ { agreement = $3 }
            END { printf "| %s | %.1f MB | %s | %s | %s %% |\n", name, bytes / 1e6, perplexity, divergence, agreement }'
}

gguf() {
    "$quantize" "$work/model.gguf" "$work/quantized.gguf" "$1" >"$work/log" 2>&1
    bytes=$(wc -c <"$work/quantized.gguf")
    "$gumbel" export "$work/quantized.gguf" -o "$work/program" --quiet
    row "GGUF $1" "$work/program" "$work/quantized.gguf"
}

recipe() {
    "$gumbel" export "$work/model.gguf" -o "$work/program" --quiet --quantize "$@"
    row "$*" "$work/program" "$work/program"
}

folder=$(tools/models.sh smollm2 gemma3 qwen2.5-coder)
for model in smollm2-135m-instruct-q4_1 gemma-3-270m-q4_k_m qwen2.5-coder-0.5b-instruct; do
    file=$folder/$model.gguf
    "$quantize" --allow-requantize "$file" "$work/widened.gguf" F32 >"$work/log" 2>&1
    python3 tools/rescale_gguf.py "$work/widened.gguf" "$work/model.gguf"
    rm "$work/widened.gguf"
    "$gumbel" export "$work/model.gguf" -o "$work/none" --quiet --quantize none
    printf '%s:\n\n' "$model"
    echo "| | file | perplexity | KL divergence | same top token |"
    echo "|---|---|---|---|---|"
    for format in Q4_0 Q8_0 Q4_K_M; do
        gguf $format
    done
    for name in int8 int4 int4-affine sensitive; do
        recipe $name
    done
    recipe int4 --calibrate built-in
    recipe int4 --calibrate built-in --size "$bytes" # of Q4_K_M
    echo
done
