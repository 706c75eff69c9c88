#!/bin/sh
# Looks at the packages of tools/package.sh as Debian and as a user would: lintian, and a clean root in which they are
# installed, used and removed without trace. With --again they are built once more in another folder, to the same bytes.
#
#     tools/check_package.sh [--again]
#
# The clean root needs mmdebstrap and the rights to change root; without them it is left out, with a notice.
set -eu
cd "$(dirname "$0")/.."
packages=$PWD/build/packages
scratch=$PWD/build/package-check
root=$scratch/root

fail() {
    echo "check_package.sh: $*" >&2
    exit 1
}

check_reproducible() {
    rm -rf "$scratch/elsewhere"
    mkdir -p "$scratch/elsewhere"
    git ls-files -z | tar -c --null --files-from=- | tar -x -C "$scratch/elsewhere"
    (cd "$scratch/elsewhere" && tools/package.sh >"$scratch/second.log" 2>&1) ||
        { tail -n 20 "$scratch/second.log"; fail "the second build failed"; }
    for package in "$packages"/*.deb; do
        cmp "$package" "$scratch/elsewhere/build/packages/$(basename "$package")" || fail "$(basename "$package") is not reproducible"
    done
    rm -rf "$scratch/elsewhere"
    echo "reproducible: the same bytes from elsewhere"
}

# ---- The clean root ------------------------------------------------------------------------------------------

inside() {
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"
}

# But what apt and dpkg write about what they did.
list_files() {
    find "$root" -xdev ! -path "$root/var/lib/apt/*" ! -path "$root/var/cache/*" ! -path "$root/var/log/*" \
        ! -path "$root/var/lib/dpkg/*" ! -path "$root/tmp/*" ! -path "$root/root/*" ! -path "$root/packages/*" \
        \( -type d -printf '%P/\n' -o -printf '%P %y %s\n' \) | LC_ALL=C sort
}

use_packages() {
    inside gumbel run /usr/share/gumbel/models/gemma4-tiny "Hello!" --seed 7 >"$scratch/answer.txt" 2>/dev/null ||
        fail "the installed command does not run the bundled model"
    [ -s "$scratch/answer.txt" ] || fail "the bundled model said nothing"
    inside sh -ec 'cd /tmp; gumbel export /usr/share/gumbel/models/gemma4-tiny -o tiny.gumbel 2>/dev/null
        cc /usr/share/doc/libgumbel-dev/examples/generate.c -o generate $(pkg-config --cflags --libs gumbel)
        ./generate tiny.gumbel "Hello!"; rm generate tiny.gumbel' | grep -q . || fail "the example said nothing"
    inside man -w gumbel-run >/dev/null 2>&1 || [ -s "$root/usr/share/man/man1/gumbel-run.1.gz" ] || fail "no manual page"
}

check_clean_root() {
    if ! command -v mmdebstrap >/dev/null || ! unshare --mount true 2>/dev/null; then
        echo "clean root: left out, mmdebstrap is not installed or this user may not change root"
        return
    fi
    rm -rf "$root"
    mmdebstrap --quiet --variant=apt --skip=cleanup/apt/lists --include=gcc,libc6-dev,pkg-config "$(. /etc/os-release && echo "$VERSION_CODENAME")" \
        "$root" $(ls /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null)
    [ -e "$root/etc/resolv.conf" ] || cp /etc/resolv.conf "$root/etc/"
    mkdir "$root/packages"
    list_files >"$scratch/before.txt"
    cp "$packages"/*.deb "$root/packages/"
    inside sh -ec 'apt-get install -qq --no-install-recommends /packages/*.deb' >"$scratch/apt.log" 2>&1 ||
        { tail -n 20 "$scratch/apt.log"; fail "the packages cannot be installed"; }
    use_packages
    inside sh -ec 'apt-get purge -qq gumbel libgumbel0 libgumbel-dev gumbel-models gumbel-dbgsym
        apt-get autoremove -qq --purge' >"$scratch/apt.log" 2>&1 || fail "the packages cannot be removed"
    list_files >"$scratch/after.txt"
    diff "$scratch/before.txt" "$scratch/after.txt" || fail "the packages leave something behind"
    rm -rf "$root"
    echo "clean root: installed, a bundled model run, an example built, removed without trace"
}

mkdir -p "$scratch"
lintian --fail-on error,warning --allow-root "$packages"/*.deb || fail "lintian"
echo "lintian: clean"
check_clean_root
[ "${1:-}" != --again ] || check_reproducible
