# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` lays out: headers, libonnxifi, the loader archive, a CMake config package and a
# pkg-config file. Plugins and programs install themselves where they are declared (Targets.cmake).

include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/onnxifi)
set(exported onnxifi_headers)
foreach(target IN ITEMS onnxifi onnxifi_loader onnxifi_loader_ext)
  if(TARGET ${target})
    list(APPEND exported ${target})
  endif()
endforeach()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS ${exported} EXPORT onnxifi-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT onnxifi-targets NAMESPACE onnxifi:: DESTINATION ${package_folder})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/onnxifi-config.cmake.in
  ${PROJECT_BINARY_DIR}/package/onnxifi-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/onnxifi-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/package/onnxifi-config.cmake
  ${PROJECT_BINARY_DIR}/package/onnxifi-config-version.cmake
  DESTINATION ${package_folder})

# The library folder has one or two levels (lib, lib/x86_64-linux-gnu), pkgconfig one more.
file(RELATIVE_PATH onnxifi_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" onnxifi_pc_prefix "${onnxifi_pc_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/onnxifi.pc.in ${PROJECT_BINARY_DIR}/package/onnxifi.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/onnxifi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
