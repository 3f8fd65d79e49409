# SPDX-License-Identifier: Apache-2.0
#
# oneDNN, with a thread pool given to it by its user instead of a runtime of its own, and with the small
# matrix kernels (ukernel). Debian's patch that brings it to 3.7.3 is applied. Recipe of tools/setup.

onednn_version=3.7.2
onednn_checksums=(
  0cc51ca26c1af6a2bb1e71e378e7046f3ceb3e71791ee9d4e246d50f904a6ea6
  5aab2cac559ddc6c5d4411fa42b462003b93101c0c304e272b1d30ffd5a2218c
  "built with $(short_hash <"$tree/tools/dependencies/onednn_build.cmake")"
)
onednn_options=(
  -DONEDNN_LIBRARY_TYPE=STATIC
  -DONEDNN_CPU_RUNTIME=THREADPOOL
  -DONEDNN_GPU_RUNTIME=NONE
  -DONEDNN_ENABLE_WORKLOAD=INFERENCE
  "-DONEDNN_ENABLE_PRIMITIVE=CONVOLUTION;DECONVOLUTION;INNER_PRODUCT;LRN;MATMUL;POOLING;REORDER;RNN"
  -DONEDNN_EXPERIMENTAL_UKERNEL=ON
  -DONEDNN_BUILD_GRAPH=OFF
  -DONEDNN_BUILD_TESTS=OFF
  -DONEDNN_BUILD_EXAMPLES=OFF
  -DONEDNN_BUILD_DOC=OFF
  -DONEDNN_ENABLE_ITT_TASKS=OFF
  -DONEDNN_ENABLE_JIT_PROFILING=OFF
  -DONEDNN_ARCH_OPT_FLAGS=
)

onednn_fetch() {
  local archive=$cache/downloads/onednn_$onednn_version+ds.orig.tar.xz
  local changes=$cache/downloads/onednn_$onednn_version.debian.tar.xz
  local patch=debian/patches/upstream-3.7.3.patch
  fetch_debian onednn '[.]orig[.]tar[.]xz$' "$archive" "${onednn_checksums[0]}"
  [[ -f $changes ]] || fetch_debian onednn '[.]debian[.]tar[.]xz$' "$changes"
  tar -xf "$archive" -C "$source_folder" --strip-components=1
  tar -xf "$changes" -C "$source_folder" "$patch"
  require_checksum "$source_folder/$patch" "${onednn_checksums[1]}"
  log_step "$cache/logs/onednn-patch.log" patch -d "$source_folder" -p1 -i "$patch"
}

onednn_paths() { echo "-DCMAKE_PROJECT_INCLUDE=$tree/tools/dependencies/onednn_build.cmake"; }

onednn_install() {
  show_progress "oneDNN $1:" "$cache/logs/onednn-build.log" cmake --build "$build_folder" -j "$(nproc)"
  log_step "$cache/logs/onednn-install.log" cmake --install "$build_folder"
}
