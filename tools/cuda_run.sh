#!/bin/sh
# Runs the CUDA backend's tests and measures it, in a bundle that cuda_bundle.sh made:
#
#     run.sh [tests] [sanitize] [gemma LAYERS] [qwen LAYERS]         by default tests gemma 12 qwen 8
#
# sanitize runs the tests under compute-sanitizer, where the machine has it, for at most 300 seconds each.
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

sanitize() {
    if ! sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null); then
        echo "skipped  sanitize: this machine has no compute-sanitizer"
        return
    fi
    mkdir -p logs
    for tool in memcheck racecheck initcheck; do
        for test in bin/test_cuda_*; do
            name=${test#bin/test_cuda_}
            log=logs/$name.$tool.log
            timeout 300 "$sanitizer" --tool $tool --error-exitcode 99 "$test" >"$log" 2>&1
            result=$?
            case $result in
            0) echo "clean    $name ($tool)" ;;
            124) echo "unended  $name ($tool): $(grep -c '^========= .*\(Invalid\|Error\|Race\|Uninit\)' "$log") reports" ;;
            *)
                echo "FAILED   $name ($tool, $result)"
                grep '^=========' "$log" | head -n 12
                status=1
                ;;
            esac
        done
    done
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
    $gumbel bench "$program" --backend cuda -p 512,1505 -n 64 -d 0,1505 -r 2 --profile \
        --temperature 0.8 --top-k 64 --top-p 0.95 --seed 1 || status=1
    $gumbel bench "$program" --backend cuda -p 0 -n 32 -d 0 --batch 8,16 -r 1 \
        --temperature 0.8 --top-k 64 --top-p 0.95 --seed 1 || status=1
}

$gumbel inspect --backends
while [ $# -gt 0 ]; do
    case $1 in
    tests) run_tests ;;
    sanitize) sanitize ;;
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
