// SPDX-License-Identifier: Apache-2.0
//
// Operators that ONNX has under the same or another name: this domain had them first.

#include <utility>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/quantization.h"

namespace onnxifi::microsoft {
namespace {

// The distance of each row of A to each of B.
Status DefineCDist(Definition& d) {
  const std::string metric = d.String("metric");
  if (metric != "sqeuclidean" && metric != "euclidean") {
    return d.Invalid("Attribute metric is '" + metric +
                     "'; there are 'euclidean' and 'sqeuclidean'.");
  }
  const Value difference = d.Sub(d.Unsqueeze(d.In(0), {1}), d.Unsqueeze(d.In(1), {0}));
  const Value squares =
      d.Apply("ReduceSumSquare", {difference, d.Ints1D({2})}, {{"keepdims", int64_t{0}}});
  d.Return(0, metric == "euclidean" ? d.Apply("Sqrt", {squares}) : squares);
  return base::Ok();
}

Status DefineExpandDims(Definition& d) {
  const Value axes = d.Reshape(d.Cast(d.In(1), ElementType::kInt64), {1});
  d.Return(0, d.Apply("Unsqueeze", {d.In(0), axes}));
  return base::Ok();
}

Status DefineGatherND(Definition& d) {
  d.Return(0, d.Apply("GatherND", {d.In(0), d.Cast(d.In(1), ElementType::kInt64)}));
  return base::Ok();
}

Status DefinePad(Definition& d) {
  std::vector<Value> inputs = {d.In(0), d.Reshape(d.In(1), {-1})};
  if (d.Has(2)) {
    ONNXIFI_ASSIGN_OR_RETURN(inputs.emplace_back(), ScalarInput(d, 2));
  }
  d.Return(0, d.Apply("Pad", std::move(inputs), {{"mode", d.String("mode")}}));
  return base::Ok();
}

Status DefineRange(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(const Value start, ScalarInput(d, 0));
  ONNXIFI_ASSIGN_OR_RETURN(const Value limit, ScalarInput(d, 1));
  Value delta;
  if (d.Has(2)) {
    ONNXIFI_ASSIGN_OR_RETURN(delta, ScalarInput(d, 2));
  } else {
    delta = d.Scalar(1, d.Type(0));
  }
  d.Return(0, d.Apply("Range", {start, limit, delta}));
  return base::Ok();
}

Status DefineTrilu(Definition& d) {
  std::vector<Value> inputs = {d.In(0)};
  if (d.Has(1)) {
    ONNXIFI_ASSIGN_OR_RETURN(inputs.emplace_back(), ScalarInput(d, 1));
  }
  d.Return(0, d.Apply("Trilu", std::move(inputs), {{"upper", d.Int("upper")}}));
  return base::Ok();
}

// In the order in which elements first come.
Status DefineUnique(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 1));
  const std::vector<Value> found = d.ApplyAll("Unique", {d.In(0)}, 4, {{"sorted", int64_t{0}}});
  d.Return(0, found[0]);
  d.Return(1, found[2]);
  d.Return(2, found[3]);
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(CDist(A: T, B: T) -> (C: T)
        metric: string = sqeuclidean
        T = float | double)",
     DefineCDist},
    {R"(ExpandDims(X: T, axis: int32) -> (Y: T)
        T = uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float16 | float | double | string | bool | complex64 | complex128)",
     DefineExpandDims},
    {R"(GatherND(data: T, indices: Tind) -> (output: T)
        T = uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float16 | float | double | string | bool | complex64 | complex128
        Tind = int32 | int64)",
     DefineGatherND},
    {R"(Pad(data: T, pads: int64, value?: T) -> (output: T)
        mode: string = constant
        T = float16 | float | double)",
     DefinePad},
    {R"(Range(start: T, limit: T, delta?: T) -> (Y: T)
        T = float | double | int16 | int32 | int64)",
     DefineRange},
    {R"(Trilu(X: T, k?: int64) -> (Y: T)
        upper: int = 1
        T = float16 | float | double | bfloat16 | uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | bool)",
     DefineTrilu},
    {R"(Unique(x: T) -> (y: T, idx: int64, counts: int64)
        T = uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float16 | float | double | string | bool | complex64 | complex128)",
     DefineUnique},
};

}  // namespace

std::span<const model::DomainOperator> ArrayOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
