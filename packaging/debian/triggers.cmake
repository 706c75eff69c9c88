# Lets the libraries' package ask for ldconfig by a trigger, as Debian's do: CPack can only have scripts call it. CPack runs
# this on the packages that it made.

foreach(package ${CPACK_PACKAGE_FILES})
  if(NOT package MATCHES "/libgumbel[0-9]+_")
    continue()
  endif()
  set(folder ${package}.unpacked)
  execute_process(COMMAND dpkg-deb --raw-extract ${package} ${folder} COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE ${folder}/DEBIAN/postinst ${folder}/DEBIAN/postrm)
  file(WRITE ${folder}/DEBIAN/triggers "activate-noawait ldconfig\n")
  execute_process(COMMAND dpkg-deb --root-owner-group -Zxz --build ${folder} ${package} COMMAND_ERROR_IS_FATAL ANY
    OUTPUT_QUIET)
  file(REMOVE_RECURSE ${folder})
endforeach()
