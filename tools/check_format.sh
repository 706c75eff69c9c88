#!/bin/sh
# clang-format over every C, C++ and CUDA file; fails and names the files that differ.
set -eu
cd "$(dirname "$0")/.."
git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' | xargs clang-format --dry-run --Werror
