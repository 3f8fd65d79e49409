# SPDX-License-Identifier: Apache-2.0
#
# The validator of SPIRV-Tools, which knows SPV_KHR_cooperative_matrix: Debian 12's does not. The library without
# optimizer and programs, for tests alone. Recipe of tools/setup.

spirv_tools_version=2025.1
spirv_tools_checksums=(
  6895160d5a842552eda6412440747cbadddd47005957bc43bb03926162686777
  64ea06bf123c5c063a6be01dd45adec6a30cc0862000781ca18f9104693b722c  # of the headers
)
spirv_tools_options=(
  -DSPIRV_SKIP_EXECUTABLES=ON
  -DSPIRV_SKIP_TESTS=ON
  -DSPIRV_TOOLS_BUILD_STATIC=ON
  -DSPIRV_WERROR=OFF
)

spirv_tools_fetch() {
  local archive=$cache/downloads/spirv-tools_$spirv_tools_version.orig.tar.gz
  local headers=$cache/downloads/spirv-headers_$spirv_tools_version.orig.tar.gz
  fetch_debian spirv-tools '[.]orig[.]tar[.]gz$' "$archive" "${spirv_tools_checksums[0]}"
  fetch_debian spirv-headers '[.]orig[.]tar[.]gz$' "$headers" "${spirv_tools_checksums[1]}"
  mkdir -p "$source_folder/external/spirv-headers"
  tar -xf "$archive" -C "$source_folder" --strip-components=1
  tar -xf "$headers" -C "$source_folder/external/spirv-headers" --strip-components=1
}

spirv_tools_paths() { :; }

spirv_tools_install() {
  show_progress "SPIRV-Tools $1:" "$cache/logs/spirv_tools-build.log" \
    cmake --build "$build_folder" -j "$(nproc)" --target SPIRV-Tools-static
  # What was built; its own installation wants all.
  mkdir -p "$prefix.part/lib" "$prefix.part/include"
  cp "$build_folder/source/libSPIRV-Tools.a" "$prefix.part/lib"
  cp -r "$source_folder/include/spirv-tools" "$prefix.part/include"
}
