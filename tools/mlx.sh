#!/bin/sh
# Puts MLX, its CPU package, into build/mlx with pip and prints the folder to give to cmake as MLX_ROOT. Where
# that cannot be done it says why and prints nothing: gumbel is then built without its MLX backend.
set -eu
cd "$(dirname "$0")/.."
target="$PWD/build/mlx"

if [ ! -d "$target/mlx/lib" ]; then
    if ! python3 -m pip --version >/dev/null 2>&1; then
        echo "mlx.sh: no pip, so no MLX" >&2
        exit 0
    fi
    if ! python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --retries 1 --timeout 20 \
        --target "$target" "mlx[cpu]==0.32.*" >&2; then
        echo "mlx.sh: pip could not install MLX" >&2
        rm -rf "$target"
        exit 0
    fi
fi
echo "$target/mlx"
