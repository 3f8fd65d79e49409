// SPDX-License-Identifier: Apache-2.0
//
// Weights in blocks, each with a scale and a zero point of its own:
//   weight = (quantized - zero_point) * scale

#include <utility>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/quantization.h"
#include "backends/core/graph/own_attributes.h"

namespace onnxifi::microsoft {
namespace {

// Of attribute accuracy_level: that of int8.
constexpr int64_t kAccuracyOfBytes = 4;

Status CheckBits(const Definition& d, int64_t bits) {
  if (bits == 2 || bits == 4 || bits == 8) return base::Ok();
  return d.Unsupported("Attribute bits is " + std::to_string(bits) + "; weights have 2, 4 or 8.");
}

// INVALID_MODEL where an input with known extents has another number of elements than the columns
// take.
Status CheckCount(const Definition& d, int input, const std::string& name, int64_t columns,
                  int64_t of_column) {
  int64_t count = 1, required = 0;
  if (!d.Has(input) || !d.Rank(input) || __builtin_mul_overflow(columns, of_column, &required)) {
    return base::Ok();
  }
  for (int axis = 0; axis < *d.Rank(input); ++axis) {
    const std::optional<int64_t> extent = d.Extent(input, axis);
    if (!extent || __builtin_mul_overflow(count, *extent, &count)) return base::Ok();
  }
  if (count == required) return base::Ok();
  return d.Invalid("Input " + std::to_string(input) + " (" + name + ") has " +
                   std::to_string(count) + " elements; the blocks of " + std::to_string(columns) +
                   " columns take " + std::to_string(required) + ".");
}

// Zero points [rows, blocks] in uint8: packed by rows, or where none are given the middle of the
// range.
Value ZeroPoints(Definition& d, int input, int64_t bits, int64_t rows, int64_t blocks) {
  if (!d.Has(input)) {
    const Value middle =
        d.Scalar(static_cast<double>(int64_t{1} << (bits - 1)), ElementType::kUint8);
    return d.Apply("Expand", {middle, d.Ints1D({rows, blocks})});
  }
  const int64_t row_bytes = (blocks * bits + 7) / 8;
  return d.Slice(Unpack(d, d.Reshape(d.In(input), {rows, row_bytes}), bits), 1, 0, blocks);
}

// The first `depth` elements of each row; the last block may have more.
Value FirstOf(Definition& d, const Value& rows, int64_t depth) {
  return d.Slice(rows, 1, 0, depth);
}

// A [..., K] by B, the weights of N columns:
//   B [N, blocks, block_size * bits / 8], scales [N * blocks], zero_points [N * ceil(blocks * bits
//   / 8)]
// g_idx[k] is the block of row k in place of k / block_size.
Status DefineMatMulNBits(Definition& d) {
  const int64_t bits = d.Int("bits"), block = d.Int("block_size");
  const int64_t depth = d.Int("K"), columns = d.Int("N");
  ONNXIFI_RETURN_IF_ERROR(CheckBits(d, bits));
  if (depth < 1 || columns < 1 || block < 1 || block * bits % 8 != 0) {
    return d.Invalid("Attributes K (" + std::to_string(depth) + "), N (" + std::to_string(columns) +
                     ") and block_size (" + std::to_string(block) +
                     ") are no extents of blocks of whole bytes.");
  }
  if (d.Int("weight_prepacked") != 0) {
    return d.Unsupported("Attribute weight_prepacked is " +
                         std::to_string(d.Int("weight_prepacked")) +
                         "; weights are in the order of the standard (0).");
  }
  const int64_t blocks = (depth + block - 1) / block;
  const bool has_float_zero_points = d.Has(3) && d.Type(3) != ElementType::kUint8;
  // Those of a column begin with a byte.
  const int64_t column_bytes = (blocks * bits + 7) / 8;
  ONNXIFI_RETURN_IF_ERROR(CheckCount(d, 1, "B", columns, blocks * block * bits / 8));
  ONNXIFI_RETURN_IF_ERROR(CheckCount(d, 2, "scales", columns, blocks));
  ONNXIFI_RETURN_IF_ERROR(
      CheckCount(d, 3, "zero_points", columns, has_float_zero_points ? blocks : column_bytes));
  const ElementType type = d.Type(0);
  // Weights of narrow floats are not rounded before the product.
  const ElementType wide = type == ElementType::kFloat16 || type == ElementType::kBfloat16
                               ? ElementType::kFloat32
                               : type;
  // [N, K], and by block [N, blocks].
  const Value bytes = d.Reshape(d.In(1), {columns, blocks * block * bits / 8});
  const Value numbers = Unpack(d, bytes, bits);
  const Value scales = d.Cast(d.Reshape(d.In(2), {columns, blocks}), wide);
  const Value zero_points = has_float_zero_points ? d.Reshape(d.In(3), {columns, blocks})
                                                  : ZeroPoints(d, 3, bits, columns, blocks);
  Value weights;
  if (d.Has(4)) {
    const Value groups = d.Slice(d.In(4), 0, 0, depth);
    const auto of_rows = [&](const Value& of_blocks) {
      return d.Apply("Gather", {of_blocks, groups}, {{"axis", int64_t{1}}});
    };
    weights =
        d.Mul(d.Sub(d.Cast(FirstOf(d, numbers, depth), wide), of_rows(d.Cast(zero_points, wide))),
              of_rows(scales));
  } else if (has_float_zero_points) {
    const Value in_blocks = d.Cast(d.Reshape(numbers, {columns, blocks, block}), wide);
    const auto of_blocks = [&](const Value& value) { return d.Unsqueeze(value, {-1}); };
    weights = d.Mul(d.Sub(in_blocks, of_blocks(d.Cast(zero_points, wide))), of_blocks(scales));
    weights = FirstOf(d, d.Reshape(weights, {columns, blocks * block}), depth);
  } else {
    weights = d.Apply("DequantizeLinear", {FirstOf(d, numbers, depth), scales, zero_points},
                      {{"axis", int64_t{1}}, {"block_size", block}});
  }
  const Value a = wide == type ? d.In(0) : d.Cast(d.In(0), wide);
  // accuracy_level 4: A may be quantized in blocks like B's.
  const bool may_round = d.Int("accuracy_level") == kAccuracyOfBytes && !d.Has(4);
  Definition::Attributes attributes;
  if (may_round) attributes.emplace_back(graph::kMayRoundToBytes, int64_t{1});
  Value result = d.Apply("MatMul", {a, d.Transpose(weights, {1, 0})}, std::move(attributes));
  if (d.Has(5)) result = d.Add(result, wide == type ? d.In(5) : d.Cast(d.In(5), wide));
  d.Return(0, wide == type ? result : d.Cast(result, type));
  return base::Ok();
}

// The numbers that four bits stand for, by attribute quant_type: floats of 4 bits (0), and the
// quantiles of a normal distribution (1).
std::vector<float> TableOf(int64_t quant_type) {
  if (quant_type == 1) {
    return {-1.0F,         -0.69619280F, -0.52507305F, -0.39491749F, -0.28444138F, -0.18477343F,
            -0.091050036F, 0.0F,         0.079580300F, 0.16093020F,  0.24611230F,  0.33791524F,
            0.44070983F,   0.56261700F,  0.72295684F,  1.0F};
  }
  const std::vector<float> sizes = {0.0F,        0.0052083333F, 0.66666667F, 1.0F,
                                    0.33333333F, 0.5F,          0.16666667F, 0.25F};
  std::vector<float> table = sizes;
  for (const float size : sizes) table.push_back(-size);
  return table;
}

// A by B, the weights [N, K] of 4 bits in blocks of their flat order, the first of two in the high
// bits; absmax is the scale of a block.
Status DefineMatMulBnb4(Definition& d) {
  const int64_t depth = d.Int("K"), columns = d.Int("N"), block = d.Int("block_size");
  if (depth < 1 || columns < 1 || block < 2 || depth * columns % block != 0) {
    return d.Invalid("Attributes K (" + std::to_string(depth) + ") and N (" +
                     std::to_string(columns) + ") are no weights of whole blocks of " +
                     std::to_string(block) + ".");
  }
  if (d.Int("quant_type") != 0 && d.Int("quant_type") != 1) {
    return d.Invalid("Attribute quant_type is " + std::to_string(d.Int("quant_type")) +
                     "; there are 0 and 1.");
  }
  const ElementType type = d.Type(0);
  const ElementType wide = type == ElementType::kFloat16 || type == ElementType::kBfloat16
                               ? ElementType::kFloat32
                               : type;
  const Value pairs = d.Reshape(Unpack(d, d.Reshape(d.In(1), {-1}), 4), {-1, 2});
  const std::vector<Value> halves = d.Split(pairs, 1, {1, 1});
  const Value codes = d.Reshape(d.Concat({halves[1], halves[0]}, 1), {-1, block});
  const Value table = d.Apply("Constant", {}, {{"value_floats", TableOf(d.Int("quant_type"))}});
  const Value numbers =
      d.Apply("Gather", {d.Cast(table, wide), d.Cast(codes, ElementType::kInt32)});
  const Value scales = d.Cast(d.Reshape(d.In(2), {-1, 1}), wide);
  Value weights = d.Reshape(d.Mul(numbers, scales), {columns, depth});
  if (d.Int("transB") != 0) weights = d.Transpose(weights, {1, 0});
  const Value result = d.MatMul(wide == type ? d.In(0) : d.Cast(d.In(0), wide), weights);
  d.Return(0, wide == type ? result : d.Cast(result, type));
  return base::Ok();
}

// The product of A [..., K] and weights [N, K] in blocks of floats with few bits, plus the bias,
// which is input `bias`: sums in float32.
Value MultiplyWide(Definition& d, const Value& a, const Value& weights, int bias) {
  const ElementType wide = ElementType::kFloat32;
  Value result = d.MatMul(d.Cast(a, wide), d.Transpose(weights, {1, 0}));
  if (d.Has(bias)) result = d.Add(result, d.Cast(d.In(bias), wide));
  return d.Cast(result, d.Type(0));
}

Result<int64_t> ReadBlockSize(const Definition& d) {
  const int64_t block = d.Int("block_size");
  if (block >= 1) return block;
  return d.Invalid("Attribute block_size is " + std::to_string(block) + ", below 1.");
}

// A by B [N, K] of floats of 8 bits, b_scale [N, ceil(K / block_size)]. With a_scale A is rounded
// to floats of 8 bits, too.
Status DefineFloat8(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t block, ReadBlockSize(d));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(1, 2));
  const Value weights = d.Apply("DequantizeLinear", {d.In(1), d.In(2)},
                                {{"axis", int64_t{1}}, {"block_size", block}});
  Value a = d.Cast(d.In(0), ElementType::kFloat32);
  if (d.Has(3)) {
    ONNXIFI_ASSIGN_OR_RETURN(const Value scale, ScalarInput(d, 3));
    a = d.Apply("QuantizeLinear", {a, scale}, {{"output_dtype", static_cast<int64_t>(d.Type(1))}});
    a = d.Apply("DequantizeLinear", {a, scale});
  }
  d.Return(0, MultiplyWide(d, a, weights, 4));
  return base::Ok();
}

