#!/bin/sh
# The arrows of the design: which folder of src/ may not include which, and no circle of includes across
# folders. Prints each breach; exit status 1.
set -eu
cd "$(dirname "$0")/.."

status=0
forbid() { # folder, regular expression of include paths, and of those that are allowed all the same
    if grep -rnE "^#include \"($2)" "src/$1" --include='*.c' --include='*.h' --include='*.def' --include='*.cu' \
        --include='*.cuh' --include='*.cpp' --include='*.hpp' | grep -vE "#include \"(${3:-nothing})\""; then
        echo "src/$1 must not include $2" >&2
        status=1
    fi
}
forbid base "tensor/|program/|text/|export/|grammar/|plan/|backends/|run/|cli/"
forbid tensor "program/|text/|export/|grammar/|plan/|backends/|run/|cli/"
forbid program "text/|export/|grammar/|plan/|backends/|run/|cli/"
forbid text "export/|grammar/|plan/|backends/|run/|cli/"
forbid grammar "export/|plan/|backends/|run/|cli/"
forbid plan "text/|export/|grammar/|backends/|run/|cli/"
forbid backends "text/|export/|grammar/|run/|cli/"
forbid export "plan/|backends/|run/|cli/"
forbid run "export/|cli/"
# The engine knows a backend by backend.h alone.
forbid run "backends/(cpu|cuda|mlx|states|threads)/"
# The hub is for the commands alone, and knows nothing of programs.
forbid hub "tensor/|program/|text/|export/|grammar/|plan/|backends/|run/|cli/"
# Commands and the server are built on gumbel.h, and share the ground of src/base.
forbid cli "tensor/|program/|text/|export/|grammar/|plan/|backends/|run/"
forbid server "hub/|tensor/|program/|text/|export/|grammar/|plan/|backends/|run/|cli/"
for folder in base tensor program text grammar export plan backends run; do
    forbid $folder "(server|hub)/"
done
tools/include_circles.py || status=1
exit $status
