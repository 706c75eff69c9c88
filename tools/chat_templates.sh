#!/bin/sh
# Compares renderings of the chat templates that llama.cpp ships with transformers' (tests/oracle/check_templates.py):
# chat_templates.sh [CONVERSATIONS], 200 of each template unless given. The templates come from the source of the
# package llama-cpp-python and stay in build/templates. Needs pip, and transformers and jinja2.
set -eu
cd "$(dirname "$0")/.."
version=0.3.36
folder="build/templates"

if [ ! -d "$folder/llama_cpp_python-$version" ]; then
    mkdir -p "$folder"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-python \
        -d "$folder" "llama-cpp-python==$version"
    tar -xzf "$folder/llama_cpp_python-$version.tar.gz" -C "$folder" --wildcards '*/vendor/llama.cpp/models/templates/*'
fi
cmake -S . -B build/oracle -G Ninja -DCMAKE_BUILD_TYPE=Release -DGUMBEL_BENCH=OFF -DGUMBEL_CUDA=OFF -DGUMBEL_MLX=OFF >/dev/null
cmake --build build/oracle --target render_chat >/dev/null
python3 tests/oracle/check_templates.py build/oracle/tests/render_chat "$folder" models --count "${1:-200}"
