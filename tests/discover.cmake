# Included by ctest, with `program` and `name`: adds the tests of that program. A
# process runs some of one suite, as starting it takes as long as most tests do.
# Tests whose name has "Mount" in it need /dev/fuse. Those that repeat much take
# minutes where a sanitizer or other work slows them down.
set(most_together 12)
set(repeats "Crash|Power|Soak|Property|Cases")

# Those that drop the machine's caches of names and inodes, and those whose
# outcome depends on them: one at a time.
set(kernel_caches "KernelTest|SoakMountTest|FuseMountTest")

# add_part(SUITE PART FILTER COUNT): PART is "" or ".Mount".
function(add_part suite part filter count)
  set(timeout 300)
  set(cost 0)
  set(together ${most_together})
  if(suite MATCHES "${repeats}")
    # They begin early, so that the last one does not run alone.
    set(timeout 1200)
    set(cost 40)
    set(together 2)
  endif()
  set(label core)
  if(part OR suite MATCHES "Mount")
    set(label mount)
  endif()
  math(EXPR shards "(${count} + ${together} - 1) / ${together}")
  math(EXPR last "${shards} - 1")
  foreach(index RANGE ${last})
    set(test "${name}.${suite}${part}.${index}")
    add_test("${test}" ${program} "--gtest_filter=${filter}")
    set_tests_properties(
      "${test}"
      PROPERTIES TIMEOUT ${timeout}
                 LABELS ${label}
                 COST ${cost}
                 ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
    if(suite MATCHES "${kernel_caches}")
      set_tests_properties("${test}" PROPERTIES RESOURCE_LOCK kernel_caches)
    endif()
  endforeach()
endfunction()

function(add_suite suite mount other)
  if(suite MATCHES "Mount" AND mount)
    add_part(${suite} "" "${suite}.*" ${mount})
  elseif(mount)
    add_part(${suite} ".Mount" "${suite}.*Mount*" ${mount})
  endif()
  if(other)
    add_part(${suite} "" "${suite}.*-*Mount*" ${other})
  endif()
endfunction()

set(result 1)
if(EXISTS ${program})
  execute_process(
    COMMAND ${program} --gtest_list_tests
    OUTPUT_VARIABLE listed
    RESULT_VARIABLE result
    TIMEOUT 60)
endif()
if(result EQUAL 0)
  # Of a parameter's value only the name in front of it matters.
  string(REGEX REPLACE " *#[^\n]*" "" listed "${listed}")
  string(REGEX REPLACE "[][;]" "" listed "${listed}")
  string(REPLACE "\n" ";" listed "${listed}")
  set(suite "")
  foreach(line IN LISTS listed)
    if(line MATCHES "^  ")
      if("${suite}${line}" MATCHES "Mount")
        math(EXPR mount "${mount} + 1")
      else()
        math(EXPR other "${other} + 1")
      endif()
    elseif(line MATCHES "^([^ ]+)[.]$")
      set(next ${CMAKE_MATCH_1})
      if(suite)
        add_suite(${suite} ${mount} ${other})
      endif()
      set(suite ${next})
      set(mount 0)
      set(other 0)
    endif()
  endforeach()
  add_suite(${suite} ${mount} ${other})
else()
  # It is not built, or does not start: this fails, and says so.
  add_test(${name} ${program} --gtest_list_tests)
endif()
