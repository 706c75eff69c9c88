# Debian packages, by CPack: libgumbel0, libgumbel-dev, gumbel, gumbel-models, and the debug symbols of the first and
# third in gumbel-dbgsym. tools/package.sh builds them with Debian's flags.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gumbel)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "gumbel maintainers <maintainers@gumbel.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime development command models symbols)
set(debian ${PROJECT_SOURCE_DIR}/packaging/debian)
set(CPACK_PRE_BUILD_SCRIPTS ${debian}/finish.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${debian}/triggers.cmake)
set(CPACK_GUMBEL_PACKAGING ${PROJECT_SOURCE_DIR}/packaging) # for the scripts

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(package_version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libgumbel${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "runs and exports language-model programs
 Shared libraries for applications that run large language models. A program
 is one memory-mapped file that samples its own next token; libgumbel runs
 it, libgumbel-export makes it from a checkpoint.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libgumbel-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libgumbel${PROJECT_VERSION_MAJOR} (= ${package_version})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "libjansson-dev, libpcre2-dev, libutf8proc-dev, libxxhash-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "header and libraries of gumbel, for developers
 What compilers need to build applications with libgumbel: its header, the
 static libraries, and files for pkg-config and CMake. The recommended
 packages are needed to link the static ones.")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME gumbel)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS gumbel-models)
set(CPACK_DEBIAN_COMMAND_PACKAGE_CONTROL_EXTRA
  ${debian}/postinst ${debian}/prerm ${debian}/postrm)
set(CPACK_DEBIAN_COMMAND_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "large language models on this machine: chat, server, export
 The command gumbel exports checkpoints of Hugging Face, MLX and GGUF to
 programs, runs them, chats, measures, and serves them with the APIs of
 OpenAI and Anthropic. The same seed gives the same answer.")

set(CPACK_DEBIAN_MODELS_PACKAGE_NAME gumbel-models)
set(CPACK_DEBIAN_MODELS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MODELS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_MODELS_PACKAGE_RECOMMENDS gumbel)
set(CPACK_COMPONENT_MODELS_DESCRIPTION "two small language models to try gumbel with
 Checkpoints of under 4 million parameters each, of the families Gemma 4 and
 Qwen3.5 with experts, made for tests and first steps.")

set(CPACK_DEBIAN_SYMBOLS_PACKAGE_NAME gumbel-dbgsym)
set(CPACK_DEBIAN_SYMBOLS_PACKAGE_SECTION debug)
set(CPACK_DEBIAN_SYMBOLS_PACKAGE_DEPENDS
  "gumbel (= ${package_version}) | libgumbel${PROJECT_VERSION_MAJOR} (= ${package_version})")
set(CPACK_DEBIAN_SYMBOLS_PACKAGE_ENHANCES "gumbel, libgumbel${PROJECT_VERSION_MAJOR}")
set(CPACK_COMPONENT_SYMBOLS_DESCRIPTION "debug symbols of gumbel and its libraries
 What gdb and perf need to name functions and lines of the command gumbel and
 of the libraries of this very version.")
install(CODE "" COMPONENT symbols) # finish.cmake takes them from the others

foreach(model gemma4-tiny qwen3_5-moe-tiny)
  install(DIRECTORY models/${model} DESTINATION ${CMAKE_INSTALL_DATADIR}/gumbel/models COMPONENT models
    PATTERN training EXCLUDE PATTERN "training_log.csv" EXCLUDE PATTERN "questions.txt" EXCLUDE)
endforeach()
include(CPack)
