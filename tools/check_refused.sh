#!/usr/bin/env bash
# 32-bit and big-endian machines are refused with a sentence that says why, by CMake and by the compiler. A compiler that this
# machine lacks is left out with a notice (on Debian: gcc-i686-linux-gnu, gcc-s390x-linux-gnu and their libc6-dev-*-cross).
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# CMake wraps its messages, so that words are compared.
expect() { # who, status, words
    if [ "$2" != 0 ] && tr -s ' \n' ' ' <"$folder/output" | grep -qF "$3"; then
        return
    fi
    echo "check_refused.sh: $1 should fail with \"$3\" and exits with $2:" >&2
    cat "$folder/output" >&2
    failed=1
}

refused() { # compiler, processor, words
    local status=0
    if ! command -v "$1" >/dev/null; then
        echo "check_refused.sh: $1 was not found, it is left out" >&2
        return
    fi
    cmake -S . -B "$folder/$1" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$2" -DCMAKE_C_COMPILER="$1" \
        >"$folder/output" 2>&1 || status=$?
    expect "cmake with $1" $status "$3"
    if grep -q "are missing" "$folder/output"; then
        echo "check_refused.sh: cmake with $1 looks for libraries first" >&2
        failed=1
    fi
    status=0
    "$1" -std=c17 -D_POSIX_C_SOURCE=200809L -Isrc -Iinclude -fsyntax-only src/base/machine.c >"$folder/output" 2>&1 || status=$?
    expect "$1" $status "gumbel needs a 64-bit, little-endian machine"
}

refused i686-linux-gnu-gcc i686 "compiles for 32 bits"
refused s390x-linux-gnu-gcc s390x "compiles for a big-endian machine"
exit $failed
