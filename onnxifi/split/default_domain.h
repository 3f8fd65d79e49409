// SPDX-License-Identifier: Apache-2.0
//
// WriteDefaultDomain: one spelling of ONNX's own domain, so that nothing after it has to know two.

#ifndef ONNXIFI_ONNXIFI_SPLIT_DEFAULT_DOMAIN_H_
#define ONNXIFI_ONNXIFI_SPLIT_DEFAULT_DOMAIN_H_

#include <onnx/onnx_pb.h>

namespace onnxifi::split {

// Writes "" wherever the model says "ai.onnx", which means the same: in what it imports, its nodes,
// those of subgraphs and of functions.
void WriteDefaultDomain(onnx::ModelProto& model);

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_DEFAULT_DOMAIN_H_
