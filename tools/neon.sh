#!/bin/sh
# Cross-builds the CPU kernels' tests and the command for aarch64 and runs them under qemu, on a processor with dot products
# and i8mm and on one with neither: every instruction set gives the portable kernels' bits, and the README's answer.
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
cmake --build "$build" --target gumbel-program

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
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
while read -r processor kernels; do
    echo "$processor: command"
    emulate "$processor" src/cli/gumbel export models/gemma4-tiny -o "$folder/program"
    emulate "$processor" src/cli/gumbel run "$folder/program" "Why is the sky blue?" --seed 7 --stats >"$folder/answer" 2>"$folder/log" ||
        { cat "$folder/log" && exit 1; }
    grep -qx "The sky is blue because the air scatters the blue light of the sun." "$folder/answer" &&
        grep -q "^engine *cpu $kernels " "$folder/log" || { cat "$folder/answer" "$folder/log" && exit 1; }
done <<END
cortex-a53 neon
cortex-a76 neondot
max neoni8mm
END
