# What the Python package has beside its modules (pyproject.toml): the libraries, the command, and the header as cffi reads
# it. The component is python, and everything goes into the package's folder.

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
add_custom_target(gumbel_python ALL DEPENDS gumbel gumbel-export ${PROJECT_BINARY_DIR}/_header.py)
install(FILES ${PROJECT_BINARY_DIR}/_header.py DESTINATION . COMPONENT python)

# The command of a wheel uses the wheel's libraries, which would be in it twice otherwise.
if(GUMBEL_COMMAND)
  set(command_objects "")
  set(command_libraries "")
  foreach(module base hub page server cli)
    if(TARGET gumbel_${module})
      list(APPEND command_objects $<TARGET_OBJECTS:gumbel_${module}>)
    endif()
  endforeach()
  foreach(name UTF8PROC XXHASH JANSSON EDIT MICROHTTPD CURL CRYPTO SECCOMP)
    if(TARGET PkgConfig::${name})
      list(APPEND command_libraries PkgConfig::${name})
    endif()
  endforeach()
  add_executable(gumbel-python ${PROJECT_SOURCE_DIR}/src/cli/main.c ${command_objects})
  set_target_properties(gumbel-python PROPERTIES OUTPUT_NAME gumbel RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/command
    INSTALL_RPATH "$ORIGIN/..")
  target_link_libraries(gumbel-python PRIVATE gumbel_flags gumbel-export gumbel ${command_libraries} Threads::Threads m)
  target_link_options(gumbel-python PRIVATE LINKER:--as-needed)
  add_dependencies(gumbel_python gumbel-python)
  install(TARGETS gumbel-python RUNTIME DESTINATION bin COMPONENT python)
endif()
