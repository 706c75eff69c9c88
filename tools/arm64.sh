#!/usr/bin/env bash
# Fetches the libraries that a build for aarch64 needs into a folder and prints its name, which tools/neon.sh takes.
# This machine's own packages stay as they are: apt keeps what it knows of arm64 in the folder, too.
#
#     tools/arm64.sh [FOLDER]      build/arm64 by default; Debian or Ubuntu, no rights needed
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "${1:-build/arm64}"
root=$(cd "${1:-build/arm64}" && pwd)
packages=(libpcre2-dev libpcre2-8-0 libutf8proc-dev libutf8proc2 libjansson-dev libjansson4 libxxhash-dev libxxhash0
    libedit-dev libedit2 libbsd-dev libbsd0 libmd-dev libmd0 libncurses-dev libtinfo6 libcmocka-dev libcmocka0)

if [ ! -e "$root/complete" ]; then
    mkdir -p "$root/apt/lists/partial" "$root/apt/cache/archives/partial" "$root/packages"
    touch "$root/apt/status"
    apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$root/apt"
        -o "Dir::State::status=$root/apt/status" -o "Dir::Cache=$root/apt/cache" -o APT::Sandbox::User=
        -o Dir::Etc::SourceParts=/etc/apt/sources.list.d)
    "${apt[@]}" update >&2
    (cd "$root/packages" && "${apt[@]}" download "${packages[@]}" >&2)
    for package in "$root/packages"/*.deb; do
        dpkg-deb --extract "$package" "$root"
    done
    rm -rf "$root/apt" "$root/packages"
    touch "$root/complete"
fi
echo "$root"
