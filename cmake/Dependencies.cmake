# SPDX-License-Identifier: Apache-2.0
#
# Libraries from outside, each as an imported target. Those that tools/setup builds are found through
# the folders that `tools/setup --print-prefix` names, so that a build started by hand and one started
# by a tool use the same ones. A target that is absent here skips, with one line, whatever needs it.
#
#   onnxifi::onnx   ONNX C++ with protobuf-lite, static, hidden; never the distribution's shared
#                   protobuf, whose descriptor pool aborts when two plugins register the same file
#   onnxifi::pcre2  PCRE2 for UTF-8, static, hidden
#   onnxifi::highway  Google Highway, static, hidden
#   onnxifi::dnnl   oneDNN 3 with the THREADPOOL runtime
#   onnxifi::opencl_headers   the Khronos headers of OpenCL
#   onnxifi::cuda_headers     of CUDA's driver and of NVRTC, 12 or 13; ONNXIFI_NVRTC_FOLDER has the latter
#   onnxifi::vulkan_headers   the Khronos headers of Vulkan
#   onnxifi::image_headers   of libjpeg, OpenJPEG, libpng, libtiff and libwebp, which are opened at run time
#   onnxifi::image_libraries   the same, linked, for tests that encode
#   onnxifi::glslang   glslang and what of SPIRV-Tools it needs, static, hidden
#   onnxifi::spirv_tools   the validator of SPIR-V, static, for tests

find_package(Threads REQUIRED GLOBAL)

if(NOT DEFINED ONNXIFI_DEPENDENCY_PREFIX)
  execute_process(
    COMMAND ${PROJECT_SOURCE_DIR}/tools/setup --print-prefix
    OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "tools/setup --print-prefix ends with status ${result}.")
  endif()
else()
  set(prefix ${ONNXIFI_DEPENDENCY_PREFIX})
endif()
list(PREPEND CMAKE_PREFIX_PATH ${prefix})
message(STATUS "Prefixes of built dependencies: ${prefix}")

foreach(part IN ITEMS onnx protobuf-lite)
  string(MAKE_C_IDENTIFIER ONNXIFI_${part}_ARCHIVE variable)
  unset(${variable} CACHE)
  find_library(${variable} NAMES lib${part}.a PATHS ${prefix} PATH_SUFFIXES lib NO_DEFAULT_PATH)
  mark_as_advanced(${variable})
endforeach()

if(ONNXIFI_onnx_ARCHIVE AND ONNXIFI_protobuf_lite_ARCHIVE)
  set(onnx_includes)
  foreach(archive IN ITEMS ${ONNXIFI_onnx_ARCHIVE} ${ONNXIFI_protobuf_lite_ARCHIVE})
    cmake_path(GET archive PARENT_PATH folder)
    cmake_path(GET folder PARENT_PATH folder)
    list(APPEND onnx_includes ${folder}/include)
  endforeach()
  # A plugin of another project that defines operators includes headers of it.
  add_library(onnxifi::onnx INTERFACE IMPORTED GLOBAL)
  target_include_directories(onnxifi::onnx SYSTEM INTERFACE ${onnx_includes})
  target_compile_definitions(onnxifi::onnx INTERFACE
    ONNX_NAMESPACE=onnx ONNX_ML=1 ONNX_USE_LITE_PROTO=1)
  target_link_libraries(onnxifi::onnx INTERFACE
    ${ONNXIFI_onnx_ARCHIVE} ${ONNXIFI_protobuf_lite_ARCHIVE} Threads::Threads)
endif()

unset(ONNXIFI_PCRE2_ARCHIVE CACHE)
find_library(ONNXIFI_PCRE2_ARCHIVE NAMES libpcre2-8.a PATHS ${prefix} PATH_SUFFIXES lib
  NO_DEFAULT_PATH)
mark_as_advanced(ONNXIFI_PCRE2_ARCHIVE)
if(ONNXIFI_PCRE2_ARCHIVE)
  cmake_path(GET ONNXIFI_PCRE2_ARCHIVE PARENT_PATH folder)
  cmake_path(GET folder PARENT_PATH folder)
  add_library(onnxifi::pcre2 INTERFACE IMPORTED)
  target_include_directories(onnxifi::pcre2 SYSTEM INTERFACE ${folder}/include)
  target_compile_definitions(onnxifi::pcre2 INTERFACE PCRE2_STATIC)
  target_link_libraries(onnxifi::pcre2 INTERFACE ${ONNXIFI_PCRE2_ARCHIVE})
endif()

