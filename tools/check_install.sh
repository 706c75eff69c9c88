#!/bin/sh
# Installs a build into a scratch folder and looks at what is there; then builds programs against it in each way that embedders
# use: pkg-config, find_package, FetchContent; shared and static.
#
#     tools/check_install.sh [BUILD [CMAKE-ARGUMENT...]]
#
# BUILD: build/release by default, which must have been built. Further arguments are FetchContent's, e.g. -DGUMBEL_WERROR=ON:
# with those of BUILD the compiler cache has what is built once more.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
[ $# -eq 0 ] || shift
scratch="$PWD/build/install"
prefix="$scratch/prefix"
own="-DGUMBEL_MLX=OFF -DGUMBEL_CUDA=OFF"
rm -rf "$prefix" "$scratch/made"
mkdir -p "$scratch/made"

fail() {
    echo "check_install.sh: $*" >&2
    exit 1
}

cached() { # variable of BUILD's cache
    sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"
}

[ "$(cached CMAKE_INSTALL_LIBDIR)" = lib ] || fail "$build installs into another folder than lib"
# Where MLX lies in this tree (tools/mlx.sh) nothing that is installed names its folder, which CMake does for folders elsewhere.
LD_LIBRARY_PATH="$(cached MLX_DIR)/../../../lib"
export LD_LIBRARY_PATH
cmake --install "$build" --prefix "$prefix" >/dev/null
for file in bin/gumbel include/gumbel.h share/doc/gumbel/LICENSE share/doc/gumbel/examples/generate.c \
    share/doc/gumbel/examples/chat.c share/doc/gumbel/examples/chat.cpp \
    share/man/man1/gumbel.1 share/man/man1/gumbel-run.1 share/bash-completion/completions/gumbel \
    share/zsh/site-functions/_gumbel share/fish/vendor_completions.d/gumbel.fish \
    lib/libgumbel.a lib/libgumbel-export.a lib/pkgconfig/gumbel.pc lib/pkgconfig/gumbel-export.pc; do
    test -s "$prefix/$file" || fail "$file was not installed"
done
version=$("$prefix/bin/gumbel" --version | sed 's/gumbel //')
for name in libgumbel libgumbel-export; do
    test "$(readlink "$prefix/lib/$name.so")" = "$name.so.${version%%.*}" || fail "$name.so is not a link to its version"
    objdump -p "$prefix/lib/$name.so" | grep -q "SONAME *$name.so.${version%%.*}$" || fail "$name.so: another SONAME"
    exported=$(nm -D --defined-only "$prefix/lib/$name.so" | awk '$2 != "A" {print $3}' | grep -v '^gumbel_' || true)
    [ -z "$exported" ] || fail "$name.so exports other names: $exported"
done

# A folder and its name: what generate says there must be what the others say, and exporter must make the program.
"$prefix/bin/gumbel" export models/gemma4-tiny -o "$scratch/made/tiny.gumbel" 2>/dev/null
check_programs() {
    "$1/generate" "$scratch/made/tiny.gumbel" "Hello!" >"$scratch/made/$2.txt"
    test -s "$scratch/made/$2.txt" || fail "$2: generate said nothing"
    cmp "$scratch/made/pkg-config-shared.txt" "$scratch/made/$2.txt"
    echo "Hello!" | "$1/chat" "$scratch/made/tiny.gumbel" | grep -q . || fail "$2: chat said nothing"
    "$1/chat_cpp" "$scratch/made/tiny.gumbel" "Hello!" | grep -q "new tokens" || fail "$2: chat_cpp said nothing"
    rm -f "$scratch/made/exported.gumbel"
    "$1/exporter" models/gemma4-tiny "$scratch/made/exported.gumbel"
    cmp "$scratch/made/tiny.gumbel" "$scratch/made/exported.gumbel"
    echo "$2: examples and exporter built and run"
}

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
warnings="-Wall -Wextra -Wpedantic -Werror"
for way in shared static; do
    built="$scratch/made/$way"
    mkdir -p "$built"
    for half in "gumbel examples/generate.c" "gumbel examples/chat.c" "gumbel examples/chat.cpp" \
        "gumbel-export tests/package/exporter.c"; do
        module=${half% *} source=${half#* } compiler="cc -std=c17" program=$(basename "${half#* }" .c)
        if [ "$program" = chat.cpp ]; then
            compiler="c++ -std=c++17" program=chat_cpp
        fi
        if [ $way = static ]; then
            libraries=$(pkg-config --static --libs "$module" |
                sed 's/-lgumbel[a-z-]*/-Wl,-Bstatic & -Wl,-Bdynamic/g')
        else
            libraries="$(pkg-config --libs "$module") -Wl,-rpath,$prefix/lib"
        fi
        # shellcheck disable=SC2046,SC2086 # lists of arguments
        $compiler $warnings "$source" -o "$built/$program" $(pkg-config --cflags "$module") $libraries
    done
    check_programs "$built" pkg-config-$way
done
unset PKG_CONFIG_PATH

# Beside BUILD, so that what is compiled again has the same relative paths.
build_package() { # name, arguments
    name=$1
    shift
    cmake -S tests/package -B "build/$name" -G Ninja "$@" >/dev/null
    cmake --build "build/$name" --target generate chat chat_cpp exporter >/dev/null
    check_programs "build/$name" "$name"
}
build_package find-package-shared -DCMAKE_PREFIX_PATH="$prefix"
build_package find-package-static -DCMAKE_PREFIX_PATH="$prefix" -DEMBEDDER_STATIC=ON -DMLX_ROOT="$(cached MLX_DIR)"
cache=OFF
! command -v ccache >/dev/null || cache=ON
# shellcheck disable=SC2086
build_package fetch-content -DGUMBEL_SOURCE="$PWD" -DGUMBEL_CCACHE=$cache $own "$@"

# Without cmocka the tests are left out with a notice; a build that must have them says what is missing.
rm -rf "$scratch/modules" "$scratch/no-cmocka"
mkdir "$scratch/modules"
for folder in $(pkg-config --variable pc_path pkg-config | tr ':' ' '); do
    find "$folder" -name '*.pc' ! -name cmocka.pc -exec ln -s -t "$scratch/modules" {} + 2>/dev/null || true
done
export PKG_CONFIG_LIBDIR="$scratch/modules"
# shellcheck disable=SC2086
cmake --preset release -B "$scratch/no-cmocka" $own >"$scratch/no-cmocka.txt" 2>&1 ||
    fail "the preset release fails without cmocka"
grep -q "Tests: cmocka was not found" "$scratch/no-cmocka.txt" || fail "no notice of the tests that are left out"
# shellcheck disable=SC2086
if cmake --preset release -B "$scratch/no-cmocka" -DGUMBEL_TESTS=ON $own >"$scratch/no-cmocka.txt" 2>&1; then
    fail "tests were to be built, without cmocka"
fi
grep -q "libcmocka-dev" "$scratch/no-cmocka.txt" || fail "the missing package is not named"
echo "without cmocka: the release preset leaves the tests out"
