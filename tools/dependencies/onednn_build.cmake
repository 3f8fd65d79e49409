# SPDX-License-Identifier: Apache-2.0
#
# Read by oneDNN's own CMakeLists.txt after its project() (CMAKE_PROJECT_INCLUDE): halves the time its
# build takes. Nearly every file reads the same few headers, above all that of the assembler, so they
# are compiled once. The files of cpu/x64 write machine code when a primitive is made; how they
# themselves are optimised is no matter of speed, so they are compiled with less of it. Primitives that
# are not built (ONEDNN_ENABLE_PRIMITIVE) leave files behind that nothing refers to.

function(onednn_leave_out target)
  get_target_property(sources ${target} SOURCES)
  string(CONCAT unused
    "/(jit|ref|simple|ncsp|nspc)_([a-z0-9_]*_)?"
    "(normalization|normalization_s8|prelu|prelu_[a-z_]*|binary|binary_kernel|uni_reduction"
    "|uni_reduction_kernel|resampling|resampling_kernel|shuffle|shuffle_kernel|softmax|xf16_sum"
    "|sparse_matmul|eltwise|eltwise_int|concat|sum|conv_bwd_w)[.]cpp$")
  list(FILTER sources EXCLUDE REGEX "${unused}")
  set_property(TARGET ${target} PROPERTY SOURCES ${sources})
endfunction()

function(onednn_reduce_build)
  onednn_leave_out(dnnl_cpu)
  set(cpu ${CMAKE_SOURCE_DIR}/src/cpu)
  target_precompile_headers(dnnl_cpu PRIVATE
    ${cpu}/cpu_engine.hpp ${cpu}/platform.hpp ${cpu}/primitive_attr_postops.hpp)
  if(TARGET dnnl_cpu_x64)
    onednn_leave_out(dnnl_cpu_x64)
    target_compile_options(dnnl_cpu_x64 PRIVATE -O1)
    target_precompile_headers(dnnl_cpu_x64 PRIVATE
      ${cpu}/cpu_engine.hpp ${cpu}/x64/jit_generator.hpp
      ${cpu}/x64/injectors/jit_uni_postops_injector.hpp)
  endif()
endfunction()

cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL onednn_reduce_build)
