// SPDX-License-Identifier: Apache-2.0
//
// LayOutChannelsLast: moves temporaries between channel-wise steps to the order [N, spatial, C].
// A buffer has no layout of its own, only the strides with which steps look at it: every view is
// taken apart into a whole number of steps along each axis of the tensor that the buffer holds, and
// put together again with the other strides. A view that walks all of space as one axis, as tokens
// are, walks it so in either order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/view_extents.h"
#include "backends/core/program/walk.h"

namespace onnxifi::program {
namespace {

using Numbers = std::vector<int64_t>;

// A view of a buffer and what is known of where it is looked at.
struct Use {
  View* view;
  const Step* step;
  std::optional<Shape> extents;  // of the view's axes; nothing: the coordinates are anything
  // Guards bound coordinates that are computed, and no addresses.
  bool has_computed_coordinates = false;
  bool is_read = false;
};

// To be made of a tensor with its channels last, in the plain order, before a step.
struct Copy {
  const Step* before;
  BufferId from;
  BufferId to;
  Shape shape;
  Dims strides;  // of the first
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

// Whether a view of this step can be of a tensor [N, C, spatial] in any order. Nothing that a
// product reads and no kernel is one.
bool MayHaveChannels(const Step& step, bool is_read, size_t view) {
  if (const Contract* contract = step.As<Contract>()) {
    return !is_read || (contract->form != Contract::Form::kMatMul && view != 1);
  }
  return step.As<Map>() != nullptr || step.As<Reduce>() != nullptr || step.As<Row>() != nullptr ||
         step.As<Window>() != nullptr;
}

// A tensor [N, C, spatial] by the axes along which views are told, and the strides that these get.
struct Axes {
  std::vector<MemoryAxis> plain;
  Dims channels_last;
};

Axes AxesOf(const Shape& shape, const Numbers& plain, const Numbers& channels_last) {
  Axes axes;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    axes.plain.push_back({plain[axis], shape[axis]});
  axes.channels_last.assign(channels_last.begin(), channels_last.end());
  return axes;
}

// With one axis for all of space, whose pixels are as far apart as those of its last axis.
Axes WithJoinedSpace(Axes axes) {
  constexpr size_t kFirstSpatial = 2;
  if (axes.plain.size() <= kFirstSpatial) return axes;
  MemoryAxis space = axes.plain.back();
  const Dim stride = axes.channels_last.back();
  for (size_t axis = kFirstSpatial; axis + 1 < axes.plain.size(); ++axis) {
    space.extent = *space.extent * *axes.plain[axis].extent;
  }
  axes.plain.resize(kFirstSpatial);
  axes.channels_last.resize(kFirstSpatial);
  axes.plain.push_back(space);
  axes.channels_last.push_back(stride);
  return axes;
}

class ChannelsLast {
 public:
  ChannelsLast(Program& program, const PrefersChannelsLast& prefers)
      : program_(program), prefers_(prefers), uses_(program) {
    for (const Step& step : program.steps) extents_.emplace_back(program, step);
  }

  void Run() {
    Collect();
    for (const auto& [buffer, shape] : tensors_) LayOut(buffer, shape);
    InsertCopies();
  }

 private:
  // The tensors that steps which prefer the order read or write, then those that element-wise and
  // window steps connect with them.
  void Collect() {
    for (const Step& step : program_.steps) {
      if (step.reads.empty() || step.writes.empty() || !prefers_(program_, step)) continue;
      preferring_.insert(&step);
      Enter(step.reads[0], /*channels=*/1, step);
      Enter(step.writes[0], /*channels=*/1, step);
    }
    while (!pending_.empty()) {
      const BufferId buffer = pending_.back();
      pending_.pop_back();
      for (const int number : uses_.StepsWith(buffer)) {
        const Step& step = program_.steps[static_cast<size_t>(number)];
        const bool is_channel_wise = step.As<Map>() != nullptr || step.As<Window>() != nullptr ||
                                     preferring_.contains(&step);
        if (!is_channel_wise) continue;
        const std::optional<size_t> channels = ChannelsIn(step, buffer);
        for (const View& view : step.reads) Enter(view, channels, step);
        for (const View& view : step.writes) Enter(view, channels, step);
      }
    }
  }

  // Whether a step only enlarges what it reads into tensors in the plain order, as the Resize at
  // the end of a segmentation network does: it is to read the plain order as well.
  bool EnlargesIntoPlainOrder(const Step& step, const Shape& shape) const {
    if (step.As<Map>() == nullptr || step.domain.empty()) return false;
    // What is not known is no constant; the first axis need not be.
    const Dim from = tensor::Product(std::span(shape).subspan(1));
    const Dim to = tensor::Product(std::span(step.domain).subspan(1));
    if (!from.is_constant() || !to.is_constant() || to.constant() <= from.constant()) return false;
    return std::ranges::none_of(
        step.writes, [this](const View& view) { return tensors_.contains(view.buffer); });
  }

  // Along which axis of its views a step walks the channels of a tensor that it reads or writes;
  // nothing where that cannot be told.
  std::optional<size_t> ChannelsIn(const Step& step, BufferId tensor) const {
    if (step.As<Map>() == nullptr) return 1;
    const Shape& shape = tensors_.at(tensor);
    const std::optional<Numbers> extents = InnerExtents(shape);
    if (!extents) return std::nullopt;
    const Dim stride(PlainStrides(*extents)[1]);
    for (const std::vector<View>* views : {&step.reads, &step.writes}) {
      for (const View& view : *views) {
        if (view.buffer != tensor || view.strides.size() != step.domain.size()) continue;
        for (size_t axis = 0; axis < step.domain.size(); ++axis) {
          if (view.strides[axis] == stride && step.domain[axis] == shape[1]) return axis;
        }
      }
    }
    return std::nullopt;
  }

