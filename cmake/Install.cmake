# Header, libraries, command and licence, and what lets others find them: pkg-config, find_package(gumbel), and the
# shells' completions. Everything is found relative to where it lies, so that a prefix can be chosen when it is
# installed. The components are the packages that Packages.cmake makes: runtime, development, command, models.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gumbel)
install(TARGETS gumbel gumbel-export EXPORT gumbel-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(TARGETS gumbel-static gumbel-export-static EXPORT gumbel-static-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT gumbel-targets NAMESPACE gumbel:: DESTINATION ${package_dir} COMPONENT development)
install(EXPORT gumbel-static-targets NAMESPACE gumbel:: DESTINATION ${package_dir} COMPONENT development)
install(FILES include/gumbel.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

write_basic_package_version_file(gumbel-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/gumbel-config.cmake.in gumbel-config.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gumbel-config.cmake ${PROJECT_BINARY_DIR}/gumbel-config-version.cmake
  DESTINATION ${package_dir} COMPONENT development)

file(RELATIVE_PATH path_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(JOIN backend_libraries " " backend_libraries)
configure_file(cmake/gumbel.pc.in gumbel.pc @ONLY)
configure_file(cmake/gumbel-export.pc.in gumbel-export.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gumbel.pc ${PROJECT_BINARY_DIR}/gumbel-export.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
install(FILES examples/generate.c examples/many.c examples/chat.c examples/chat.cpp
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT development)
