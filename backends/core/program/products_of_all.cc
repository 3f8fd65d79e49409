// SPDX-License-Identifier: Apache-2.0
//
// MultiplyAll: rows are spread over the matrices that they select, multiplied, and picked out.

#include "backends/core/program/products_of_all.h"

#include <algorithm>
#include <utility>

#include "backends/core/program/inlined_operand.h"
#include "backends/core/program/operand_extents.h"

namespace onnxifi::program {
namespace {

constexpr ElementType kReal = ElementType::kFloat32;
// Positions that a row of a dense operand is selected by, one after the other.
constexpr int64_t kMaxSlots = 16;
// Matrices that multiply all rows where nobody knows how many rows there will be.
constexpr int64_t kMaxEntries = 256;

class DenseProduct {
 public:
  DenseProduct(Program& program, const BufferUses& uses, const Step& step, const Gathering& found)
      : program_(program),
        uses_(uses),
        step_(step),
        contract_(*step.As<Contract>()),
        found_(found),
        source_(found.step->reads[static_cast<size_t>(found.source)]),
        batch_(static_cast<size_t>(contract_.batch_axes)) {}

  // As MultiplyAll.
  std::optional<std::vector<Step>> Write() {
    if (batch_ == 0 || HasFewCopies()) return std::nullopt;
    const Shape operand = OperandShape(step_, 1);
    const std::optional<std::vector<int>> axes =
        MatchAxes(step_.reads[1], operand, found_.step->domain);
    if (!axes) return std::nullopt;
    positions_ = OverOperand(found_.step->reads[static_cast<size_t>(found_.positions)], operand,
                             found_.step->domain, *axes);
    // Else parts of a matrix have positions of their own, as of a sum of embeddings.
    for (size_t axis = batch_; axis < operand.size(); ++axis) {
      const bool is_one = positions_.strides[axis] == Dim(0) || operand[axis] == Dim(1);
      if (!is_one) return std::nullopt;
    }
    View rows = step_.reads[0];
    if (!rows.guards.empty()) return std::nullopt;
    const size_t slot = batch_ - 1;
    const bool is_shared = rows.strides[slot] == Dim(0) || step_.domain[slot] == Dim(1);
    if (!is_shared && !HasDistinctSlots()) return std::nullopt;
    const View matrices = Matrices(operand.size(), *axes);
    if (is_shared) {
      rows.strides.erase(rows.strides.begin() + static_cast<std::ptrdiff_t>(slot));
      rows.strides.insert(rows.strides.begin(), Dim(0));
    } else {
      rows = Spread(rows);
    }
    const View products = Multiply(rows, matrices);
    Pick(products);
    return std::move(steps_);
  }

 private:
  bool HasFewCopies() const {
    Dim copies = 1;
    for (size_t axis = 0; axis < batch_; ++axis) copies = copies * step_.domain[axis];
    if (!found_.entries.is_constant()) return true;
    if (copies.is_constant()) return copies.constant() < found_.entries.constant();
    // Experts are few, entries of a table many.
    return found_.entries.constant() > kMaxEntries;
  }

  // Whether no two positions along the last batch axis are the same: they are those of a TopK.
  bool HasDistinctSlots() const {
    const Dim& slots = step_.domain[batch_ - 1];
    if (!slots.is_constant() || slots.constant() > kMaxSlots) return false;
    const int number = uses_.OnlyWriter(positions_.buffer);
    if (number == BufferUses::kNoStep) return false;
    const Step& writer = program_.steps[number];
    const auto* index = writer.As<Index>();
    if (index == nullptr || index->kind != Index::Kind::kTopK ||
        writer.writes[1].buffer != positions_.buffer) {
      return false;
    }
    const Shape batch(step_.domain.begin(), step_.domain.begin() + batch_);
    View over_batch = positions_;
    over_batch.strides.resize(batch_);
    return program_.buffers[positions_.buffer].shape == batch && IsDense({over_batch, batch}) &&
           writer.writes[1] == over_batch;
  }

  // Without the slots, behind an axis of entries.
  Shape WithEntries(const Shape& shape) const {
    Shape result = {found_.entries};
    result.insert(result.end(), shape.begin(), shape.begin() + batch_ - 1);
    result.insert(result.end(), shape.begin() + batch_, shape.end());
    return result;
  }

