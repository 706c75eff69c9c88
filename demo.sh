#!/bin/sh
# Builds gumbel, exports the bundled models at 4 bits to one program file each and lets them generate text.
set -eu
cd "$(dirname "$0")"
build=build/demo

tools/packages.sh build
echo "== building gumbel into $build (a minute or two)"
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGUMBEL_TESTS=OFF -DGUMBEL_BENCH=OFF \
    -DGUMBEL_CUDA=OFF -DGUMBEL_MLX=OFF >/dev/null # it runs on the CPU
if [ -t 1 ]; then
    cmake --build $build # ninja keeps to one line on a terminal
else
    cmake --build $build >$build/build.log || { cat $build/build.log; exit 1; }
fi

gumbel=$build/src/cli/gumbel
for model in gemma4-tiny qwen3_5-moe-tiny; do
    program="build/$model.gumbel"
    echo
    echo "== $model: export to $program, then a story"
    "$gumbel" export "models/$model" -o "$program" --quantize int4
    echo "\$ $gumbel run $program -p \"Tell me a story about a dog.\" --no-think --seed 7 -n 400"
    "$gumbel" run "$program" -p "Tell me a story about a dog." --no-think --seed 7 -n 400
    echo
done
