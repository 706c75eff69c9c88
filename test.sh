#!/bin/sh
# Builds gumbel with its tests and runs them. Ends with ctest's summary.
#
#     ./test.sh [CMAKE-ARGUMENT...]
set -eu
cd "$(dirname "$0")"

# CUDA is built for one architecture, the GPU's where there is one: each takes minutes.
case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) in
8.*) architecture=80-real ;;
9.* | "") architecture=90a-real ;;
*) architecture=90-virtual ;;
esac

tools/packages.sh build test
cmake --preset release -G Ninja -DCMAKE_CUDA_ARCHITECTURES=$architecture "$@" >/dev/null
cmake --build --preset release
ctest --preset release --output-on-failure -j2
