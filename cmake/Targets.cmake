# SPDX-License-Identifier: Apache-2.0
#
# How this project declares targets: one function per kind, so that visibility, warnings, floating
# point rules and output folders are decided here and nowhere else. A target whose dependency is
# missing is skipped with one line (or refused, under ONNXIFI_REQUIRE_ALL).
#
# A project that has this tree in a folder of its own (add_subdirectory) calls the same functions for its
# plugin. Functions are global and variables are not, so what a function needs of this tree it takes
# from where it is written (CMAKE_CURRENT_FUNCTION_LIST_DIR) or from a global property.

# The version that plugins tell as that of the kit they are built from.
set_property(GLOBAL PROPERTY ONNXIFI_VERSION ${PROJECT_VERSION})

# Sets <out_ready> to whether every target named after it exists, and says which does not.
function(onnxifi_check_dependencies target out_ready)
  set(${out_ready} TRUE PARENT_SCOPE)
  foreach(dependency IN LISTS ARGN)
    if(dependency MATCHES "::" AND NOT TARGET ${dependency})
      set(${out_ready} FALSE PARENT_SCOPE)
      if(ONNXIFI_REQUIRE_ALL)
        message(FATAL_ERROR "${target} needs ${dependency}, which is missing; run tools/setup.")
      endif()
      message(STATUS "Skipping ${target}: ${dependency} is missing (run tools/setup).")
      return()
    endif()
  endforeach()
endfunction()

# What every target of ours has in common.
#   -ffp-contract=off  results do not depend on whether the compiler finds a fused multiply-add
#   -fno-gnu-unique    a unique symbol would be shared by all plugins of a process
#   -Wno-restrict      GCC 12 warns about its own std::string (GCC bug 105651)
#   -Wno-missing-field-initializers  a designated initialiser names the fields that matter
function(onnxifi_configure_target target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wno-missing-field-initializers $<$<BOOL:${ONNXIFI_WERROR}>:-Werror>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict -fno-gnu-unique>
    -ffp-contract=off)
endfunction()

# What tools/run starts and what that loads: libonnxifi, the plugins, onnxifi_info, onnxifi_run and the
# sample classifier; neither tests nor benchmarks.
add_custom_target(onnxifi_runtime)

# All that the build writes and then compiles or includes, for tools that read sources without building.
add_custom_target(generated_sources)

# onnxifi_add_library(<name> [SOURCES <files>] [DEPS <targets>] [PUBLIC_DEPS <targets>])
#
# A static, position-independent library with hidden symbols, and its alias onnxifi::<name>. The name
# is the folder path below backends/, joined by underscores (core_graph, discovery_search). PUBLIC_DEPS
# are those that the library's own headers include. A library of headers alone becomes an interface.
function(onnxifi_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS;PUBLIC_DEPS")
  onnxifi_check_dependencies(${name} ready ${arg_DEPS} ${arg_PUBLIC_DEPS})
  if(NOT ready)
    return()
  endif()
  set(compiled ${arg_SOURCES})
  list(FILTER compiled INCLUDE REGEX "\\.(c|cc)$")
  if(compiled)
    add_library(${name} STATIC ${arg_SOURCES})
    onnxifi_configure_target(${name})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
    set(generated ${arg_SOURCES})
    list(FILTER generated INCLUDE REGEX "^${PROJECT_BINARY_DIR}/")
    if(generated)
      add_custom_target(${name}_generated DEPENDS ${generated})
      add_dependencies(${name} ${name}_generated)
      add_dependencies(generated_sources ${name}_generated)
    endif()
    target_link_libraries(${name} PUBLIC ${arg_PUBLIC_DEPS} PRIVATE ${arg_DEPS})
  else()
    add_library(${name} INTERFACE ${arg_SOURCES})
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${arg_PUBLIC_DEPS} ${arg_DEPS})
  endif()
  add_library(onnxifi::${name} ALIAS ${name})
endfunction()

# onnxifi_add_objects(<name> SOURCES <files> [DEPS <targets>])
#
# Object files and their alias onnxifi::<name>: for code that a shared object must export, because
# symbols that come out of an archive are hidden by --exclude-libs.
function(onnxifi_add_objects name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  onnxifi_check_dependencies(${name} ready ${arg_DEPS})
  if(NOT ready)
    return()
  endif()
  add_library(${name} OBJECT ${arg_SOURCES})
  onnxifi_configure_target(${name})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  add_library(onnxifi::${name} ALIAS ${name})
endfunction()

# Restricts what a shared object exports to what exports.map lists and binds its calls to itself:
# several plugins and libonnxifi live in one process under the same symbol names.
function(onnxifi_limit_exports target)
  set(exports ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/exports.map)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${exports})
  target_link_options(${target} PRIVATE
    LINKER:--version-script=${exports}
    LINKER:--exclude-libs,ALL
    LINKER:-Bsymbolic
    LINKER:-z,defs)
