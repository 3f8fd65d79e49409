# SPDX-License-Identifier: Apache-2.0
#
# The CMakeLists.txt around glslang's sources, which come with a list of files of their own.

cmake_minimum_required(VERSION 3.25)
project(glslang CXX)
add_subdirectory(external/glslang)
install(TARGETS glslang)
install(DIRECTORY external/glslang/ DESTINATION include
  FILES_MATCHING PATTERN "glslang/Include/*.h" PATTERN "glslang/Public/*.h"
  PATTERN "glslang/build_info.h" PATTERN "StandAlone" EXCLUDE PATTERN "SPIRV" EXCLUDE)