unset(ONNXIFI_HIGHWAY_ARCHIVE CACHE)
find_library(ONNXIFI_HIGHWAY_ARCHIVE NAMES libhwy.a PATHS ${prefix} PATH_SUFFIXES lib NO_DEFAULT_PATH)
mark_as_advanced(ONNXIFI_HIGHWAY_ARCHIVE)
if(ONNXIFI_HIGHWAY_ARCHIVE)
  cmake_path(GET ONNXIFI_HIGHWAY_ARCHIVE PARENT_PATH folder)
  cmake_path(GET folder PARENT_PATH folder)
  add_library(onnxifi::highway INTERFACE IMPORTED)
  target_include_directories(onnxifi::highway SYSTEM INTERFACE ${folder}/include)
  target_link_libraries(onnxifi::highway INTERFACE ${ONNXIFI_HIGHWAY_ARCHIVE})
endif()

find_package(dnnl 3 CONFIG QUIET)
if(dnnl_FOUND AND DNNL_CPU_THREADING_RUNTIME STREQUAL "THREADPOOL")
  add_library(onnxifi::dnnl INTERFACE IMPORTED)
  target_link_libraries(onnxifi::dnnl INTERFACE DNNL::dnnl)
endif()

# Headers alone: the loader is opened at run time.
find_path(ONNXIFI_OPENCL_INCLUDE CL/cl.h)
mark_as_advanced(ONNXIFI_OPENCL_INCLUDE)
if(ONNXIFI_OPENCL_INCLUDE)
  add_library(onnxifi::opencl_headers INTERFACE IMPORTED)
  target_include_directories(onnxifi::opencl_headers SYSTEM INTERFACE ${ONNXIFI_OPENCL_INCLUDE})
endif()

find_path(ONNXIFI_VULKAN_INCLUDE vulkan/vulkan_core.h)
mark_as_advanced(ONNXIFI_VULKAN_INCLUDE)
if(ONNXIFI_VULKAN_INCLUDE)
  add_library(onnxifi::vulkan_headers INTERFACE IMPORTED)
  target_include_directories(onnxifi::vulkan_headers SYSTEM INTERFACE ${ONNXIFI_VULKAN_INCLUDE})
endif()

find_path(ONNXIFI_JPEG_INCLUDE jpeglib.h)
find_path(ONNXIFI_OPENJPEG_INCLUDE openjpeg.h PATH_SUFFIXES openjpeg-2.5 openjpeg-2.4 openjpeg-2.3)
find_path(ONNXIFI_PNG_INCLUDE png.h)
find_path(ONNXIFI_TIFF_INCLUDE tiffio.h)
find_path(ONNXIFI_WEBP_INCLUDE webp/demux.h)
mark_as_advanced(ONNXIFI_JPEG_INCLUDE ONNXIFI_OPENJPEG_INCLUDE ONNXIFI_PNG_INCLUDE ONNXIFI_TIFF_INCLUDE
  ONNXIFI_WEBP_INCLUDE)
if(ONNXIFI_JPEG_INCLUDE AND ONNXIFI_OPENJPEG_INCLUDE AND ONNXIFI_PNG_INCLUDE AND ONNXIFI_TIFF_INCLUDE
    AND ONNXIFI_WEBP_INCLUDE)
  add_library(onnxifi::image_headers INTERFACE IMPORTED)
  target_include_directories(onnxifi::image_headers SYSTEM INTERFACE ${ONNXIFI_JPEG_INCLUDE}
    ${ONNXIFI_OPENJPEG_INCLUDE} ${ONNXIFI_PNG_INCLUDE} ${ONNXIFI_TIFF_INCLUDE} ${ONNXIFI_WEBP_INCLUDE})
endif()

# A toolkit's, else those of the private Python environment.
execute_process(
  COMMAND ${PROJECT_SOURCE_DIR}/tools/setup --print-python
  OUTPUT_VARIABLE python OUTPUT_STRIP_TRAILING_WHITESPACE)
cmake_path(GET python PARENT_PATH folder)
file(GLOB wheels ${folder}/../lib/python3*/site-packages/nvidia/cu1[23])
find_path(ONNXIFI_CUDA_INCLUDE nvrtc.h
  HINTS $ENV{CUDA_PATH}/include /usr/local/cuda/include
  PATHS ${wheels}
  PATH_SUFFIXES include)
find_path(ONNXIFI_NVRTC_FOLDER NAMES libnvrtc.so.13 libnvrtc.so.12
  HINTS $ENV{CUDA_PATH} /usr/local/cuda
  PATHS ${wheels}
  PATH_SUFFIXES lib64 lib)
