# Flags that every target of ours gets, as the interface library gumbel_flags.

add_library(gumbel_flags INTERFACE)
target_include_directories(gumbel_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(gumbel_flags INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE
  $<$<PLATFORM_ID:Darwin>:_DARWIN_C_SOURCE> # what _DEFAULT_SOURCE has on Linux
  GUMBEL_VERSION="${PROJECT_VERSION}")
set(host_options
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  # The same bits everywhere: never fuse a product into a sum behind our back.
  -ffp-contract=off
  # Neither changes a value; both let loops over floats be vectorized.
  -fno-math-errno -fno-trapping-math)
if(GUMBEL_WERROR)
  list(APPEND host_options -Werror)
endif()
if(GUMBEL_SANITIZE)
  list(APPEND host_options -fsanitize=${GUMBEL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
endif()
target_compile_options(gumbel_flags INTERFACE
  "$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:${host_options}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;-Xcompiler=-Wall,-Wextra,-Wno-deprecated-enum-enum-conversion,-ffp-contract=off>")
if(GUMBEL_SANITIZE)
  target_link_options(gumbel_flags INTERFACE -fsanitize=${GUMBEL_SANITIZE})
endif()
set(CMAKE_C_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
if(GUMBEL_SANITIZE)
  set(CMAKE_C_FLAGS_DEBUG "-O1 -g1") # reports name lines, not variables
endif()
