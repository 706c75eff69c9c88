#!/bin/sh
# Cross-builds the CPU kernels' tests for aarch64 and runs them under qemu, on a processor with dot products and
# i8mm and on one with neither: every instruction set gives the portable kernels' bits.
#
#     tools/neon.sh [BUILD]        BUILD is build/neon by default
#
# On Debian: dpkg --add-architecture arm64 && apt-get update && apt-get install gcc-aarch64-linux-gnu qemu-user
# libpcre2-dev:arm64 libutf8proc-dev:arm64 libjansson-dev:arm64 libxxhash-dev:arm64 libedit-dev:arm64
# libcmocka-dev:arm64
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/neon}
libraries=/usr/lib/aarch64-linux-gnu

PKG_CONFIG_LIBDIR=$libraries/pkgconfig:/usr/share/pkgconfig cmake -S . -B "$build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DGUMBEL_CUDA=OFF -DGUMBEL_MLX=OFF >/dev/null

tests="attention chains delta_net exact_kernels exact_sums experts interleaved linear linear_bfloat16 quantized rows same_bits"
# shellcheck disable=SC2046
cmake --build "$build" --target $(printf 'test_cpu_%s ' $tests)
for processor in cortex-a53 max; do
    for test in $tests; do
        echo "$processor: $test"
        qemu-aarch64 -cpu $processor "$build/tests/test_cpu_$test"
    done
done
