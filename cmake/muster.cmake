# How every folder of src/ is built: one static library of the folder's name, its tests beside it.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
option(MUSTER_STATIC "muster-operator, and nothing else, without shared libraries (deploy/images/operator)" OFF)
if(MUSTER_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(uv -static) # libuv-static.pc
endif()
foreach(module IN ITEMS jansson libfyaml libuv sqlite3 libmicrohttpd libcurl gnutls zlib cmocka)
  string(TOUPPER ${module} id)
  set(suffix)
  if(module STREQUAL libuv)
    set(suffix ${uv})
  endif()
  pkg_check_modules(${id} REQUIRED IMPORTED_TARGET ${module}${suffix})
endforeach()

set(MUSTER_SANITIZE "" CACHE STRING "sanitizers, as in -fsanitize=")
option(MUSTER_WERROR "treat warnings as errors" ON)
option(MUSTER_FUZZ "build the fuzzers (clang)" OFF)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

add_compile_definitions(_GNU_SOURCE MUSTER_VERSION="${PROJECT_VERSION}")
add_compile_options(
  -Wall -Wextra -Wshadow -Wconversion -Wvla -Wundef -Wstrict-prototypes -Wmissing-prototypes -Wswitch-enum
  -fno-strict-aliasing -fvisibility=hidden -fstack-protector-strong
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_C_COMPILER_ID STREQUAL Clang)
  add_compile_options(-Wno-string-conversion) # assert(!"why")
endif()
if(MUSTER_WERROR)
  add_compile_options(-Werror)
endif()
if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer)
  if(MUSTER_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=undefined) # or what it finds is printed, and the test passes
  endif()
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-format-truncation) # gcc guesses wrongly once sanitizers are in the code
    if(MUSTER_SANITIZE MATCHES thread)
      add_compile_options(-Wno-tsan) # it does not see fences, and says so
    endif()
  endif()
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_options(-D_FORTIFY_SOURCE=3)
endif()
if(MUSTER_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
# Assertions stay on in every build (style: programming mistakes assert, in production too).
foreach(type IN ITEMS RELEASE RELWITHDEBINFO MINSIZEREL)
  string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${type} "${CMAKE_C_FLAGS_${type}}")
endforeach()
include_directories(${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)

# muster_library(job SOURCES spec.c … TESTS spec_test.c … LINKS base …)
#   The tests are cmocka programs named <folder>_<test>, labelled "unit".
function(muster_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES OUTPUT_NAME muster_${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINKS})
  foreach(source IN LISTS ARG_TESTS)
    muster_test(${name} ${source})
  endforeach()
endfunction()

function(muster_test library source)
  get_filename_component(test ${source} NAME_WE)
  set(target ${library}_${test})
  add_executable(${target} ${source})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${target} PRIVATE ${library} PkgConfig::CMOCKA)
  add_test(NAME ${target} COMMAND ${target})
  set_tests_properties(${target} PROPERTIES LABELS unit
    ENVIRONMENT "MUSTER_BUILD=${CMAKE_BINARY_DIR};MUSTER_SOURCE=${CMAKE_SOURCE_DIR}")
  muster_test_computes(${target})
endfunction()

# muster_test_computes(TEST…): each of the tests takes a core of those that tools/counted gives to
# ctest. A test that does not take one mostly waits, and runs beside them. Without tools/counted
# this has no effect.
function(muster_test_computes)
  set_tests_properties(${ARGN} PROPERTIES RESOURCE_GROUPS cores:1)
endfunction()

# muster_test_waits(TEST…): the tests of muster_test that mostly wait.
function(muster_test_waits)
  set_tests_properties(${ARGN} PROPERTIES RESOURCE_GROUPS "")
endfunction()
