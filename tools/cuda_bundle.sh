#!/bin/sh
# Puts what a machine with a GPU needs into one folder: the program, the tests of the CUDA backend, their data and
# the libraries that they load. There, run.sh in it runs the tests and measures programs of random weights.
#
#     tools/cuda_bundle.sh [--sanitize] [BUNDLE [ARCHITECTURES]]       by default build/cuda-bundle, for 90a-real
#
# With --sanitize it is built for compute-sanitizer, whose racecheck can follow what it does then.
set -eu
cd "$(dirname "$0")/.."
racecheck=OFF
if [ "${1:-}" = --sanitize ]; then
    racecheck=ON
    shift
fi
bundle=${1:-build/cuda-bundle}
architectures=${2:-90a-real}
build=$bundle-build

# Tests find their data relative to the bundle.
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGUMBEL_CUDA=ON -DGUMBEL_MLX=OFF \
    -DGUMBEL_CUDA_RACECHECK=$racecheck \
    -DCMAKE_CUDA_ARCHITECTURES="$architectures" -DGUMBEL_TEST_DATA=data -DGUMBEL_TEST_MODELS=models
targets=$(ninja -C "$build" -t targets all | sed -n 's/^\(test_cuda_[a-z0-9_]*\): phony$/\1/p')
# shellcheck disable=SC2086 # a list of words
ninja -C "$build" gumbel-program bench_cuda_products bench_cuda_sampler bench_soak $targets

rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/data/export"
cp "$build/src/cli/gumbel" "$build"/bench/bench_cuda_* "$build/bench/bench_soak" "$bundle/bin/"
for test in $targets; do
    cp "$build/tests/cuda/$test" "$bundle/bin/"
done
strip "$bundle"/bin/*
ldd "$bundle"/bin/* | awk '$3 ~ /^\// {print $3}' | sort -u | while read -r library; do
    case $library in
    */libc.so* | */libm.so* | */ld-linux* | */libpthread* | */libdl* | */librt*) ;;
    *) cp -L "$library" "$bundle/lib/" ;;
    esac
done
cp -r tests/data/run "$bundle/data/"
cp -r tests/data/export/agreement "$bundle/data/export/"
cp -r models "$bundle/"
cp bench/configs/*.json "$bundle/"
cp tools/cuda_run.sh "$bundle/run.sh"
du -sh "$bundle"
