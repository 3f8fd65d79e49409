// SPDX-License-Identifier: Apache-2.0
//
// Reduction: the cut of an update, the choice of axes, and the loops over tiles, parts and halves.

#include "backends/cpu/engine/reduction.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "backends/core/reference/column.h"
#include "backends/core/reference/reduction.h"

namespace onnxifi::engine {
namespace {

using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using reference::LaneBytes;

constexpr int64_t kLine = 64;

int64_t RoundUp(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// The largest expressions below the updates that no state enters and that differ between elements.
std::vector<ExprId> FindElements(const program::ExprPool& pool, std::span<const ExprId> updates) {
  std::unordered_map<ExprId, bool> needs_state;
  std::unordered_map<ExprId, bool> is_uniform;
  std::vector<ExprId> elements;
  auto enter = [&](ExprId id) {
    if (needs_state[id] || is_uniform[id]) return;
    if (std::find(elements.begin(), elements.end(), id) == elements.end()) elements.push_back(id);
  };
  for (ExprId id : program::Reachable(pool, updates)) {
    const ExprNode& node = pool[id];
    bool needs = node.op == ExprOp::kState;
    bool uniform = node.op != ExprOp::kState && node.op != ExprOp::kLoad &&
                   node.op != ExprOp::kIndex && node.op != ExprOp::kRow;
    for (ExprId operand : node.operands) {
      needs = needs || needs_state[operand];
      uniform = uniform && is_uniform[operand];
    }
    needs_state[id] = needs;
    is_uniform[id] = uniform;
    if (!needs) continue;
    for (ExprId operand : node.operands) enter(operand);
  }
  for (ExprId update : updates) enter(update);
  return elements;
}

uint64_t Size(int64_t step) {
  return step < 0 ? ~static_cast<uint64_t>(step) + 1 : static_cast<uint64_t>(step);
}

}  // namespace

const LinearForm* FindPrimary(std::span<const Access> accesses) {
  for (const Access& access : accesses) {
    const bool is_fixed = std::all_of(access.form.steps.begin(), access.form.steps.end(),
                                      [](int64_t step) { return step == 0; });
    if (access.buffer != program::kNoBuffer && !is_fixed) return &access.form;
  }
  return nullptr;
}

void Repeat(std::byte* column, int64_t lane_bytes, int64_t lanes, int64_t count) {
  for (int64_t done = lanes; done < count; done *= 2) {
    std::memcpy(column + done * lane_bytes, column,
                static_cast<size_t>(std::min(done, count - done) * lane_bytes));
  }
}

ReductionCode ReductionCode::Compile(const program::ExprPool& pool,
                                     const program::Reduction& reduction, LoopSet loops,
                                     std::span<const ExprId> provided) {
  std::vector<ExprId> init, update, merge;
  std::vector<tensor::ElementType> types;
  for (const program::Reduction::State& state : reduction.states) {
    init.push_back(state.init);
    update.push_back(state.update);
    merge.push_back(state.merge);
    types.push_back(state.type);
  }
  std::vector<ExprId> elements = FindElements(pool, update);
  return {Code::Compile(pool, init, loops),
          Code::Compile(pool, elements, loops, provided),
          Code::Compile(pool, update, loops, elements),
          Code::Compile(pool, merge, loops),
          std::move(types),
          std::move(elements)};
}

namespace {

// The steps of `form`; along axes where its step is 0, the smallest step of any other read or write
// that moves there.
LinearForm WithStepsOfOthers(const LinearForm& form, std::span<LinearForm* const> others) {
  LinearForm steps = form;
  for (size_t axis = 0; axis < steps.steps.size(); ++axis) {
    if (form.steps[axis] != 0) continue;
    for (const LinearForm* other : others) {
      const int64_t step = other->steps[axis];
      const bool is_less = steps.steps[axis] == 0 || Size(step) < Size(steps.steps[axis]);
      if (step != 0 && is_less) steps.steps[axis] = step;
    }
  }
  return steps;
}

}  // namespace

ReductionGrid::ReductionGrid(std::span<const int64_t> domain, int axes, const LinearForm* primary,
                             std::span<LinearForm* const> forms, const Options& options) {
  const int64_t tile_lanes = options.tile_lanes;
  const int rank = static_cast<int>(domain.size());
  const int outer_rank = rank - axes;
  const int64_t outer_count = tensor::ElementCount(domain.first(static_cast<size_t>(outer_rank)));
  elements_ = tensor::ElementCount(domain.subspan(static_cast<size_t>(outer_rank)));
  has_no_results_ = outer_count == 0;
  has_no_elements_ = elements_ == 0;
  if (has_no_results_) return;
  std::vector<int64_t> extents(domain.begin(), domain.end());
  if (has_no_elements_) std::fill(extents.begin() + outer_rank, extents.end(), 1);
  const bool in_parts = options.is_row ? reference::RowUsesPartialSums(outer_count, elements_)
                                       : reference::UsesPartialSums(outer_count, elements_);
  parts_ = in_parts ? std::max<int64_t>(1, std::min(reference::kBlock, elements_)) : 1;

  const LinearForm nothing;
  const LinearForm& met = primary != nullptr ? *primary : nothing;
  // The smallest step along a reduced axis: results that lie closer than elements become lanes.
  uint64_t element_step = UINT64_MAX;
  for (int axis = outer_rank; axis < rank; ++axis) {
    const uint64_t step = Size(met.steps[axis]);
    if (extents[axis] > 1 && step > 0) element_step = std::min(element_step, step);
  }
  const std::vector<int> outer = Grid::SortedAxes(WithStepsOfOthers(met, forms), 0, outer_rank);
  std::vector<int> order, lane_axes;
  int nearest = -1;  // the results that lie closest to one another
  for (int axis : outer) {
    const uint64_t step = Size(met.steps[axis]);
    const bool is_distinct = extents[axis] > 1 && step > 0;
    if (is_distinct) nearest = axis;
    const bool is_lane = !in_parts || (is_distinct && step < element_step);
    (is_lane ? lane_axes : order).push_back(axis);
  }
  // Many short reductions: side by side too, turned around on their way in.
  constexpr int64_t kMinLanes = 4;
  constexpr int64_t kMaxTurned = 64;
  const int64_t held_lanes = HeldLanes(elements_, tile_lanes);
  const int64_t turned_lanes = std::min(kMaxTurned, held_lanes);
  is_by_row_ = options.allows_rows && in_parts && lane_axes.empty() && !has_no_elements_ &&
               CanHold(elements_, tile_lanes);
  const bool is_turned = !is_by_row_ && in_parts && lane_axes.empty() && nearest >= 0 &&
                         elements_ <= options.short_reduction && turned_lanes >= kMinLanes &&
                         extents[nearest] >= kMinLanes;
  if (is_turned) {
    std::erase(order, nearest);
    lane_axes.push_back(nearest);
  }
  int boundaries[] = {static_cast<int>(order.size()), 0};
  for (int axis = outer_rank; axis < rank; ++axis) order.push_back(axis);
  boundaries[1] = static_cast<int>(order.size());
  order.insert(order.end(), lane_axes.begin(), lane_axes.end());

  elements_grid_ = Grid(extents);
  elements_grid_.Permute(order, forms);
  elements_grid_.Join(boundaries, forms);
  reduced_begin_ = boundaries[0];
  reduced_end_ = boundaries[1];
  const int end = elements_grid_.rank();
  lanes_begin_ = is_by_row_ ? 0 : reduced_end_;
  lanes_end_ = is_by_row_ ? reduced_begin_ : end;
  elements_grid_.Tile(0, reduced_begin_, 1);
  if (is_by_row_) {
    elements_grid_.Tile(reduced_begin_, reduced_end_, elements_);
    elements_grid_.Tile(lanes_begin_, lanes_end_, std::max<int64_t>(1, tile_lanes / elements_));
  } else if (is_turned || options.holds_reduction) {
    constexpr int64_t kMaxHeld = 512;
    elements_grid_.Tile(reduced_end_, end,
                        is_turned ? turned_lanes : std::clamp<int64_t>(held_lanes, 1, kMaxHeld));
    elements_grid_.Tile(reduced_begin_, reduced_end_, elements_);
  } else {
    TileByLanes(primary, in_parts, options);
  }
  results_grid_ = elements_grid_;
  results_grid_.Tile(reduced_begin_, reduced_end_, 1);
}

void ReductionGrid::TileByLanes(const LinearForm* primary, bool in_parts, const Options& options) {
  const int64_t tile_lanes = options.tile_lanes;
  const int end = elements_grid_.rank();
  // Lanes that lie far apart come by transposition, which wants several elements of each.
  const bool is_transposed =
      primary != nullptr && reduced_end_ < end && Size(primary->steps[end - 1]) > 1;
  constexpr int64_t kTransposedElements = 32;
  constexpr int64_t kMaxLanes = 512;
  int64_t lanes = in_parts ? std::min(kMaxLanes, tile_lanes) : tile_lanes;
  if (is_transposed) {
    lanes =
        tile_lanes / std::clamp<int64_t>(elements_, 1, std::min(kTransposedElements, tile_lanes));
  }
  lanes = std::min(lanes, options.max_result_lanes);
  constexpr int64_t kWorthAnAddress = 128;
  if (!is_transposed && primary != nullptr) {
    // A tile holds no more results than the first read has contiguously.
    int64_t dense = 1;
    for (int axis = end; axis-- > reduced_end_ && primary->steps[axis] == dense;) {
      dense *= elements_grid_.extent(axis);
    }
    if (dense >= kWorthAnAddress) lanes = std::min(lanes, dense);
  }
  lanes = elements_grid_.Tile(reduced_end_, end, std::max<int64_t>(1, lanes));
  elements_grid_.Tile(reduced_begin_, reduced_end_, std::max<int64_t>(1, tile_lanes / lanes));
  if (!is_transposed && lanes >= kWorthAnAddress && primary != nullptr &&
      !elements_grid_.IsDense(*primary)) {
    // One element of each: read where they are.
    elements_grid_.Tile(reduced_begin_, reduced_end_, 1);
  }
}

int64_t ReductionGrid::tile_lanes() const {
  return elements_grid_.TileLanes(0, elements_grid_.rank());
}

int64_t ReductionGrid::result_lanes() const {
  return elements_grid_.TileLanes(lanes_begin_, lanes_end_);
}

int64_t ReductionGrid::result_tile_count() const {
  return elements_grid_.TileCount(0, reduced_begin_) *
         elements_grid_.TileCount(reduced_end_, elements_grid_.rank());
}

void ReductionGrid::MoveToResult(int64_t tile, Box& box) const {
  const int rank = results_grid_.rank();
  // One where lanes are by row: all their tiles are along the axes before the reduced ones.
  const int64_t lane_tiles = results_grid_.TileCount(reduced_end_, rank);
  box = Box();
  box.extents.fill(1);
  box.rank = rank;
  results_grid_.MoveTo(0, reduced_begin_, tile / lane_tiles, box);
  results_grid_.MoveTo(reduced_end_, rank, tile % lane_tiles, box);
}

Box ReductionGrid::FirstElements(const Box& result) const {
  Box box = result;
  elements_grid_.MoveTo(reduced_begin_, reduced_end_, 0, box);
  return box;
}

int64_t ReductionGrid::LanesOf(const Box& box) const {
  int64_t lanes = 1;
  for (int axis = lanes_begin_; axis < lanes_end_; ++axis) lanes *= box.extents[axis];
  return lanes;
}

BoundReduction::BoundReduction(const ReductionCode& code, const device::BoundStep& step)
    : code_(&code),
      init_(code.init, step),
      elements_(code.elements, step),
      update_(code.update, step),
      merge_(code.merge, step),
      direct_update_(FindDirect(code.update, ExprOp::kAccumulator)),
      direct_merge_(FindDirect(code.merge, ExprOp::kOther)) {
  const Direct& update = direct_update_;
  const Direct& merge = direct_merge_;
  if (update.loop != nullptr && merge.loop != nullptr && update.op == merge.op &&
      update.state_input == 0 && merge.state_input == 0) {
    row_reduction_ = FindRowReduction(update.op, update.operands.type);
  }
  if (update.loop != nullptr && update.state_input == 0) {
    column_reduction_ = FindColumnReduction(update.op, update.operands.type, /*is_in_parts=*/false);
  }
  if (row_reduction_ != nullptr) {
    column_reduction_in_parts_ =
        FindColumnReduction(update.op, update.operands.type, /*is_in_parts=*/true);
  }
}

BoundReduction::Direct BoundReduction::FindDirect(const Code& code, ExprOp other) {
  const Code::Instruction* only = code.OnlyInstruction();
  if (only == nullptr || only->kind != Code::Kind::kLoop || only->inputs.size() != 2 ||
      code.roots().size() != 1 || only->inputs[0] == only->inputs[1]) {
    return {};
  }
  // The reference's loops say that their result is none of their inputs.
  if (only->loop == reference::FindOperation(only->op, only->type, only->from_type)) return {};
  int state_input = -1;
  int other_input = -1;
  for (int k = 0; k < 2; ++k) {
    for (const Code::Outside& outside : code.outside()) {
      if (outside.value != only->inputs[k]) continue;
      if (outside.op == ExprOp::kState) state_input = k;
      if (outside.op == other) other_input = k;
    }
  }
  if (state_input < 0 || other_input < 0) return {};
  return {only->loop,
          only->op,
          state_input,
          {nullptr, {}, 0, only->payload, only->type, only->from_type}};
}

void BoundReduction::AppendForms(std::vector<LinearForm*>& forms) {
  init_.AppendForms(forms);
  elements_.AppendForms(forms);
}

void BoundReduction::LayOut(const ReductionGrid& grid) {
  tile_lanes_ = grid.tile_lanes();
  parts_ = grid.parts();
  elements_.LayOut(grid.elements_grid(), tile_lanes_);
  init_.LayOut(grid.results_grid(), grid.result_lanes());
  update_.LayOut(grid.results_grid(), tile_lanes_);
  merge_.LayOut(grid.results_grid(), tile_lanes_);
  scratch_bytes_ = init_.scratch_bytes() + elements_.scratch_bytes() + update_.scratch_bytes() +
                   merge_.scratch_bytes();
  for (tensor::ElementType type : code_->types) {
    state_offsets_.push_back(scratch_bytes_);
    scratch_bytes_ += RoundUp(parts_ * grid.result_lanes() * LaneBytes(type)) + 2 * kLine;
  }
}

ReductionFrame::ReductionFrame(const BoundReduction& bound, const ReductionGrid& grid,
                               device::Addresses addresses, std::byte* scratch)
    : bound_(bound),
      grid_(grid),
      scratch_(scratch),
      init_(bound.init_, addresses, scratch, grid.result_lanes()),
      elements_(bound.elements_, addresses, scratch += bound.init_.scratch_bytes(),
                grid.tile_lanes()),
      update_(bound.update_, addresses, scratch += bound.elements_.scratch_bytes(),
              grid.tile_lanes()),
      merge_(bound.merge_, addresses, scratch + bound.update_.scratch_bytes(), grid.tile_lanes()) {}

void ReductionFrame::Begin(const Box& result, int64_t lanes) {
  init_.Run(result);
  for (size_t k = 0; k < bound_.code_->types.size(); ++k) {
    const int64_t lane_bytes = LaneBytes(bound_.code_->types[k]);
    std::byte* column = state(static_cast<int>(k));
    std::memcpy(column, init_.root(static_cast<int>(k)), static_cast<size_t>(lanes * lane_bytes));
    if (!grid_.is_by_row()) Repeat(column, lane_bytes, lanes, bound_.parts_ * lanes);
  }
}

void ReductionFrame::TakeRoots(const Frame& frame, int64_t to, int64_t count) {
  for (size_t k = 0; k < bound_.code_->types.size(); ++k) {
    const int64_t lane_bytes = LaneBytes(bound_.code_->types[k]);
    std::memcpy(state(static_cast<int>(k)) + to * lane_bytes, frame.root(static_cast<int>(k)),
                static_cast<size_t>(count * lane_bytes));
  }
}

void ReductionFrame::Update(int64_t from, int64_t to, int64_t count) {
  const std::vector<tensor::ElementType>& types = bound_.code_->types;
  const Code& elements = bound_.elements_.code();
  auto element = [&](uint64_t k) {
    const int value = elements.roots()[k];
    return const_cast<std::byte*>(elements_.root(static_cast<int>(k))) +
           from * LaneBytes(elements.values()[value].type);
  };
  if (const BoundReduction::Direct& direct = bound_.direct_update_; direct.loop != nullptr) {
    LoopOperands operands = direct.operands;
    operands.result = state(0) + to * LaneBytes(types[0]);
    operands.inputs[direct.state_input] = operands.result;
    operands.inputs[1 - direct.state_input] = element(0);
    operands.lanes = count;
    return direct.loop(operands);
  }
  update_.Attach(ExprOp::kState,
                 [&](uint64_t k) { return state(static_cast<int>(k)) + to * LaneBytes(types[k]); });
  update_.Attach(ExprOp::kAccumulator, element);
  update_.RunLanes(count);
  TakeRoots(update_, to, count);
}

void ReductionFrame::Merge(int64_t parts, int64_t lanes) {
  const std::vector<tensor::ElementType>& types = bound_.code_->types;
  for (int64_t kept = reference::kBlock / 2; kept > 0; kept /= 2) {
    // What lies beyond a power of two joins what lies before it, which vectors of any width can do.
    if (parts <= kept) continue;
    const int64_t joined = (parts - kept) * lanes;
    for (int64_t begin = 0; begin < joined; begin += bound_.tile_lanes_) {
      const int64_t count = std::min(bound_.tile_lanes_, joined - begin);
      auto column = [&](uint64_t k) {
        return state(static_cast<int>(k)) + begin * LaneBytes(types[k]);
      };
      auto other = [&](uint64_t k) { return column(k) + kept * lanes * LaneBytes(types[k]); };
      if (const BoundReduction::Direct& direct = bound_.direct_merge_; direct.loop != nullptr) {
        LoopOperands operands = direct.operands;
        operands.result = column(0);
        operands.inputs[direct.state_input] = operands.result;
        operands.inputs[1 - direct.state_input] = other(0);
        operands.lanes = count;
        direct.loop(operands);
        continue;
      }
      merge_.Attach(ExprOp::kState, column);
      merge_.Attach(ExprOp::kOther, other);
      merge_.RunLanes(count);
      TakeRoots(merge_, begin, count);
    }
    parts = kept;
  }
}

void ReductionFrame::Run(const Box& result) {
  const int64_t lanes = grid_.LanesOf(result);
  Begin(result, lanes);
  if (grid_.has_no_elements()) return;
  const int64_t parts = bound_.parts_;
  Box box = grid_.FirstElements(result);
  if (grid_.is_by_row()) {
    elements_.Run(box);
    return bound_.row_reduction_(elements_.root(0), lanes, grid_.elements(), state(0));
  }
  const ColumnReduction reduce_columns = bound_.column_reduction_;
  if (parts > 1 && bound_.CanReduceColumnsInParts() && box.lanes == lanes * grid_.elements()) {
    elements_.Run(box);
    return bound_.column_reduction_in_parts_(elements_.root(0), lanes, grid_.elements(), lanes,
                                             state(0));
  }
  int64_t part = 0;
  for (int64_t tile = grid_.element_tile_count(); tile-- > 0;) {
    elements_.Run(box);
    const int64_t elements = box.lanes / lanes;
    for (int64_t done = 0; done < elements;) {
      if (const int64_t wholes = (elements - done) / parts;
          part == 0 && wholes > 0 && reduce_columns != nullptr) {
        const int64_t bytes = LaneBytes(bound_.code_->types[0]);
        reduce_columns(elements_.root(0) + done * lanes * bytes, parts * lanes, wholes,
                       parts * lanes, state(0));
        done += wholes * parts;
        continue;
      }
      const int64_t count = std::min(parts - part, elements - done);
      Update(done * lanes, part * lanes, count * lanes);
      done += count;
      part += count;
      if (part == parts) part = 0;
    }
    grid_.MoveOn(box);
  }
  Merge(parts, lanes);
}

}  // namespace onnxifi::engine
