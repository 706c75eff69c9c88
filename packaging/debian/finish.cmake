# What Debian wants of a package besides the files that are installed: copyright and changelog, compressed manual pages,
# units of systemd, binaries without debug symbols. CPack runs it before it packs the components.

set(root ${CPACK_TEMPORARY_DIRECTORY})
set(debian ${CPACK_GUMBEL_PACKAGING}/debian)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(document component package)
  set(documents ${root}/${component}/usr/share/doc/${package})
  file(MAKE_DIRECTORY ${documents})
  file(COPY ${debian}/copyright DESTINATION ${documents})
  configure_file(${debian}/changelog ${documents}/changelog.Debian COPYONLY)
  run(gzip -9nf ${documents}/changelog.Debian)
  # Debian's list of bugs has no request for it: it is no part of Debian.
  file(WRITE ${root}/${component}/usr/share/lintian/overrides/${package} "${package}: initial-upload-closes-no-bugs *\n")
endfunction()

# Into the package of symbols, where debuggers find them by the build's id.
function(take_symbols binary)
  execute_process(COMMAND readelf -n ${binary} OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "Build ID: (..)([0-9a-f]+)" id "${notes}")
  set(folder ${root}/symbols/usr/lib/debug/.build-id/${CMAKE_MATCH_1})
  file(MAKE_DIRECTORY ${folder})
  run(objcopy --only-keep-debug ${binary} ${folder}/${CMAKE_MATCH_2}.debug)
  run(strip --strip-unneeded --remove-section=.comment --remove-section=.note ${binary})
  file(CHMOD ${folder}/${CMAKE_MATCH_2}.debug PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

string(REGEX MATCH "^[0-9]+" major ${CPACK_PACKAGE_VERSION})
document(runtime libgumbel${major})
document(development libgumbel-dev)
document(command gumbel)
document(models gumbel-models)
document(symbols gumbel-dbgsym)

file(RENAME ${root}/development/usr/share/doc/gumbel/examples ${root}/development/usr/share/doc/libgumbel-dev/examples)
file(REMOVE_RECURSE ${root}/development/usr/share/doc/gumbel)
file(REMOVE ${root}/command/usr/share/doc/gumbel/LICENSE) # Debian has its text

file(GLOB_RECURSE pages ${root}/command/usr/share/man/*.1)
run(gzip -9nf ${pages})
file(COPY ${CPACK_GUMBEL_PACKAGING}/gumbel.service ${CPACK_GUMBEL_PACKAGING}/gumbel.socket
  DESTINATION ${root}/command/lib/systemd/system)

file(GLOB_RECURSE libraries ${root}/runtime/usr/lib/*.so.*.*)
foreach(binary ${libraries} ${root}/command/usr/bin/gumbel)
  take_symbols(${binary})
endforeach()
file(GLOB_RECURSE archives ${root}/development/usr/lib/*.a)
run(strip --strip-debug --remove-section=.comment --enable-deterministic-archives ${archives})