// A by B, floats of 4 bits, two in a byte [N, K / 2], the first in the low bits; weight_scale
// [N, ceil(K / block_size)] has the bits of floats of 8 bits, and weight_scale_2 is a factor of
// all. Input 4 (input_scale) is of a product that rounds A, too.
Status DefineFloat4(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t block, ReadBlockSize(d));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(1, 2));
  ONNXIFI_ASSIGN_OR_RETURN(const Value factor, ScalarInput(d, 3));
  std::vector<float> sizes = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6}, table = sizes;
  for (const float size : sizes) table.push_back(-size);
  const Value numbers = d.Apply("Gather", {d.Apply("Constant", {}, {{"value_floats", table}}),
                                           d.Cast(Unpack(d, d.In(1), 4), ElementType::kInt32)});
  const Value bits =
      d.Apply("BitCast", {d.In(2)}, {{"to", static_cast<int64_t>(ElementType::kFloat8E4M3Fn)}});
  const Value scales = d.Mul(d.Cast(bits, ElementType::kFloat32), factor);
  const Value weights =
      d.Apply("DequantizeLinear", {d.Cast(numbers, ElementType::kFloat4E2M1), scales},
              {{"axis", int64_t{1}}, {"block_size", block}});
  d.Return(0, MultiplyWide(d, d.In(0), weights, 5));
  return base::Ok();
}

