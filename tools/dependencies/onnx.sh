# SPDX-License-Identifier: Apache-2.0
#
# The ONNX C++ library: protobuf messages, operator schemas, checker, shape inference, function bodies,
# version converter. Same version as the Python package that makes the test cases. Recipe of tools/setup.

onnx_version=1.23.2
onnx_checksums=(
  008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8
  "protobuf $protobuf_version ${protobuf_checksums[*]}"
)
onnx_options=(
  -DONNX_BUILD_PYTHON=OFF
  -DONNX_ML=ON
  -DONNX_USE_LITE_PROTO=ON
  -DONNX_USE_UNITY_BUILD=ON
  -DProtobuf_USE_STATIC_LIBS=ON
)

onnx_fetch() {
  local name=onnx-$onnx_version.tar.gz
  fetch_python "onnx==$onnx_version" "$name" "${onnx_checksums[0]}"
  tar -xzf "$cache/downloads/$name" -C "$source_folder" --strip-components=1
  # It asks for 3.26 and uses nothing of it; Debian 12 has 3.25.
  sed -i 's/^cmake_minimum_required(VERSION 3.26)/cmake_minimum_required(VERSION 3.25)/' \
    "$source_folder/CMakeLists.txt"
}

# Paths of this machine, which are no part of the options' hash.
onnx_paths() {
  local protobuf
  protobuf=$(prefix_of protobuf)
  printf -- '-D%s\n' \
    "Protobuf_INCLUDE_DIR=$protobuf/include" \
    "Protobuf_LITE_LIBRARY=$protobuf/lib/libprotobuf-lite.a" \
    "Protobuf_LIBRARY=$protobuf/lib/libprotobuf-lite.a" \
    "Protobuf_PROTOC_EXECUTABLE=$(command -v protoc)" \
    "Python3_EXECUTABLE=$base_python"
}

onnx_install() {
  show_progress "ONNX $1:" "$cache/logs/onnx-build.log" cmake --build "$build_folder" -j "$(nproc)"
  log_step "$cache/logs/onnx-install.log" cmake --install "$build_folder"
}
