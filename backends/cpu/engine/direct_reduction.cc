// SPDX-License-Identifier: Apache-2.0
//
// DirectReduction: what is recognised, and the walk over tiles of results. Results are the
// reference's: in parts where it reduces in parts, else one element after the other.

#include "backends/cpu/engine/direct_reduction.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/reduction.h"
#include "backends/cpu/engine/frame.h"
#include "backends/cpu/engine/reduction.h"
#include "backends/cpu/engine/row_reduction.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::engine {
namespace {

using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

class BoundDirectReduction final : public device::BoundKernel {
 public:
  // Null where it is not to be bound so.
  static std::unique_ptr<BoundDirectReduction> Create(const DirectReduction& reduction,
                                                      std::shared_ptr<const Code> roots,
                                                      const device::BoundStep& step,
                                                      Runtime& runtime) {
    const auto axes = static_cast<size_t>(step.step->As<program::Reduce>()->axes);
    const size_t outer = step.domain.size() - axes;
    const int64_t results = tensor::ElementCount(std::span(step.domain).first(outer));
    const int64_t count = tensor::ElementCount(std::span(step.domain).subspan(outer));
    if (results == 0 || count == 0) return nullptr;
    std::unique_ptr<BoundDirectReduction> bound(
        new BoundDirectReduction(reduction, std::move(roots), step, runtime));
    const bool is_in_parts = reference::UsesPartialSums(results, count);
    if (!bound->LayOut(static_cast<int>(outer), count, is_in_parts)) return nullptr;
    return bound;
  }

  std::string Detail() const override {
    return "direct reduction, " + std::string(processor::VectorName());
  }

  base::Status Run(device::Addresses addresses) const override {
    constexpr int64_t kCostOfElement = 80;  // picoseconds
    const int64_t cost_of_result = count_ * kCostOfElement + roots_.code().cost() + 5000;
    return runtime_.For(grid_.TileCount(0, reduced_begin_),
                        grid_.TileLanes(0, reduced_begin_) * cost_of_result,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          RunTiles(addresses, begin, end, scratch);
                        });
  }

 private:
  BoundDirectReduction(const DirectReduction& reduction, std::shared_ptr<const Code> roots,
                       const device::BoundStep& step, Runtime& runtime)
      : reduction_(reduction),
        code_(std::move(roots)),
        roots_(*code_, step),
        writer_(step.writes, static_cast<int>(step.domain.size())),
        runtime_(runtime),
        elements_(MakeAccess(step.reads[static_cast<size_t>(reduction.read)],
                             static_cast<int>(step.domain.size()))),
        grid_(step.domain) {}

  // False where neither loop can do it.
  bool LayOut(int outer_rank, int64_t count, bool is_in_parts) {
    if (!elements_.guards.empty()) return false;
    count_ = count;
    std::vector<LinearForm*> forms;
    AppendForms(elements_, forms);
    roots_.AppendForms(forms);
    writer_.AppendForms(forms);
    int boundary[] = {outer_rank};
    grid_.Join(boundary, forms);
    reduced_begin_ = boundary[0];
    const bool has_one_element = grid_.rank() == reduced_begin_;
    if (grid_.rank() - reduced_begin_ > 1) return false;
    element_step_ = has_one_element ? 1 : elements_.form.steps[static_cast<size_t>(reduced_begin_)];
    result_step_ =
        reduced_begin_ == 0 ? 0 : elements_.form.steps[static_cast<size_t>(reduced_begin_ - 1)];
    constexpr int64_t kTileElements = 1 << 13;
    constexpr int64_t kMinColumns = 8;
    int64_t results = std::max<int64_t>(1, kTileElements / count);
    if (is_in_parts && element_step_ == 1) {
      row_reduction_ = FindRowReduction(reduction_.op, reduction_.type);
    } else {
      if (reduced_begin_ == 0 || result_step_ != 1) return false;
      if (grid_.extent(reduced_begin_ - 1) < kMinColumns) return false;
      column_reduction_ = FindColumnReduction(reduction_.op, reduction_.type, is_in_parts);
      results = std::clamp<int64_t>(results, 256, 1024);
    }
    if (row_reduction_ == nullptr && column_reduction_ == nullptr) return false;
    grid_.Tile(reduced_begin_, grid_.rank(), 1);
    lanes_ = grid_.Tile(0, reduced_begin_, results);
    roots_.LayOut(grid_, lanes_);
    writer_.LayOut(grid_, Writer::kNeverStreamed);
    runtime_.scratch().Reserve(StateBytes() + roots_.scratch_bytes() + writer_.scratch_bytes());
    return true;
  }

