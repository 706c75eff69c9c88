#!/bin/sh
# Builds the libFuzzer targets with clang and runs each for so many seconds (default 15) from its corpus.
set -eu
cd "$(dirname "$0")/.."
seconds="${1:-15}"

CC=clang cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug -DGUMBEL_FUZZ=ON -DGUMBEL_BENCH=OFF \
    -DGUMBEL_SANITIZE=address,undefined >/dev/null
cmake --build build/fuzz --target fuzzers >/dev/null
for corpus in tests/fuzz/corpus/*/; do
    name=$(basename "$corpus")
    work="build/fuzz/work-$name"
    mkdir -p "$work"
    build/fuzz/tests/fuzz/fuzz_"$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -verbosity=0 -print_final_stats=1 "$work" "$corpus"
done
