// SPDX-License-Identifier: Apache-2.0
//
// CacheFolder: where libraries and tools keep between processes what takes long to make again.

#ifndef ONNXIFI_BACKENDS_CORE_BASE_CACHE_FOLDER_H_
#define ONNXIFI_BACKENDS_CORE_BASE_CACHE_FOLDER_H_

#include <filesystem>

namespace onnxifi::base {

// Of libraries at run time (compiled kernels, measured costs): $ONNXIFI_CACHE_DIR, else onnxifi in
// $XDG_CACHE_HOME or ~/.cache. Empty if none of them is set, or $ONNXIFI_CACHE_DIR is set to
// nothing, or in secure execution: nothing is kept then.
// Threads: reads the environment, which no other thread may change meanwhile.
std::filesystem::path CacheFolder();

// Of this source tree's tools (cases, measured limits of the machine): $ONNXIFI_CACHE_HOME, else
// onnxifi-build in $XDG_CACHE_HOME or ~/.cache, as tools/setup has it. Empty if none is set.
std::filesystem::path ToolCacheFolder();

}  // namespace onnxifi::base

#endif  // ONNXIFI_BACKENDS_CORE_BASE_CACHE_FOLDER_H_
