// SPDX-License-Identifier: Apache-2.0
//
// GroupNorm and SkipGroupNorm, of images whose channels are the last axis or the second:
//   y = activation(group_normalization(x + skip + bias) * gamma + beta)

#include <utility>

#include "backends/core/domains/microsoft/channels_last.h"
#include "backends/core/domains/microsoft/microsoft.h"

namespace onnxifi::microsoft {
namespace {

using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

// The normalization itself is of float32.
Status DefineNormalization(Definition& d, const Value& x) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 4));
  const int64_t activation = d.Int("activation");
  if (activation != 0 && activation != 1) {
    return d.Invalid("Attribute activation is " + std::to_string(activation) +
                     "; there are none (0) and SiLU (1).");
  }
  if (d.Int("groups") < 1) {
    return d.Invalid("Attribute groups is " + std::to_string(d.Int("groups")) + ", below 1.");
  }
  const bool is_last = d.Int("channels_last") != 0;
  Value images = d.Cast(x, ElementType::kFloat32);
  if (is_last) {
    ONNXIFI_ASSIGN_OR_RETURN(images, ChannelsFirst(d, images, 0));
  }
  Value y = d.Apply(
      "GroupNormalization",
      {images, d.Cast(d.In(1), ElementType::kFloat32), d.Cast(d.In(2), ElementType::kFloat32)},
      {{"epsilon", d.Float("epsilon")}, {"num_groups", d.Int("groups")}});
  if (activation == 1) y = d.Mul(y, d.Apply("Sigmoid", {y}));
  if (is_last) {
    ONNXIFI_ASSIGN_OR_RETURN(y, ChannelsLast(d, y, 0));
  }
  d.Return(0, d.Cast(y, d.Type(0)));
  return base::Ok();
}

Status DefineGroupNorm(Definition& d) { return DefineNormalization(d, d.In(0)); }

Status DefineSkipGroupNorm(Definition& d) {
  const bool is_last = d.Int("channels_last") != 0;
  // One number per channel, as it broadcasts to images.
  const std::vector<int64_t> by_channel =
      is_last ? std::vector<int64_t>{0, 1, 1, -1} : std::vector<int64_t>{0, -1, 1, 1};
  Value skip = d.In(3);
  if (d.Rank(3) == 2) skip = d.Reshape(skip, by_channel);
  Value sum = d.Add(d.In(0), skip);
  if (d.Has(4)) {
    sum = d.Add(sum, is_last ? d.In(4) : d.Reshape(d.In(4), {1, -1, 1, 1}));
  }
  d.Return(1, sum);
  return DefineNormalization(d, sum);
}

constexpr model::DomainOperator kOperators[] = {
    {R"(GroupNorm(X: T, gamma: M, beta: M) -> (Y: T)
        activation: int required
        channels_last: int = 1
        epsilon: float = 1e-5
        groups: int required
        T = float16 | float
        M = float16 | float)",
     DefineGroupNorm},
    {R"(SkipGroupNorm(X: T, gamma: M, beta: M, skip: T, bias?: T) -> (Y: T, S?: T)
        activation: int required
        channels_last: int = 1
        epsilon: float = 1e-5
        groups: int required
        T = float16 | float
        M = float16 | float)",
     DefineSkipGroupNorm},
};

}  // namespace

std::span<const model::DomainOperator> GroupNormOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
