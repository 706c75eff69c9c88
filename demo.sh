#!/bin/sh
# Builds gumbel, exports the bundled model to one program file and lets it generate text.
set -eu
cd "$(dirname "$0")"

tools/packages.sh build
cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=Release -DGUMBEL_TESTS=OFF -DGUMBEL_BENCH=OFF >/dev/null
cmake --build build/demo >/dev/null

gumbel=build/demo/src/cli/gumbel
"$gumbel" export models/gemma4-tiny -o build/gemma4-tiny.gumbel
echo "\$ gumbel run build/gemma4-tiny.gumbel -p \"Tell me a story about a dog.\" --seed 7 -n 400"
"$gumbel" run build/gemma4-tiny.gumbel -p "Tell me a story about a dog." --seed 7 -n 400
