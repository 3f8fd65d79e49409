// SPDX-License-Identifier: Apache-2.0
//
// WeightedRows: what is recognised, and the walk over tiles of rows. A tap that a guard keeps out
// adds nothing, so it is left out of a sum. What becomes of the result of a Reduce is computed in
// place, while the rows of a tile are in a cache.

#include "backends/cpu/engine/weighted_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "backends/core/reference/reduction.h"
#include "backends/cpu/engine/computed_loads.h"
#include "backends/cpu/engine/frame.h"
#include "backends/cpu/engine/row_loads.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::engine {
namespace {

using program::Expr;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

bool IsComputedLoad(const ExprNode& node) {
  return node.op == ExprOp::kLoad && !node.operands.empty();
}

// A product as an expression: the node that loads and the weight, kNoExpr where that is 1.
struct Product {
  ExprId load;
  ExprId weight;
};

std::optional<Product> FindProduct(const program::ExprPool& pool, ExprId id, bool needs_weight) {
  const ExprNode& node = pool[id];
  if (!needs_weight && IsComputedLoad(node) && node.type == ElementType::kFloat32) {
    return Product{id, program::kNoExpr};
  }
  if (node.op != ExprOp::kMul || node.type != ElementType::kFloat32) return std::nullopt;
  for (int k = 0; k < 2; ++k) {
    if (IsComputedLoad(pool[node.operands[k]])) {
      return Product{node.operands[k], node.operands[1 - k]};
    }
  }
  return std::nullopt;
}

bool IsZero(const program::ExprPool& pool, ExprId id) {
  return pool[id].op == ExprOp::kConstant && pool[id].payload == 0;
}

// The terms of ((first + a) + b) + ..., where first may be zero.
std::vector<ExprId> FindTerms(const program::ExprPool& pool, ExprId root, bool& begins_with_zero) {
  std::vector<ExprId> terms;
  while (pool[root].op == ExprOp::kAdd) {
    terms.push_back(pool[root].operands[1]);
    root = pool[root].operands[0];
  }
  begins_with_zero = IsZero(pool, root);
  if (!begins_with_zero) terms.push_back(root);
  std::reverse(terms.begin(), terms.end());
  return terms;
}

// What a Reduce adds to its state, or finds the extreme of, where it does nothing else.
std::optional<ExprId> FindReduced(const program::ExprPool& pool, const program::Reduce& reduce) {
  if (reduce.reduction.states.size() != 1 || reduce.roots.size() != 1) return std::nullopt;
  const program::Reduction::State& state = reduce.reduction.states[0];
  auto is = [&](ExprId id, ExprOp op) { return pool[id].op == op; };
  const ExprNode& update = pool[state.update];
  const ExprNode& merge = pool[state.merge];
  const bool is_extreme = update.op == ExprOp::kMax || update.op == ExprOp::kMin;
  const bool begins_well = is_extreme ? is(state.init, ExprOp::kConstant)
                                      : update.op == ExprOp::kAdd && IsZero(pool, state.init);
  const bool is_one_operation = state.type == ElementType::kFloat32 && begins_well &&
                                merge.op == update.op && is(update.operands[0], ExprOp::kState) &&
                                is(merge.operands[0], ExprOp::kState) &&
                                is(merge.operands[1], ExprOp::kOther);
  return is_one_operation ? std::optional<ExprId>(update.operands[1]) : std::nullopt;
}

// Whether a root is computed from the state and numbers that are the same everywhere.
bool IsOfStateAlone(const program::ExprPool& pool, const program::ExprIds& roots) {
  return std::ranges::all_of(program::Reachable(pool, roots), [&](ExprId id) {
    const ExprOp op = pool[id].op;
    return op != ExprOp::kLoad && op != ExprOp::kIndex && op != ExprOp::kRow;
  });
}

constexpr size_t kMaxTaps = 64;

// The parts of a sum in the order in which adding up halves of them meets them: part k and part k +
// kBlock / 2 are added first.
std::array<int64_t, reference::kBlock> MakePartOrder() {
  std::array<int64_t, reference::kBlock> order{};
  for (int64_t place = 0; place < reference::kBlock; ++place) {
    for (int64_t bit = 1; bit < reference::kBlock; bit *= 2) {
      order[static_cast<size_t>(place)] =
          2 * order[static_cast<size_t>(place)] + ((place & bit) != 0 ? 1 : 0);
    }
  }
  return order;
}

// The taps of one row, in the order in which they are added.
class TapList {
 public:
  explicit TapList(RowTap* taps) : taps_(taps) {}

