#!/bin/sh
# Configures build/release for the machine's own tests: CUDA is built for one architecture, the GPU's where there is one,
# since each takes minutes. Where there is none, no test runs its kernels, and nvcc leaves out most optimizations.
#
#     tools/configure.sh [CMAKE-ARGUMENT...]
set -eu
cd "$(dirname "$0")/.."

fast_compile=OFF
case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) in
8.*) architecture=80-real ;;
9.*) architecture=90a-real ;;
"") architecture=90a-real fast_compile=ON ;;
*) architecture=90-virtual ;;
esac
cmake --preset release -DCMAKE_CUDA_ARCHITECTURES=$architecture -DGUMBEL_CUDA_FAST_COMPILE=$fast_compile "$@" >/dev/null
