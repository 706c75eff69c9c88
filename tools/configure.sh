#!/bin/sh
# Configures build/release for the machine's own tests: CUDA is built for one architecture, the GPU's where there is one,
# since each takes minutes. Where there is none, kernels are compiled to see that they compile, hardly optimized.
#
#     tools/configure.sh [CMAKE-ARGUMENT...]
set -eu
cd "$(dirname "$0")/.."

knows_fast_compile() {
    "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)" --help 2>/dev/null | grep -q -- --Ofast-compile
}

flags=
case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) in
8.*) architecture=80-real ;;
9.*) architecture=90a-real ;;
"")
    architecture=90a-real
    if knows_fast_compile; then flags=--Ofast-compile=max; fi
    ;;
*) architecture=90-virtual ;;
esac
cmake --preset release -DCMAKE_CUDA_ARCHITECTURES=$architecture -DCMAKE_CUDA_FLAGS=$flags "$@" >/dev/null
