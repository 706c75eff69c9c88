# Refuses machines that cannot run programs, before anything else is looked for. For whoever compiles without CMake,
# src/base/machine.c does.

set(supported "gumbel needs a 64-bit, little-endian machine: programs are mapped whole, and their weights are used as they lie in the file")
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  math(EXPR bits "8 * ${CMAKE_SIZEOF_VOID_P}")
  message(FATAL_ERROR "${supported}. ${CMAKE_C_COMPILER} compiles for ${bits} bits (docs/machines.md)")
elseif(CMAKE_C_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "${supported}. ${CMAKE_C_COMPILER} compiles for a big-endian machine (docs/machines.md)")
endif()
