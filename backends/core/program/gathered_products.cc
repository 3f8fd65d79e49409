// SPDX-License-Identifier: Apache-2.0
//
// GatheredProducts: products each row of which has a matrix of its own, selected by data out of a
// constant one, as the experts of a mixture are. The Map that copies the selected matrices moves
// into the product's prologue, or, where the device has no kernel for that and the copies would be
// many, all matrices multiply all rows.

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/dequantization.h"
#include "backends/core/program/gathering.h"
#include "backends/core/program/inlined_operand.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/products_of_all.h"

namespace onnxifi::program {
namespace {

constexpr ElementType kReal = ElementType::kFloat32;

Step WithoutBody(const Step& step) {
  Step copy;
  copy.domain = step.domain;
  copy.reads = step.reads;
  copy.writes = step.writes;
  copy.node = step.node;
  return copy;
}

// Whether the product is of what its operands are in memory, and stores its sums alone.
bool IsPlain(Program& program, const Step& step) {
  const Contract& contract = *step.As<Contract>();
  ExprPool& pool = program.exprs;
  return contract.form == Contract::Form::kMatMul && contract.accumulator == kReal &&
         contract.a_prologue == Load(pool, kReal, 0).id() &&
         contract.b_prologue == Load(pool, kReal, 1).id() && contract.roots.size() == 1 &&
         contract.roots[0] == Accumulator(pool, kReal).id();
}

// Axes [0, first), then [second, end), then [first, second).
template <typename Axes>
Axes Swapped(const Axes& axes, size_t first, size_t second) {
  Axes swapped(axes.begin(), axes.begin() + first);
  swapped.insert(swapped.end(), axes.begin() + second, axes.end());
  swapped.insert(swapped.end(), axes.begin() + first, axes.begin() + second);
  return swapped;
}

// A plain product with its operands in each other's place.
Step WithOperandsSwapped(const Step& step) {
  const Contract& contract = *step.As<Contract>();
  const auto batch = static_cast<size_t>(contract.batch_axes);
  const auto m = static_cast<size_t>(contract.m_axes);
  Step swapped = WithoutBody(step);
  swapped.domain = Swapped(step.domain, batch, batch + m);
  swapped.writes[0].strides = Swapped(step.writes[0].strides, batch, batch + m);
  std::swap(swapped.reads[0], swapped.reads[1]);
  View& a = swapped.reads[0];
  View& b = swapped.reads[1];
  a.strides = Swapped(a.strides, batch, batch + contract.inner.size());
  b.strides = Swapped(b.strides, batch, batch + m);
  for (View* view : {&a, &b}) {
    const size_t second = view == &a ? batch + contract.inner.size() : batch + m;
    for (Guard& guard : view->guards) {
      guard.coefficients = Swapped(guard.coefficients, batch, second);
    }
  }
  Contract body = contract;
  std::swap(body.m_axes, body.n_axes);
  body.may_round_to_bytes = false;  // of what was A
  swapped.body = std::move(body);
  return swapped;
}

// The product with what is gathered in its prologue: positions in the place of B, and the tensor as
// the last read.
std::optional<Step> WithGathering(Program& program, const Step& step, const Gathering& found) {
  const Shape operand = OperandShape(step, 1);
  const Shape& made = found.step->domain;
  const std::optional<std::vector<int>> axes = MatchAxes(step.reads[1], operand, made);
  if (!axes) return std::nullopt;
  Step joined = WithoutBody(step);
  joined.reads[1] =
      OverOperand(found.step->reads[static_cast<size_t>(found.positions)], operand, made, *axes);
  const auto source = static_cast<uint64_t>(joined.reads.size());
  joined.reads.push_back(found.step->reads[static_cast<size_t>(found.source)]);
  ExprPool& pool = program.exprs;
  std::unordered_map<ExprId, ExprId> done;
  std::function<ExprId(ExprId)> replace = [&](ExprId id) -> ExprId {
    ExprNode node = pool[id];
    if (node.op == ExprOp::kIndex) {
      const int axis = (*axes)[node.payload];
      return axis < 0 ? IntConstant(pool, node.type, 0).id() : Coordinate(pool, axis).id();
    }
    if (node.op != ExprOp::kLoad) return kNoExpr;
    node.payload = node.operands.empty() ? 1 : source;
    for (ExprId& coordinate : node.operands) coordinate = Rewrite(pool, coordinate, replace, done);
    return pool.Add(std::move(node));
  };
  Contract body = *step.As<Contract>();
  body.b_prologue = Rewrite(pool, found.step->As<Map>()->roots[0], replace, done);
  joined.body = std::move(body);
  return joined;
}

// What dequantizes a tensor at other coordinates than those of its domain.
class EntryDequantization {
 public:
  // `joined` is what WithGathering gave: its last read, at the coordinates of its prologue, is what
  // `found` writes.
  EntryDequantization(Program& program, const Step& joined, const Dequantization& found,
                      size_t entry_axis, std::optional<BufferId> halves)
      : program_(program),
        joined_(joined),
        found_(found),
        entry_axis_(entry_axis),
        halves_(halves),
        coordinates_(program.exprs[joined.As<Contract>()->b_prologue].operands),
        guard_(joined.reads.back().guards[0]) {}