endfunction()

# onnxifi_add_plugin(<name> [SOURCES <files>] DEPS <targets> [MANIFEST <file>])
#
# The plugin libonnxifi-<name>.so, target onnxifi-<name>, beside libonnxifi (in another project: in
# CMAKE_LIBRARY_OUTPUT_DIRECTORY, or else in the current binary folder). The exported functions come
# from onnxifi::core_abi_exports. MANIFEST becomes libonnxifi-<name>.json beside it: its place among the
# others, as discovery/manifest reads it.
function(onnxifi_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MANIFEST" "SOURCES;DEPS")
  set(target onnxifi-${name})
  onnxifi_check_dependencies(${target} ready onnxifi::core_abi_exports ${arg_DEPS})
  if(NOT ready)
    return()
  endif()
  add_library(${target} MODULE ${arg_SOURCES} $<TARGET_OBJECTS:onnxifi::core_abi_exports>)
  onnxifi_configure_target(${target})
  onnxifi_limit_exports(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  get_property(version GLOBAL PROPERTY ONNXIFI_VERSION)
  target_compile_definitions(${target} PRIVATE ONNXIFI_SDK_VERSION="${version}")
  target_link_libraries(${target} PRIVATE ${arg_DEPS})
  add_dependencies(onnxifi_runtime ${target})
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(arg_MANIFEST)
    set(folder ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
    if(NOT folder)
      set(folder ${CMAKE_CURRENT_BINARY_DIR})
    endif()
    configure_file(${arg_MANIFEST} ${folder}/libonnxifi-${name}.json COPYONLY)
    install(FILES ${arg_MANIFEST} DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME libonnxifi-${name}.json)
  endif()
endfunction()

# onnxifi_add_executable(<name> SOURCES <files> [DEPS <targets>] [INSTALL] [PUBLIC_HEADERS_ONLY])
#
# A program in build/<preset>/bin. INSTALL makes it part of the package and gives it the version that it tells;
# PUBLIC_HEADERS_ONLY keeps the source tree off its include path, for programs that show what a user of the
# package can write.
function(onnxifi_add_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALL;PUBLIC_HEADERS_ONLY" "" "SOURCES;DEPS")
  onnxifi_check_dependencies(${name} ready ${arg_DEPS})
  if(NOT ready)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  onnxifi_configure_target(${name})
  if(NOT arg_PUBLIC_HEADERS_ONLY)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  endif()
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  if(arg_INSTALL)
    get_property(version GLOBAL PROPERTY ONNXIFI_VERSION)
    target_compile_definitions(${name} PRIVATE ONNXIFI_SDK_VERSION="${version}")
    set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# GoogleTest's headers, compiled once for all tests: a third of what a small test takes. Each test includes
# them by itself, so that it builds without (ONNXIFI_PRECOMPILED_HEADERS=OFF, as sanitized builds have it).
function(onnxifi_precompile_test_headers name)
  get_target_property(sources ${name} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.c$")
  if(sources OR NOT ONNXIFI_PRECOMPILED_HEADERS OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  target_compile_options(${name} PRIVATE -fpch-preprocess)
  get_property(owner GLOBAL PROPERTY ONNXIFI_TEST_HEADERS_OWNER)
  if(owner)
    target_precompile_headers(${name} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    set_property(GLOBAL PROPERTY ONNXIFI_TEST_HEADERS_OWNER ${name})
  endif()
endfunction()

# onnxifi_add_test(<name> SOURCES <files> DEPS <targets> [LABELS <labels>] [TIMEOUT <seconds>])
#
# One GoogleTest binary per folder; each of its tests becomes a ctest test of the same name. Tests run
# in the source tree's top folder and take longer than TIMEOUT (300 s) only under a sanitizer. They are
# compiled with little optimisation: reading headers and optimising tests are most of a cold build.
function(onnxifi_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;DEPS;LABELS")
  if(NOT ONNXIFI_BUILD_TESTS)
    return()
  endif()
  onnxifi_check_dependencies(${name} ready GTest::gtest_main ${arg_DEPS})
  if(NOT ready)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  add_executable(${name} ${arg_SOURCES})
  onnxifi_configure_target(${name})
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  onnxifi_precompile_test_headers(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gtest GTest::gtest_main GTest::gmock)
  gtest_discover_tests(${name}
    TEST_PREFIX "${name}."
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()
