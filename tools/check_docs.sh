#!/bin/sh
# The pages of docs/ name files of this tree by their path; each has to be there. A path with a word in capitals stands for
# many (src/export/models/NAME.c). Where a page docs/adding-*.md says "N files:", the table that follows names N.
# Prints what is wrong; exit status 1.
set -eu
cd "$(dirname "$0")/.."

status=0
for page in docs/*.md; do
    for name in $(grep -oE '`(docs|include|src|tests|tools|bench|cmake|examples)/[A-Za-z0-9_./-]+`' "$page" | tr -d '`' | sort -u); do
        case $name in
        *[A-Z][A-Z]*) continue ;;
        esac
        if [ ! -e "$name" ]; then
            echo "$page names $name, which is not there" >&2
            status=1
        fi
    done
    for link in $(grep -oE '\]\([A-Za-z0-9_./-]+\)' "$page" | tr -d '()]' | sort -u); do
        if [ ! -e "docs/$link" ]; then
            echo "$page links to $link, which is not there" >&2
            status=1
        fi
    done
done
# Every field that requests may have is on the server's page.
for name in $(grep -E '^    (\{)?"[a-z_ ]+"' src/server/fields/fields.c | grep -oE '"[a-z_ ]+"' | tr -d '"'); do
    if ! grep -q "\`$name\`" docs/server.md; then
        echo "docs/server.md lacks the field $name" >&2
        status=1
    fi
done
for page in docs/adding-*.md; do
    awk -v page="$page" '
        function settle() {
            if (said && rows && rows != said) {
                printf "%s says %d files, its table names %d\n", page, said, rows
                wrong = 1
            }
            if (rows) said = rows = 0
        }
        !/^\|/ { settle() }
        match($0, /[0-9]+ files:$/) { said = substr($0, RSTART) + 0 }
        /^\| `/ && said { rows++ }
        END { settle(); exit wrong }' "$page" >&2 || status=1
done
exit $status
