// SPDX-License-Identifier: Apache-2.0
//
// OutputShapes: the shapes of a model's outputs for given extents of its inputs, by ONNX's own
// inference. For plugins of plain ONNXIFI 1.0, which run a model and cannot tell what comes out.

#ifndef ONNXIFI_ONNXIFI_SPLIT_OUTPUT_SHAPES_H_
#define ONNXIFI_ONNXIFI_SPLIT_OUTPUT_SHAPES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/tensor/element_type.h"
#include "onnxifi/split/whole_model.h"

namespace onnxifi::split {

struct InputShape {
  std::string name;
  std::vector<int64_t> extents;
};

struct OutputShape {
  std::string name;
  tensor::ElementType type = tensor::ElementType::kUndefined;
  bool has_rank = false;
  // -1 where only a run tells.
  std::vector<int64_t> extents;
};

class OutputShapes {
 public:
  // Keeps what decides shapes, no large tensor; neither `model` nor the data of `weights` is
  // borrowed. INVALID_PROTOBUF, INVALID_MODEL.
  static base::Result<std::unique_ptr<OutputShapes>> Read(std::span<const std::byte> model,
                                                          std::span<const GivenWeight> weights);
  ~OutputShapes();

  // In the model's order. Where inference does not find an extent, the model's declaration counts:
  // its numbers, and its symbols that the inputs determine. INVALID_SHAPE for an input of another
  // rank than the model declares. Threads: any.
  base::Result<std::vector<OutputShape>> Infer(std::span<const InputShape> inputs) const;

 private:
  struct Parts;

  explicit OutputShapes(std::unique_ptr<const Parts> parts);

  const std::unique_ptr<const Parts> parts_;
};

// Whether the shape of every output follows from the extents of the inputs, whatever they are:
// found out with numbers for those that are not known. False for a model that cannot be read.
bool FollowFromInputs(const IslandModel& island, std::span<const FlowingValue> values);

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_OUTPUT_SHAPES_H_
