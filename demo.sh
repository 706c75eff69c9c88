#!/bin/sh
# Builds gumbel, exports the bundled models at 4 bits to one program file each and lets them generate text.
set -eu
cd "$(dirname "$0")"

tools/packages.sh build
cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=Release -DGUMBEL_TESTS=OFF -DGUMBEL_BENCH=OFF \
    -DGUMBEL_CUDA=OFF -DGUMBEL_MLX=OFF >/dev/null # it runs on the CPU
cmake --build build/demo >/dev/null

gumbel=build/demo/src/cli/gumbel
for model in gemma4-tiny qwen3_5-moe-tiny; do
    program="build/$model.gumbel"
    "$gumbel" export "models/$model" -o "$program" --quantize int4
    echo "\$ gumbel run $program -p \"Tell me a story about a dog.\" --no-think --seed 7 -n 400"
    "$gumbel" run "$program" -p "Tell me a story about a dog." --no-think --seed 7 -n 400
    echo
done
