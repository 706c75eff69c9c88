#!/bin/sh
# Compiles the CPU's kernels for aarch64, as each of its instruction sets, and throws the result away: a processor that
# this machine need not have. What they compute is for tools/neon.sh. Needs gcc-aarch64-linux-gnu.
set -eu
cd "$(dirname "$0")/.."

compile() { # set, flags
    set=$1
    shift
    for source in src/backends/cpu/kernels/vector/*.c src/backends/cpu/kernels/vector/*/*.c; do
        aarch64-linux-gnu-gcc -std=c17 -O1 -fsyntax-only -Werror -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
            -D_POSIX_C_SOURCE=200809L -Isrc -Iinclude -DGB_ISA="$set" -DGB_VECTOR_LANES=4 "$@" "$source"
    done
}
compile neon
compile neoni8mm -march=armv8.2-a+dotprod+i8mm
