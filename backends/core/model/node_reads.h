// SPDX-License-Identifier: Apache-2.0
//
// NamesReadBy: which values a node depends on, subgraphs included.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_NODE_READS_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_NODE_READS_H_

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace onnxifi::model {

// The names of its inputs and of what its subgraphs capture, each once, in the order in which they
// are met; no empty ones.
std::vector<std::string> NamesReadBy(const onnx::NodeProto& node);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_NODE_READS_H_
