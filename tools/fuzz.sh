#!/bin/sh
# Builds the libFuzzer targets with clang and sanitizers and runs each for so many seconds (default 15) from
# its corpus.
set -eu
cd "$(dirname "$0")/.."

CC=clang cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug -DGUMBEL_FUZZ=ON -DGUMBEL_BENCH=OFF \
    -DGUMBEL_SANITIZE=address,undefined -DGUMBEL_FUZZ_SECONDS="${1:-15}" >/dev/null
targets=$(ls -d tests/fuzz/corpus/*/ | xargs -n1 basename | sed 's/^/fuzz_/')
cmake --build build/fuzz --target $targets >/dev/null
ctest --test-dir build/fuzz -R '^fuzz\.' -j2 --output-on-failure
