# SPDX-License-Identifier: Apache-2.0
#
# Highway, of the version that Debian 12 has. Built here because Debian has it as a shared library alone:
# plugins link nothing that is shared, and that library measures the processor's clock whenever it is
# loaded, which takes 9 ms and nothing here asks for. Recipe of tools/setup.

highway_version=1.0.3
highway_checksums=(566fc77315878473d9a6bd815f7de78c73734acdcb745c3dde8579560ac5440e)
highway_options=(
  -DBUILD_SHARED_LIBS=OFF
  -DBUILD_TESTING=OFF
  -DHWY_ENABLE_CONTRIB=OFF
  -DHWY_ENABLE_EXAMPLES=OFF
  -DHWY_ENABLE_TESTS=OFF
)

highway_fetch() {
  local archive=$cache/downloads/highway_$highway_version.orig.tar.gz
  fetch_debian highway '[.]orig[.]tar[.]gz$' "$archive" "${highway_checksums[0]}" bookworm
  tar -xf "$archive" -C "$source_folder" --strip-components=1
}

highway_paths() { :; }

highway_install() {
  show_progress "Highway $1:" "$cache/logs/highway-build.log" cmake --build "$build_folder" -j "$(nproc)"
  log_step "$cache/logs/highway-install.log" cmake --install "$build_folder"
}
