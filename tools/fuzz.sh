#!/usr/bin/env bash
# Builds the libFuzzer targets with clang and sanitizers and runs each from its corpus, two at a time. ctest of the other
# builds runs each seed once.
#
#     tools/fuzz.sh [--record] [--merge] [SECONDS [TARGET...]]
#
# SECONDS: of each target, 15 by default; 0 builds and runs none. TARGET: fuzz_NAME or NAME; all by default. --record: adds
# what ran to the sums (tools/fuzz_hours.sh). --merge: then takes what was found into tests/fuzz/corpus where it covers
# more, few and small files. What fails is left in build/fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=build/fuzz/tests/fuzz
logs=build/fuzz/logs
findings=build/fuzz/findings

refuse() {
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

# One target; its output and, in its last line, its user and system seconds.
run_target() { # name without "fuzz_", seconds
    local name=$1 TIMEFORMAT='%U %S'
    mkdir -p $folder/"$name"
    {
        time $folder/fuzz_"$name" -max_total_time="$2" -timeout=10 -artifact_prefix=$findings/"$name"- -print_final_stats=1 \
            $folder/"$name" tests/fuzz/corpus/"$name" >$logs/"$name".txt 2>&1 || touch $logs/"$name".failed
    } 2>$logs/"$name".cpu
}

# The most files that a target has in the tree, its seeds among them, and the largest that is taken.
most_files=20
most_bytes=1024

# What covers more than the corpus does; libFuzzer takes small inputs first.
merge_target() { # name
    local name=$1 corpus=tests/fuzz/corpus/$1 small=$folder/$1.small file left
    left=$((most_files - $(find "$corpus" -type f | wc -l)))
    [ $left -gt 0 ] || return 0
    rm -rf "$small" && mkdir -p "$small"
    find $folder/"$name" -type f -size -$((most_bytes + 1))c -exec cp -t "$small" {} +
    mkdir -p "$small.merged"
    find "$corpus" -type f -exec cp -t "$small.merged" {} +
    $folder/fuzz_"$name" -merge=1 -timeout=10 -rss_limit_mb=4096 "$small.merged" "$small" >$logs/"$name".merge.txt 2>&1 ||
        { echo "$name: the merge failed, see $logs/$name.merge.txt" && return 0; }
    # Those that are new, spread over what was found.
    comm -13 <(ls "$corpus" | sort) <(ls "$small.merged" | sort) >"$small.new"
    shuf --random-source=<(yes) --head-count=$left "$small.new" | while read -r file; do
        cp "$small.merged/$file" "$corpus/$file"
    done
    rm -rf "$small" "$small.merged" "$small.new"
}

if [ "${1:-}" = --one ]; then # this script, for one target
    run_target "$2" "$3"
    exit
fi

record=false
merge=false
while [ $# -gt 0 ]; do
    case $1 in
    --record) record=true ;;
    --merge) merge=true ;;
    -*) refuse ;;
    *) break ;;
    esac
    shift
done
seconds=${1:-15}
[[ $seconds =~ ^[0-9]+$ ]] || refuse
[ $# = 0 ] || shift
names=("${@#fuzz_}")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(ls tests/fuzz/corpus)

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "${names[@]/#/fuzz_}" -- --quiet
mkdir -p $logs $findings
rm -f $logs/*
if [ "$seconds" -gt 0 ]; then
    printf '%s\n' "${names[@]}" | xargs -P 2 -I '{}' "$0" --one '{}' "$seconds"
fi

failures=0
for name in "${names[@]}"; do
    [ -f $logs/"$name".cpu ] || continue
    failed=0
    if [ -f $logs/"$name".failed ]; then
        failed=1
        failures=$((failures + 1))
        echo "FAILED  fuzz_$name"
        tail -n 40 $logs/"$name".txt
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' $logs/"$name".txt)
    cpu=$(awk '/^[0-9.]+ [0-9.]+$/ { sum += $1 + $2 } END { print sum + 0 }' $logs/"$name".cpu)
    echo "fuzz_$name: ${runs:-0} inputs, $cpu s of CPU"
    if $record; then
        tools/fuzz_hours.sh add "fuzz_$name" "${runs:-0}" 0 "$cpu" $failed
    fi
done
if $merge; then
    for name in "${names[@]}"; do
        merge_target "$name"
    done
fi
[ $failures = 0 ]