  void Clear() { count_ = part_begin_ = waiting_count_ = 0; }
  void Add(int64_t place, float weight) { taps_[count_++] = {place, weight, -1}; }
  // What was added since the last part ended is the part at `place` of the order.
  void EndPart(uint32_t place) {
    if (count_ == part_begin_) return;
    if (waiting_count_ > 0) {
      // Parts of a half that ends before this one.
      const uint32_t half = std::bit_floor(waiting_[waiting_count_ - 1] ^ place);
      const uint32_t begin = waiting_[waiting_count_ - 1] & ~(half - 1);
      int first = waiting_count_ - 1;
      while (first > 0 && waiting_[first - 1] >= begin) --first;
      taps_[part_begin_ - 1].merges = waiting_count_ - 1 - first;
      waiting_count_ = first + 1;
    }
    waiting_[waiting_count_++] = place;
    part_begin_ = count_;
  }
  std::span<const RowTap> Finish() {
    if (count_ > 0) taps_[count_ - 1].merges = std::max(0, waiting_count_ - 1);
    return {taps_, static_cast<size_t>(count_)};
  }

 private:
  RowTap* taps_;
  int64_t count_ = 0;
  int64_t part_begin_ = 0;
  // Where parts that are not added up yet begin in the order.
  uint32_t waiting_[kMaxParts + 1];
  int waiting_count_ = 0;
};

class BoundRows final : public device::BoundKernel {
 public:
  // Null where they are not to be bound so.
  static std::unique_ptr<BoundRows> Create(std::shared_ptr<const WeightedRows> rows,
                                           const device::BoundStep& step, Runtime& runtime) {
    if (rows->row_axis == kNoRowAxis) return nullptr;
    const auto axis = static_cast<size_t>(rows->row_axis);
    constexpr int64_t kShortest = 2;
    if (tensor::ElementCount(step.domain) == 0 || step.domain[axis] < kShortest) return nullptr;
    if (step.writes[0].strides[axis] != 1) return nullptr;
    for (const WeightedRows::Tap& tap : rows->taps) {
      const device::BoundView& view = step.reads[static_cast<size_t>(tap.read)];
      const auto along = static_cast<size_t>(tap.along);
      if (view.strides[along] != 1 || view.fill.u != 0) return nullptr;
      for (const device::BoundGuard& guard : view.guards) {
        if (guard.coefficients[along] != 0) return nullptr;
      }
    }
    const size_t outer = step.domain.size() - static_cast<size_t>(rows->reduced_axes);
    const int64_t elements = tensor::ElementCount(std::span(step.domain).subspan(outer));
    const int64_t results = tensor::ElementCount(std::span(step.domain).first(outer));
    if (elements > runtime.settings().tile_lanes) return nullptr;
    device::BoundStep of_rows = step;
    of_rows.domain[axis] = 1;
    const int64_t length = JoinRows(*rows, step, of_rows.domain);
    std::unique_ptr<BoundRows> bound(
        new BoundRows(std::move(rows), step, of_rows, length, elements, runtime));
    bound->is_in_parts_ =
        bound->rows_->reduced_axes > 0 && reference::UsesPartialSums(results, elements);
    // A zero to begin with is one of the zeros of every part.
    const bool begins_with_extreme = bound->rows_->operation != ExprOp::kAdd;
    if (bound->is_in_parts_ && begins_with_extreme && bound->rows_->begin == 0) return nullptr;
    return bound;
  }

