// SPDX-License-Identifier: Apache-2.0
//
// ModelInputs: a model whose graph inputs are given otherwise: as initializers, or with other
// extents or any at all. All else stays as it is.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_MODEL_INPUTS_H_
#define ONNXIFI_CLIENT_ONNX_FILE_MODEL_INPUTS_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "client/onnx_file/model_writer.h"
#include "client/onnx_file/tensor_file.h"

namespace onnxifi::onnx_file {

// The graph inputs that have the names of `tensors` become initializers. Up to IR version 3, which
// wants every initializer to be an input, they stay inputs as well. INVALID_PROTOBUF.
base::Result<std::string> MakeInitializers(std::span<const std::byte> model,
                                           std::span<const DenseTensor> tensors);

// Extents by the name of a graph input.
using ExtentsByName = std::map<std::string, std::vector<Dimension>, std::less<>>;

// Declares the tensors among the graph inputs with these extents. What the model says of extents of
// other values, which follow from those of the inputs, is left out: outputs have their rank alone,
// and values in between no entry. INVALID_PROTOBUF.
base::Result<std::string> ChangeExtents(std::span<const std::byte> model,
                                        const ExtentsByName& extents);

// Declares the tensors among the graph inputs that have these names with these extents, and as many
// axes; all else stays as it is. INVALID_PROTOBUF.
base::Result<std::string> DeclareExtents(std::span<const std::byte> model,
                                         const ExtentsByName& extents);

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_MODEL_INPUTS_H_
