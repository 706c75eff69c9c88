# MLX, for its backend: of -DMLX_ROOT, of the system, or of the mlx package of a Python that is found. Sets
# MLX_FOUND and makes the target mlx.

set(GUMBEL_MLX AUTO CACHE STRING "Build the MLX backend: ON, OFF, or AUTO where MLX is found")
set(MLX_ROOT "" CACHE PATH "Where MLX is installed: the mlx folder of a Python package, or a prefix")
set(MLX_FOUND FALSE)
if(NOT GUMBEL_MLX)
  return()
endif()

find_package(Python3 QUIET COMPONENTS Interpreter)
if(Python3_FOUND AND NOT MLX_ROOT)
  execute_process(COMMAND ${Python3_EXECUTABLE} -m mlx --cmake-dir
    OUTPUT_VARIABLE mlx_package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
# The least version has streams that any thread may use.
find_package(MLX 0.32 QUIET CONFIG HINTS ${MLX_ROOT} ${mlx_package})
if(NOT MLX_FOUND)
  if(NOT GUMBEL_MLX STREQUAL "AUTO")
    message(FATAL_ERROR "MLX 0.32 or newer was not found; see docs/mlx.md for -DMLX_ROOT")
  endif()
  message(STATUS "MLX: not found, its backend is left out (docs/mlx.md)")
  return()
endif()
enable_language(CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON) # libmlx lies where Python keeps its packages
message(STATUS "MLX: ${MLX_DIR}")
