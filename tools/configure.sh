#!/bin/sh
# Configures build/release for the machine's own tests: CUDA is built for one architecture, the GPU's where there is one,
# since each takes minutes.
#
#     tools/configure.sh [CMAKE-ARGUMENT...]
set -eu
cd "$(dirname "$0")/.."

case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) in
8.*) architecture=80-real ;;
9.* | "") architecture=90a-real ;;
*) architecture=90-virtual ;;
esac
cmake --preset release -DCMAKE_CUDA_ARCHITECTURES=$architecture "$@" >/dev/null