  // The tensor as operand B over [entries, inner, columns].
  View Matrices(size_t operand_axes, const std::vector<int>& axes) const {
    View view = source_;
    view.guards.clear();
    view.strides = Dims(operand_axes - batch_ + 1, Dim(0));
    view.strides[0] = source_.strides[found_.entry_axis];
    for (size_t axis = 0; axis < source_.strides.size(); ++axis) {
      if (found_.domain_axes[axis] < 0) continue;
      const int over = axes[static_cast<size_t>(found_.domain_axes[axis])];
      if (over < 0) continue;
      view.strides[static_cast<size_t>(over) - batch_ + 1] = source_.strides[axis];
    }
    return view;
  }

  Expr Position(int read) {
    ExprPool& pool = program_.exprs;
    const ElementType type = positions_.type;
    const Expr position = Cast(Load(pool, type, read), ElementType::kInt64);
    if (tensor::IsUnsigned(type)) return position;
    return Select(position < Like(position, 0), position + DimExpr(pool, found_.entries), position);
  }

  // Each row of A at its entry: [entries, rows, inner], 0 where no position selects the entry.
  View Spread(const View& rows) {
    const Shape operand = WithEntries(OperandShape(step_, 0));
    const size_t slot = batch_ - 1;
    const auto without_slot = [&](const View& view, int64_t k) {
      View at = view;
      at.offset = view.offset + Dim(k) * view.strides[slot];
      at.strides = {Dim(0)};
      for (size_t axis = 0; axis < view.strides.size(); ++axis) {
        if (axis != slot) at.strides.push_back(view.strides[axis]);
      }
      return at;
    };
    View positions = positions_;
    positions.strides.resize(batch_);
    Step step;
    step.domain = operand;
    step.node = step_.node;
    ExprPool& pool = program_.exprs;
    Expr value = Constant(pool, kReal, 0);
    for (int64_t k = 0; k < step_.domain[slot].constant(); ++k) {
      View at = without_slot(positions, k);
      at.strides.resize(operand.size(), Dim(0));
      const auto read = static_cast<int>(step.reads.size());
      step.reads.push_back(std::move(at));
      step.reads.push_back(without_slot(rows, k));
      value = Select(Position(read) == Coordinate(pool, 0), Load(pool, kReal, read + 1), value);
    }
    const View spread = Temporary(operand);
    step.writes = {spread};
    step.body = Map{{value.id()}};
    steps_.push_back(std::move(step));
    return spread;
  }

  View Multiply(const View& rows, const View& matrices) {
    Step step;
    step.domain = WithEntries(step_.domain);
    step.node = step_.node;
    step.reads = {rows, matrices};
    const View products = Temporary(step.domain);
    step.writes = {products};
    Contract body = contract_;
    body.batch_axes = 1;
    body.m_axes += contract_.batch_axes - 1;
    step.body = std::move(body);
    steps_.push_back(std::move(step));
    return products;
  }

  // What the product wrote: of each row the results of its entry.
  void Pick(View products) {
    Step step;
    step.domain = step_.domain;
    step.node = step_.node;
    step.writes = step_.writes;
    Guard guard{Dims(products.strides.size(), Dim(0)), Dim(0), found_.entries};
    guard.coefficients[0] = Dim(1);
    products.guards.push_back(std::move(guard));
    View positions = positions_;
    positions.strides.resize(batch_);
    positions.strides.resize(step_.domain.size(), Dim(0));
    step.reads = {positions, std::move(products)};
    std::vector<Expr> at = {Position(0)};
    for (size_t axis = 0; axis < step_.domain.size(); ++axis) {
      if (axis != batch_ - 1) at.push_back(Coordinate(program_.exprs, static_cast<int>(axis)));
    }
    step.body = Map{{LoadAt(program_.exprs, kReal, 1, at).id()}};
    steps_.push_back(std::move(step));
  }

  View Temporary(const Shape& shape) {
    return DenseView(program_.AddBuffer({Buffer::Kind::kTemporary, kReal, shape}), kReal, shape);
  }

  Program& program_;
  const BufferUses& uses_;
  const Step& step_;
  const Contract& contract_;
  const Gathering& found_;
  const View& source_;
  const size_t batch_;
  View positions_;  // over the axes of operand B
  std::vector<Step> steps_;
};

}  // namespace

std::optional<std::vector<Step>> MultiplyAll(Program& program, const BufferUses& uses,
                                             const Step& step, const Gathering& found) {
  return DenseProduct(program, uses, step, found).Write();
}

}  // namespace onnxifi::program
