#!/usr/bin/env bash
# Compiles the libraries and the command for macOS on Apple silicon, or for Linux on ARM with musl, and links nothing: these
# systems' libraries are not here, but zig has their headers.
#
#     tools/check_macos.sh [TARGET]      of zig: aarch64-macos by default
#
# zig comes from PyPI, once, into build/zig. The headers of the libraries that gumbel stands on are this machine's.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:-aarch64-macos}
zig=build/zig/ziglang/zig
if [ ! -x $zig ] && ! python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --retries 1 --timeout 20 \
    --target build/zig "ziglang==0.17.*" >&2; then
    echo "check_macos.sh: pip could not install zig, so nothing is compiled for $target" >&2
    rm -rf build/zig
    exit 0
fi
zig=$PWD/$zig
build=build/$target
rm -rf "$build"
mkdir -p "$build/bin" "$build/include" "$build/packages"

# What the compiler cache sees of the compiler is this script. zig names ARM's architectures in another way than clang.
cat >"$build/bin/cc" <<END
#!/bin/sh
# zig $($zig version)
for word; do
    shift
    case \$word in
    -march=armv8.2-a*) set -- "\$@" "-mcpu=generic+v8_2a\${word#*-a}" ;;
    *) set -- "\$@" "\$word" ;;
    esac
done
exec $zig cc -target $target -fno-sanitize=undefined "\$@"
END
printf '#!/bin/sh\nexec %s ar "$@"\n' "$zig" >"$build/bin/ar"
printf '#!/bin/sh\nexec %s ranlib "$@"\n' "$zig" >"$build/bin/ranlib"
chmod +x "$build"/bin/*

# Of all headers of this machine these alone: the others are its own C library's.
package() { # name for pkg-config, version, a header, folder of it that it includes more of
    local path more=${4:-$3}
    for path in $(echo "#include <$3>" | cc -DPCRE2_CODE_UNIT_WIDTH=8 -E -M -x c - | tr ' ' '\n' | grep "/${more}"); do
        mkdir -p "$(dirname "$build/include/$more${path##*/"$more"}")"
        ln -sf "$path" "$build/include/$more${path##*/"$more"}"
    done
    printf 'Name: %s\nDescription: headers\nVersion: %s\nCflags: -isystem %s\nLibs:\n' "$1" "$2" "$PWD/$build/include" \
        >"$build/packages/$1.pc"
}
package libpcre2-8 10 pcre2.h
package libutf8proc 2 utf8proc.h
package jansson 2 jansson.h jansson
package libxxhash 0.8 xxhash.h
package libedit 3 histedit.h
package libcurl 8 curl/curl.h curl/
package libcrypto 3 openssl/evp.h openssl/

case $target in
*-macos*) system=Darwin ;;
*) system=Linux ;;
esac
export PKG_CONFIG_LIBDIR="$PWD/$build/packages"
cmake -S . -B "$build" -G Ninja --no-warn-unused-cli -DCMAKE_BUILD_TYPE=None -DGUMBEL_WERROR=ON \
    -DCMAKE_SYSTEM_NAME=$system -DCMAKE_SYSTEM_PROCESSOR="${target%%-*}" -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY \
    -DCMAKE_C_COMPILER="$PWD/$build/bin/cc" -DCMAKE_AR="$PWD/$build/bin/ar" -DCMAKE_RANLIB="$PWD/$build/bin/ranlib" \
    -DCMAKE_OSX_SYSROOT= -DCMAKE_OSX_DEPLOYMENT_TARGET= -DCMAKE_INSTALL_NAME_TOOL=true \
    -DGUMBEL_CUDA=OFF -DGUMBEL_MLX=OFF -DGUMBEL_TESTS=OFF -DGUMBEL_BENCH=OFF -DGUMBEL_INSTALL=OFF
cmake --build "$build" --target gumbel_cli gumbel_run gumbel_export -- -k 0