  std::string Detail() const override {
    return "weighted rows of " + std::to_string(length_) + ", " +
           std::string(processor::VectorName());
  }

  base::Status Run(device::Addresses addresses) const override {
    const int64_t taps = elements_ * static_cast<int64_t>(rows_->taps.size());
    const int64_t rows = grid_.TileLanes(0, reduced_begin_);
    constexpr int64_t kCostOfTap = 60;  // picoseconds, of a lane
    const int64_t cost =
        rows * (taps * length_ * kCostOfTap + elements_ * (numbers_.code().cost() + 100) + 1000);
    return runtime_.For(grid_.TileCount(0, reduced_begin_), cost,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          RunTiles(addresses, begin, end, scratch);
                        });
  }

 private:
  BoundRows(std::shared_ptr<const WeightedRows> rows, const device::BoundStep& step,
            const device::BoundStep& of_rows, int64_t length, int64_t elements, Runtime& runtime)
      : rows_(std::move(rows)),
        reads_(step.reads),
        length_(length),
        elements_(elements),
        numbers_(rows_->numbers, of_rows),
        runtime_(runtime) {
    if (rows_->finish) finish_.emplace(*rows_->finish, of_rows);
    const int rank = static_cast<int>(step.domain.size());
    const int outer_rank = rank - rows_->reduced_axes;
    // Where rows begin in the result, as numbers instead of elements.
    target_ = MakeAccess(step.writes[0], rank);
    target_buffer_ = std::exchange(target_.buffer, program::kNoBuffer);
    std::vector<LinearForm*> forms;
    numbers_.AppendForms(forms);
    AppendForms(target_, forms);
    grid_ = Grid(of_rows.domain);
    std::vector<int> order = Grid::SortedAxes(target_.form, 0, outer_rank);
    for (int axis = outer_rank; axis < rank; ++axis) order.push_back(axis);
    grid_.Permute(order, forms);
    int boundary[] = {outer_rank};
    grid_.Join(boundary, forms);
    reduced_begin_ = boundary[0];
    // Results of a tile stay in a cache, and so do its numbers.
    constexpr int64_t kTileResults = 1 << 14;
    const int64_t lanes = runtime.settings().tile_lanes;
    const int64_t most =
        std::clamp<int64_t>(kTileResults / length_, 1, std::max<int64_t>(1, lanes / elements_));
    grid_.Tile(reduced_begin_, grid_.rank(), elements_);
    grid_.Tile(0, reduced_begin_, most);
    tile_lanes_ = grid_.TileLanes(0, grid_.rank());
    numbers_.LayOut(grid_, tile_lanes_);
    if (finish_) finish_->LayOut(grid_, kFinishedLanes);
    runtime.scratch().Reserve(FinishBytes() + numbers_.scratch_bytes() +
                              (PlaceColumns() + 2) * tile_lanes_ * 8 + TapBytes());
  }

  static constexpr int64_t kMinRows = 32;  // for many threads

  // How far all taps read from one index of an even axis to the next; nothing where they differ.
  static std::optional<int64_t> SourceStep(const WeightedRows& rows, const device::BoundStep& step,
                                           const WeightedRows::EvenAxis& even) {
    std::optional<int64_t> found;
    for (size_t tap = 0; tap < even.along.size(); ++tap) {
      const auto along = static_cast<size_t>(even.along[tap]);
      const device::BoundView& view = step.reads[static_cast<size_t>(rows.taps[tap].read)];
      if (found && *found != view.strides[along]) return std::nullopt;
      found = view.strides[along];
      for (const device::BoundGuard& guard : view.guards) {
        if (guard.coefficients[along] != 0) return std::nullopt;
      }
    }
    return found;
  }

