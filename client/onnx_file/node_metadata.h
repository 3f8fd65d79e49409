// SPDX-License-Identifier: Apache-2.0
//
// NodeMetadata: a model with entries added to the metadata of its nodes; all else stays as it is.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_NODE_METADATA_H_
#define ONNXIFI_CLIENT_ONNX_FILE_NODE_METADATA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "backends/core/base/result.h"

namespace onnxifi::onnx_file {

// Adds the entry `key` with `values[k]` to node k of the main graph, for every k that has one.
// INVALID_PROTOBUF.
base::Result<std::string> AddNodeMetadata(std::span<const std::byte> model, std::string_view key,
                                          const std::map<uint32_t, std::string>& values);

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_NODE_METADATA_H_
