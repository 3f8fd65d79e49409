// SPDX-License-Identifier: Apache-2.0
//
// SmallTensors: tensors of a model in external-data form that may be extents, axes or the like,
// without which no device can say whether it runs a node. Devices are asked about the model with
// them in it; all else stays where it is.

#ifndef ONNXIFI_ONNXIFI_SPLIT_SMALL_TENSORS_H_
#define ONNXIFI_ONNXIFI_SPLIT_SMALL_TENSORS_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "backends/core/base/result.h"

namespace onnxifi::split {

// The model with the data of every external tensor of at most NodeSigner::kSmallTensorBytes in it,
// initializers and attributes, in subgraphs and functions too; nothing where there is none, or
// where the model cannot be read. INVALID_MODEL for such a tensor whose data are not in the folder.
base::Result<std::optional<std::string>> WithSmallTensors(std::span<const std::byte> model,
                                                          const std::string& base_folder);

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_SMALL_TENSORS_H_
