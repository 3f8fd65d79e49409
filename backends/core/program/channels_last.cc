// SPDX-License-Identifier: Apache-2.0
//
// LayOutChannelsLast: moves temporaries between channel-wise steps to the order [N, spatial, C].
// A buffer has no layout of its own, only the strides with which steps look at it: every view is
// taken apart into a whole number of steps along each axis of the tensor that the buffer holds, and
// put together again with the other strides.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

using Numbers = std::vector<int64_t>;

// A view of a buffer and what is known of where it is looked at.
struct Use {
  View* view;
  const Step* step;
  std::optional<Shape> extents;  // of the view's axes; nothing: the coordinates are anything
};

// The numbers of `shape` behind its first axis, whose extent never enters a stride. Nothing if one
// is not known or 0.
std::optional<Numbers> InnerExtents(const Shape& shape) {
  Numbers extents = {1};
  for (size_t axis = 1; axis < shape.size(); ++axis) {
    if (!shape[axis].is_constant() || shape[axis].constant() < 1) return std::nullopt;
    extents.push_back(shape[axis].constant());
  }
  return extents;
}

// Strides of a tensor [N, C, spatial] whose axes lie in memory in the order given, outermost first.
Numbers StridesInOrder(const Numbers& extents, const std::vector<size_t>& order) {
  Numbers strides(extents.size());
  int64_t stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[*axis] = stride;
    stride *= extents[*axis];
  }
  return strides;
}

Numbers PlainStrides(const Numbers& extents) {
  std::vector<size_t> order;
  for (size_t axis = 0; axis < extents.size(); ++axis) order.push_back(axis);
  return StridesInOrder(extents, order);
}

Numbers ChannelsLastStrides(const Numbers& extents) {
  std::vector<size_t> order = {0};
  for (size_t axis = 2; axis < extents.size(); ++axis) order.push_back(axis);
  order.push_back(1);
  return StridesInOrder(extents, order);
}

// How a view walks the tensor of a buffer: which element it starts at, and along which of the
// tensor's axes, by how many elements of it, each of its own axes steps.
struct Walk {
  Numbers start;
  std::vector<std::pair<size_t, int64_t>> steps;  // axis of the tensor, elements; 0: none
};

// Nothing where the view crosses from one row of an axis into the next, so that its strides mean
// something in this layout only.
std::optional<Walk> FindWalk(const View& view, const Shape& view_extents, const Shape& shape,
                             const Numbers& extents, const Numbers& strides) {
  if (!view.guards.empty() || !view.offset.is_constant() || view.offset.constant() < 0 ||
      view_extents.size() != view.strides.size()) {
    return std::nullopt;
  }
  Walk walk;
  walk.start.resize(extents.size());
  Numbers last(extents.size());  // the largest coordinate reached along each axis
  int64_t rest = view.offset.constant();
  for (size_t axis = 1; axis < extents.size(); ++axis) {
    // Along the first axis nothing starts but at 0: its extent may be unknown.
    walk.start[axis] = rest / strides[axis];
    rest %= strides[axis];
    if (walk.start[axis] >= extents[axis]) return std::nullopt;
    last[axis] = walk.start[axis];
  }
  bool is_first_axis_taken = false;
  for (size_t k = 0; k < view.strides.size(); ++k) {
    if (view_extents[k] == Dim(1) || view.strides[k] == Dim(0)) {
      walk.steps.emplace_back(0, 0);
      continue;
    }
    if (!view.strides[k].is_constant() || view.strides[k].constant() < 0) return std::nullopt;
    const int64_t stride = view.strides[k].constant();
    if (stride % strides[0] == 0) {
      // Whole tensors of the batch, all of them in order.
      if (stride != strides[0] || !(view_extents[k] == shape[0]) || is_first_axis_taken) {
        return std::nullopt;
      }
      is_first_axis_taken = true;
      walk.steps.emplace_back(0, 1);
      continue;
    }
    if (!view_extents[k].is_constant()) return std::nullopt;
    size_t axis = 1;
    while (extents[axis] == 1 || stride % strides[axis] != 0) {
      if (++axis == extents.size()) return std::nullopt;
    }
    const int64_t step = stride / strides[axis];
    last[axis] += step * (view_extents[k].constant() - 1);
    if (last[axis] >= extents[axis]) return std::nullopt;
    walk.steps.emplace_back(axis, step);
  }
  return walk;
}

