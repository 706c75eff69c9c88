# ccache, where it is installed: every compiler is started through it, in a way that lets a clone in another folder find what
# this one has compiled. Compile lines therefore have no absolute path but the source's own folder, which base_dir cuts off.

set(GUMBEL_CCACHE AUTO CACHE STRING "Compile through ccache: ON, OFF, or AUTO where it is found and gumbel is not a part")
if(NOT GUMBEL_CCACHE OR CMAKE_C_COMPILER_LAUNCHER OR (GUMBEL_CCACHE STREQUAL "AUTO" AND NOT PROJECT_IS_TOP_LEVEL))
  return()
endif()
find_program(CCACHE ccache)
if(NOT CCACHE)
  if(NOT GUMBEL_CCACHE STREQUAL "AUTO")
    message(FATAL_ERROR "ccache was not found (on Debian or Ubuntu: apt-get install ccache)")
  endif()
  return()
endif()
foreach(language C CXX CUDA)
  set(CMAKE_${language}_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endforeach()
