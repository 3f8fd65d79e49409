# SPDX-License-Identifier: Apache-2.0
#
# onnxifi_add_kernel_tests(<backend>)
#
# Of a backend that compiles kernels: <backend>_kernels_test, the tests of generated kernels, and
# <backend>_step_sweep, which says of itself what it does. Both run on the device that the backend's
# testing/tested_device.cc opens.
function(onnxifi_add_kernel_tests backend)
  set(codegen ${PROJECT_SOURCE_DIR}/backends/core/codegen)
  onnxifi_add_test(${backend}_kernels_test
    SOURCES
      ${codegen}/float_meaning_test.cc
      ${codegen}/generated_test.cc
      ${codegen}/halves_test.cc
      ${codegen}/index_test.cc
      ${codegen}/long_axes_test.cc
      ${codegen}/map_lanes_test.cc
      ${codegen}/map_tiles_test.cc
      ${codegen}/random_step_test.cc
      ${codegen}/reduction_test.cc
      ${codegen}/scan_test.cc
      ${codegen}/scatter_test.cc
      ${codegen}/testing/step_fixture.h ${codegen}/testing/tested_device.h
      ${codegen}/testing/tiled_fixture.h
      ${codegen}/attention_test.cc
      ${codegen}/recurrent_test.cc
      ${codegen}/narrow_operands_test.cc
      ${codegen}/tiled_test.cc
      ${codegen}/testing/winograd_test.cc
      ${codegen}/window_test.cc
      testing/tested_device.cc
    DEPS onnxifi::core_execution_testing onnxifi::${backend})
  if(ONNXIFI_BUILD_TESTS)
    onnxifi_add_executable(${backend}_step_sweep
      SOURCES
        ${codegen}/testing/step_sweep.cc
        testing/tested_device.cc
      DEPS onnxifi::core_reference onnxifi::${backend})
  endif()
endfunction()
