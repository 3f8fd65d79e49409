// SPDX-License-Identifier: Apache-2.0
//
// AddDomainImports: what a model leaves out of its imports, written out for inference and islands.

#ifndef ONNXIFI_ONNXIFI_SPLIT_DOMAIN_IMPORTS_H_
#define ONNXIFI_ONNXIFI_SPLIT_DOMAIN_IMPORTS_H_

#include <onnx/onnx_pb.h>

namespace onnxifi::split {

// Imports the newest version of each domain that the kit knows, that nodes of the model's graph or
// its subgraphs have and that the model does not import; devices take these nodes for that version.
// Neither ONNX's own domain, which is written "", nor what functions import.
void AddDomainImports(onnx::ModelProto& model);

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_DOMAIN_IMPORTS_H_