  // The elements of a row, with those of even axes that lie in front of it everywhere, which leave
  // the domain. Enough rows stay.
  static int64_t JoinRows(const WeightedRows& rows, const device::BoundStep& step,
                          tensor::Extents& domain) {
    int64_t length = step.domain[static_cast<size_t>(rows.row_axis)];
    for (auto even = rows.even_axes.begin(); even != rows.even_axes.end();) {
      const auto axis = static_cast<size_t>(even->axis);
      const bool is_next = domain[axis] != 1 && step.writes[0].strides[axis] == length &&
                           SourceStep(rows, step, *even) == length &&
                           tensor::ElementCount(domain) >= kMinRows * domain[axis];
      if (!is_next) {
        ++even;
        continue;
      }
      length *= std::exchange(domain[axis], 1);
      even = rows.even_axes.begin();
    }
    return length;
  }

  // Results that become what the root says together.
  static constexpr int64_t kFinishedLanes = 1024;
  // Of them and of the code that does so, which come first in scratch memory.
  int64_t FinishBytes() const {
    return finish_ ? kFinishedLanes * static_cast<int64_t>(sizeof(float)) + finish_->scratch_bytes()
                   : 0;
  }

  int64_t PlaceColumns() const { return static_cast<int64_t>(rows_->taps.size()); }
  // Of one row.
  int64_t TapBytes() const {
    return elements_ * static_cast<int64_t>(rows_->taps.size() * sizeof(RowTap));
  }

  void RunTiles(device::Addresses addresses, int64_t begin, int64_t end, std::byte* scratch) const {
    auto* const finished = scratch;
    std::optional<Frame> finish;
    if (finish_) {
      finish.emplace(*finish_, addresses, scratch + kFinishedLanes * sizeof(float), kFinishedLanes);
      finish->Attach(ExprOp::kState, [&](uint64_t) { return finished; });
    }
    scratch += FinishBytes();
    Frame frame(numbers_, addresses, scratch, tile_lanes_);
    scratch += numbers_.scratch_bytes();
    const auto* const source = reinterpret_cast<const float*>(
        addresses[reads_[static_cast<size_t>(rows_->taps[0].read)].buffer]);
    auto* const sums = reinterpret_cast<float*>(addresses[target_buffer_]);
    std::array<const float*, kMaxTaps> weights;  // of a tile, by tap; null where all are 1
    auto* targets = reinterpret_cast<int64_t*>(scratch);
    int64_t* guarded = targets + tile_lanes_;
    int64_t* places = guarded + tile_lanes_;
    TapList taps(reinterpret_cast<RowTap*>(places + PlaceColumns() * tile_lanes_));
    Box box;
    box.extents.fill(1);
    box.rank = grid_.rank();
    grid_.MoveTo(reduced_begin_, grid_.rank(), 0, box);
    grid_.MoveTo(0, reduced_begin_, begin, box);
    for (int64_t tile = begin; tile < end; ++tile) {
      frame.Run(box);
      for (size_t tap = 0; tap < rows_->taps.size(); ++tap) {
        FindPlaces(frame, rows_->taps[tap], box.lanes, guarded,
                   places + static_cast<int64_t>(tap) * tile_lanes_);
        const int root = rows_->taps[tap].weight;
        weights[tap] = root < 0 ? nullptr : reinterpret_cast<const float*>(frame.root(root));
      }
      Box results = box;
      for (int axis = reduced_begin_; axis < box.rank; ++axis) results.extents[axis] = 1;
      results.lanes = box.lanes / elements_;
      LoadBox(target_, nullptr, results, reinterpret_cast<std::byte*>(targets));
      if (elements_ == 1 && length_ <= kMaxShortRow && rows_->operation == ExprOp::kAdd) {
        SumShortRows(source,
                     {std::span(weights).first(rows_->taps.size()), places, tile_lanes_, targets,
                      results.lanes, length_, First()},
                     sums);
      } else {
        for (int64_t row = 0; row < results.lanes; ++row) {
          RunRow(source, weights, places, row, taps, sums + targets[row]);
        }
      }
      if (finish) {
        Finish(std::span(targets, static_cast<size_t>(results.lanes)), *finish, finished, sums);
      }
      grid_.MoveOn(0, reduced_begin_, box);
    }
  }

