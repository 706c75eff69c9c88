#!/bin/sh
# Cross-builds the CPU kernels' tests for aarch64 and runs them under qemu, on a processor with dot products and
# i8mm and on one with neither: every instruction set gives the portable kernels' bits.
#
#     tools/neon.sh [BUILD]        BUILD is build/neon by default
#
# On Debian: apt-get install gcc-aarch64-linux-gnu qemu-user; the libraries are tools/arm64.sh's.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/neon}
root=$(tools/arm64.sh)
libraries=$root/usr/lib/aarch64-linux-gnu

export PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$libraries/pkgconfig:$root/usr/share/pkgconfig"
cmake -S . -B "$build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$libraries:$root/lib/aarch64-linux-gnu" \
    -DGUMBEL_CUDA=OFF -DGUMBEL_MLX=OFF >/dev/null

tests="attention chains delta_net exact_kernels exact_sums experts interleaved linear linear_bfloat16 quantized rows same_bits"
# shellcheck disable=SC2046
cmake --build "$build" --target $(printf 'test_cpu_%s ' $tests)

emulate() { # processor, program and its arguments
    processor=$1 program=$2
    shift 2
    qemu-aarch64 -cpu "$processor" -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$libraries:$root/lib/aarch64-linux-gnu" "$build/$program" "$@" </dev/null
}
for processor in cortex-a53 max; do
    for test in $tests; do
        echo "$processor: $test"
        emulate $processor "tests/test_cpu_$test"
    done
done
