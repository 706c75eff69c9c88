#!/bin/sh
# Prints docs/quantization-quality.md's tables of what each recipe costs the bundled models, as Markdown:
#     tools/quantization_table.sh [GUMBEL]
# GUMBEL is the built program (default build/release/src/cli/gumbel). The text is held out of their training.
set -eu
cd "$(dirname "$0")/.."

gumbel=${1:-build/release/src/cli/gumbel}
text=tests/data/quantize/perplexity.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# RECIPE: one row, against $work/none.
row() {
    "$gumbel" export "models/$model" -o "$work/program" --quantize "$1" 2>/dev/null
    [ -e "$work/none" ] || cp "$work/program" "$work/none"
    "$gumbel" perplexity "$work/program" -f "$text" --against "$work/none" --threads 1 |
        awk -v name="$1" -v bytes="$(wc -c <"$work/program")" '
            /^perplexity/ { perplexity = $2 " ± " $4 }
            /^kl/ { divergence = $3 < 0.0000005 ? "0" : sprintf("%.4f ± %.4f", $3, $5) }
            /^top-1/ { agreement = $3 }
            END { printf "| %s | %.2f MB | %s | %s | %s %% |\n", name, bytes / 1e6, perplexity, divergence, agreement }'
}

for model in gemma4-tiny qwen3_5-moe-tiny; do
    rm -f "$work/none"
    printf '%s:\n\n' "$model"
    echo "| recipe | file | perplexity | KL divergence | same top token |"
    echo "|---|---|---|---|---|"
    row none
    for recipe in int8 int4 int4-g64 sensitive int8-affine int4-affine int4-affine-g32; do
        row "$recipe"
    done
    echo
done
