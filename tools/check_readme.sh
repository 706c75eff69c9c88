#!/bin/sh
# Runs the commands of README.md, in its order, on a copy of the tree in a scratch folder. What a reader replaces is
# replaced (the path of a model by that of a bundled one, the system's prefix by a folder), nothing else.
#
#     tools/check_readme.sh [CMAKE-ARGUMENT...]        for the builds of gumbel, e.g. -DGUMBEL_WERROR=ON
set -eu
cd "$(dirname "$0")/.."
tree="$PWD/build/readme/tree"
prefix="$PWD/build/readme/prefix"
rm -rf "$tree" "$prefix"
mkdir -p "$tree" "$prefix"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$tree"
cd "$tree"

export XDG_CACHE_HOME="$tree/cache"
export PATH="$tree/build/demo/src/cli:$PATH"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LD_LIBRARY_PATH="$prefix/lib"
export NINJA_STATUS="" # of a build only what goes wrong is of interest

# The lines that are indented by four blanks. test.sh is what calls this, or what .ci/run does itself.
sed -n 's/^    \([^ ].*\)/\1/p' README.md | grep -v '^\./test\.sh$' | sed \
    -e 's|path/to/gemma-4-31B-it|models/gemma4-tiny|g' \
    -e 's|^\(gumbel serve [^ ]*\).*|\1 \& echo $! >../server; sleep 2|' \
    -e 's|^curl .*|& --fail --retry 20 --retry-connrefused \&\& kill "$(cat ../server)"|' \
    -e 's|path/to/Qwen3\.5-35B-A3B|models/qwen3_5-moe-tiny|g' \
    -e "s|cmake --preset user|& -DCMAKE_INSTALL_LIBDIR=lib -DGUMBEL_CUDA=OFF -DGUMBEL_MLX=OFF $*|" \
    -e "s|sudo cmake --install \\([^ ]*\\) && sudo ldconfig|cmake --install \\1 --prefix $prefix|" \
    >../commands.txt
test -s ../commands.txt || { echo "check_readme.sh: no commands in README.md" >&2; exit 1; }
while IFS= read -r command; do
    echo "\$ $command"
    if ! printf 'Hello!\n' | sh -c "$command" >../output.txt 2>&1; then
        cat ../output.txt
        echo "check_readme.sh: this command of README.md fails: $command" >&2
        exit 1
    fi
done <../commands.txt
./generate gemma.gumbel "Hello!" # what its last command has built
echo "$(wc -l <../commands.txt) commands of README.md run"