// Rows of a table whose elements are quantized in blocks of axis `quantize_axis`. Bytes hold
// elements of `bits` bits along the last axis.
Status DefineGather(Definition& d) {
  const std::optional<int> rank = d.Rank(0), of_indices = d.Rank(1);
  if (!rank || !of_indices) {
    return d.UnsupportedShape("Inputs 0 and 1 have not a number of axes that is known.");
  }
  const auto axis_of = [&](const char* name) {
    return d.Int(name) < 0 ? d.Int(name) + *rank : d.Int(name);
  };
  int64_t gathered = axis_of("gather_axis"), quantized = axis_of("quantize_axis");
  if (gathered < 0 || gathered >= *rank || quantized < 0 || quantized >= *rank) {
    return d.Invalid("Attributes gather_axis (" + std::to_string(d.Int("gather_axis")) +
                     ") and quantize_axis (" + std::to_string(d.Int("quantize_axis")) +
                     ") are no axes of input 0, which has " + std::to_string(*rank) + ".");
  }
  const ElementType type = d.Type(0);
  if (tensor::IsFloat(type)) {
    return d.Unsupported("Input 0 is " + std::string(tensor::Name(type)) +
                         "; tables are of integers.");
  }
  const bool is_packed = type == ElementType::kUint8;
  const int64_t bits = d.Int("bits");
  if (is_packed) {
    ONNXIFI_RETURN_IF_ERROR(CheckBits(d, bits));
  }
  if (is_packed && gathered == quantized) {
    return d.Invalid("Attributes gather_axis and quantize_axis are both " +
                     std::to_string(gathered) + ", which bytes do not allow.");
  }
  Value data = d.In(0), scales = d.In(2);
  Value zero_points = d.Has(3) ? d.In(3) : Value();
  const auto gather = [&](const Value& from) {
    return d.Apply("Gather", {from, d.In(1)}, {{"axis", gathered}});
  };
  const bool comes_first = gathered != quantized;
  if (comes_first) {
    data = gather(data);
    scales = gather(scales);
    if (!zero_points.empty()) zero_points = gather(zero_points);
    if (quantized > gathered) quantized += *of_indices - 1;
  }
  if (is_packed && bits != 8) {
    data = Unpack(d, data, bits);
    if (!zero_points.empty()) {
      zero_points =
          d.Slice(Unpack(d, zero_points, bits), -1, d.Ints1D({0}), d.ExtentOf(scales, -1));
    }
  }
  if (is_packed && zero_points.empty()) {
    zero_points = d.Apply("Expand", {d.Scalar(static_cast<double>(1 << (bits - 1)), type),
                                     d.Apply("Shape", {scales})});
  }
  std::vector<Value> inputs = {data, scales};
  if (!zero_points.empty()) inputs.push_back(zero_points);
  const Value wide = d.Apply("DequantizeLinear", std::move(inputs),
                             {{"axis", quantized}, {"block_size", d.Int("block_size")}});
  d.Return(0, comes_first ? wide : gather(wide));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(GatherBlockQuantized(data: T1, indices: Tind, scales: T2, zero_points?: T1) -> (output: T2)
        bits: int = 4
        block_size: int = 128
        gather_axis: int = 0
        quantize_axis: int = 1
        T1 = int4 | uint4 | uint8 | float8e4m3fn | float8e4m3fnuz | float8e5m2 | float8e5m2fnuz | float4e2m1
        T2 = float | float16 | bfloat16
        Tind = int32 | int64)",
     DefineGather},
    {R"(MatMulBlockQuantizedFp4Weight(A: T, B: uint8, weight_scale: uint8, weight_scale_2: float,
                                      input_scale?: float, bias?: T) -> (Y: T)
        block_size: int = 16
        T = float16 | bfloat16)",
     DefineFloat4},
    {R"(MatMulBlockQuantizedFp8Weight(A: T, B: float8e4m3fn, b_scale: float, a_scale?: float,
                                      bias?: T) -> (Y: T)
        block_size: int = 128
        T = float16 | bfloat16)",
     DefineFloat8},
    {R"(MatMulBnb4(A: T1, B: uint8, absmax: T1) -> (Y: T1)
        K: int required
        N: int required
        block_size: int required
        quant_type: int required
        training_mode: int = 0
        transB: int = 1
        T1 = float | float16 | bfloat16)",
     DefineMatMulBnb4},
    {R"(MatMulNBits(A: T1, B: uint8, scales: T1, zero_points?: T3, g_idx?: int32, bias?: T1)
            -> (Y: T1)
        K: int required
        N: int required
        accuracy_level: int = 0
        bits: int = 4
        block_size: int required
        weight_prepacked: int = 0
        T1 = float | float16 | bfloat16
        T3 = uint8 | float16 | float | bfloat16)",
     DefineMatMulNBits},
};

}  // namespace

std::span<const model::DomainOperator> BlockQuantizedOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
