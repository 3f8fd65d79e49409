// SPDX-License-Identifier: Apache-2.0
//
// Granularity of scales and zero points: per tensor, per axis (since opset 13), per block (since
// opset 21).

#include "backends/core/ops/elementwise/quantization.h"

namespace onnxifi::ops {
namespace {

bool HoldsOneElement(const Operand& operand) { return tensor::Product(operand.shape) == Dim(1); }

// A vector along `axis` of the domain; one of length 1, which may be known only while the program
// runs, serves the whole axis.
Result<Expr> ReadPerIndex(Lowering& lowering, StepBuilder& map, int input, int axis) {
  Operand vector = lowering.In(input);
  const Dim length = vector.shape[0];
  const Dim extent = map.domain()[axis];
  ONNXIFI_RETURN_IF_ERROR(
      lowering.Require(Max(Equal(length, extent), Equal(length, Dim(1))), Code::kMismatchingShape,
                       "Length " + length.ToString() + " of input " + std::to_string(input) +
                           " is neither 1 nor the extent " + extent.ToString() + " of axis " +
                           std::to_string(axis) + " of the data.",
                       {length, extent}));
  const int rank = static_cast<int>(map.domain().size());
  while (vector.rank() < rank - axis) vector = program::InsertAxis(vector, vector.rank());
  return map.ReadArithmetic(vector);
}

// The domain's shape, except that `axis` counts blocks.
Result<Expr> ReadPerBlock(Lowering& lowering, StepBuilder& map, int input, int axis) {
  const Operand& blocks = lowering.In(input);
  const int64_t block_size = lowering.Int("block_size", 0);
  if (block_size <= 0) {
    return lowering.InvalidModel("Block size (" + std::to_string(block_size) +
                                 ") is not positive, but input " + std::to_string(input) + " has " +
                                 std::to_string(blocks.rank()) + " axes.");
  }
  std::vector<Expr> coordinates;
  for (int k = 0; k < blocks.rank(); ++k) {
    const Dim expected = k == axis ? CeilDiv(map.domain()[k], Dim(block_size)) : map.domain()[k];
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(blocks.shape[k], expected,
                                                  "Extent of axis " + std::to_string(k) +
                                                      " of input " + std::to_string(input) +
                                                      " and the number of its granules"));
    Expr coordinate = map.Coordinate(k);
    if (k == axis) {
      coordinate = coordinate / IntConstant(map.exprs(), ElementType::kInt64, block_size);
    }
    coordinates.push_back(coordinate);
  }
  return Cast(map.ReadAtUnchecked(blocks, coordinates), tensor::ArithmeticType(blocks.type()));
}

}  // namespace

Result<Expr> ReadPerGranule(Lowering& lowering, StepBuilder& map, int input) {
  Operand granules = lowering.In(input);
  const int rank = static_cast<int>(map.domain().size());
  if (granules.rank() <= 1 && HoldsOneElement(granules)) {
    if (granules.rank() == 1) granules = program::RemoveAxis(granules, 0);
    return map.ReadArithmetic(granules);
  }
  if (granules.rank() == 0 || rank == 0 || (granules.rank() > 1 && granules.rank() != rank)) {
    return Status(Code::kMismatchingShape,
                  lowering.node().op_type + ": Input " + std::to_string(input) + " of shape " +
                      tensor::ToString(granules.shape) + " fits no granularity of data of shape " +
                      tensor::ToString(map.domain()) + ".");
  }
  // A vector of data has one axis, whatever the attribute's default says.
  ONNXIFI_ASSIGN_OR_RETURN(
      int axis, rank == 1 ? Result<int>(0) : lowering.Axis(lowering.Int("axis", 1), rank));
  if (lowering.Int("block_size", 0) == 0 && granules.rank() == 1) {
    return ReadPerIndex(lowering, map, input, axis);
  }
  return ReadPerBlock(lowering, map, input, axis);
}

Result<ElementType> TypeAttribute(const Lowering& lowering, std::string_view name,
                                  ElementType otherwise) {
  const int64_t number = lowering.Int(name, 0);
  if (number == 0) return otherwise;
  if (std::optional<ElementType> type = tensor::ElementTypeFromOnnx(number)) return *type;
  return lowering.InvalidModel("Attribute " + std::string(name) + " (" + std::to_string(number) +
                               ") is not the number of an element type.");
}

}  // namespace onnxifi::ops
