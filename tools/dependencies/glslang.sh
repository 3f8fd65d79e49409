# SPDX-License-Identifier: Apache-2.0
#
# glslang, which knows GL_KHR_cooperative_matrix: Debian 12's does not. Without HLSL and without an optimizer,
# which would need all of SPIRV-Tools. Recipe of tools/setup.

glslang_version=15.1.0
glslang_checksums=(180f17ea51e6b71bf57b9e0fea78ba3ecd76e3ec8e4c91f0771b922eb22bf4b2)
glslang_options=(
  -DBUILD_EXTERNAL=OFF
  -DBUILD_SHARED_LIBS=OFF
  -DENABLE_GLSLANG_BINARIES=OFF
  -DENABLE_HLSL=OFF
  -DENABLE_OPT=OFF
  -DENABLE_PCH=OFF
  -DENABLE_SPVREMAPPER=OFF
  -DGLSLANG_ENABLE_INSTALL=ON
  -DGLSLANG_TESTS=OFF
)

glslang_fetch() {
  local archive=$cache/downloads/glslang_$glslang_version.orig.tar.gz
  fetch_debian glslang '[.]orig[.]tar[.]gz$' "$archive" "${glslang_checksums[0]}"
  tar -xf "$archive" -C "$source_folder" --strip-components=1
}

glslang_paths() { :; }

glslang_install() {
  show_progress "glslang $1:" "$cache/logs/glslang-build.log" cmake --build "$build_folder" -j "$(nproc)"
  log_step "$cache/logs/glslang-install.log" cmake --install "$build_folder"
}
