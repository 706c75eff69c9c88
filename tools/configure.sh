#!/bin/sh
# Configures build/release for the machine's own tests: CUDA is built for one architecture, the GPU's, since each takes
# minutes. Where there is no GPU it is left out, unless -DGUMBEL_CUDA asks for it, and is compiled without most optimizations.
#
#     tools/configure.sh [CMAKE-ARGUMENT...]
set -eu
cd "$(dirname "$0")/.."

cuda=AUTO
fast_compile=OFF
case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) in
8.*) architecture=80-real ;;
9.*) architecture=90a-real ;;
[0-9]*) architecture=90-virtual ;;
*) architecture=90a-real cuda=OFF fast_compile=ON ;;
esac
cmake --preset release -DCMAKE_CUDA_ARCHITECTURES=$architecture -DGUMBEL_CUDA=$cuda -DGUMBEL_CUDA_FAST_COMPILE=$fast_compile \
    "$@" >/dev/null
