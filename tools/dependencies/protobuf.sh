# SPDX-License-Identifier: Apache-2.0
#
# protobuf-lite, of the same version as the distribution's protoc. Built here because Debian's archives
# are not position-independent and its shared library must not be shared by plugins. Recipe of tools/setup.

protobuf_version=3.21.12
protobuf_checksums=(930c2c3b5ecc6c9c12615cf5ad93f1cd6e12d0aba862b572e076259970ac3a53)
protobuf_options=(
  -DCMAKE_CXX_STANDARD=17
  -Dprotobuf_BUILD_TESTS=OFF
  -Dprotobuf_BUILD_PROTOC_BINARIES=OFF
  -Dprotobuf_BUILD_SHARED_LIBS=OFF
  -Dprotobuf_WITH_ZLIB=OFF
)

protobuf_fetch() {
  local archive=$cache/downloads/protobuf_$protobuf_version.orig.tar.gz
  local protoc
  protoc=$(protoc --version)
  [[ $protoc == "libprotoc $protobuf_version" ]] ||
    refuse "The version of protoc is '$protoc', but 'libprotoc $protobuf_version' is needed."
  fetch_debian protobuf '[.]orig[.]tar[.]gz$' "$archive" "${protobuf_checksums[0]}"
  tar -xf "$archive" -C "$source_folder" --strip-components=1
}

protobuf_paths() { :; }

protobuf_install() {
  show_progress "protobuf-lite $1:" "$cache/logs/protobuf-build.log" \
    cmake --build "$build_folder" -j "$(nproc)" --target libprotobuf-lite
  local component
  for component in libprotobuf-lite protobuf-headers; do
    log_step "$cache/logs/protobuf-install.log" cmake --install "$build_folder" --component "$component"
  done
}