View FollowWalk(const View& view, const Walk& walk, const Numbers& strides) {
  View moved = view;
  int64_t offset = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) offset += walk.start[axis] * strides[axis];
  moved.offset = Dim(offset);
  for (size_t k = 0; k < walk.steps.size(); ++k) {
    const auto& [axis, step] = walk.steps[k];
    moved.strides[k] = Dim(step * strides[axis]);
  }
  return moved;
}

// Reads of `step` that are not looked at along its domain: at coordinates that the body computes,
// or by the prologue of an operand.
std::set<size_t> ReadsElsewhere(const Program& program, const Step& step) {
  std::set<size_t> reads;
  for (ExprId id : Reachable(program.exprs, BodyExprs(step))) {
    const ExprNode& node = program.exprs[id];
    if (node.op == ExprOp::kLoad && !node.operands.empty()) {
      reads.insert(static_cast<size_t>(node.payload));
    }
  }
  if (const Contract* contract = step.As<Contract>()) {
    const ExprId prologues[] = {contract->a_prologue, contract->b_prologue};
    for (ExprId id : Reachable(program.exprs, prologues)) {
      const ExprNode& node = program.exprs[id];
      if (node.op == ExprOp::kLoad && node.payload >= 2) {
        reads.insert(static_cast<size_t>(node.payload));
      }
    }
  }
  return reads;
}

// The extents that the reads and the writes of a step are looked at over, or nothing for a whole
// step or one of its reads where they are not simply its domain.
class ViewExtents {
 public:
  ViewExtents(const Program& program, const Step& step)
      : step_(step),
        is_known_(step.As<Map>() != nullptr || step.As<Reduce>() != nullptr ||
                  step.As<Row>() != nullptr || step.As<Contract>() != nullptr ||
                  step.As<Window>() != nullptr) {
    if (is_known_) elsewhere_ = ReadsElsewhere(program, step);
  }

  std::optional<Shape> ExtentsOfRead(size_t read) const {
    if (!is_known_ || elsewhere_.contains(read)) return std::nullopt;
    const Contract* contract = step_.As<Contract>();
    // Nothing that a product reads and no kernel is a tensor [N, C, spatial].
    const bool has_no_channels =
        contract != nullptr && (contract->form == Contract::Form::kMatMul || read == 1);
    if (has_no_channels) return std::nullopt;
    const auto operand = static_cast<int>(read);
    return operand < OperandCount(step_) ? OperandShape(step_, operand) : step_.domain;
  }

  std::optional<Shape> ExtentsOfWrites() const {
    if (!is_known_) return std::nullopt;
    Shape written = step_.domain;
    if (const Reduce* reduce = step_.As<Reduce>()) {
      written.resize(written.size() - static_cast<size_t>(reduce->axes));
    }
    return written;
  }

 private:
  const Step& step_;
  bool is_known_;
  std::set<size_t> elsewhere_;
};

class ChannelsLast {
 public:
  ChannelsLast(Program& program, const PrefersChannelsLast& prefers)
      : program_(program), prefers_(prefers), uses_(program) {
    for (const Step& step : program.steps) extents_.emplace_back(program, step);
  }

  void Run() {
    Collect();
    for (const auto& [buffer, shape] : tensors_) LayOut(buffer, shape);
  }

