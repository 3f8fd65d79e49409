// SPDX-License-Identifier: Apache-2.0
//
// Transpose, DepthToSpace, SpaceToDepth: permutations of axes, the latter two between a split and a
// merge of axes.

#include <numeric>

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status LowerTranspose(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& data = lowering.In(0);
  std::vector<int64_t> perm(data.rank());
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (const std::vector<int64_t>* given = lowering.Ints("perm")) perm = *given;
  if (static_cast<int>(perm.size()) != data.rank()) {
    return lowering.InvalidModel("perm has " + std::to_string(perm.size()) +
                                 " axes and the input " + std::to_string(data.rank()) + ".");
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<int> axes, lowering.Axes(perm, data.rank()));

  lowering.Set(0, program::Permute(data, axes));
  return base::Ok();
}

// The block size of an input that must have four axes.
Result<Dim> BlockSize(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  if (lowering.In(0).rank() != 4) {
    return lowering.InvalidModel("The input has " + std::to_string(lowering.In(0).rank()) +
                                 " axes instead of 4.");
  }
  const int64_t block = lowering.Int("blocksize", 0);
  if (block < 1) {
    return lowering.InvalidModel("blocksize (" + std::to_string(block) + ") is less than 1.");
  }
  return Dim(block);
}

Result<bool> IsDepthFirst(Lowering& lowering) {
  const std::string mode = lowering.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    return lowering.UnsupportedAttribute("mode '" + mode + "' is neither DCR nor CRD.");
  }
  return mode == "DCR";
}

Status RequireMultiple(Lowering& lowering, Dim extent, Dim divisor, std::string_view what) {
  return lowering.Require(Equal(Mod(extent, divisor), 0), Code::kMismatchingShape,
                          std::string(what) + " (" + extent.ToString() + ") is not a multiple of " +
                              divisor.ToString() + ".",
                          {extent});
}

Status LowerDepthToSpace(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Dim block, BlockSize(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const bool is_depth_first, IsDepthFirst(lowering));
  const Operand& input = lowering.In(0);
  const Shape& in = input.shape;
  ONNXIFI_RETURN_IF_ERROR(RequireMultiple(lowering, in[1], block * block, "The channel count"));

  const Dim depth = FloorDiv(in[1], block * block);
  const Operand split =
      lowering.Reshaped(input, is_depth_first ? Shape{in[0], block, block, depth, in[2], in[3]}
                                              : Shape{in[0], depth, block, block, in[2], in[3]});
  const Operand moved =
      program::Permute(split, is_depth_first ? std::vector<int>{0, 3, 4, 1, 5, 2}
                                             : std::vector<int>{0, 1, 4, 2, 5, 3});
  lowering.Set(0, lowering.Reshaped(moved, {in[0], depth, in[2] * block, in[3] * block}));
  return base::Ok();
}

Status LowerSpaceToDepth(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Dim block, BlockSize(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const bool is_depth_first, IsDepthFirst(lowering));
  const Operand& input = lowering.In(0);
  const Shape& in = input.shape;
  ONNXIFI_RETURN_IF_ERROR(RequireMultiple(lowering, in[2], block, "The height"));
  ONNXIFI_RETURN_IF_ERROR(RequireMultiple(lowering, in[3], block, "The width"));

  const Dim height = FloorDiv(in[2], block);
  const Dim width = FloorDiv(in[3], block);
  const Operand split = lowering.Reshaped(input, {in[0], in[1], height, block, width, block});
  const Operand moved =
      program::Permute(split, is_depth_first ? std::vector<int>{0, 3, 5, 1, 2, 4}
                                             : std::vector<int>{0, 1, 3, 5, 2, 4});
  lowering.Set(0, lowering.Reshaped(moved, {in[0], in[1] * (block * block), height, width}));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Transpose", 25, LowerTranspose, "", InputKinds::kStrings},
    {"DepthToSpace", 28, LowerDepthToSpace, "", InputKinds::kStrings},
    {"SpaceToDepth", 28, LowerSpaceToDepth, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> TransposeOperators() { return kOperators; }

}  // namespace onnxifi::ops