  // `joined` with the dequantization in place of the load; nothing where it addresses entries in
  // some other way.
  std::optional<Step> Write() {
    Step written = WithoutBody(joined_);
    written.reads.pop_back();
    first_place_ = written.reads.size();
    for (size_t read = 0; read < found_.step->reads.size(); ++read) {
      View view = found_.step->reads[read];
      if (!view.guards.empty()) return std::nullopt;
      if (static_cast<int>(read) == found_.quantized && halves_) {
        view.buffer = *halves_;
        view.type = ElementType::kUint4;
      }
      written.reads.push_back(std::move(view));
    }
    const ExprId root = found_.step->As<Map>()->roots[0];
    if (!Guard(written, root)) return std::nullopt;
    Contract body = *joined_.As<Contract>();
    body.b_prologue = AtCoordinates(written, root);
    written.body = std::move(body);
    return written;
  }

 private:
  // Bounds the reads by the number of entries, as the load is.
  bool Guard(Step& written, ExprId root) const {
    const ExprPool& pool = program_.exprs;
    const auto is_entry = [&](ExprId id) {
      return pool[id].op == ExprOp::kIndex && pool[id].payload == entry_axis_;
    };
    std::vector<std::optional<size_t>> axes(written.reads.size());
    for (const ExprId id : Reachable(pool, std::span(&root, 1))) {
      const ExprNode& load = pool[id];
      if (load.op != ExprOp::kLoad) continue;
      size_t axis = entry_axis_;
      if (!load.operands.empty()) {
        axis = load.operands.size();
        for (size_t k = 0; k < load.operands.size(); ++k) {
          const std::vector<ExprId> below = Reachable(pool, std::span(&load.operands[k], 1));
          if (std::ranges::none_of(below, is_entry)) continue;
          if (!is_entry(load.operands[k]) || axis != load.operands.size()) return false;
          axis = k;
        }
      }
      std::optional<size_t>& known = axes[first_place_ + load.payload];
      if (known && *known != axis) return false;
      known = axis;
    }
    for (size_t read = first_place_; read < written.reads.size(); ++read) {
      View& view = written.reads[read];
      if (!axes[read] || *axes[read] >= view.strides.size()) continue;
      program::Guard guard{Dims(view.strides.size(), Dim(0)), Dim(0), guard_.extent};
      guard.coefficients[*axes[read]] = Dim(1);
      view.guards.push_back(std::move(guard));
    }
    return true;
  }

  ExprId AtCoordinates(const Step& written, ExprId root) const {
    ExprPool& pool = program_.exprs;
    std::unordered_map<ExprId, ExprId> done;
    std::function<ExprId(ExprId)> replace = [&](ExprId id) -> ExprId {
      ExprNode node = pool[id];
      if (node.op == ExprOp::kIndex) return coordinates_[node.payload];
      if (node.op != ExprOp::kLoad) return kNoExpr;
      node.payload += first_place_;
      if (node.operands.empty()) {
        node.operands = coordinates_;
      } else {
        for (ExprId& operand : node.operands) operand = Rewrite(pool, operand, replace, done);
      }
      const ElementType stored = written.reads[node.payload].type;
      const ElementType before = std::exchange(node.type, stored);
      return Cast(Expr(&pool, pool.Add(std::move(node))), before).id();
    };
    return Rewrite(pool, root, replace, done);
  }