 private:
  // The tensors that steps which prefer the order read or write, then those that element-wise and
  // window steps connect with them.
  void Collect() {
    for (const Step& step : program_.steps) {
      if (step.reads.empty() || step.writes.empty() || !prefers_(program_, step)) continue;
      preferring_.insert(&step);
      Enter(step.reads[0].buffer, step);
      Enter(step.writes[0].buffer, step);
    }
    while (!pending_.empty()) {
      const BufferId buffer = pending_.back();
      pending_.pop_back();
      for (const int number : uses_.StepsWith(buffer)) {
        const Step& step = program_.steps[static_cast<size_t>(number)];
        const bool is_channel_wise = step.As<Map>() != nullptr || step.As<Window>() != nullptr ||
                                     preferring_.contains(&step);
        if (!is_channel_wise) continue;
        for (const View& view : step.reads) Enter(view.buffer, step);
        for (const View& view : step.writes) Enter(view.buffer, step);
      }
    }
  }

  // A buffer's tensor is its shape, or, where that has another rank, the shape in which a
  // convolution sees all of it.
  void Enter(BufferId id, const Step& step) {
    if (id == kNoBuffer || tensors_.contains(id) || !IsFree(id)) return;
    const Shape& own = program_.buffers[static_cast<size_t>(id)].shape;
    if (own.size() >= 3 && own.size() <= 5 && own.size() == Rank(step)) {
      tensors_.emplace(id, own);
      pending_.push_back(id);
      return;
    }
    for (const Use& use : UsesOf(id)) {
      if (use.step->As<Contract>() == nullptr || !use.extents || use.extents->size() < 3 ||
          !(tensor::Product(*use.extents) == tensor::Product(own)) ||
          !IsDense({*use.view, *use.extents})) {
        continue;
      }
      tensors_.emplace(id, *use.extents);
      pending_.push_back(id);
      return;
    }
  }

  // Every view of the buffer, in the order of steps.
  std::vector<Use> UsesOf(BufferId id) {
    std::vector<Use> uses;
    for (const int number : uses_.StepsWith(id)) {
      Step& step = program_.steps[static_cast<size_t>(number)];
      const ViewExtents& extents = extents_[static_cast<size_t>(number)];
      for (size_t r = 0; r < step.reads.size(); ++r) {
        if (step.reads[r].buffer != id) continue;
        uses.push_back({&step.reads[r], &step, extents.ExtentsOfRead(r)});
      }
      for (View& write : step.writes) {
        if (write.buffer == id) uses.push_back({&write, &step, extents.ExtentsOfWrites()});
      }
    }
    return uses;
  }

  static size_t Rank(const Step& step) { return step.domain.size(); }

  bool IsFree(BufferId id) const {
    return program_.buffers[static_cast<size_t>(id)].kind == Buffer::Kind::kTemporary &&
           !uses_.IsOutput(id);
  }

  void LayOut(BufferId id, const Shape& shape) {
    const std::optional<Numbers> extents = InnerExtents(shape);
    if (!extents) return;
    const Numbers plain = PlainStrides(*extents);
    const Numbers channels_last = ChannelsLastStrides(*extents);
    if (plain == channels_last) return;
    const std::vector<Use> uses = UsesOf(id);
    std::vector<Walk> walks;
    for (const Use& use : uses) {
      if (!use.extents) return;
      std::optional<Walk> walk = FindWalk(*use.view, *use.extents, shape, *extents, plain);
      if (!walk) return;
      walks.push_back(*std::move(walk));
    }
    for (size_t k = 0; k < uses.size(); ++k) {
      *uses[k].view = FollowWalk(*uses[k].view, walks[k], channels_last);
    }
  }

  Program& program_;
  const PrefersChannelsLast& prefers_;
  BufferUses uses_;
  std::vector<ViewExtents> extents_;  // by step
  std::set<const Step*> preferring_;
  std::map<BufferId, Shape> tensors_;
  std::vector<BufferId> pending_;
};

}  // namespace

void LayOutChannelsLast(Program& program, const PrefersChannelsLast& prefers) {
  ChannelsLast(program, prefers).Run();
}

}  // namespace onnxifi::program
