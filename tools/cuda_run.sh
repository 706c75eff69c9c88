#!/bin/sh
# Runs the CUDA backend's tests and measures it, in a bundle that cuda_bundle.sh made:
#
#     run.sh [tests] [memcheck] [initcheck] [racecheck] [benches] [gemma LAYERS] [qwen LAYERS]
#                                                                              by default tests gemma 12 qwen 8
#
# benches measures products and the sampler alone.
# memcheck, initcheck and racecheck run the tests under these tools of compute-sanitizer, where the machine has
# it; the bundle should be one of cuda_bundle.sh --sanitize.
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

# Host backtraces are left out: they are taken at each launch.
sanitize_one() { # sanitizer, tool, test, [which of its tests]
    name=${3#bin/test_cuda_}${4:+.$4}
    log=logs/$name.$2.log
    timeout 560 "$1" --tool "$2" --show-backtrace device --max-connections 64 --error-exitcode 99 \
        "$3" ${4:+"$4" short} >"$log" 2>&1
    result=$?
    reports=$(grep -c '^========= .*\(Invalid\|Error\|Race\|Uninit\)' "$log")
    if [ $result = 0 ] && grep -q '^ *[0-9]* FAILED TEST\|returned an error' "$log"; then
        result=1 # the tool has nothing to report of a test that fails
    fi
    case $result in
    0) echo "clean    $name ($2)" ;;
    124) echo "unended  $name ($2): $reports reports" ;;
    *)
        printf '%s\n' "FAILED   $name ($2, $result): $reports reports
$(grep '^=========' "$log" | head -n 12)"
        ;;
    esac
    [ $result = 0 ]
}

# Runs for racecheck, which takes some milliseconds a launch: programs that launch much, test by test and short
# (see tests/support/test_arguments.h), then the others. The tests' names are those that they give when they run.
list_short_runs() { # sanitizer
    long="agreement bundled_models penalty_agreement run_ahead same_tokens soak stop_tokens"
    for name in $long; do
        if ! bin/test_cuda_"$name" "*" short >logs/names 2>&1; then
            echo "FAILED   $name, which should only list its tests for racecheck" >&2
            status=1
        fi
        sed -n "s|^\[ RUN  *\] \(.*\)|$1 racecheck bin/test_cuda_$name \1|p" logs/names | sort -u
    done
    for test in bin/test_cuda_*; do
        case " $long slot_memory " in
        *" ${test#bin/test_cuda_} "*) ;;
        *) echo "$1 racecheck $test" ;;
        esac
    done
}

# racecheck waits for the host, so that four of its runs go side by side on each device, but for the one that asks
# how much memory is free. The others wait for the device, which processes have in turns: they go one by one.
sanitize() { # tool
    if ! sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null); then
        echo "skipped  $1: this machine has no compute-sanitizer"
        return
    fi
    mkdir -p logs
    if [ "$1" = racecheck ]; then
        sanitize_one "$sanitizer" racecheck bin/test_cuda_slot_memory || status=1
        list_short_runs "$sanitizer" >logs/racecheck.runs
        DEVICES=$(nvidia-smi -L | wc -l)
        export DEVICES
        xargs -P $((DEVICES * 4)) --process-slot-var=SLOT -L 1 ./run.sh sanitize_one <logs/racecheck.runs || status=1
        return
    fi
    for test in bin/test_cuda_*; do
        sanitize_one "$sanitizer" "$1" "$test" || status=1
    done
}

measure() { # config, layers
    program=programs/$1-$2.gumbel
    mkdir -p programs
    if [ ! -f "$program" ]; then
        echo "exporting $program"
        if [ "$2" = 0 ]; then
            $gumbel export "$1.json" -o "$program" --random-weights 1 --quantize int4-affine --backend cuda || return
        else
            $gumbel export "$1.json" -o "$program" --random-weights 1 --quantize int4-affine --backend cuda --layers "$2" || return
        fi
    fi
    $gumbel bench "$program" --backend cuda -p 1505,4096 -n 64 -d 0,2048 -r 3 \
        --temperature 0.8 --top-k 64 --top-p 0.95 --seed 1 || status=1
    $gumbel bench "$program" --backend cuda -c 2048 -p 0 -n 32 -d 0 --batch 1,8,16,64 -r 2 \
        --temperature 0.8 --top-k 64 --top-p 0.95 --seed 1 || status=1
}

if [ "$1" = sanitize_one ]; then
    shift
    CUDA_VISIBLE_DEVICES=$((SLOT % DEVICES))
    export CUDA_VISIBLE_DEVICES
    sanitize_one "$@"
    exit
fi
$gumbel inspect --backends
while [ $# -gt 0 ]; do
    case $1 in
    tests) run_tests ;;
    memcheck | initcheck | racecheck) sanitize "$1" ;;
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
