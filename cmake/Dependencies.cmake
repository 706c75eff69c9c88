# The libraries that gumbel is built on, as targets PkgConfig::NAME. All that are missing are named at once, with
# the Debian packages that have them.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
set(missing_packages "")

# Sets NAME_FOUND; module: its name for pkg-config.
macro(gumbel_find_library name module)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET GLOBAL ${module})
endmacro()

macro(gumbel_need_library name module package)
  gumbel_find_library(${name} ${module})
  if(NOT ${name}_FOUND)
    list(APPEND missing_packages ${package})
  endif()
endmacro()

gumbel_need_library(PCRE2 libpcre2-8 libpcre2-dev)
gumbel_need_library(UTF8PROC libutf8proc libutf8proc-dev)
gumbel_need_library(JANSSON jansson libjansson-dev)
gumbel_need_library(XXHASH libxxhash libxxhash-dev)
if(GUMBEL_COMMAND)
  gumbel_need_library(EDIT libedit libedit-dev)
  if(GUMBEL_SERVER STREQUAL "AUTO")
    gumbel_find_library(MICROHTTPD libmicrohttpd)
    if(NOT MICROHTTPD_FOUND)
      message(STATUS
        "gumbel serve: libmicrohttpd was not found, it is left out (on Debian or Ubuntu: libmicrohttpd-dev)")
    endif()
  elseif(GUMBEL_SERVER)
    gumbel_need_library(MICROHTTPD libmicrohttpd libmicrohttpd-dev)
  endif()
endif()
if(GUMBEL_TESTS STREQUAL "AUTO")
  gumbel_find_library(CMOCKA cmocka)
  if(CMOCKA_FOUND)
    set(GUMBEL_TESTS ON)
  else()
    set(GUMBEL_TESTS OFF)
    message(STATUS "Tests: cmocka was not found, they are left out (on Debian or Ubuntu: libcmocka-dev)")
  endif()
elseif(GUMBEL_TESTS)
  gumbel_need_library(CMOCKA cmocka libcmocka-dev)
endif()

if(missing_packages)
  list(JOIN missing_packages " " missing_packages)
  message(FATAL_ERROR "Libraries are missing. On Debian or Ubuntu: apt-get install ${missing_packages}")
endif()

include(${CMAKE_CURRENT_LIST_DIR}/Mlx.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/Cuda.cmake)
