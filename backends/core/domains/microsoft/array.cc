// SPDX-License-Identifier: Apache-2.0
//
// Operators that ONNX has under the same or another name: this domain had them first.

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// Pairs of real and imaginary parts along the last axis; with `is_conjugate`, A * conj(B).
Status DefineComplexProduct(Definition& d, bool is_conjugate) {
  for (int input = 0; input < 2; ++input) {
    const std::optional<int64_t> pair = d.Extent(input, -1);
    if (pair && *pair != 2) {
      return d.Invalid("Input " + std::to_string(input) + " has a last axis of " +
                       std::to_string(*pair) + " elements instead of 2.");
    }
  }
  const std::vector<Value> a = d.Split(d.In(0), -1, {1, 1});
  std::vector<Value> b = d.Split(d.In(1), -1, {1, 1});
  if (is_conjugate) b[1] = d.Apply("Neg", {b[1]});
  const Value real = d.Sub(d.Mul(a[0], b[0]), d.Mul(a[1], b[1]));
  const Value imaginary = d.Add(d.Mul(a[0], b[1]), d.Mul(a[1], b[0]));
  d.Return(0, d.Concat({real, imaginary}, -1));
  return base::Ok();
}

Status DefineComplexMul(Definition& d) { return DefineComplexProduct(d, /*is_conjugate=*/false); }
Status DefineComplexMulConj(Definition& d) {
  return DefineComplexProduct(d, /*is_conjugate=*/true);
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

// ONNX has names of its own for the modes.
Status DefineGridSample(Definition& d) {
  const std::string mode = d.String("mode");
  if (mode != "bilinear" && mode != "nearest" && mode != "bicubic") {
    return d.Invalid("Attribute mode is '" + mode + "'; there are bicubic, bilinear and nearest.");
  }
  const std::string name = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  d.Return(0, d.Apply("GridSample", {d.In(0), d.In(1)},
                      {{"mode", name},
                       {"padding_mode", d.String("padding_mode")},
                       {"align_corners", d.Int("align_corners")}}));
  return base::Ok();
}

Status DefineIsAllFinite(Definition& d) {
  const bool is_nan_only = d.Int("isnan_only") != 0, is_inf_only = d.Int("isinf_only") != 0;
  if (is_nan_only && is_inf_only) {
    return d.Invalid("Attributes isnan_only and isinf_only are both set.");
  }
  Value is_any = d.Cast(d.Int0D(0), ElementType::kBool);
  for (int input = 0; input < d.input_count(); ++input) {
    std::vector<Value> kinds;
    if (!is_inf_only) kinds.push_back(d.Apply("IsNaN", {d.In(input)}));
    if (!is_nan_only) kinds.push_back(d.Apply("IsInf", {d.In(input)}));
    for (const Value& is_so : kinds) {
      const Value count =
          d.Apply("ReduceSum", {d.Cast(is_so, ElementType::kInt64)}, {{"keepdims", int64_t{0}}});
      is_any = d.Apply("Or", {is_any, d.Cast(count, ElementType::kBool)});
    }
  }
  d.Return(0, d.Apply("Not", {is_any}));
  return base::Ok();
}

// A token that would complete a sequence of ngram_size tokens which is there already has a score of
// minus infinity.
Status DefineNGramRepeatBlock(Definition& d) {
  const int64_t size = d.Int("ngram_size");
  if (size < 1) {
    return d.Invalid("Attribute ngram_size is " + std::to_string(size) + ", below 1.");
  }
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 2));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(1, 2));
  const Value zero = d.Ints1D({0});
  // As many sequences as there are, which may be none.
  const Value count = d.Apply("Max", {d.Sub(d.ExtentOf(d.In(0), 1), d.Ints1D({size - 1})), zero});
  const Value last = d.Slice(d.In(0), 1, count, d.ExtentOf(d.In(0), 1));
  const auto tokens_at = [&](int64_t offset) {
    const Value start = d.Ints1D({offset});
    return d.Slice(d.In(0), 1, start, d.Add(start, count));
  };
  const Value candidates = tokens_at(size - 1);
  Value is_repeated = d.Apply("Equal", {candidates, candidates});
  for (int64_t offset = 0; offset < size - 1; ++offset) {
    // Of no sequence there is no last one.
    const Value one = d.Apply("Expand", {d.Slice(last, 1, offset, offset + 1), d.Ints1D({1, 1})});
    is_repeated = d.Apply("And", {is_repeated, d.Apply("Equal", {tokens_at(offset), one})});
  }
  const ElementType type = d.Type(1);
  const Value never = d.Scalar(-std::numeric_limits<float>::infinity(), type);
  const Value kept = d.Scalar(std::numeric_limits<float>::infinity(), type);
  d.Return(0, d.Apply("ScatterElements",
                      {d.In(1), candidates, d.Apply("Where", {is_repeated, never, kept})},
                      {{"axis", int64_t{1}}, {"reduction", "min"}}));
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

