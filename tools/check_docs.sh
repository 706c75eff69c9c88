#!/bin/sh
# The pages docs/adding-*.md name files of this tree by their path; each has to be there. A path with a word in
# capitals stands for many (src/export/models/NAME.c). Prints what is missing; exit status 1.
set -eu
cd "$(dirname "$0")/.."

status=0
for page in docs/adding-*.md; do
    for name in $(grep -oE '`(docs|include|src|tests|tools|bench)/[A-Za-z0-9_./-]+`' "$page" | tr -d '`' | sort -u); do
        case $name in
        *[A-Z][A-Z]*) continue ;;
        esac
        if [ ! -e "$name" ]; then
            echo "$page names $name, which is not there" >&2
            status=1
        fi
    done
done
exit $status
