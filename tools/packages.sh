#!/bin/sh
# Installs the Debian/Ubuntu packages that a build needs, unless they are there already.
# Usage: tools/packages.sh [build] [test] [package] [ci]
set -eu

packages="gcc g++ make cmake ninja-build pkg-config libjansson-dev libxxhash-dev libpcre2-dev libutf8proc-dev libedit-dev libmicrohttpd-dev node-markdown-it node-dompurify libjs-highlight.js libjs-katex libcurl4-openssl-dev libssl-dev libseccomp-dev"
for group in "$@"; do
    case "$group" in
    build) ;;
    test) packages="$packages libcmocka-dev" ;;
    package) packages="$packages dpkg-dev file gzip" ;;
    ci) packages="$packages libcmocka-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-i686-linux-gnu libc6-dev-i386-cross gcc-s390x-linux-gnu libc6-dev-s390x-cross clang clang-format libclang-rt-14-dev ccache python3-pip python3-venv chromium-driver curl openssl dpkg-dev file lintian mmdebstrap abigail-tools" ;;
    *) echo "packages.sh: unknown group \"$group\"" >&2; exit 2 ;;
    esac
done

missing=""
for package in $packages; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo"
echo "installing:$missing" >&2
$as_root apt-get update -qq >&2
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >&2
