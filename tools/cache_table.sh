#!/bin/sh
# Prints docs/cache-quantization.md's table of what the kinds of caches cost the bundled models, as Markdown:
#     tools/cache_table.sh [GUMBEL]
# GUMBEL is the built program (default build/release/src/cli/gumbel). The text is held out of their training.
set -eu
cd "$(dirname "$0")/.."

gumbel=${1:-build/release/src/cli/gumbel}
text=tests/data/quantize/perplexity.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# CACHE: one row, beside bfloat16.
row() {
    bytes=$("$gumbel" inspect "$work/program" --cache "$1" | sed -n 's/.*state per session.*(\([0-9]*\) bytes)/\1/p')
    "$gumbel" perplexity "$work/program" -f "$text" -n 2000 --cache "$1" --against "$work/program" --threads 1 |
        awk -v name="$1" -v bytes="$bytes" '
            /^perplexity/ { perplexity = $2 " ± " $4 }
            /^kl/ { divergence = $3 < 0.00000005 ? "0" : sprintf("%.5f ± %.5f", $3, $5) }
            /^top-1/ { agreement = $3 }
            END { printf "| %s | %.0f KB | %s | %s | %s %% |\n", name, bytes / 1e3, perplexity, divergence, agreement }'
}

for model in gemma4-tiny qwen3_5-moe-tiny; do
    "$gumbel" export "models/$model" -o "$work/program" --cache bfloat16 -q
    printf '%s:\n\n' "$model"
    echo "| cache | session | perplexity | KL divergence from bfloat16 | same top token |"
    echo "|---|---|---|---|---|"
    for cache in float32 bfloat16 q8 q4 q4-all; do
        row "$cache"
    done
    echo
done
