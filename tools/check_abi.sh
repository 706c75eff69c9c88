#!/bin/sh
# Compares the binary interface of this tree's header with the one in packaging/gumbel.abi, as an application that was
# compiled with that one would meet it: what it uses is there, and has its size, order and values. Fields added at the end
# of a structure that says its size are no difference. A library of empty functions, made of the header, stands for the real
# ones, which bring in all that is private; with BUILD, its libraries must export just these functions.
#
#     tools/check_abi.sh [BUILD]
#     tools/check_abi.sh --record      after a change on purpose, which gets a line in CHANGELOG.md
set -eu
cd "$(dirname "$0")/.."
folder=build/abi
mkdir -p $folder
if ! command -v abidiff >/dev/null; then
    echo "check_abi.sh: abidiff is not installed (on Debian or Ubuntu: abigail-tools)" >&2
    exit 0
fi

# Each prototype becomes a definition; the line marks stay, by which the types are those of the header.
cc -E include/gumbel.h >$folder/header.i
awk '/^__attribute__\(\(visibility/ {within = 1}
    within && /;$/ {sub(";$", " { __builtin_unreachable(); }"); within = 0}
    {print}' $folder/header.i >$folder/interface.i
cc -x cpp-output -std=gnu17 -g -shared -fPIC $folder/interface.i -o $folder/interface.so

abidw --type-id-style hash --no-comp-dir-path --no-corpus-path --no-show-locs --out-file $folder/gumbel.abi $folder/interface.so
if [ "${1:-}" = --record ]; then
    sed "s/ path='[^']*'//; s/ language='[^']*'//" $folder/gumbel.abi >packaging/gumbel.abi
    echo "recorded packaging/gumbel.abi"
    exit 0
fi
sized=$(awk '/^typedef struct gumbel_/ {name = $3} name && /^ +size_t size;/ {printf "%s%s", separator, name; separator = "|"} /^}/ {name = ""}' \
    include/gumbel.h)
cat >$folder/appended.ini <<END
[suppress_type]
type_kind = struct
name_regexp = ^($sized)\$
has_data_member_inserted_at = end
END
abidiff --leaf-changes-only --suppressions $folder/appended.ini --no-show-locs packaging/gumbel.abi $folder/gumbel.abi ||
    { echo "check_abi.sh: the binary interface has changed" >&2; exit 1; }

functions() {
    nm -D --defined-only "$@" | awk '$2 == "T" {print $3}' | sort -u
}
if [ $# -gt 0 ]; then
    functions $folder/interface.so >$folder/declared.txt
    functions "$1/libgumbel.so" "$1/libgumbel-export.so" >$folder/exported.txt
    diff $folder/declared.txt $folder/exported.txt || { echo "check_abi.sh: declared and exported functions differ" >&2; exit 1; }
fi
echo "binary interface: $(functions $folder/interface.so | wc -l) functions, as recorded"
