#!/bin/sh
# Builds the Debian packages of the command and the libraries, for the CPU, with Debian's own flags. They are the same bytes
# in whatever folder and at whatever time it runs, with the same compiler and libraries; ccache would write other paths into debug symbols.
#
#     tools/package.sh [CMAKE-ARGUMENT...]       into build/packages; e.g. -DGUMBEL_CUDA=ON
set -eu
cd "$(dirname "$0")/.."
build=build/package
packages=$PWD/build/packages

SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' packaging/debian/changelog | head -n 1)" +%s)
DEB_BUILD_MAINT_OPTIONS=hardening=+all
export SOURCE_DATE_EPOCH DEB_BUILD_MAINT_OPTIONS
CFLAGS="$(dpkg-buildflags --get CFLAGS) $(dpkg-buildflags --get CPPFLAGS)"
CXXFLAGS="$(dpkg-buildflags --get CXXFLAGS) $(dpkg-buildflags --get CPPFLAGS)"
LDFLAGS=$(dpkg-buildflags --get LDFLAGS)
export CFLAGS CXXFLAGS LDFLAGS

cmake --preset user -B $build -DCMAKE_INSTALL_PREFIX=/usr -DGUMBEL_PACKAGES=ON -DGUMBEL_SERVER=ON -DGUMBEL_PULL=ON -DGUMBEL_SANDBOX=ON \
    -DGUMBEL_MLX=OFF -DGUMBEL_CUDA=OFF -DGUMBEL_CCACHE=OFF "$@" >/dev/null
cmake --build $build
rm -rf "$packages"
(cd $build && umask 022 && cpack -B "$packages" >cpack.log 2>&1) || { cat $build/cpack.log; exit 1; }
rm -rf "$packages/_CPack_Packages"
ls -l "$packages"