Status DefineSampleOp(Definition& d) {
  d.Return(0, d.In(0));
  return base::Ok();
}

Status DefineTorchEmbedding(Definition& d) {
  d.Return(0, d.Apply("Gather", {d.In(0), d.In(1)}));
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

// All windows of an axis, each as a new last axis.
Status DefineUnfoldTensor(Definition& d) {
  const std::optional<int> rank = d.Rank(0);
  if (!rank) return d.UnsupportedShape("Input 0 has a number of axes that is not known.");
  const int64_t axis = d.Int("dim") < 0 ? d.Int("dim") + *rank : d.Int("dim");
  if (axis < 0 || axis >= *rank) {
    return d.Invalid("Attribute dim is " + std::to_string(d.Int("dim")) +
                     ", no axis of input 0, which has " + std::to_string(*rank) + ".");
  }
  const int64_t size = d.Int("size"), step = d.Int("step");
  if (size < 1 || step < 1) {
    return d.Invalid("Attributes size (" + std::to_string(size) + ") and step (" +
                     std::to_string(step) + ") are not both at least 1.");
  }
  const std::optional<int64_t> extent = d.Extent(0, static_cast<int>(axis));
  if (extent && *extent < size) {
    return d.Invalid("Attribute size (" + std::to_string(size) + ") exceeds axis " +
                     std::to_string(axis) + " of input 0 (" + std::to_string(*extent) + ").");
  }
  const Value end = d.Sub(d.Squeeze(d.ExtentOf(d.In(0), axis), {0}), d.Int0D(size - 1));
  const Value starts = d.Apply("Range", {d.Int0D(0), end, d.Int0D(step)});
  const Value offsets = d.Apply("Range", {d.Int0D(0), d.Int0D(size), d.Int0D(1)});
  const Value windows =
      d.Apply("Gather", {d.In(0), d.Add(d.Unsqueeze(starts, {1}), offsets)}, {{"axis", axis}});
  std::vector<int64_t> order;
  for (int64_t k = 0; k <= *rank; ++k) {
    if (k != axis + 1) order.push_back(k);
  }
  order.push_back(axis + 1);
  d.Return(0, d.Transpose(windows, std::move(order)));
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
    {R"(ComplexMul(A: T, B: T) -> (C: T)
        T = float | double | float16)",
     DefineComplexMul},
    {R"(ComplexMulConj(A: T, B: T) -> (C: T)
        T = float | double | float16)",
     DefineComplexMulConj},
    {R"(ExpandDims(X: T, axis: int32) -> (Y: T)
        T = uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float16 | float | double | string | bool | complex64 | complex128)",
     DefineExpandDims},
    {R"(GatherND(data: T, indices: Tind) -> (output: T)
        T = uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float16 | float | double | string | bool | complex64 | complex128
        Tind = int32 | int64)",
     DefineGatherND},
    {R"(GridSample(X: T1, Grid: T1) -> (Y: T2)
        align_corners: int = 0
        mode: string = bilinear
        padding_mode: string = zeros
        T1 = uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float16 | float | double | string | bool | complex64 | complex128
        T2 = float16 | float | double)",
     DefineGridSample},
    {R"(IsAllFinite(input*: V) -> (output: T)
        isinf_only: int = 0
        isnan_only: int = 0
        V = float16 | float | double | bfloat16
        T = bool)",
     DefineIsAllFinite},
    {R"(NGramRepeatBlock(input_ids: Tid, scores: T) -> (scores_out: T)
        ngram_size: int required
        Tid = int64
        T = float)",
     DefineNGramRepeatBlock},
    {R"(Pad(data: T, pads: int64, value?: T) -> (output: T)
        mode: string = constant
        T = float16 | float | double)",
     DefinePad},
    {R"(Range(start: T, limit: T, delta?: T) -> (Y: T)
        T = float | double | int16 | int32 | int64)",
     DefineRange},
    {R"(SampleOp(X: T) -> (Y: T)
        T = uint32 | uint64 | int32 | int64 | float16 | float | double)",
     DefineSampleOp},
    {R"(TorchEmbedding(weight: T, indices: int64, padding_idx?: int64, scale_grad_by_freq?: bool)
            -> (Y: T)
        T = float16 | float | double | bfloat16 | uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64)",
     DefineTorchEmbedding},
    {R"(Trilu(X: T, k?: int64) -> (Y: T)
        upper: int = 1
        T = float16 | float | double | bfloat16 | uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | bool)",
     DefineTrilu},
    {R"(UnfoldTensor(input: T) -> (output: T)
        dim: int = -1
        size: int required
        step: int = 1
        T = uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | bfloat16 | float16 | float | double | string | bool | complex64 | complex128)",
     DefineUnfoldTensor},
    {R"(Unique(x: T) -> (y: T, idx: int64, counts: int64)
        T = uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float16 | float | double | string | bool | complex64 | complex128)",
     DefineUnique},
};

}  // namespace

std::span<const model::DomainOperator> ArrayOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