  // A buffer's tensor is its shape, or, where that has another rank, the shape in which a
  // convolution sees all of it. Where the step walks the channels along another axis of the shape
  // than the second, the buffer is one that was transposed, and mostly has them innermost already.
  void Enter(const View& view, std::optional<size_t> channels, const Step& step) {
    const BufferId id = view.buffer;
    if (id == kNoBuffer || tensors_.contains(id) || !IsFree(id)) return;
    const Shape& own = program_.buffers[static_cast<size_t>(id)].shape;
    if (own.size() >= 3 && own.size() <= 5 && own.size() == Rank(step)) {
      const std::optional<Numbers> extents = InnerExtents(own);
      if (!extents) return;
      if (channels && *channels < view.strides.size() && (*extents)[1] != 1) {
        const Dim& stride = view.strides[*channels];
        if (!(stride == Dim(0)) && !(stride == Dim(PlainStrides(*extents)[1]))) return;
      }
      tensors_.emplace(id, own);
      pending_.push_back(id);
      return;
    }
    for (const Use& use : UsesOf(id)) {
      const Contract* contract = use.step->As<Contract>();
      if (contract == nullptr || contract->form == Contract::Form::kMatMul || !use.extents ||
          use.extents->size() < 3 || !(tensor::Product(*use.extents) == tensor::Product(own)) ||
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
        uses.push_back({&step.reads[r], &step, std::nullopt, false, /*is_read=*/true});
        if (!MayHaveChannels(step, /*is_read=*/true, r)) continue;
        uses.back().extents = extents.OfRead(r);
        uses.back().has_computed_coordinates = extents.HasComputedCoordinates(r);
      }
      for (size_t w = 0; w < step.writes.size(); ++w) {
        if (step.writes[w].buffer != id) continue;
        uses.push_back({&step.writes[w], &step, std::nullopt, false, /*is_read=*/false});
        if (MayHaveChannels(step, /*is_read=*/false, w)) uses.back().extents = extents.OfWrite(w);
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
    const Axes apart = AxesOf(shape, plain, channels_last);
    const Axes joined = WithJoinedSpace(apart);
    const std::vector<Use> uses = UsesOf(id);
    std::vector<std::pair<Walk, const Axes*>> walks;
    for (const Use& use : uses) {
      if (!use.extents) return;
      View walked = *use.view;
      if (use.has_computed_coordinates) walked.guards.clear();
      const Axes* axes = &apart;
      std::optional<Walk> walk = FindWalk(walked, *use.extents, axes->plain);
      if (!walk) walk = FindWalk(walked, *use.extents, (axes = &joined)->plain);
      if (!walk) return;
      walks.emplace_back(*std::move(walk), axes);
    }
    const Step* last_writer = nullptr;
    for (const Use& use : uses) {
      if (!use.is_read) last_writer = use.step;
    }
    std::optional<Copy> copy;
    for (size_t k = 0; k < uses.size(); ++k) {
      // What is written later would be missing in the copy.
      if (uses[k].is_read && uses[k].step > last_writer &&
          EnlargesIntoPlainOrder(*uses[k].step, shape)) {
        if (!copy) {
          copy = Copy{uses[k].step, id, AddPlainBuffer(id), shape, apart.channels_last};
        }
        uses[k].view->buffer = copy->to;
        continue;
      }
      const auto& [walk, axes] = walks[k];
      *uses[k].view = FollowWalk(*uses[k].view, walk, /*offset=*/0, axes->channels_last);
    }
    if (copy) copies_.push_back(*std::move(copy));
  }

  BufferId AddPlainBuffer(BufferId id) {
    Buffer buffer;
    buffer.type = program_.buffers[static_cast<size_t>(id)].type;
    buffer.shape = program_.buffers[static_cast<size_t>(id)].shape;
    return program_.AddBuffer(std::move(buffer));
  }

  // A step that reads one order and writes the other takes several times as long for each element
  // as two in one order; a copy is the smallest step that can change it.
  void InsertCopies() {
    const Step* const first = program_.steps.data();
    std::multimap<std::ptrdiff_t, const Copy*, std::greater<>> by_position;
    for (const Copy& copy : copies_) by_position.emplace(copy.before - first, &copy);
    for (const auto& [position, copy] : by_position) {
      const ElementType type = program_.buffers[static_cast<size_t>(copy->from)].type;
      Step step;
      step.node = program_.steps[static_cast<size_t>(position)].node;
      step.domain = copy->shape;
      step.reads = {DenseView(copy->from, type, copy->shape)};
      step.reads[0].strides = copy->strides;
      step.writes = {DenseView(copy->to, type, copy->shape)};
      step.body = Map{{Load(program_.exprs, type, 0).id()}};
      program_.steps.insert(program_.steps.begin() + position, std::move(step));
    }
  }

  Program& program_;
  const PrefersChannelsLast& prefers_;
  BufferUses uses_;
  std::vector<ViewExtents> extents_;  // by step
  std::set<const Step*> preferring_;
  std::map<BufferId, Shape> tensors_;
  std::vector<BufferId> pending_;
  std::vector<Copy> copies_;
};

}  // namespace

void LayOutChannelsLast(Program& program, const PrefersChannelsLast& prefers) {
  ChannelsLast(program, prefers).Run();
}

}  // namespace onnxifi::program
