#!/usr/bin/env bash
# What takes longer than .ci/run may: harnesses and fuzzers, which go on for as long as they are given, and tests of many
# minutes. Prints what was run, with its counts; exit status 1 where something failed.
#
#     tools/long.sh [--minutes N] [--seed N] [--record]
#
# --minutes: all stages together, 240 by default; builds come on top. Each stage has a share of it (the list below); what
# its share does not allow is left out, and the log says so. --seed: where the harnesses begin; by default another number
# each day. --record: puts the log into docs/testing.md, and adds what ran to the sums (tools/fuzz_hours.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=240
seed=$(($(date +%s) / 86400 * 1000000))
record=false
refuse() {
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --minutes | --seed)
        [[ ${2:-} =~ ^[1-9][0-9]{0,17}$ ]] || refuse
        declare "${1#--}=$2"
        shift
        ;;
    --record) record=true ;;
    *) refuse ;;
    esac
    shift
done

out=build/long-logs
log=$out/log.txt
failures=0
mkdir -p $out
: >$log

say() {
    echo "$*" | tee -a $log
}

fail() { # what, file with its output
    failures=$((failures + 1))
    say "FAILED  $1"
    tail -n 40 "$2"
}

# ---- Stages: each is given its seconds -----------------------------------------------------------------------

harness() { # seconds, build, name, arguments
    local seconds=$1 build=$2 name=$3
    local output="$out/$name-$(basename "$build").txt" program="$build/tests/fuzz/harness_$name" failed=0 TIMEFORMAT='%U %S'
    shift 3
    { time "$program" --seconds "$seconds" --seed "$seed" "$@" >"$output" 2>&1 || failed=1; } 2>$out/cpu.txt
    if [ $failed = 0 ]; then
        say "$(tail -n 1 "$output") ($(basename "$build"))"
    else
        fail "$name ($(basename "$build"))" "$output"
    fi
    if $record; then
        add_to_sums "$name" "$output" $failed
    fi
}

# The line that the harness ends with has its counts.
add_to_sums() { # name, output, findings
    local line cases accepted=0
    line=$(grep "^$1: [0-9]* cases" "$2" | tail -n 1)
    cases=$(sed 's/^[a-z_]*: \([0-9]*\) cases.*/\1/' <<<"$line")
    [ "$1" != mutation ] || accepted=$(sed 's/.* \([0-9]*\) accepted.*/\1/' <<<"$line")
    tools/fuzz_hours.sh add "$1" "${cases:-0}" "${accepted:-0}" "$(awk '/^[0-9.]+ [0-9.]+$/ { sum = $1 + $2 } END { print sum + 0 }' $out/cpu.txt)" "$3"
}

fuzzers() { # seconds
    local count seconds recording="" output=$out/fuzz.txt
    ! $record || recording=yes
    count=$(find tests/fuzz/corpus -mindepth 1 -maxdepth 1 -type d | wc -l)
    seconds=$(($1 * 2 / count + 1)) # two at a time
    if tools/fuzz.sh ${recording:+--record} $seconds >$output 2>&1; then
        say "fuzzers: $count, $seconds s each; $(count_fuzzed) inputs"
    else
        fail "fuzzers" $output
    fi
}

count_fuzzed() {
    awk '/^fuzz_[a-z_]*: [0-9]* inputs/ { count += $2 } END { printf "%d\n", count }' $out/fuzz.txt
}

