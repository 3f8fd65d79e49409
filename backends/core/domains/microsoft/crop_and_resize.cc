// SPDX-License-Identifier: Apache-2.0
//
// CropAndResize: parts of images, each resized to one size, whose corners lie on those of the part:
//   y = y1 * (H - 1) + p * (y2 - y1) * (H - 1) / (crop_height - 1),   p = 0, 1, ...
// and the middle of the part where the crop is one element high; x likewise.

#include <utility>

#include "backends/core/domains/microsoft/attention.h"
#include "backends/core/domains/microsoft/microsoft.h"

namespace onnxifi::microsoft {
namespace {

using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

// Positions along one axis of the images, [parts, crop]: between `low` and `high`, which lie in the
// image, and whether they do.
struct Positions {
  Value low, high;  // int64
  Value share;      // of `high`
  Value is_inside;  // bool
};

class Sampler {
 public:
  explicit Sampler(Definition& d) : d_(d), type_(d.Type(0)) {}

  // `axis` of the images, its bounds in columns `first` and `first` + 2 of the parts, and element
  // `size` of the crop's.
  Positions Locate(int64_t axis, int64_t first, int64_t size, bool is_nearest) {
    const Value count = d_.Cast(d_.Slice(d_.In(3), 0, size, size + 1), ElementType::kInt64);
    const Value last = d_.Sub(d_.Cast(d_.ExtentOf(d_.In(0), axis), type_), Number(1));
    const Value begin = d_.Slice(d_.In(1), 1, first, first + 1);
    const Value end = d_.Slice(d_.In(1), 1, first + 2, first + 3);
    const Value steps = d_.Sub(d_.Cast(count, type_), Number(1));
    const Value is_long = d_.Apply("Greater", {steps, Number(0)});
    const Value divisor = d_.Apply("Max", {steps, Number(1)});
    const Value middle = d_.Mul(d_.Mul(d_.Add(begin, end), Number(0.5)), last);
    const Value start = d_.Apply("Where", {is_long, d_.Mul(begin, last), middle});
    const Value stride = d_.Div(d_.Mul(d_.Sub(end, begin), last), divisor);
    const Value at = d_.Add(start, d_.Mul(d_.Cast(CountTo(d_, count), type_), stride));
    Positions found;
    found.is_inside = d_.Apply(
        "And", {d_.Apply("GreaterOrEqual", {at, Number(0)}), d_.Apply("LessOrEqual", {at, last})});
    const Value clipped = d_.Apply("Min", {d_.Apply("Max", {at, Number(0)}), last});
    // Halves away from zero, as roundf.
    const Value low = d_.Apply("Floor", {is_nearest ? d_.Add(clipped, Number(0.5)) : clipped});
    found.low = d_.Cast(low, ElementType::kInt64);
    found.high = is_nearest ? found.low : d_.Cast(d_.Apply("Ceil", {clipped}), ElementType::kInt64);
    found.share = d_.Sub(clipped, low);
    return found;
  }

  // [parts, crop height, crop width, channels]
  Value Sample(const Value& images, const Value& y, const Value& x) {
    const Value batch = d_.Reshape(d_.Cast(d_.In(2), ElementType::kInt64), {-1, 1, 1});
    const Value rows = d_.Unsqueeze(y, {2}), columns = d_.Unsqueeze(x, {1});
    const Value shape = d_.Apply("Shape", {d_.Add(rows, columns)});
    std::vector<Value> indices;
    for (const Value& index : {batch, rows, columns}) {
      indices.push_back(d_.Unsqueeze(d_.Apply("Expand", {index, shape}), {3}));
    }
    return d_.Apply("GatherND", {images, d_.Concat(std::move(indices), 3)});
  }

  Value Between(const Value& low, const Value& high, const Value& share) {
    return d_.Add(low, d_.Mul(d_.Sub(high, low), share));
  }

 private:
  Value Number(double number) { return d_.Scalar(number, type_); }

  Definition& d_;
  const ElementType type_;
};

Status Define(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 4));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(1, 2));
  const std::string mode = d.String("mode");
  if (mode != "bilinear" && mode != "nearest") {
    return d.Invalid("Attribute mode is '" + mode + "'; there are 'bilinear' and 'nearest'.");
  }
  const bool is_nearest = mode == "nearest";
  Sampler sampler(d);
  const Value images = d.Transpose(d.In(0), {0, 2, 3, 1});
  const Positions y = sampler.Locate(2, 0, 0, is_nearest);
  const Positions x = sampler.Locate(3, 1, 1, is_nearest);
  Value result = sampler.Sample(images, y.low, x.low);
  if (!is_nearest) {
    const Value share_x = d.Unsqueeze(x.share, {1, 3}), share_y = d.Unsqueeze(y.share, {2, 3});
    const Value top = sampler.Between(result, sampler.Sample(images, y.low, x.high), share_x);
    const Value bottom = sampler.Between(sampler.Sample(images, y.high, x.low),
                                         sampler.Sample(images, y.high, x.high), share_x);
    result = sampler.Between(top, bottom, share_y);
  }
  const Value is_inside =
      d.Apply("And", {d.Unsqueeze(y.is_inside, {2, 3}), d.Unsqueeze(x.is_inside, {1, 3})});
  result =
      d.Apply("Where", {is_inside, result, d.Scalar(d.Float("extrapolation_value"), d.Type(0))});
  d.Return(0, d.Transpose(result, {0, 3, 1, 2}));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(CropAndResize(X: T1, rois: T1, batch_indices: int32, crop_size: int32) -> (Y: T1)
        extrapolation_value: float = 0
        mode: string = bilinear
        T1 = float16 | float | double)",
     Define},
};

}  // namespace

std::span<const model::DomainOperator> CropAndResizeOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
