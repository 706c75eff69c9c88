#!/bin/sh
# Builds gumbel with its tests and runs them. Ends with ctest's summary.
#
#     ./test.sh [CMAKE-ARGUMENT...]
#
# -DGUMBEL_EMULATED_CUDA=ON: also the CUDA backend on an emulated device, which takes as long as all else.
set -eu
cd "$(dirname "$0")"

say() {
    echo "== $* ($(date +%H:%M:%S))"
}

say "packages that the build and the tests need"
tools/packages.sh build test
say "configuring build/release"
tools/configure.sh -DGUMBEL_EMULATED_CUDA=OFF "$@"
say "building: some minutes on two cores, more where there is a GPU and nvcc"
cmake --build --preset release
say "running the tests, one more at a time than there are cores: some wait"
ctest --preset release -j "$(($(nproc) + 1))"