  // What the root says of the results of rows that begin at `targets`.
  void Finish(std::span<const int64_t> targets, Frame& finish, std::byte* finished,
              float* sums) const {
    for (size_t row = 0; row < targets.size();) {
      // Rows that follow one another are one.
      size_t end = row + 1;
      while (end < targets.size() && targets[end] == targets[end - 1] + length_) ++end;
      float* at = sums + targets[row];
      for (int64_t left = static_cast<int64_t>(end - row) * length_; left > 0;) {
        const int64_t now = std::min(left, kFinishedLanes);
        const auto bytes = static_cast<size_t>(now) * sizeof(float);
        std::memcpy(finished, at, bytes);
        finish.RunLanes(now);
        std::memcpy(at, finish.root(0), bytes);
        at += now;
        left -= now;
      }
      row = end;
    }
  }

  float First() const { return rows_->begins_with_zero ? 0.0f : -0.0f; }

  void RunRow(const float* source, const std::array<const float*, kMaxTaps>& weights,
              const int64_t* places, int64_t row, TapList& taps, float* sums) const {
    float first = First();
    taps.Clear();
    const bool is_sum = rows_->operation == ExprOp::kAdd;
    auto add = [&](size_t tap, int64_t lane) {
      const float weight = weights[tap] == nullptr ? 1.0f : weights[tap][lane];
      const int64_t place = places[static_cast<int64_t>(tap) * tile_lanes_ + lane];
      if (!is_sum || place != kNowhere) {
        taps.Add(place, weight);
      } else {
        // Zero times what is no finite number is none; it makes the whole row so.
        first += weight * 0.0f;
      }
    };
    const int64_t begin = row * elements_;
    if (is_in_parts_) {
      static const std::array<int64_t, reference::kBlock> order = MakePartOrder();
      for (size_t place = 0; place < order.size(); ++place) {
        for (int64_t n = order[place]; n < elements_; n += reference::kBlock) {
          add(0, begin + n);
        }
        // Of equal extremes the last one counts, in the order in which parts are joined.
        if (is_sum) taps.EndPart(static_cast<uint32_t>(place));
      }
    } else {
      for (size_t tap = 0; tap < rows_->taps.size(); ++tap) {
        for (int64_t n = 0; n < elements_; ++n) add(tap, begin + n);
      }
    }
    if (is_sum) return SumWeightedRow(source, taps.Finish(), first, length_, sums);
    FindExtremesOfRows(rows_->operation, source, taps.Finish(), rows_->begin, length_, sums);
  }

  // Where a tap's rows begin, for every lane of a tile.
  void FindPlaces(const Frame& frame, const WeightedRows::Tap& tap, int64_t lanes, int64_t* guarded,
                  int64_t* places) const {
    const device::BoundView& view = reads_[static_cast<size_t>(tap.read)];
    AddUp(frame, tap, view.offset, view.strides, lanes, places);
    for (const device::BoundGuard& guard : view.guards) {
      AddUp(frame, tap, guard.offset, guard.coefficients, lanes, guarded);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        if (guarded[lane] < 0 || guarded[lane] >= guard.extent) places[lane] = kNowhere;
      }
    }
  }

  // sums[lane] = offset + steps * coordinates, but for that along the row.
  static void AddUp(const Frame& frame, const WeightedRows::Tap& tap, int64_t offset,
                    std::span<const int64_t> steps, int64_t lanes, int64_t* sums) {
    std::fill_n(sums, lanes, offset);
    for (size_t axis = 0; axis < tap.coordinates.size(); ++axis) {
      const int root = tap.coordinates[axis];
      const int64_t step = steps[axis];
      if (root < 0 || step == 0) continue;
      AddMultiples(step, reinterpret_cast<const int64_t*>(frame.root(root)), lanes, sums);
    }
  }

  const std::shared_ptr<const WeightedRows> rows_;  // shared with the kernel
  const std::vector<device::BoundView> reads_;
  const int64_t length_;
  const int64_t elements_;
  BoundCode numbers_;
  std::optional<BoundCode> finish_;
  Access target_;
  program::BufferId target_buffer_;
  Grid grid_;
  int reduced_begin_ = 0;
  int64_t tile_lanes_ = 0;
  bool is_in_parts_ = false;  // as the reference adds up so many elements
  Runtime& runtime_;
};

