# What the Python package has beside its modules (pyproject.toml): the libraries, and the header as cffi reads it. The
# component is python, and everything goes into the package's folder.

find_package(Python REQUIRED COMPONENTS Interpreter)

# A wheel has no links, each would be a copy of its library: names without versions.
foreach(library gumbel gumbel-export)
  set_property(TARGET ${library} PROPERTY VERSION)
  set_property(TARGET ${library} PROPERTY SOVERSION)
  install(TARGETS ${library} LIBRARY DESTINATION . COMPONENT python)
endforeach()

set(header ${PROJECT_SOURCE_DIR}/include/gumbel.h)
set(make_header ${PROJECT_SOURCE_DIR}/python/make_header.py)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/_header.py
  COMMAND ${Python_EXECUTABLE} ${make_header} ${header} ${PROJECT_BINARY_DIR}/_header.py
  DEPENDS ${header} ${make_header} VERBATIM)
add_custom_target(gumbel_header ALL DEPENDS ${PROJECT_BINARY_DIR}/_header.py)
install(FILES ${PROJECT_BINARY_DIR}/_header.py DESTINATION . COMPONENT python)
