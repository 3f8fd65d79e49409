// SPDX-License-Identifier: Apache-2.0
//
// IntegerProducts: a product of what two Maps dequantize becomes one of the bytes themselves. Its
// sums are multiplied with both scales before what followed them.

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/inlined_operand.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/product_operand.h"

namespace onnxifi::program {
namespace {

constexpr ElementType kReal = ElementType::kFloat32;
constexpr ElementType kSum = ElementType::kInt32;
// Of differences of two bytes, whose sum an int32 holds.
constexpr int64_t kMaxDepth = INT32_MAX / (255 * 255);

bool IsByte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUint8; }

// The read of a step that `id` loads over the domain, cast or not; null for anything else.
const View* FindLoaded(const Program& program, const Step& step, ExprId id) {
  const ExprPool& pool = program.exprs;
  while (pool[id].op == ExprOp::kCast && IsWidening(pool[pool[id].operands[0]].type, pool[id].type))
    id = pool[id].operands[0];
  const ExprNode& node = pool[id];
  if (node.op != ExprOp::kLoad || !node.operands.empty()) return nullptr;
  return &step.reads[node.payload];
}

// A tensor of float32 that a Map makes of bytes: (quantized - zero_point) * scale.
struct Dequantized {
  View quantized, scale;
  std::optional<View> zero_point;
  Shape shape;  // of the tensor; all views are over it
};

std::optional<Dequantized> FindDequantized(const Program& program, const BufferUses& uses,
                                           BufferId buffer) {
  const int number = uses.OnlyWriter(buffer);
  if (number == BufferUses::kNoStep) return std::nullopt;
  const Step& step = program.steps[number];
  const Map* map = step.As<Map>();
  const Buffer& made = program.buffers[buffer];
  if (map == nullptr || map->roots.size() != 1 || made.type != kReal || made.shape != step.domain ||
      !IsDense({step.writes[0], step.domain}) || uses.ReadsWhatIsWrittenAfter(number, step)) {
    return std::nullopt;
  }
  const ExprPool& pool = program.exprs;
  const ExprNode& product = pool[map->roots[0]];
  if (product.op != ExprOp::kMul || product.type != kReal) return std::nullopt;
  ExprId difference = product.operands[0];
  const View* zero_point = nullptr;
  if (pool[difference].op == ExprOp::kCast &&
      pool[pool[difference].operands[0]].op == ExprOp::kSub) {
    const ExprNode& sub = pool[pool[difference].operands[0]];
    zero_point = FindLoaded(program, step, sub.operands[1]);
    if (sub.type != kSum || zero_point == nullptr || !IsByte(zero_point->type)) return std::nullopt;
    difference = sub.operands[0];
  }
  const View* quantized = FindLoaded(program, step, difference);
  const View* scale = FindLoaded(program, step, product.operands[1]);
  if (quantized == nullptr || scale == nullptr || !IsByte(quantized->type) ||
      scale->type != kReal || !scale->guards.empty() ||
      (zero_point != nullptr && !zero_point->guards.empty()) || !quantized->guards.empty()) {
    return std::nullopt;
  }
  Dequantized found{*quantized, *scale, std::nullopt, step.domain};
  if (zero_point != nullptr) found.zero_point = *zero_point;
  return found;
}

// The axis of the tensor along which a view over it varies; -1 for none, nothing for several.
std::optional<int> VaryingAxis(const View& view, const Shape& shape) {
  int found = -1;
  for (int axis = 0; axis < view.rank(); ++axis) {
    if (view.strides[axis] == Dim(0) || shape[axis] == Dim(1)) continue;
    if (found >= 0) return std::nullopt;
    found = axis;
  }
  return found;
}

class Replacement {
 public:
  Replacement(Program& program, const BufferUses& uses, const Step& step)
      : program_(program), uses_(uses), original_(step), contract_(*step.As<Contract>()) {
    step_.domain = step.domain;
    step_.reads = step.reads;
    step_.writes = step.writes;
    step_.node = step.node;
  }

  // Nothing where the step is no product of dequantized tensors.
  std::optional<Step> Make() {
    Dim depth(1);
    for (const Dim& extent : contract_.inner) depth = depth * extent;
    if (contract_.accumulator != kReal || contract_.form == Contract::Form::kConvTranspose ||
        !depth.is_constant() || depth.constant() > kMaxDepth) {
      return std::nullopt;
    }
    ExprPool& pool = program_.exprs;
    const Expr loads[] = {Load(pool, kReal, 0), Load(pool, kReal, 1)};
    if (contract_.a_prologue != loads[0].id() || contract_.b_prologue != loads[1].id()) {
      return std::nullopt;
    }
    for (const ExprId id : Reachable(pool, contract_.roots)) {
      if (id == loads[0].id() || id == loads[1].id()) return std::nullopt;
    }
    std::optional<Expr> scales[2];
    for (int operand = 0; operand < 2; ++operand) {
      scales[operand] = ReplaceOperand(operand);
      if (!scales[operand]) return std::nullopt;
    }
    contract_.accumulator = kSum;
    const Expr sum = Cast(Accumulator(pool, kSum), kReal) * (*scales[0] * *scales[1]);
    std::unordered_map<ExprId, ExprId> done;
    for (ExprId& root : contract_.roots) {
      root = Rewrite(
          pool, root,
          [&](ExprId id) { return pool[id].op == ExprOp::kAccumulator ? sum.id() : kNoExpr; },
          done);
    }
    step_.body = contract_;
    return std::move(step_);
  }

