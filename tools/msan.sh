#!/usr/bin/env bash
# Tests with clang's MemorySanitizer, which reports what is read before anybody wrote it. What the libraries below gumbel write has
# to be seen, too: their sources are fetched, once, and built with it. cmocka stays as it is.
#
#     tools/msan.sh [--build] [MODULE ...]      all below by default; Debian or Ubuntu
#
# --build: builds the tests and runs none. The module run has the tests devices and processes, too; fuzz the seeds of the
# corpora and the harnesses. Left out, with what they need of the preset: cli, hub and server, whose libraries (libedit, libcurl,
# libcrypto, libmicrohttpd) write what the sanitizer does not see; models, which needs real ones; and the vector sets, whose
# bits the release build compares with the portable kernels'.
set -euo pipefail
cd "$(dirname "$0")/.."
only_build=false
if [ "${1:-}" = --build ]; then
    only_build=true
    shift
fi
modules=("$@")
[ $# -gt 0 ] || modules=(base program text grammar sampler plan cpu export run fuzz)
root=$PWD/build/msan-libraries
flags=(-fsanitize=memory -fno-omit-frame-pointer -O1 -g1 -fPIC -w)

# apt keeps what it knows of sources in the folder; this machine's lists stay as they are.
fetch() {
    rm -rf "$root"
    mkdir -p "$root/apt/lists/partial" "$root/apt/cache/archives/partial" "$root/parts" "$root/lib" "$root/include"
    touch "$root/apt/status"
    for list in /etc/apt/sources.list.d/{debian,ubuntu}.sources; do
        [ ! -e "$list" ] || sed 's/^Types: deb$/Types: deb-src/' "$list" >"$root/parts/$(basename "$list")"
    done
    local apt=(apt-get -qq -o "Dir::State=$root/apt" -o "Dir::State::status=$root/apt/status" -o "Dir::Cache=$root/apt/cache"
        -o APT::Sandbox::User= -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$root/parts")
    "${apt[@]}" update >&2 && (cd "$root" && "${apt[@]}" --tar-only source pcre2 jansson utf8proc xxhash >&2) || {
        echo "msan.sh: the libraries' sources cannot be fetched" >&2
        exit 77
    }
    for archive in "$root"/*.orig.tar.*; do
        tar -xf "$archive" -C "$root"
    done
    rm -rf "$root/apt"
}

library() { # name for pkg-config, of the file, version, folder of its headers, flags and sources
    local folder="$root/objects-$2" source
    mkdir -p "$folder"
    for source in "${@:5}"; do
        [[ $source == -* ]] || clang "${flags[@]}" "-I$4" $(printf '%s\n' "${@:5}" | grep '^-' || true) \
            -c "$source" -o "$folder/$(basename "$source").o"
    done
    ar rcs "$root/lib/lib$2.a" "$folder"/*.o
    printf 'Name: %s\nDescription: with MemorySanitizer\nVersion: %s\nCflags: -I%s\nLibs: -L%s -l%s\n' \
        "$1" "$3" "$4" "$root/lib" "$2" >"$root/lib/$1.pc"
}

build_libraries() {
    local pcre2 jansson utf8proc xxhash
    pcre2=$(echo "$root"/pcre2-*/src) jansson=$(echo "$root"/jansson-*/src)
    utf8proc=$(echo "$root"/utf8proc-*/) xxhash=$(echo "$root"/xxHash-*/)
    cp "$pcre2/config.h.generic" "$pcre2/config.h"
    cp "$pcre2/pcre2.h.generic" "$pcre2/pcre2.h"
    cp "$pcre2/pcre2_chartables.c.dist" "$pcre2/pcre2_chartables.c"
    : >"$jansson/jansson_private_config.h" # what configure would find is given below
    echo '#include <jansson_config.h>' | cc -E -M -x c - | grep -o '/[^ ]*jansson_config.h' | xargs -I{} cp {} "$jansson"
    library libpcre2-8 pcre2-8 10 "$pcre2" -DHAVE_CONFIG_H -DSUPPORT_UNICODE -DPCRE2_CODE_UNIT_WIDTH=8 \
        $(ls "$pcre2"/pcre2_*.c | grep -vE '_(fuzzsupport|jit_match|jit_misc|jit_test|dftables|printint|ucptables)\.c$')
    library jansson jansson 2 "$jansson" -DHAVE_STDINT_H -DHAVE_LOCALECONV -DHAVE_UNISTD_H -DHAVE_FCNTL_H "$jansson"/*.c
    library libutf8proc utf8proc 2 "$utf8proc" "$utf8proc/utf8proc.c"
    library libxxhash xxhash 0.8 "$xxhash" "$xxhash/xxhash.c"
    touch "$root/complete"
}

if [ ! -e "$root/complete" ]; then
    fetch
    build_libraries
fi
cmocka=$(pkg-config --variable=pcfiledir cmocka)
PKG_CONFIG_LIBDIR=$root/lib:$cmocka cmake --preset msan -DGUMBEL_WERROR=ON >/dev/null
cmake --build --preset msan --target "${modules[@]/#/tests_}"
! $only_build || exit 0
ctest --preset msan -j "$(($(nproc) + 1))" -L "^($(IFS='|' && echo "${modules[*]}"))\$"
