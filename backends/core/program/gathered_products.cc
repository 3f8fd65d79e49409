// SPDX-License-Identifier: Apache-2.0
//
// GatheredProducts: products each row of which has a matrix of its own, selected by data out of a
// constant one, as the experts of a mixture are. The Map that copies the selected matrices moves
// into the product's prologue; where the device has no kernel for that, and the copies would be
// more than there are matrices, all matrices multiply all rows and the results are selected; also
// where nobody knows how many copies there will be, and matrices are few.

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
#include "backends/core/program/entry_positions.h"
#include "backends/core/program/inlined_operand.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

constexpr ElementType kReal = ElementType::kFloat32;
// Positions that a row of a dense operand is selected by, one after the other.
constexpr int64_t kMaxSlots = 16;
// Matrices that multiply all rows where nobody knows how many rows there will be.
constexpr int64_t kMaxEntries = 256;

// A Map that copies entries of a tensor: as Gather is lowered, each coordinate of the tensor but
// one is a coordinate of the domain, and that one is a position that another read has. Positions
// out of range give 0.
struct Gathering {
  const Step* step;
  int source;         // the read that the tensor is
  size_t entry_axis;  // of the tensor
  Dim entries;
  int positions;                 // the read that the positions are
  std::vector<int> domain_axes;  // by axis of the tensor; of the entry axis -1
};

// The Gathering that alone writes `buffer`, a dense temporary.
std::optional<Gathering> FindGathering(const Program& program, const BufferUses& uses,
                                       BufferId buffer) {
  const int number = uses.OnlyWriter(buffer);
  if (number == BufferUses::kNoStep || uses.IsOutput(buffer)) return std::nullopt;
  const Step& step = program.steps[number];
  const Map* map = step.As<Map>();
  const Buffer& made = program.buffers[buffer];
  if (map == nullptr || map->roots.size() != 1 || made.type != kReal ||
      made.kind != Buffer::Kind::kTemporary || made.shape != step.domain ||
      !IsDense({step.writes[0], step.domain}) || uses.ReadsWhatIsWrittenAfter(number, step)) {
    return std::nullopt;
  }
  const ExprPool& pool = program.exprs;
  const ExprNode& load = pool[map->roots[0]];
  if (load.op != ExprOp::kLoad || load.operands.empty() || load.type != kReal) return std::nullopt;
  const auto source = static_cast<int>(load.payload);
  const View& view = step.reads[static_cast<size_t>(source)];
  const std::optional<size_t> entry_axis = FindGuardedAxis(view);
  if (!entry_axis || view.type != kReal) return std::nullopt;
  Gathering found{&step, source, *entry_axis, view.guards[0].extent, -1, {}};
  found.positions = FindPositions(pool, load.operands[*entry_axis], found.entries);
  if (found.positions < 0) return std::nullopt;
  const View& positions = step.reads[static_cast<size_t>(found.positions)];
  if (!positions.guards.empty()) return std::nullopt;
  std::vector<bool> is_taken(step.domain.size(), false);
  for (size_t axis = 0; axis < load.operands.size(); ++axis) {
    found.domain_axes.push_back(-1);
    if (axis == *entry_axis) continue;
    const ExprNode& coordinate = pool[load.operands[axis]];
    if (coordinate.op != ExprOp::kIndex) return std::nullopt;
    const auto domain_axis = static_cast<size_t>(coordinate.payload);
    const bool is_other = is_taken[domain_axis] || (!(positions.strides[domain_axis] == Dim(0)) &&
                                                    !(step.domain[domain_axis] == Dim(1)));
    if (is_other) return std::nullopt;
    is_taken[domain_axis] = true;
    found.domain_axes.back() = static_cast<int>(domain_axis);
  }
  return found;
}

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

// The steps that multiply all rows with all matrices, and then select.
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

  // Nothing where the copies are no more than the matrices or those are too many, or the operands
  // are not of the form.
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
      std::optional<std::vector<Step>> steps = DenseProduct(program, uses, step, *found).Write();
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