  int64_t StateBytes() const {
    constexpr int64_t kLine = 64;
    return (lanes_ * elements_.lane_bytes + kLine - 1) / kLine * kLine;
  }

  void RunTiles(device::Addresses addresses, int64_t begin, int64_t end, std::byte* scratch) const {
    std::byte* const states = scratch;
    scratch += StateBytes();
    Frame roots(roots_, addresses, scratch, lanes_);
    scratch += roots_.scratch_bytes();
    roots.Attach(ExprOp::kState, [&](uint64_t) { return states; });
    Box box;
    box.extents.fill(1);
    box.rank = grid_.rank();
    grid_.MoveTo(reduced_begin_, grid_.rank(), 0, box);
    grid_.MoveTo(0, reduced_begin_, begin, box);
    for (int64_t tile = begin; tile < end; ++tile) {
      tensor::StoreScalar(reduction_.type, states, 0, reduction_.begin);
      Repeat(states, elements_.lane_bytes, 1, box.lanes);
      ReduceTile(addresses, box, states);
      writer_.Run(roots, box, addresses, scratch);
      grid_.MoveOn(0, reduced_begin_, box);
    }
  }

  // Results along the last of the outer axes at once.
  void ReduceTile(device::Addresses addresses, const Box& tile, std::byte* states) const {
    Box box = tile;
    const int axis = reduced_begin_ - 1;
    const int64_t results = axis < 0 ? 1 : tile.extents[static_cast<size_t>(axis)];
    const int64_t bytes = elements_.lane_bytes;
    for (int64_t left = tile.lanes; left > 0; left -= results, states += results * bytes) {
      const std::byte* const from = AddressOf(elements_, box, addresses[elements_.buffer]);
      if (column_reduction_ != nullptr) {
        column_reduction_(from, element_step_, count_, results, states);
      } else if (result_step_ == count_) {
        row_reduction_(from, results, count_, states);
      } else {
        for (int64_t row = 0; row < results; ++row) {
          row_reduction_(from + row * result_step_ * bytes, 1, count_, states + row * bytes);
        }
      }
      for (int outer = axis; outer-- > 0;) {
        const auto at = static_cast<size_t>(outer);
        if (++box.begin[at] < tile.begin[at] + tile.extents[at]) break;
        box.begin[at] = tile.begin[at];
      }
    }
  }

  const DirectReduction reduction_;
  const std::shared_ptr<const Code> code_;  // shared with the kernel
  BoundCode roots_;
  Writer writer_;
  Runtime& runtime_;
  Access elements_;
  Grid grid_;
  int reduced_begin_ = 0;
  int64_t count_ = 0;
  int64_t lanes_ = 0;
  // In elements, from an element of a result to the next, and from a result to the next.
  int64_t element_step_ = 1;
  int64_t result_step_ = 0;
  RowReduction row_reduction_ = nullptr;  // null: the other one
  ColumnReduction column_reduction_ = nullptr;
};

}  // namespace

std::optional<DirectReduction> FindDirectReduction(const program::ExprPool& pool,
                                                   const program::Step& step) {
  const program::Reduce& reduce = *step.As<program::Reduce>();
  if (reduce.reduction.states.size() != 1) return std::nullopt;
  const program::Reduction::State& state = reduce.reduction.states[0];
  const ExprNode& init = pool[state.init];
  const ExprNode& update = pool[state.update];
  const ExprNode& merge = pool[state.merge];
  const auto is_state = [&](ExprId id) { return pool[id].op == ExprOp::kState; };
  const bool is_one_operation =
      !tensor::IsBool(state.type) && init.op == ExprOp::kConstant && update.op == merge.op &&
      update.operands.size() == 2 && merge.operands.size() == 2 && is_state(update.operands[0]) &&
      is_state(merge.operands[0]) && pool[merge.operands[1]].op == ExprOp::kOther;
  if (!is_one_operation || FindRowReduction(update.op, state.type) == nullptr) {
    return std::nullopt;
  }
  const ExprNode& element = pool[update.operands[1]];
  const bool is_read =
      element.op == ExprOp::kLoad && element.operands.empty() && element.type == state.type;
  if (!is_read || step.reads[element.payload].type != state.type) return std::nullopt;
  return DirectReduction{update.op, state.type, static_cast<int>(element.payload),
                         tensor::Scalar{.u = init.payload}};
}

std::unique_ptr<device::BoundKernel> BindDirectReduction(const DirectReduction& reduction,
                                                         std::shared_ptr<const Code> roots,
                                                         const device::BoundStep& step,
                                                         Runtime& runtime) {
  return BoundDirectReduction::Create(reduction, std::move(roots), step, runtime);
}

}  // namespace onnxifi::engine
