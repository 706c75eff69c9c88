#!/bin/sh
# Builds the libFuzzer targets with clang and sanitizers and runs each for so many seconds (default 15) from
# its corpus. ctest of the other builds runs each seed once.
set -eu
cd "$(dirname "$0")/.."

cmake --preset fuzz -DGUMBEL_FUZZ_SECONDS="${1:-15}" >/dev/null
targets=$(ls -d tests/fuzz/corpus/*/ | xargs -n1 basename | sed 's/^/fuzz_/')
cmake --build --preset fuzz --target $targets -- --quiet
ctest --test-dir build/fuzz -R '^fuzz\.' -j2 --output-on-failure