# Tests one by one, for as long as there is time; each day (or seed) others are first.
tests() { # seconds, name, build, arguments of ctest that choose them
    local end=$((SECONDS + $1)) title=$2 build=$3 passed=0 late="" output=$out/tests.txt first test left names
    shift 3
    mapfile -t names < <(ctest --test-dir "$build" "$@" -N | sed -n 's/^ *Test *#[0-9]*: //p')
    first=$((${#names[@]} ? seed / 1000000 * 7 % ${#names[@]} : 0))
    for test in "${names[@]:first}" "${names[@]:0:first}"; do
        left=$((end - SECONDS))
        if [ $left -le 0 ]; then
            late+=" $test"
        elif timeout -s KILL $left ctest --test-dir "$build" -R "^${test//./\\.}\$" --timeout 36000 --output-on-failure >$output 2>&1; then
            passed=$((passed + 1))
        elif [ $? = 137 ] && [ $SECONDS -ge $end ]; then # KILL, since a leak check may hang where it is asked to end
            late+=" $test (begun)"
        else
            fail "$title: $test" $output
        fi
    done
    say "$title: $passed of ${#names[@]} tests passed${late:+; no time for$late}"
}

# What is read before anybody wrote it; a harness of mutants besides, for a quarter of the time.
memory() { # seconds
    if ! command -v apt-get >/dev/null || ! command -v clang >/dev/null; then
        say "MemorySanitizer: skipped, this machine has no apt or no clang (tools/msan.sh)"
        return
    elif [ $msan_status = 77 ]; then
        say "MemorySanitizer: skipped, the libraries' sources cannot be fetched"
        return
    elif [ $msan_status != 0 ]; then
        fail "MemorySanitizer: tools/msan.sh --build" $out/msan-build.txt
        return
    fi
    harness $(($1 / 4)) build/msan mutation
    tests $(($1 * 3 / 4)) "tests with MemorySanitizer" build/msan -LE '^(long|longest|models)$'
}

# The server, with clients that do anything, on both bundled models.
server_soak() { # seconds, build
    local build=$2 output
    output=$out/server-soak-$(basename "$2").txt
    if [ -z "$(ctest --test-dir "$build" -N -R '^server\.soak$' | grep '#')" ]; then
        say "server soak: skipped, this build has no server or no python3 ($(basename "$build"))"
    elif GUMBEL_SOAK_REQUESTS=20000 GUMBEL_SOAK_SECONDS=$(($1 / 2)) ctest --test-dir "$build" -R '^server\.soak$' \
        --timeout 36000 -V >"$output" 2>&1; then
        say "server soak: $(count_soaked "$output") requests ($(basename "$build"))"
    else
        fail "server soak ($(basename "$build"))" "$output"
    fi
}

count_soaked() { # output
    grep -o '[0-9]* requests: ' "$1" | awk '{count += $1} END {print count + 0}'
}

neon() { # seconds
    local output=$out/neon.txt status=0
    if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
        say "NEON under qemu: skipped, this machine has no aarch64 compiler or no qemu (tools/neon.sh)"
        return
    fi
    timeout "$1" tools/neon.sh >$output 2>&1 || status=$?
    case $status in
    0) say "NEON under qemu: $(grep -c '^[a-z0-9-]*: [a-z_]*$' $output) test programs passed" ;;
    124) say "NEON under qemu: no time for all of it ($(grep -c '^[a-z0-9-]*: [a-z_]*$' $output) test programs had begun)" ;;
    *) fail "NEON under qemu" $output ;;
    esac
}

# Whole commands on processors that this machine is not.
old_cpus() { # seconds
    local output=$out/old-cpus.txt status=0
    if ! command -v qemu-x86_64 >/dev/null || [ "$(uname -m)" != x86_64 ]; then
        say "old x86-64 processors: skipped, this machine has no qemu or is another (tools/old_cpus.sh)"
        return
    fi
    timeout "$1" tools/old_cpus.sh build/long >$output 2>&1 || status=$?
    case $status in
    124) grep -q 'same file and tokens' $output || fail "old x86-64 processors: no time for one" $output ;;&
    0 | 124) say "old x86-64 processors: $(grep -c 'same file and tokens' $output) of 6 models and processors have the same tokens" ;;
    *) fail "old x86-64 processors" $output ;;
    esac
}

