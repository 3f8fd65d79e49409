// SPDX-License-Identifier: Apache-2.0
//
// Where a program of this package finds the libonnxifi that was built or installed with it.

#ifndef ONNXIFI_CLIENT_DEFAULT_LIBRARY_H_
#define ONNXIFI_CLIENT_DEFAULT_LIBRARY_H_

#include <filesystem>

#include "backends/core/base/result.h"

namespace onnxifi::client {

// The libonnxifi beside the running program, in ../lib, or in the library folder it was installed
// with. INVALID_NAME when there is none: the system's own libonnxifi is somebody else's and never
// taken.
base::Result<std::filesystem::path> FindDefaultLibrary();

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_DEFAULT_LIBRARY_H_
