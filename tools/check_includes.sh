#!/bin/sh
# The arrows of the design: which folder of src/ may not include which. Prints each breach; exit status 1.
set -eu
cd "$(dirname "$0")/.."

status=0
forbid() { # folder, regular expression of include paths
    if grep -rnE "^#include \"($2)" "src/$1" --include='*.c' --include='*.h' --include='*.def' --include='*.cu' --include='*.cuh' --include='*.cpp'; then
        echo "src/$1 must not include $2" >&2
        status=1
    fi
}
forbid base "tensor/|program/|text/|export/|plan/|run/|cli/"
forbid tensor "program/|text/|export/|plan/|run/|cli/"
forbid program "text/|export/|plan/|run/|cli/"
forbid text "export/|plan/|run/|cli/"
forbid plan "text/|export/|run/|cli/"
forbid export "plan/|run/|cli/"
forbid run "export/|cli/"
forbid cli "base/|tensor/|program/|text/|export/|plan/|run/"
exit $status
