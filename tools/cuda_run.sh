#!/bin/sh
# Runs the CUDA backend's tests and measures it, in a bundle that cuda_bundle.sh made:
#
#     run.sh [tests] [sanitize] [benches] [gemma LAYERS] [qwen LAYERS]         by default tests gemma 12 qwen 8
#
# benches measures products and the sampler alone.
# sanitize runs the tests under compute-sanitizer, where the machine has it, for at most 300 seconds each; the
# bundle should be one of cuda_bundle.sh --sanitize.
# LAYERS of the full-size model are exported with random weights at 4 bits; 0: all of them. Programs are written
# to the folder `programs` beside this script and kept.
set -u
cd "$(dirname "$0")"
LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
gumbel=bin/gumbel
status=0
[ $# -gt 0 ] || set -- tests gemma 12 qwen 8

run_tests() {
    mkdir -p logs
    for test in bin/test_cuda_*; do
        log=logs/${test#bin/test_cuda_}.log
        "$test" >"$log" 2>&1
        result=$?
        if grep -q "has no CUDA device" "$log"; then
            result=77
        fi
        case $result in
        0) echo "passed   ${test#bin/test_cuda_}" ;;
        77) echo "skipped  ${test#bin/test_cuda_}: no CUDA device" ;;
        *)
            echo "FAILED   ${test#bin/test_cuda_} ($result)"
            grep -vE '^\[ +(RUN|OK) ' "$log" | head -n 20
            status=1
            ;;
        esac
    done
}

sanitize_one() { # sanitizer, tool, test
    name=${3#bin/test_cuda_}
    log=logs/$name.$2.log
    timeout 300 "$1" --tool "$2" --error-exitcode 99 "$3" >"$log" 2>&1
    result=$?
    reports=$(grep -c '^========= .*\(Invalid\|Error\|Race\|Uninit\)' "$log")
    case $result in
    0) echo "clean    $name ($2)" ;;
    124) echo "unended  $name ($2): $reports reports" ;;
    *)
        printf '%s\n' "FAILED   $name ($2, $result): $reports reports
$(grep '^=========' "$log" | head -n 12)"
        return 1
        ;;
    esac
}

list_runs() { # sanitizer, tests
    sanitizer=$1
    shift
    for tool in racecheck initcheck memcheck; do
        for test in "$@"; do
            echo "$sanitizer $tool $test"
        done
    done
}

# A few at a time: the device is theirs in turns, and each launch waits for its own. Those that ask how much
# memory is free run alone.
sanitize() {
    if ! sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null); then
        echo "skipped  sanitize: this machine has no compute-sanitizer"
        return
    fi
    mkdir -p logs
    alone="bin/test_cuda_slot_memory bin/test_cuda_soak"
    # shellcheck disable=SC2046,SC2086 # lists of words
    list_runs "$sanitizer" $(printf '%s\n' bin/test_cuda_* | grep -vE 'slot_memory|soak') |
        xargs -P 4 -n 3 ./run.sh sanitize_one || status=1
    # shellcheck disable=SC2086 # a list of words
    list_runs "$sanitizer" $alone | xargs -n 3 ./run.sh sanitize_one || status=1
}

measure() { # config, layers
    program=programs/$1-$2.gumbel
    mkdir -p programs
    if [ ! -f "$program" ]; then
        echo "exporting $program"
        if [ "$2" = 0 ]; then
            $gumbel export "$1.json" -o "$program" --random-weights 1 --quantize int4 --backend cuda || return
        else
            $gumbel export "$1.json" -o "$program" --random-weights 1 --quantize int4 --backend cuda --layers "$2" || return
        fi
    fi
    $gumbel bench "$program" --backend cuda -p 1505,4096 -n 64 -d 0,2048 -r 3 \
        --temperature 0.8 --top-k 64 --top-p 0.95 --seed 1 || status=1
    $gumbel bench "$program" --backend cuda -c 2048 -p 0 -n 32 -d 0 --batch 1,8,16,64 -r 2 \
        --temperature 0.8 --top-k 64 --top-p 0.95 --seed 1 || status=1
}

if [ "$1" = sanitize_one ]; then
    shift
    sanitize_one "$@"
    exit
fi
$gumbel inspect --backends
while [ $# -gt 0 ]; do
    case $1 in
    tests) run_tests ;;
    sanitize) sanitize ;;
    benches) bin/bench_cuda_products && bin/bench_cuda_sampler || status=1 ;;
    gemma) measure gemma4-31b "$2" && shift ;;
    qwen) measure qwen3.5-35b-a3b "$2" && shift ;;
    *)
        echo "unknown argument $1" >&2
        exit 2
        ;;
    esac
    shift
done
exit $status
