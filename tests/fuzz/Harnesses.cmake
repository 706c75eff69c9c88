# Harnesses that go on for as long as they are given (tools/long.sh). As the tests harness.NAME they run a few cases,
# the same ones every time.

add_library(gumbel_harness STATIC cases.c bundled.c)
target_include_directories(gumbel_harness PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(gumbel_harness PUBLIC gumbel_test_support gumbel_run gumbel_export m)
if(GUMBEL_SANITIZE)
  target_compile_definitions(gumbel_harness PRIVATE GUMBEL_SANITIZED)
endif()
if(GUMBEL_SANITIZE MATCHES "thread")
  target_compile_definitions(gumbel_harness PUBLIC GUMBEL_SLOW_CASES)
endif()

# cases: of the test harness.NAME. The target harnesses builds all of them.
add_custom_target(harnesses)
function(gumbel_add_harness name cases)
  add_executable(harness_${name} ${name}.c ${ARGN})
  target_link_libraries(harness_${name} PRIVATE gumbel_harness)
  add_dependencies(harnesses harness_${name})
  gumbel_add_test(harness.${name} fuzz harness_${name} --cases ${cases})
  gumbel_test_needs(fuzz harness_${name})
endfunction()

# A case takes longer with a sanitizer, and longest with ThreadSanitizer.
if(GUMBEL_SANITIZE MATCHES "thread")
  set(cases_of_soak 1)
  set(cases_of_schedule 6)
  set(cases_of_schedule_soak 1)
elseif(GUMBEL_SANITIZE)
  set(cases_of_soak 6)
  set(cases_of_schedule 6)
  set(cases_of_schedule_soak 4)
else()
  set(cases_of_soak 6)
  set(cases_of_schedule 20) # every program on every number of slots
  set(cases_of_schedule_soak 8)
endif()
gumbel_add_harness(mutation 300 mutate.c)
gumbel_add_harness(soak ${cases_of_soak})
gumbel_add_harness(schedule ${cases_of_schedule})
gumbel_add_harness(schedule_soak ${cases_of_schedule_soak})
gumbel_add_harness(replay 20)
add_dependencies(thread_tests harness_soak harness_schedule_soak)
set_property(TEST harness.soak harness.schedule_soak APPEND PROPERTY LABELS threads)

# Sanitizers have an allocator of their own, for which these cannot put theirs.
if(NOT GUMBEL_SANITIZE)
  add_library(gumbel_failing_malloc OBJECT failing_malloc.c)
  target_link_libraries(gumbel_failing_malloc PUBLIC gumbel_flags PkgConfig::JANSSON)
  target_link_options(gumbel_failing_malloc INTERFACE LINKER:--wrap=json_loadb,--wrap=main)
  gumbel_add_harness(allocation 700 lives.c)
  target_link_libraries(harness_allocation PRIVATE gumbel_failing_malloc)
  if(GUMBEL_COMMAND)
    # The command with the allocator that fails.
    add_executable(gumbel_failing ${PROJECT_SOURCE_DIR}/src/cli/main.c)
    target_link_libraries(gumbel_failing PRIVATE gumbel_cli gumbel_failing_malloc)
    gumbel_add_harness(command_allocation 200)
    add_dependencies(harness_command_allocation gumbel_failing)
    target_compile_definitions(harness_command_allocation PRIVATE
      GUMBEL_FAILING_COMMAND="$<TARGET_FILE:gumbel_failing>")
  endif()
endif()
