# The libraries for embedders, put together from the modules: gumbel::gumbel (the run half) and gumbel::export, and
# gumbel::static and gumbel::export-static. Only gumbel_ names are visible in the shared ones. The static export half
# leaves out what the static run half has; the shared one carries its own copy, so that neither needs private symbols.

set(core base program text)
set(run_half ${core} grammar sampler plan batch states threads ranks cpu cuda mlx run)
set(core_objects "")
set(run_objects "")
foreach(module IN LISTS core)
  list(APPEND core_objects $<TARGET_OBJECTS:gumbel_${module}>)
endforeach()
foreach(module IN LISTS run_half)
  list(APPEND run_objects $<TARGET_OBJECTS:gumbel_${module}>)
endforeach()
get_property(instruction_sets GLOBAL PROPERTY GUMBEL_INSTRUCTION_SETS)
foreach(name IN LISTS instruction_sets)
  list(APPEND run_objects $<TARGET_OBJECTS:gumbel_cpu_${name}>)
endforeach()
set(export_objects $<TARGET_OBJECTS:gumbel_export>)
set(private_libraries PkgConfig::XXHASH PkgConfig::JANSSON PkgConfig::PCRE2 PkgConfig::UTF8PROC
  Threads::Threads m)
set(run_language C)
set(run_libraries "")
set(backend_libraries "") # what a static libgumbel needs beside them, for pkg-config
if(MLX_FOUND)
  set(run_language CXX)
  list(APPEND run_libraries mlx)
  get_target_property(mlx_library mlx LOCATION)
  list(APPEND backend_libraries ${mlx_library})
endif()
if(CUDA_FOUND)
  list(APPEND run_libraries CUDA::cudart_static)
  get_target_property(cuda_library CUDA::cudart_static LOCATION)
  list(APPEND backend_libraries ${cuda_library} -ldl -lrt)
endif()
set(static_libraries ${run_libraries}) # the same for CMake, which finds them again where it is installed
if(backend_libraries)
  list(APPEND backend_libraries -lstdc++)
  list(APPEND static_libraries stdc++)
endif()

add_library(gumbel SHARED ${run_objects})
add_library(gumbel-export SHARED ${export_objects} ${core_objects})
# Kernels and MLX's templates are visible to the linker, whatever the compilers are told. macOS' linker has other options.
function(gumbel_visible_names library map)
  if(APPLE)
    return()
  endif()
  target_link_options(${library} PRIVATE "LINKER:--version-script=${map}")
  set_property(TARGET ${library} APPEND PROPERTY LINK_DEPENDS ${map})
endfunction()
gumbel_visible_names(gumbel ${CMAKE_CURRENT_LIST_DIR}/run.map)
gumbel_visible_names(gumbel-export ${CMAKE_CURRENT_LIST_DIR}/export.map)
add_library(gumbel-static STATIC ${run_objects})
add_library(gumbel-export-static STATIC ${export_objects})
set_target_properties(gumbel-static PROPERTIES OUTPUT_NAME gumbel)
set_target_properties(gumbel-export-static PROPERTIES OUTPUT_NAME gumbel-export)

foreach(library gumbel gumbel-export)
  set_target_properties(${library} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINKER_LANGUAGE C)
  target_link_libraries(${library} PRIVATE ${private_libraries})
  if(APPLE)
    continue() # it refuses what is undefined by itself
  endif()
  target_link_options(${library} PRIVATE LINKER:--as-needed)
  if(GUMBEL_SANITIZE)
    target_link_options(${library} PRIVATE -fsanitize=${GUMBEL_SANITIZE} LINKER:--undefined-version)
  else() # with clang a sanitizer's own functions are the program's to bring
    target_link_options(${library} PRIVATE LINKER:--no-undefined)
  endif()
endforeach()
set_target_properties(gumbel PROPERTIES LINKER_LANGUAGE ${run_language})
target_link_libraries(gumbel PRIVATE ${run_libraries})

# How others link them. Installed, the static ones find the libraries below them through gumbel-config.cmake.
set(installed_libraries PkgConfig::GUMBEL_XXHASH PkgConfig::GUMBEL_JANSSON PkgConfig::GUMBEL_PCRE2
  PkgConfig::GUMBEL_UTF8PROC Threads::Threads m)
foreach(library gumbel-static gumbel-export-static)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C)
  target_link_libraries(${library} INTERFACE
    "$<BUILD_INTERFACE:${private_libraries}>" "$<INSTALL_INTERFACE:${installed_libraries}>")
endforeach()
target_link_libraries(gumbel-static INTERFACE ${static_libraries})
target_link_libraries(gumbel-export INTERFACE gumbel)
target_link_libraries(gumbel-export-static INTERFACE gumbel-static)

foreach(library gumbel gumbel-export gumbel-static gumbel-export-static)
  target_include_directories(${library} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
set_target_properties(gumbel-export PROPERTIES EXPORT_NAME export)
set_target_properties(gumbel-static PROPERTIES EXPORT_NAME static)
set_target_properties(gumbel-export-static PROPERTIES EXPORT_NAME export-static)
add_library(gumbel::gumbel ALIAS gumbel)
add_library(gumbel::export ALIAS gumbel-export)
add_library(gumbel::static ALIAS gumbel-static)
add_library(gumbel::export-static ALIAS gumbel-export-static)
