# Header, libraries, command and licence, and what lets others find them: pkg-config, find_package(gumbel), and the
# shells' completions. Everything is found relative to where it lies, so that a prefix can be chosen when it is
# installed.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gumbel)
install(TARGETS gumbel gumbel-export EXPORT gumbel-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS gumbel-static gumbel-export-static EXPORT gumbel-static-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT gumbel-targets NAMESPACE gumbel:: DESTINATION ${package_dir})
install(EXPORT gumbel-static-targets NAMESPACE gumbel:: DESTINATION ${package_dir})
install(FILES include/gumbel.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

write_basic_package_version_file(gumbel-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/gumbel-config.cmake ${PROJECT_BINARY_DIR}/gumbel-config-version.cmake
  DESTINATION ${package_dir})

file(RELATIVE_PATH path_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(JOIN backend_libraries " " backend_libraries)
configure_file(cmake/gumbel.pc.in gumbel.pc @ONLY)
configure_file(cmake/gumbel-export.pc.in gumbel-export.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gumbel.pc ${PROJECT_BINARY_DIR}/gumbel-export.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES examples/generate.c examples/many.c examples/chat.c examples/chat.cpp DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
