# SPDX-License-Identifier: Apache-2.0
#
# PCRE2, for regular expressions on strings. Built here because Debian's archive is not
# position-independent and plugins link nothing that is shared. Recipe of tools/setup.

pcre2_version=10.46
pcre2_checksums=(8d28d7f2c3b970c3a4bf3776bcbb5adfc923183ce74bc8df1ebaad8c1985bd07)
pcre2_options=(
  -DCMAKE_C_VISIBILITY_PRESET=hidden
  -DBUILD_SHARED_LIBS=OFF
  -DBUILD_STATIC_LIBS=ON
  -DPCRE2_STATIC_PIC=ON
  -DPCRE2_BUILD_PCRE2GREP=OFF
  -DPCRE2_BUILD_TESTS=OFF
  -DPCRE2_SUPPORT_JIT=OFF
)

pcre2_fetch() {
  local archive=$cache/downloads/pcre2_$pcre2_version.orig.tar.gz
  fetch_debian pcre2 '^pcre2_[0-9.]*[.]orig[.]tar[.]gz$' "$archive" "${pcre2_checksums[0]}"
  tar -xf "$archive" -C "$source_folder" --strip-components=1
}

pcre2_paths() { :; }

pcre2_install() {
  show_progress "PCRE2 $1:" "$cache/logs/pcre2-build.log" cmake --build "$build_folder" -j "$(nproc)"
  log_step "$cache/logs/pcre2-install.log" cmake --install "$build_folder"
}