 private:
  // Puts an operand on its bytes. Returns its scale, for the epilogue.
  std::optional<Expr> ReplaceOperand(int operand) {
    const View view = step_.reads[operand];
    const auto found = FindDequantized(program_, uses_, view.buffer);
    if (!found || view.type != kReal || !view.guards.empty()) return std::nullopt;
    ExprPool& pool = program_.exprs;
    Expr element = Cast(Load(pool, found->quantized.type, operand), kSum);
    if (found->zero_point) {
      const auto over_operand = OverOperand(*found, *found->zero_point, operand);
      if (!over_operand) return std::nullopt;
      element = element - Cast(Load(pool, found->zero_point->type, AddRead(*over_operand)), kSum);
    }
    (operand == 0 ? contract_.a_prologue : contract_.b_prologue) = element.id();
    const auto scale = OverResult(*found, operand);
    if (!scale) return std::nullopt;
    if (IsDense({found->quantized, found->shape})) {
      step_.reads[operand].buffer = found->quantized.buffer;
      step_.reads[operand].type = found->quantized.type;
    } else {
      // Bytes in another order, as those of a transposed matrix.
      const Shape shape = OperandShape(original_, operand);
      const auto axes = MatchAxes(view, shape, found->shape);
      if (!axes) return std::nullopt;
      step_.reads[operand] = program::OverOperand(found->quantized, shape, found->shape, *axes);
    }
    return Load(pool, kReal, AddRead(*scale));
  }

  int AddRead(View view) {
    step_.reads.push_back(std::move(view));
    return static_cast<int>(step_.reads.size()) - 1;
  }

  // The axis of the operand that walks the tensor's axis `axis`, if it is one of rows or columns
  // and walks all of it.
  std::optional<int> OperandAxis(const Dequantized& found, int axis, int operand) const {
    const View& view = step_.reads[operand];
    if (!(view.offset == Dim(0))) return std::nullopt;
    const Dim stride = DenseStrides(found.shape)[static_cast<size_t>(axis)];
    std::optional<int> met;
    for (int k = 0; k < view.rank(); ++k) {
      const std::optional<int> of_result = ResultAxis(k, operand);
      if (!(view.strides[k] == stride) || !of_result ||
          !(step_.domain[*of_result] == found.shape[static_cast<size_t>(axis)])) {
        continue;
      }
      if (met) return std::nullopt;
      met = k;
    }
    return met;
  }

  // The axis of the domain that an axis of rows or columns is; nothing for any other.
  std::optional<int> ResultAxis(int axis, int operand) const {
    if (contract_.form == Contract::Form::kConv) {
      return operand == 1 && axis == 0 ? std::optional<int>(1) : std::nullopt;
    }
    const int batch = contract_.batch_axes;
    const int inner = static_cast<int>(contract_.inner.size());
    if (operand == 0) {
      return axis < batch + contract_.m_axes ? std::optional<int>(axis) : std::nullopt;
    }
    if (axis < batch) return axis;
    if (axis < batch + inner) return std::nullopt;
    return axis - inner + contract_.m_axes;
  }

  // A view over the tensor as one over the operand's axes.
  std::optional<View> OverOperand(const Dequantized& found, const View& view, int operand) const {
    const std::optional<int> axis = VaryingAxis(view, found.shape);
    if (!axis) return std::nullopt;
    View over = view;
    over.strides = Dims(static_cast<size_t>(step_.reads[operand].rank()), Dim(0));
    if (*axis < 0) return over;
    const std::optional<int> met = OperandAxis(found, *axis, operand);
    if (!met) return std::nullopt;
    over.strides[*met] = view.strides[*axis];
    return over;
  }

  // The scale as a view over the domain.
  std::optional<View> OverResult(const Dequantized& found, int operand) const {
    const std::optional<int> axis = VaryingAxis(found.scale, found.shape);
    if (!axis) return std::nullopt;
    View over = found.scale;
    over.strides = Dims(step_.domain.size(), Dim(0));
    if (*axis < 0) return over;
    const std::optional<int> met = OperandAxis(found, *axis, operand);
    if (!met) return std::nullopt;
    over.strides[*ResultAxis(*met, operand)] = found.scale.strides[*axis];
    return over;
  }

  Program& program_;
  const BufferUses& uses_;
  const Step& original_;
  Contract contract_;
  Step step_;
};

}  // namespace

void MakeIntegerProducts(Program& program, const PrefersNarrowOperands& prefers) {
  BufferUses uses(program);
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    if (program.steps[s].As<Contract>() == nullptr) continue;
    std::optional<Step> replaced = Replacement(program, uses, program.steps[s]).Make();
    if (!replaced || !prefers(program, *replaced)) continue;
    uses.Remove(s, program.steps[s]);
    program.steps[s] = *std::move(replaced);
    uses.Add(s, program.steps[s]);
  }
  RemoveDeadSteps(program);
}

}  // namespace onnxifi::program
