#!/usr/bin/env bash
# The sums of all recorded runs of fuzzers and harnesses: tests/fuzz/hours.tsv, shown in docs/testing.md.
#
#     tools/fuzz_hours.sh add NAME COUNT ACCEPTED CPU_SECONDS FINDINGS   one run, of the commit that is checked out
#     tools/fuzz_hours.sh page                                           writes the table of docs/testing.md again
#
# COUNT: inputs or cases. ACCEPTED: programs that the verifier accepted, of mutation; otherwise 0. CPU_SECONDS: user and
# system time of the processes, not the time that passed.
set -euo pipefail
cd "$(dirname "$0")/.."

sums=tests/fuzz/hours.tsv
page=docs/testing.md

refuse() {
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

add() { # name, count, accepted, seconds, findings
    local state
    state=$(git diff --quiet HEAD -- src include tests/fuzz/*.[ch] 2>/dev/null && echo "" || echo "+")
    awk -F '\t' -v OFS='\t' -v name="$1" -v count="$2" -v accepted="$3" -v seconds="$4" -v findings="$5" \
        -v commit="$(git rev-parse --short=8 HEAD)$state" -v date="$(date -u +%Y-%m-%d)" '
        $1 == name { $2 += count; $3 += accepted; $4 = sprintf("%.0f", $4 + seconds); $5 += findings; $6 = commit; $7 = date; found = 1 }
        { print }
        END { if (!found) print name, count, accepted, sprintf("%.0f", seconds), findings, commit, date }' $sums >$sums.new
    { head -n 1 $sums.new && tail -n +2 $sums.new | LC_ALL=C sort; } >$sums.sorted
    rm $sums.new
    mv $sums.sorted $sums
}

table() {
    awk -F '\t' '
        function thousands(number, text) {
            for (text = ""; number ~ /[0-9][0-9][0-9][0-9]/; number = substr(number, 1, length(number) - 3))
                text = "," substr(number, length(number) - 2) text
            return number text
        }
        function row(name, count, seconds, findings, where) {
            printf "| %s | %s | %.2f | %d | %s |\n", name, thousands(count ""), seconds / 3600, findings, where
        }
        NR == 1 { print "| | inputs or cases | CPU-hours | findings | last |\n|---|---|---|---|---|"; next }
        {
            row("`" $1 "`", $2, $4, $5, $6 == "-" ? "none" : $6 ", " $7)
            inputs += $2; accepted += $3; hours += $4; findings += $5
        }
        END {
            printf "| all | %s | %.2f of 24 | %d | |\n\n", thousands(sprintf("%.0f", inputs)), hours / 3600, findings
            printf "Mutants that the verifier accepted and that were run: %s of 1,000,000.\n", thousands(accepted "")
        }' $sums
}

write_page() {
    {
        sed '/^<!-- hours -->$/q' $page
        printf '\n'
        table
        printf '\n'
        sed -n '/^<!-- end of the hours -->$/,$p' $page
    } >$page.new
    mv $page.new $page
}

case ${1:-} in
add)
    [ $# = 6 ] || refuse
    shift
    add "$@"
    ;;
page) [ $# = 1 ] || refuse ;;
*) refuse ;;
esac
write_page
