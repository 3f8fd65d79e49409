// SPDX-License-Identifier: Apache-2.0
//
// Operators that ONNX's first versions had as experiments and that it withdrew, some for others of
// the same name. Converters of those years wrote them, Core ML's for one, and ONNX Runtime runs
// them:
//   Affine = alpha * x + beta, Scale = scale * x, ImageScaler = scale * x + bias[channel],
//   ScaledTanh = alpha * tanh(beta * x), ParametricSoftplus = alpha * ln(1 + exp(beta * x))
// core/ops lowers those whose names ONNX has again: ThresholdedRelu, MeanVarianceNormalization.

#include "backends/core/domains/withdrawn/withdrawn.h"

#include <onnx/defs/shape_inference.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/model/definition.h"

namespace onnxifi::withdrawn {
namespace {

using base::Status;
using model::Definition;
using Value = Definition::Value;

Value Times(Definition& d, Value x, const char* factor) {
  return d.Mul(std::move(x), d.Scalar(d.Float(factor), d.Type(0)));
}

Status DefineAffine(Definition& d) {
  d.Return(0, d.Add(Times(d, d.In(0), "alpha"), d.Scalar(d.Float("beta"), d.Type(0))));
  return base::Ok();
}

Status DefineScale(Definition& d) {
  d.Return(0, Times(d, d.In(0), "scale"));
  return base::Ok();
}

Status DefineImageScaler(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 4));
  const std::vector<float> bias = d.Floats("bias");
  const auto count = static_cast<int64_t>(bias.size());
  const std::optional<int64_t> channels = d.Extent(0, 1);
  if (channels && *channels != count) {
    return d.Invalid("Attribute bias has " + std::to_string(count) + " numbers for " +
                     std::to_string(*channels) + " channels.");
  }
  const Value numbers = d.Cast(d.Apply("Constant", {}, {{"value_floats", bias}}), d.Type(0));
  d.Return(0, d.Add(Times(d, d.In(0), "scale"), d.Reshape(numbers, {1, count, 1, 1})));
  return base::Ok();
}

// What is left of an axis of an image without `before` and `after`, or `kept` elements behind
// `before`.
struct Cut {
  int axis;
  int64_t before, after;
  std::optional<int64_t> kept;
};

Status DefineCrop(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 4));
  const std::vector<int64_t> border = d.Ints("border"), scale = d.Ints("scale");
  if (border.size() != 4 || (!scale.empty() && scale.size() != 2)) {
    return d.Invalid("Attributes border and scale have " + std::to_string(border.size()) + " and " +
                     std::to_string(scale.size()) + " numbers; they have 4, and none or 2.");
  }
  Cut rows = {2, border[1], border[3], {}}, columns = {3, border[0], border[2], {}};
  if (!scale.empty()) {
    rows.kept = scale[0];
    columns.kept = scale[1];
  }
  Value cropped = d.In(0);
  for (const Cut& cut : {rows, columns}) {
    // No tensor has more elements along an axis than half of what the numbers of attributes reach.
    constexpr int64_t kMaxExtent = std::numeric_limits<int64_t>::max() / 2;
    const int64_t rest = cut.kept.value_or(cut.after);
    const std::optional<int64_t> extent = d.Extent(0, cut.axis);
    const int64_t most = extent.value_or(kMaxExtent);
    if (cut.before < 0 || cut.after < 0 || rest < 0 || cut.before > most ||
        rest > most - cut.before) {
      return d.Invalid("Attributes border and scale ask for " + std::to_string(cut.before) +
                       " and " + std::to_string(rest) + " elements of axis " +
                       std::to_string(cut.axis) + ", which has " +
                       (extent ? std::to_string(*extent) : "at least 0") + ".");
    }
    int64_t end = std::numeric_limits<int64_t>::max();
    if (cut.kept) {
      end = cut.before + *cut.kept;
    } else if (cut.after > 0) {
      end = -cut.after;
    }
    cropped = d.Slice(cropped, cut.axis, cut.before, end);
  }
  d.Return(0, cropped);
  return base::Ok();
}

Status DefineDynamicSlice(Definition& d) {
  std::vector<Value> inputs = {d.In(0), d.In(1), d.In(2)};
  if (d.Has(3)) inputs.push_back(d.In(3));
  d.Return(0, d.Apply("Slice", std::move(inputs)));
  return base::Ok();
}

Status DefineScaledTanh(Definition& d) {
  d.Return(0, Times(d, d.Apply("Tanh", {Times(d, d.In(0), "beta")}), "alpha"));
  return base::Ok();
}

Status DefineParametricSoftplus(Definition& d) {
  d.Return(0, Times(d, d.Apply("Softplus", {Times(d, d.In(0), "beta")}), "alpha"));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(Affine(X: T) -> (Y: T)
        alpha: float = 1
        beta: float = 0
        T = float16 | float | double)",
     DefineAffine},
    {R"(Crop(input: T) -> (output: T)
        border: ints
        scale: ints
        T = float16 | float | double)",
     DefineCrop},
    {R"(DynamicSlice(data: T, starts: Tind, ends: Tind, axes?: Tind) -> (output: T)
        T = uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float16 | float | double | string | bool | complex64 | complex128
        Tind = int32 | int64)",
     DefineDynamicSlice},
    {R"(ImageScaler(input: T) -> (output: T)
        bias: floats
        scale: float = 1
        T = float16 | float | double)",
     DefineImageScaler},
    {R"(MeanVarianceNormalization(input: T) -> (output: T)
        across_channels: int = 0
        normalize_variance: int = 1
        T = float16 | float | double)",
     nullptr, /*since_version=*/1, onnx::propagateShapeAndTypeFromFirstInput},
    {R"(ParametricSoftplus(X: T) -> (Y: T)
        alpha: float
        beta: float
        T = float16 | float | double)",
     DefineParametricSoftplus},
    {R"(Scale(input: T) -> (output: T)
        scale: float = 1
        T = float16 | float | double)",
     DefineScale},
    {R"(ScaledTanh(input: T) -> (output: T)
        alpha: float
        beta: float
        T = float16 | float | double)",
     DefineScaledTanh},
    {R"(ThresholdedRelu(X: T) -> (Y: T)
        alpha: float = 1
        T = float16 | float | double)",
     nullptr, /*since_version=*/1, onnx::propagateShapeAndTypeFromFirstInput},
};

}  // namespace

std::span<const model::Domain* const> ListDomains() {
  static constexpr model::Domain kDomain = {"", 1, kOperators};
  static constexpr const model::Domain* kDomains[] = {&kDomain};
  return kDomains;
}

}  // namespace onnxifi::withdrawn