mark_as_advanced(ONNXIFI_CUDA_INCLUDE ONNXIFI_NVRTC_FOLDER)
if(ONNXIFI_CUDA_INCLUDE AND EXISTS ${ONNXIFI_CUDA_INCLUDE}/cuda.h)
  add_library(onnxifi::cuda_headers INTERFACE IMPORTED)
  target_include_directories(onnxifi::cuda_headers SYSTEM INTERFACE ${ONNXIFI_CUDA_INCLUDE})
endif()

# Headers and archives of one installation: those of tools/setup, else the system's. In the order of
# linking. Archives that a version does not have are parts of its others.
unset(ONNXIFI_GLSLANG_INCLUDE CACHE)
find_path(ONNXIFI_GLSLANG_INCLUDE glslang/Include/glslang_c_interface.h)
mark_as_advanced(ONNXIFI_GLSLANG_INCLUDE)
cmake_path(GET ONNXIFI_GLSLANG_INCLUDE PARENT_PATH folder)
set(where HINTS ${folder}/lib)
if(NOT folder STREQUAL "/usr")
  list(APPEND where NO_DEFAULT_PATH)
endif()
set(glslang_archives)
foreach(part IN ITEMS glslang MachineIndependent GenericCodeGen OGLCompiler OSDependent HLSL SPIRV
    SPIRV-Tools-opt SPIRV-Tools glslang-default-resource-limits)
  string(MAKE_C_IDENTIFIER ONNXIFI_GLSLANG_${part}_ARCHIVE variable)
  unset(${variable} CACHE)
  find_library(${variable} NAMES lib${part}.a ${where})
  mark_as_advanced(${variable})
  if(${variable})
    list(APPEND glslang_archives ${${variable}})
  endif()
endforeach()
if(ONNXIFI_GLSLANG_INCLUDE AND ONNXIFI_GLSLANG_glslang_ARCHIVE)
  add_library(onnxifi::glslang INTERFACE IMPORTED)
  target_include_directories(onnxifi::glslang SYSTEM INTERFACE ${ONNXIFI_GLSLANG_INCLUDE})
  target_link_libraries(onnxifi::glslang INTERFACE
    -Wl,--start-group ${glslang_archives} -Wl,--end-group Threads::Threads)
endif()
unset(ONNXIFI_SPIRV_TOOLS_INCLUDE CACHE)
unset(ONNXIFI_SPIRV_TOOLS_ARCHIVE CACHE)
find_path(ONNXIFI_SPIRV_TOOLS_INCLUDE spirv-tools/libspirv.hpp)
find_library(ONNXIFI_SPIRV_TOOLS_ARCHIVE NAMES libSPIRV-Tools.a)
mark_as_advanced(ONNXIFI_SPIRV_TOOLS_INCLUDE ONNXIFI_SPIRV_TOOLS_ARCHIVE)
if(ONNXIFI_SPIRV_TOOLS_INCLUDE AND ONNXIFI_SPIRV_TOOLS_ARCHIVE)
  add_library(onnxifi::spirv_tools INTERFACE IMPORTED)
  target_include_directories(onnxifi::spirv_tools SYSTEM INTERFACE ${ONNXIFI_SPIRV_TOOLS_INCLUDE})
  target_link_libraries(onnxifi::spirv_tools INTERFACE ${ONNXIFI_SPIRV_TOOLS_ARCHIVE})
endif()

set(image_libraries)
foreach(library IN ITEMS jpeg openjp2 png16 tiff webp)
  string(TOUPPER ONNXIFI_${library}_LIBRARY variable)
  find_library(${variable} NAMES ${library})
  mark_as_advanced(${variable})
  if(${variable})
    list(APPEND image_libraries ${${variable}})
  endif()
endforeach()
list(LENGTH image_libraries count)
if(TARGET onnxifi::image_headers AND count EQUAL 5)
  add_library(onnxifi::image_libraries INTERFACE IMPORTED)
  target_link_libraries(onnxifi::image_libraries INTERFACE onnxifi::image_headers ${image_libraries})
endif()

find_package(fmt CONFIG QUIET)
find_package(CLI11 CONFIG QUIET)
find_package(nlohmann_json CONFIG QUIET)
find_package(PNG QUIET)
find_package(benchmark CONFIG QUIET)
if(ONNXIFI_BUILD_TESTS)
  find_package(GTest CONFIG QUIET)
  include(GoogleTest)
endif()
