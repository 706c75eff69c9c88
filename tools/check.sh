#!/usr/bin/env bash
# For before each commit: formats, checks the rules, builds what changed and runs the short tests of the modules that changed.
# Of a change that all tests share (include/, tests/support, CMake) it runs all short tests.
#
#     tools/check.sh [SINCE]        what changed since this commit, by default since main was left
set -euo pipefail
cd "$(dirname "$0")/.."

since=${1:-$(git merge-base HEAD main 2>/dev/null || echo HEAD)}
git rev-parse --verify --quiet "$since^{commit}" >/dev/null || { echo "check.sh: no such commit: $since" >&2; exit 2; }
changed=$({ git diff --name-only "$since" && git ls-files --others --exclude-standard; } | sort -u)
if [ -z "$changed" ]; then
    echo "check.sh: nothing has changed since $(git rev-parse --short "$since")"
    exit 0
fi

# The labels of tests of a changed file; "all" for what every test stands on.
modules_of() {
    case $1 in
    src/tensor/* | src/base/*) echo base ;;
    src/backends/cuda/* | tests/cuda/*) echo cuda-emulated ;;
    src/backends/cpu/* | src/backends/threads/*) echo cpu run ;;
    src/backends/mlx/*) echo mlx ;;
    src/backends/sampler/*) echo sampler run ;;
    src/backends/*) echo run ;;
    tests/cpu/* | tests/mlx/* | tests/fuzz/* | tests/sampler/*) echo "$1" | cut -d/ -f2 ;;
    tests/support/* | tests/data/* | *CMakeLists.txt | *.cmake | CMakePresets.json | include/* | models/*) echo all ;;
    examples/*) echo run ;;
    bench/soak*) echo run cuda-emulated ;;
    packaging/*) echo server ;;
    src/*/* | tests/*/*) echo "$1" | cut -d/ -f2 ;;
    esac
}

echo "== format, include directions, type names, pages"
printf '%s\n' "$changed" | grep -E '\.(c|h|cu|cuh|cpp)$' | while read -r file; do
    [ ! -e "$file" ] || echo "$file"
done | xargs -r clang-format -i
tools/check_includes.sh
tools/check_types.sh
tools/check_docs.sh

labels=$(printf '%s\n' "$changed" | while read -r file; do modules_of "$file"; done | tr ' ' '\n' | sort -u)
if [ -z "$labels" ]; then
    echo "== no tests: no module has changed"
    exit 0
fi
[ -e build/release/build.ninja ] || tools/configure.sh -DGUMBEL_WERROR=ON
emulated=()
if [[ $labels = *cuda-emulated* || $labels = *all* ]]; then
    emulated=(-DGUMBEL_EMULATED_CUDA=ON)
fi
cmake -B build/release "${emulated[@]}" >/dev/null # new files
if [[ $labels = *all* ]]; then
    echo "== building everything"
    cmake --build --preset release
    chosen=()
else
    targets=$(ninja -C build/release -t targets all | sed -n 's/^\(tests_[a-z-]*\): phony$/\1/p' |
        grep -xE "tests_($(echo $labels | tr ' ' '|'))" || true)
    echo "== building" $targets
    # shellcheck disable=SC2086 # a list of words
    cmake --build --preset release --target ${targets:-gumbel-program}
    chosen=(-L "^($(echo $labels | tr ' ' '|'))\$")
fi
echo "== short tests of" $labels
ctest --preset release -j "$(($(nproc) + 1))" "${chosen[@]}"
