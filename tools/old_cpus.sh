#!/usr/bin/env bash
# Exports the bundled models and lets them answer on emulated x86-64 processors: one without AVX, one with AVX2, and all that
# qemu has. None may meet an instruction that it lacks; files, tokens and log-probabilities are those of this machine.
#
#     tools/old_cpus.sh [BUILD]      BUILD is build/release by default, and built; on Debian: apt-get install qemu-user
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/release}/src/cli/gumbel
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

answer() { # program of a model, output, what runs the command
    "${@:3}" "$program" run "$1" "Why is the sky blue?" --seed 7 --max-new-tokens 24 --top-logprobs 2 >"$2" 2>"$folder/log" ||
        { cat "$folder/log" >&2 && exit 1; }
}

check() { # model, processor, the kernels that it is to have
    local emulated=(timeout 120 qemu-x86_64 -cpu "$2") kernels
    "${emulated[@]}" "$program" export "models/$1" -o "$folder/exported" --quantize int4 >"$folder/log" 2>&1 ||
        { cat "$folder/log" >&2 && exit 1; }
    cmp "$folder/exported" "$folder/$1"
    answer "$folder/$1" "$folder/answer" "${emulated[@]}"
    diff "$folder/$1.answer" "$folder/answer"
    kernels=$("${emulated[@]}" "$program" run "$folder/$1" Hi --max-new-tokens 1 --stats 2>&1 | sed -n 's/^engine *cpu \([a-z0-9]*\) .*/\1/p')
    if [ "$kernels" != "$3" ]; then
        echo "old_cpus.sh: $2 runs the kernels \"$kernels\", expected $3" >&2
        exit 1
    fi
    echo "$2, $3 kernels: $1 gives the same file and tokens"
}

for model in gemma4-tiny qwen3_5-moe-tiny; do
    "$program" export models/$model -o "$folder/$model" --quantize int4 >/dev/null 2>&1
    answer "$folder/$model" "$folder/$model.answer"
    check $model Nehalem portable
    check $model Haswell avx2
    check $model max avx2
done
