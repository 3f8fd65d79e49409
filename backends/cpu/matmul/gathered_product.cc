// SPDX-License-Identifier: Apache-2.0
//
// GatheredProduct: takes the prologue apart, and packs the matrices when a step is first bound.

#include "backends/cpu/matmul/gathered_product.h"

#include <span>
#include <string>
#include <utility>

#include "backends/core/program/entry_positions.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/matmul/gathered_product_kernel.h"
#include "backends/cpu/matmul/prologue_reader.h"
#include "backends/cpu/matmul/quantized_weights.h"

namespace onnxifi::matmul {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

Status Refuse(std::string sentence) {
  return Status(Code::kUnsupportedAttribute, std::move(sentence));
}

// The coordinate that selects a matrix.
struct Position {
  ExprId id;
  program::Dim entries;
};

// Of all loads that are bounded by the number of matrices, which is the same for each.
Result<Position> FindPosition(const device::Facts& facts) {
  const program::ExprPool& pool = facts.program.exprs;
  const ExprId root = facts.step.As<program::Contract>()->b_prologue;
  for (const ExprId id : program::Reachable(pool, std::span(&root, 1))) {
    const ExprNode& load = pool[id];
    if (load.op != ExprOp::kLoad || load.operands.empty()) continue;
    const program::View& view = facts.step.reads[load.payload];
    const std::optional<size_t> axis = program::FindGuardedAxis(view);
    if (!axis) continue;
    const Position found = {load.operands[*axis], view.guards[0].extent};
    if (program::FindPositions(pool, found.id, found.entries) != 1) {
      return Refuse("Positions are computed, or are not the operand itself.");
    }
    return found;
  }
  return Refuse("No position selects a matrix.");
}

// Of floats, as they lie.
Status DescribeFloats(const device::Facts& facts, const PrologueReader& reader,
                      GatheredMatrices& product) {
  ONNXIFI_ASSIGN_OR_RETURN(const PerBlock numbers,
                           reader.Describe(facts.step.As<program::Contract>()->b_prologue));
  if (facts.step.reads[static_cast<size_t>(numbers.read)].type != ElementType::kFloat32) {
    return Refuse("The matrices are not float32.");
  }
  if (numbers.block_stride != 0 && numbers.block != 1) {
    return Refuse("The matrices have their elements more than once.");
  }
  product.numbers = numbers.read;
  product.entry_stride = numbers.entry_stride;
  product.matrix.w_inner = numbers.block_stride;
  product.matrix.w_column = numbers.column_stride;
  return base::Ok();
}

// Whether the numbers of a matrix lie behind those of the one before as column behind column.
bool AreStacked(int64_t columns, int64_t column_stride, int64_t entry_stride) {
  return entry_stride == columns * column_stride;
}

Status DescribeQuantized(const device::Facts& facts, const PrologueReader& reader,
                         GatheredMatrices& product) {
  ONNXIFI_ASSIGN_OR_RETURN(QuantizedProduct stacked,
                           DescribeDequantization(facts, product.matrix, reader));
  const int64_t columns = stacked.columns;
  bool are_stacked = AreStacked(columns, stacked.w_column, stacked.entry_stride) &&
                     AreStacked(columns, stacked.scale.column_stride, stacked.scale.entry_stride);
  if (const auto& zero_point = stacked.zero_point) {
    are_stacked =
        are_stacked && AreStacked(columns, zero_point->column_stride, zero_point->entry_stride);
  }
  if (!are_stacked) return Refuse("The matrices do not lie column behind column.");
  stacked.matrices = product.entries;
  product.numbers = stacked.numbers;
  product.entry_stride = stacked.entry_stride;
  product.matrix.w_inner = stacked.w_inner;
  product.matrix.w_column = stacked.w_column;
  product.quantized = stacked;
  return base::Ok();
}

class GatheredProductMethod final : public Method {
 public:
  explicit GatheredProductMethod(const GatheredMatrices& product) : product_(product) {}

  std::string_view name() const override { return "rows times gathered matrices"; }

  BindResult Bind(const device::BoundStep& step, device::Addresses constants,
                  runtime::Runtime& runtime, runtime::WeightStore& store) const override {
    if (product_.quantized) {
      ONNXIFI_ASSIGN_OR_RETURN(
          PackedQuantizedMatrix packed,
          FindPackedMatrix(*product_.quantized, step, constants, runtime, store));
      return BindGatheredProduct(product_, packed.layout, std::move(packed.numbers), step, runtime);
    }
    const ConstantMatrix& matrix = product_.matrix;
    const int64_t size = gemm::PackedSize(matrix.depth, matrix.columns);
    const auto pack = [&](const float* weights, float* packed) {
      const int64_t panels = (matrix.columns + gemm::PanelColumns() - 1) / gemm::PanelColumns();
      runtime.pool().For(product_.entries * panels, /*grain=*/1, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const int64_t entry = n / panels, panel = n % panels;
          gemm::PackPanels(
              {weights + entry * product_.entry_stride, matrix.w_inner, matrix.w_column},
              matrix.depth, matrix.columns, panel, panel + 1, packed + entry * size);
        }
      });
    };
    ONNXIFI_ASSIGN_OR_RETURN(
        runtime::PackedWeights packed,
        runtime::FindPacked(step, static_cast<size_t>(product_.numbers), constants,
                            runtime.memory(), store, static_cast<int>(Layout::kPanels),
                            product_.entries * size, pack));
    return BindGatheredProduct(product_, std::nullopt, std::move(packed), step, runtime);
  }

 private:
  const GatheredMatrices product_;
};

}  // namespace

Result<GatheredMatrices> DescribeGatheredProduct(const device::Facts& facts) {
  GatheredMatrices product{};
  ONNXIFI_ASSIGN_OR_RETURN(product.matrix, DescribeAnyMatrix(facts));
  if (product.matrix.epilogue.addend >= 0) return Refuse("A tensor is added to the sums.");
  ONNXIFI_ASSIGN_OR_RETURN(const Position position, FindPosition(facts));
  const program::View& positions = facts.step.reads[1];
  for (size_t axis = product.matrix.batch_axes; axis < positions.strides.size(); ++axis) {
    if (!(positions.strides[axis] == program::Dim(0))) {
      return Refuse("Parts of a matrix have positions of their own.");
    }
  }
  if (!positions.guards.empty()) return Refuse("The positions are padded by their view.");
  if (!position.entries.is_constant() || position.entries.constant() < 1) {
    return Status(Code::kUnsupportedShape,
                  "The number of matrices (" + position.entries.ToString() + ") is none.");
  }
  product.entries = position.entries.constant();
  const PrologueReader reader(facts, product.matrix, position.id, position.entries);
  const ExprId root = facts.step.As<program::Contract>()->b_prologue;
  if (facts.program.exprs[root].op == ExprOp::kMul) {
    ONNXIFI_RETURN_IF_ERROR(DescribeQuantized(facts, reader, product));
  } else {
    ONNXIFI_RETURN_IF_ERROR(DescribeFloats(facts, reader, product));
  }
  return product;
}

Status CheckConstant(const device::Facts& facts, const GatheredMatrices& product) {
  for (const int read : product.Constants()) {
    const program::View& view = facts.step.reads[static_cast<size_t>(read)];
    if (!facts.IsConstant(view) || !view.offset.is_constant()) {
      return Refuse("The matrices, a scale or a zero point are computed at run time.");
    }
  }
  return base::Ok();
}

std::shared_ptr<const Method> MakeMethod(const GatheredMatrices& product) {
  return std::make_shared<GatheredProductMethod>(product);
}

}  // namespace onnxifi::matmul