// The axis of the results that lies together in memory, or -1.
int FindRowAxis(const program::Step& step) {
  const program::Dims& strides = step.writes[0].strides;
  for (size_t axis = strides.size(); axis-- > 0;) {
    if (strides[axis] == program::Dim(1) && !(step.domain[axis] == program::Dim(1))) {
      return static_cast<int>(axis);
    }
  }
  return -1;
}

// What a step adds up, or finds the extreme of.
struct Sum {
  std::vector<ExprId> terms;
  bool begins_with_zero = true;
  int reduced_axes = 0;
  ExprOp operation = ExprOp::kAdd;
  float begin = 0;
  bool is_finished = true;  // else its root is to be computed from it
};

std::optional<Sum> FindSum(const program::ExprPool& pool, const program::Step& step) {
  Sum sum;
  if (const auto* map = step.As<program::Map>()) {
    sum.terms = FindTerms(pool, map->roots[0], sum.begins_with_zero);
  } else if (const auto* reduce = step.As<program::Reduce>()) {
    const std::optional<ExprId> reduced = FindReduced(pool, *reduce);
    if (!reduced || !IsOfStateAlone(pool, reduce->roots)) return std::nullopt;
    const program::Reduction::State& state = reduce->reduction.states[0];
    sum.terms = {*reduced};
    sum.reduced_axes = reduce->axes;
    sum.operation = pool[state.update].op;
    sum.begin = static_cast<float>(tensor::Scalar{.u = pool[state.init].payload}.f);
    sum.is_finished = pool[reduce->roots[0]].op == ExprOp::kState;
  }
  if (sum.terms.empty() || sum.terms.size() > kMaxTaps) return std::nullopt;
  return sum;
}

// The axes of the domain that are coordinates of a term's load as they are, the innermost first.
std::vector<int> FindIndexedAxes(const program::ExprPool& pool, ExprId term) {
  std::vector<int> axes;
  const std::optional<Product> product = FindProduct(pool, term, /*needs_weight=*/true);
  if (!product) return axes;
  for (const ExprId coordinate : pool[product->load].operands) {
    if (pool[coordinate].op == ExprOp::kIndex) {
      axes.push_back(static_cast<int>(pool[coordinate].payload));
    }
  }
  std::ranges::sort(axes, std::greater<>());
  return axes;
}

// Those of rows along an axis; none where they differ along it. What they need is added to `roots`.
std::vector<WeightedRows::Tap> FindTaps(const program::ExprPool& pool, const program::Step& step,
                                        const Sum& sum, int row_axis, std::vector<ExprId>& roots) {
  std::vector<WeightedRows::Tap> taps;
  const Variations variations = FindVariations(pool, step, sum.terms, row_axis);
  auto add_root = [&](ExprId id) {
    const auto found = std::ranges::find(roots, id);
    const auto number = static_cast<int>(found - roots.begin());
    if (found == roots.end()) roots.push_back(id);
    return number;
  };
  for (const ExprId term : sum.terms) {
    // A Map that only copies rows has better ways.
    const std::optional<Product> product =
        FindProduct(pool, term, /*needs_weight=*/sum.reduced_axes == 0);
    if (!product) return {};
    const bool has_weight = product->weight != program::kNoExpr;
    if (has_weight && !variations.at(product->weight).is_per_row) return {};
    const ExprNode& load = pool[product->load];
    WeightedRows::Tap tap{
        static_cast<int>(load.payload), has_weight ? add_root(product->weight) : -1, -1, {}};
    for (const ExprId coordinate : load.operands) {
      const ExprNode& node = pool[coordinate];
      const bool is_along = row_axis != kNoRowAxis && node.op == ExprOp::kIndex &&
                            node.payload == static_cast<uint64_t>(row_axis);
      if (is_along && tap.along < 0) {
        tap.along = static_cast<int>(tap.coordinates.size());
        tap.coordinates.push_back(-1);
      } else if (variations.at(coordinate).is_per_row) {
        tap.coordinates.push_back(add_root(coordinate));
      } else {
        return {};
      }
    }
    if (tap.along < 0 && row_axis != kNoRowAxis) return {};
    taps.push_back(std::move(tap));
    const auto buffer = [&](const WeightedRows::Tap& of) {
      return step.reads[static_cast<size_t>(of.read)].buffer;
    };
    if (buffer(taps.back()) != buffer(taps[0])) return {};
  }
  return taps;
}

