#!/bin/sh
# Builds gumbel with its tests and runs them. Ends with ctest's summary.
set -eu
cd "$(dirname "$0")"

tools/packages.sh build test
cmake --preset release -G Ninja >/dev/null
cmake --build --preset release
ctest --preset release --output-on-failure -j2
