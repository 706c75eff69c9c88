#!/bin/sh
# Puts the Python packages that tests use, as clients of the server and to compare grammars with, into build/clients with
# pip and prints the folder to give to cmake as GUMBEL_CLIENTS. Where that cannot be done it says why and prints nothing:
# those tests are left out.
set -eu
cd "$(dirname "$0")/.."
target="$PWD/build/clients"

if [ ! -d "$target/huggingface_hub" ] || [ ! -d "$target/anthropic" ] || [ ! -d "$target/llguidance" ] || [ ! -d "$target/jsonschema" ]; then
    if ! python3 -m pip --version >/dev/null 2>&1; then
        echo "clients.sh: no pip, so no clients" >&2
        exit 0
    fi
    if ! python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --retries 1 --timeout 20 \
        --target "$target" openai anthropic llguidance numpy jsonschema huggingface_hub >&2; then
        echo "clients.sh: pip could not install the clients" >&2
        rm -rf "$target"
        exit 0
    fi
fi
echo "$target"