  Program& program_;
  const Step& joined_;
  const Dequantization& found_;
  const size_t entry_axis_;
  const std::optional<BufferId> halves_;
  const ExprIds coordinates_;
  const program::Guard guard_;
  size_t first_place_ = 0;
};

// Whether the tensor is read as it lies in its buffer.
bool IsWhole(const Program& program, const Gathering& found) {
  View view = found.step->reads[static_cast<size_t>(found.source)];
  view.guards.clear();
  return IsDense({view, program.buffers[view.buffer].shape});
}

// The product with the matrices in its prologue as the device prefers them: dequantized there, or
// as they are.
std::optional<Step> Preferred(Program& program, const BufferUses& uses,
                              const std::vector<bool>& is_constant, const Step& step,
                              const Gathering& found, const PrefersGatheredMatrices& prefers) {
  const BufferId source = found.step->reads[static_cast<size_t>(found.source)].buffer;
  if (!is_constant[source]) return std::nullopt;
  std::optional<Step> joined = WithGathering(program, step, found);
  if (!joined) return std::nullopt;
  std::optional<Dequantization> dequantization;
  if (program.has_fast_algorithms && IsWhole(program, found)) {
    dequantization = FindDequantization(program, uses, is_constant, source);
  }
  if (dequantization) {
    const auto write = [&](std::optional<BufferId> halves) {
      return EntryDequantization(program, *joined, *dequantization, found.entry_axis, halves)
          .Write();
    };
    std::optional<Step> narrow = write(std::nullopt);
    if (narrow && prefers(program, *narrow)) {
      const View& numbers =
          dequantization->step->reads[static_cast<size_t>(dequantization->quantized)];
      if (const auto bytes = FindHalvedBytes(program, uses, numbers.buffer)) {
        narrow = write(AddHalves(program, *bytes));
      }
      return narrow;
    }
  }
  return prefers(program, *joined) ? std::move(joined) : std::nullopt;
}

// Whether each matrix of the product has a single column.
bool HasOneColumn(const Step& step) {
  const Contract& contract = *step.As<Contract>();
  const auto rows = static_cast<size_t>(contract.batch_axes + contract.m_axes);
  return std::all_of(step.domain.begin() + rows, step.domain.end(),
                     [](const Dim& extent) { return extent == Dim(1); });
}

}  // namespace

void MakeGatheredProducts(Program& program, const PrefersGatheredMatrices& prefers) {
  BufferUses uses(program);
  std::optional<std::vector<bool>> is_constant;
  std::map<int, std::vector<Step>> dense;  // what comes in the place of a step, but for its last
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    if (program.steps[s].As<Contract>() == nullptr || !IsPlain(program, program.steps[s])) continue;
    Step step = WithoutBody(program.steps[s]);
    step.body = *program.steps[s].As<Contract>();
    std::optional<Gathering> found = FindGathering(program, uses, step.reads[1].buffer);
    if (!found && HasOneColumn(step)) {
      // As bmm(weights[experts], x) has it.
      found = FindGathering(program, uses, step.reads[0].buffer);
      if (found) step = WithOperandsSwapped(step);
    }
    if (!found) continue;
    if (!is_constant) is_constant = FindConstants(program);
    std::optional<Step> joined = Preferred(program, uses, *is_constant, step, *found, prefers);
    const bool is_read_elsewhere = uses.OnlyReader(step.reads[1].buffer) != s;
    if (!joined && !is_read_elsewhere) {
      std::optional<std::vector<Step>> steps = MultiplyAll(program, uses, step, *found);
      if (steps) {
        joined = std::move(steps->back());
        steps->pop_back();
        dense.emplace(s, *std::move(steps));
      }
    }
    if (!joined) continue;
    uses.Remove(s, program.steps[s]);
    program.steps[s] = *std::move(joined);
    uses.Add(s, program.steps[s]);
  }
  if (!dense.empty()) {
    std::vector<Step> steps;
    for (size_t s = 0; s < program.steps.size(); ++s) {
      if (const auto before = dense.find(static_cast<int>(s)); before != dense.end()) {
        std::ranges::move(before->second, std::back_inserter(steps));
      }
      steps.push_back(std::move(program.steps[s]));
    }
    program.steps = std::move(steps);
  }
  RemoveDeadSteps(program);
}

}  // namespace onnxifi::program
