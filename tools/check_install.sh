#!/bin/sh
# Installs into a scratch folder and builds the example through pkg-config, shared and static, as a user would.
set -eu
cd "$(dirname "$0")/.."

prefix="$PWD/build/installed"
rm -rf "$prefix"
cmake -S . -B build/install -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_LIBDIR=lib \
    -DGUMBEL_TESTS=OFF -DGUMBEL_BENCH=OFF -DGUMBEL_MLX=OFF -DGUMBEL_CUDA=OFF >/dev/null
cmake --build build/install >/dev/null
cmake --install build/install --prefix "$prefix" >/dev/null

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
warnings="-std=c17 -Wall -Wextra -Wpedantic -Werror"
cc $warnings examples/generate.c -o build/generate-shared $(pkg-config --cflags --libs gumbel) -Wl,-rpath,"$prefix/lib"
cc $warnings examples/generate.c -o build/generate-static $(pkg-config --cflags gumbel) \
    -L"$prefix/lib" -Wl,-Bstatic -lgumbel -Wl,-Bdynamic $(pkg-config --static --libs-only-l gumbel | sed 's/-lgumbel//')

"$prefix/bin/gumbel" export models/gemma4-tiny -o build/installed/tiny.gumbel 2>/dev/null
build/generate-shared build/installed/tiny.gumbel "Hello!" >build/installed/shared.txt
build/generate-static build/installed/tiny.gumbel "Hello!" >build/installed/static.txt
cmp build/installed/shared.txt build/installed/static.txt
test -s build/installed/shared.txt
exported=$(nm -D --defined-only "$prefix/lib/libgumbel.so" | awk '$2 != "A" {print $3}' | grep -v '^gumbel_' || true)
[ -z "$exported" ] || { echo "libgumbel.so exports other names: $exported" >&2; exit 1; }
echo "example built and run against the installed library"