std::vector<WeightedRows::EvenAxis> FindEvenAxes(const program::ExprPool& pool,
                                                 const program::Step& step, const Sum& sum,
                                                 int row_axis) {
  std::vector<WeightedRows::EvenAxis> axes;
  for (int axis = 0; axis < static_cast<int>(step.domain.size()); ++axis) {
    if (axis == row_axis || step.domain[static_cast<size_t>(axis)] == program::Dim(1)) continue;
    std::vector<ExprId> roots;
    const std::vector<WeightedRows::Tap> taps = FindTaps(pool, step, sum, axis, roots);
    if (taps.empty()) continue;
    WeightedRows::EvenAxis& even = axes.emplace_back();
    even.axis = axis;
    for (const WeightedRows::Tap& tap : taps) even.along.push_back(tap.along);
  }
  return axes;
}

}  // namespace

std::shared_ptr<const WeightedRows> FindWeightedRows(const program::ExprPool& pool,
                                                     const program::Step& step, LoopSet loops) {
  if (step.writes.size() != 1 || step.writes[0].type != ElementType::kFloat32) return nullptr;
  const std::optional<Sum> sum = FindSum(pool, step);
  if (!sum) return nullptr;
  std::vector<int> row_axes;
  if (const int axis = FindRowAxis(step); axis >= 0) row_axes.push_back(axis);
  // Rows that do not lie together: of points, whose channels are planes or a single one. Of one
  // term there are better ways.
  if (sum->reduced_axes == 0 && sum->terms.size() > 1) {
    const std::vector<int> points = FindIndexedAxes(pool, sum->terms[0]);
    row_axes.insert(row_axes.end(), points.begin(), points.end());
    row_axes.push_back(kNoRowAxis);
  }
  for (const int axis : row_axes) {
    std::vector<ExprId> roots;
    std::vector<WeightedRows::Tap> taps = FindTaps(pool, step, *sum, axis, roots);
    if (taps.empty()) continue;
    WeightedRows rows{Code::Compile(pool, roots, loops),
                      std::move(taps),
                      axis,
                      sum->reduced_axes,
                      sum->begins_with_zero,
                      sum->operation,
                      sum->begin,
                      std::nullopt,
                      {}};
    if (sum->reduced_axes == 0 && axis != kNoRowAxis) {
      rows.even_axes = FindEvenAxes(pool, step, *sum, axis);
    }
    if (!sum->is_finished) {
      rows.finish = Code::Compile(pool, step.As<program::Reduce>()->roots, loops);
    }
    return std::make_shared<const WeightedRows>(std::move(rows));
  }
  return nullptr;
}

std::unique_ptr<device::BoundKernel> BindWeightedRows(std::shared_ptr<const WeightedRows> rows,
                                                      const device::BoundStep& step,
                                                      Runtime& runtime) {
  return BoundRows::Create(std::move(rows), step, runtime);
}

}  // namespace onnxifi::engine
