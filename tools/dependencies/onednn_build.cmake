# SPDX-License-Identifier: Apache-2.0
#
# Read by oneDNN's own CMakeLists.txt after its project() (CMAKE_PROJECT_INCLUDE): halves the time its
# build takes. Nearly every file reads the same few headers, above all that of the assembler, so they
# are compiled once. The files of cpu/x64 write machine code when a primitive is made; how they
# themselves are optimised is no matter of speed, so they are compiled with less of it.

function(onednn_reduce_build)
  set(cpu ${CMAKE_SOURCE_DIR}/src/cpu)
  target_precompile_headers(dnnl_cpu PRIVATE
    ${cpu}/cpu_engine.hpp ${cpu}/platform.hpp ${cpu}/primitive_attr_postops.hpp)
  if(TARGET dnnl_cpu_x64)
    target_compile_options(dnnl_cpu_x64 PRIVATE -O1)
    target_precompile_headers(dnnl_cpu_x64 PRIVATE
      ${cpu}/cpu_engine.hpp ${cpu}/x64/jit_generator.hpp
      ${cpu}/x64/injectors/jit_uni_postops_injector.hpp)
  endif()
endfunction()

cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL onednn_reduce_build)
