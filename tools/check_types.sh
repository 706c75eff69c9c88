#!/bin/sh
# A type name of the library or the command stands for one type: prints each that is defined twice, with where.
# Types of one file have no prefix and may share a name. Exit status 1 where there is one.
set -eu
cd "$(dirname "$0")/.."

# Of the vector units' dots_*.h one is compiled for each instruction set, by the same names.
git ls-files 'include/*.h' 'src/*.c' 'src/*.h' 'src/*.cu' 'src/*.cuh' 'src/*.cpp' 'src/*.hpp' |
    grep -v '/vector/lanes/dots_' | xargs awk '
    function note(name) {
        if (name !~ /^(gb|gumbel|hub|cli|server|serve)_/)
            return
        if (name in first) {
            print "the type " name " is defined twice: " first[name] " and " FILENAME ":" FNR > "/dev/stderr"
            twice = 1
        }
        first[name] = FILENAME ":" FNR
    }
    /^} [a-z_0-9]+;/ { note(substr($2, 1, length($2) - 1)) }       # typedef struct ... { ... } name;
    /^(struct|union|enum|class) [a-z_0-9]+ ({|:)/ { note($2) }     # struct name {
    /^typedef .*;$/ && !/^typedef (struct|union|enum) /  {         # typedef type name; or of a function
        if (match($0, /\(\*[a-z_0-9]+\)/))
            note(substr($0, RSTART + 2, RLENGTH - 3))
        else if (match($0, /[a-z_0-9]+(\[[^]]*\])?;$/))
            note(substr($0, RSTART, match(substr($0, RSTART), /[\[;]/) - 1))
    }
    END { exit twice }
'