# The library's kernels for each architecture that users get.
cuda() { # seconds
    local output=$out/cuda.txt status=0
    if ! cmake --preset user -B build/long-cuda -DGUMBEL_CUDA=ON -DGUMBEL_MLX=OFF >$output 2>&1; then
        say "CUDA for all architectures: skipped, nvcc was not found"
        return
    fi
    timeout "$1" cmake --build build/long-cuda --target gumbel_cuda >$output 2>&1 || status=$?
    case $status in
    0) say "CUDA for all architectures: built" ;;
    124) say "CUDA for all architectures: no time for all of it ($(grep -o '^\[[0-9/]*\]' $output | tail -n 1) were built)" ;;
    *) fail "CUDA for all architectures" $output ;;
    esac
}

# ---- Builds --------------------------------------------------------------------------------------------------

build() { # folder, targets, arguments of cmake
    local folder=$1 targets=$2
    shift 2
    # shellcheck disable=SC2086 # a list of targets
    cmake -B "$folder" "$@" >$out/build.txt 2>&1 &&
        cmake --build "$folder" --target $targets >$out/build.txt 2>&1 ||
        { tail -n 40 $out/build.txt && exit 1; }
}

# With the flags of .ci/run, so that the compiler cache has most of it.
begun=$SECONDS
build build/long all --preset release -DGUMBEL_WERROR=ON -DGUMBEL_CUDA=OFF -DGUMBEL_MLX=OFF -DGUMBEL_BENCH=OFF -DGUMBEL_LONG_TESTS=ON \
    -DGUMBEL_CLIENTS="$(tools/clients.sh 2>/dev/null)" \
    -DGUMBEL_REAL_MODELS="$(tools/models.sh smollm2 gemma3 qwen2.5-coder 2>/dev/null)"
build build/asan all --preset asan -DGUMBEL_WERROR=ON -DGUMBEL_CLIENTS="$(tools/clients.sh 2>/dev/null)"
msan_status=0
tools/msan.sh --build >$out/msan-build.txt 2>&1 || msan_status=$?
build build/tsan "harness_soak harness_schedule_soak gumbel-program" --preset tsan -DGUMBEL_WERROR=ON
built=$((SECONDS - begun))

# ---- The stages and their shares, in percent -----------------------------------------------------------------

share() { # percent, stage and its arguments
    local seconds=$((minutes * 60 * $1 / 100))
    shift
    local name=$1
    shift
    "$name" $seconds "$@"
}

state=$(git diff --quiet HEAD 2>/dev/null && echo "" || echo " with changes")
say "commit $(git rev-parse --short HEAD)$state, $(date -u +%Y-%m-%d), $minutes minutes of tests, $((built / 60)) of builds before them"
say "$(nproc) cores, load at the start $(cut -d' ' -f1-3 /proc/loadavg), $(uname -m)"
begun=$SECONDS
share 3 harness build/asan mutation
share 4 harness build/long mutation
share 1 harness build/long io_faults
share 1 harness build/long command_io_faults
share 1 harness build/long kills
share 2 harness build/long serve_faults
share 1 harness build/long pull_faults
share 4 harness build/asan soak
share 4 harness build/long soak
share 3 harness build/tsan soak
share 5 harness build/long replay
share 5 harness build/long allocation
share 4 harness build/long command_allocation
share 4 harness build/long schedule
share 6 harness build/asan schedule_soak --cases 100 # of 500 requests
share 6 harness build/tsan schedule_soak --cases 100
share 4 server_soak build/asan # 20,000 requests of each model, if there is time
share 5 server_soak build/tsan
share 8 fuzzers
share 5 memory
share 7 tests "long tests" build/long -L '^long$'
share 6 tests "long tests with AddressSanitizer and UndefinedBehaviorSanitizer" build/asan -L '^long$'
share 4 tests "whole models on the emulated CUDA device" build/long -L '^longest$'
share 3 neon
share 1 old_cpus
share 3 cuda
say "$failures failures, $(((SECONDS - begun + 30) / 60)) minutes"

if $record; then
    {
        sed '/^<!-- log -->$/q' docs/testing.md
        printf '\n'
        sed 's/^/    /' $log
        printf '\n'
        sed -n '/^<!-- end of the log -->$/,$p' docs/testing.md
    } >$out/testing.md
    cp $out/testing.md docs/testing.md
fi
[ $failures = 0 ]
