// SPDX-License-Identifier: Apache-2.0
//
// ForwardCopies: Concat leaves a copy per input, and a chain of them copies what it has so far at
// every link. The source of such a copy moves into the part of the target that the copy would fill:
// every view of the source becomes a view of the target. Both keep their order in memory, so this
// runs when that is decided, and never decides it.

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/view_extents.h"
#include "backends/core/program/walk.h"

namespace onnxifi::program {
namespace {

// A buffer with more steps is left alone, so that the pass takes time in proportion to the program.
constexpr int kMaxUses = 256;

struct Use {
  int step;
  bool is_write;
  size_t index;  // in the reads or writes of the step
  std::optional<Shape> extents;

  const View& Of(const Step& of) const { return is_write ? of.writes[index] : of.reads[index]; }
  View& Of(Step& of) const { return is_write ? of.writes[index] : of.reads[index]; }
};

// Whether the step is a Map that copies one buffer to another, element for element.
bool IsCopy(const Program& program, const Step& step) {
  const Map* map = step.As<Map>();
  if (map == nullptr || step.reads.size() != 1 || step.writes.size() != 1) return false;
  const ExprNode& root = program.exprs[map->roots[0]];
  return root.op == ExprOp::kLoad && root.operands.empty() && step.reads[0].guards.empty() &&
         step.reads[0].rank() == static_cast<int>(step.domain.size());
}

// How what is copied lies in the target: axes, outermost first, with the stride of each in both.
// What they leave out of the source, no step may look at.
struct Placement {
  std::vector<MemoryAxis> source;
  Dim offset;  // in the target
  Dims strides;
};

// Axes of the copy that lie behind one another without a gap in both buffers are one axis. Nothing
// where the copy does not take the source from its beginning, leaves gaps or puts the axes in
// another order.
std::optional<Placement> FindPlacement(const Step& copy) {
  const View& read = copy.reads[0];
  const View& write = copy.writes[0];
  if (!(read.offset == Dim(0))) return std::nullopt;
  std::vector<size_t> left;
  for (size_t axis = 0; axis < copy.domain.size(); ++axis) {
    if (!(copy.domain[axis] == Dim(1))) left.push_back(axis);
  }
  Placement placement{{}, write.offset, {}};
  Dim span = 1;  // of the axes found so far, in the source
  // Innermost first.
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(),
                                   [&](size_t axis) { return read.strides[axis] == span; });
    if (next == left.end()) return std::nullopt;
    const Dim& extent = copy.domain[*next];
    const Dim& stride = write.strides[*next];
    const Dim inner = placement.strides.empty()
                          ? Dim(1)
                          : placement.strides.back() * *placement.source.back().extent;
    if (!placement.strides.empty() && stride == inner) {
      *placement.source.back().extent = *placement.source.back().extent * extent;
    } else if ((stride - inner).LowerBound() >= 0) {
      placement.source.push_back({span, extent});
      placement.strides.push_back(stride);
    } else {
      return std::nullopt;
    }
    span = span * extent;
    left.erase(next);
  }
  std::reverse(placement.source.begin(), placement.source.end());
  std::reverse(placement.strides.begin(), placement.strides.end());
  return placement;
}

// The target as a tensor whose axes have the strides of the placement, down to single elements.
// Nothing where strides that are not numbers do not tell how far the axes inside reach.
std::optional<std::vector<MemoryAxis>> AxesOfTarget(const Placement& placement) {
  Dims strides = placement.strides;
  if (strides.empty() || !(strides.back() == Dim(1))) strides.emplace_back(1);
  std::vector<MemoryAxis> axes;
  for (const Dim& stride : strides) {
    std::optional<Dim> extent;
    if (!axes.empty()) {
      const Dim& outer = axes.back().stride;
      if (!(stride == Dim(1)) && !(outer.is_constant() && stride.is_constant())) {
        return std::nullopt;
      }
      extent = FloorDiv(outer, stride);
    }
    axes.push_back({stride, extent});
  }
  return axes;
}

bool AreApart(const Walk& a, const Walk& b) {
  for (size_t axis = 0; axis < a.first.size(); ++axis) {
    if ((b.first[axis] - a.last[axis]).LowerBound() > 0 ||
        (a.first[axis] - b.last[axis]).LowerBound() > 0) {
      return true;
    }
  }
  return false;
}

// The same step; not for control steps, which own programs.
Step Copied(const Step& step) {
  Step copy{step.domain, step.reads, step.writes, {}, step.node};
  std::visit(
      [&copy](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (!std::is_same_v<Body, Control>) copy.body = body;
      },
      step.body);
  return copy;
}

class Forwarder {
 public:
  Forwarder(Program& program, const Accepts& accepts)
      : program_(program), accepts_(accepts), uses_(program) {
    int segment = 0;
    for (const Step& step : program.steps) {
      extents_.emplace_back(program, step);
      segment_of_step_.push_back(segment);
      if (IsRunByExecution(step)) ++segment;
    }
  }

  // From the last copy to the first: the target has found its own place before anything moves into
  // it, so that a view moves once, however long the chain.
  void Run() {
    for (int s = static_cast<int>(program_.steps.size()) - 1; s >= 0; --s) {
      if (IsCopy(program_, program_.steps[s])) Forward(s);
    }
  }

 private:
  void Forward(int number) {
    const Step& copy = program_.steps[number];
    const BufferId source = copy.reads[0].buffer;
    const BufferId target = copy.writes[0].buffer;
    if (!CanMove(source, target)) return;
    const std::optional<Placement> placement = FindPlacement(copy);
    if (!placement) return ForwardAttention(number);
    if (!IsRoomFree(*placement, number, source, target)) return;
    std::optional<std::map<int, Step>> moved = Moved(*placement, number, source, target);
    if (!moved) return;
    Replace(*std::move(moved), number);
  }

  // Each step by what it is after the copy, which then is no more; none where the device refuses
  // one of them.
  void Replace(std::map<int, Step> moved, int number) {
    for (const auto& [step, after] : moved) {
      if (!accepts_(program_, program_.steps[step], after)) return;
    }
    for (auto& [step, after] : moved) {
      uses_.Remove(step, program_.steps[step]);
      program_.steps[step] = std::move(after);
      uses_.Add(step, program_.steps[step]);
    }
    Step& copy = program_.steps[number];
    uses_.Remove(number, copy);
    // Without writes it goes with the dead steps.
    copy.reads.clear();
    copy.writes.clear();
  }

  // Attention writes rows of values wherever they belong: what is only copied once, in an order of
  // other axes, is written there.
  void ForwardAttention(int number) {
    const Step& copy = program_.steps[number];
    const BufferId source = copy.reads[0].buffer;
    const BufferId target = copy.writes[0].buffer;
    const int writer = uses_.OnlyWriter(source);
    if (writer == BufferUses::kNoStep || uses_.OnlyReader(source) != number ||
        uses_.OnlyWriter(target) != number || uses_.CountOf(source) != 2 ||
        segment_of_step_[writer] != segment_of_step_[number] ||
        program_.steps[writer].As<Attention>() == nullptr) {
      return;
    }
    Step after = Copied(program_.steps[writer]);
    std::optional<View> view = InOrderOf(copy, after);
    if (!view) return;
    after.writes[0] = *std::move(view);
    std::map<int, Step> moved;
    moved.emplace(writer, std::move(after));
    Replace(std::move(moved), number);
  }

  // The result of `step` as a view of what the copy writes. Nothing where an axis of one is none of
  // the other, or values no longer lie side by side.
  static std::optional<View> InOrderOf(const Step& copy, const Step& step) {
    const View& read = copy.reads[0];
    const View& written = step.writes[0];
    if (step.writes.size() != 1 || !copy.writes[0].guards.empty() ||
        !(read.offset == written.offset) || read.type != written.type) {
      return std::nullopt;
    }
    View view = copy.writes[0];
    view.strides.assign(step.domain.size(), Dim(0));
    std::vector<bool> is_taken(copy.domain.size(), false);
    for (size_t axis = 0; axis < step.domain.size(); ++axis) {
      if (step.domain[axis] == Dim(1)) continue;
      size_t same = 0;
      while (same < is_taken.size() &&
             (is_taken[same] || !(read.strides[same] == written.strides[axis]) ||
              !(copy.domain[same] == step.domain[axis]))) {
        ++same;
      }
      if (same == is_taken.size()) return std::nullopt;
      is_taken[same] = true;
      view.strides[axis] = copy.writes[0].strides[same];
    }
    for (size_t axis = 0; axis < is_taken.size(); ++axis) {
      if (!is_taken[axis] && !(copy.domain[axis] == Dim(1))) return std::nullopt;
    }
    const bool has_rows = step.domain.back() == Dim(1) || view.strides.back() == Dim(1);
    return has_rows ? std::optional(view) : std::nullopt;
  }

  bool CanMove(BufferId source, BufferId target) const {
    const Buffer& from = program_.buffers[source];
    const Buffer& to = program_.buffers[target];
    // Two packed elements share a byte, and steps would no longer write whole ones.
    return source != target && from.kind == Buffer::Kind::kTemporary &&
           to.kind == Buffer::Kind::kTemporary && from.type == to.type &&
           !tensor::IsPacked(from.type) && !uses_.IsOutput(source) &&
           uses_.CountOf(source) <= kMaxUses && uses_.CountOf(target) <= kMaxUses;
  }

  std::vector<Use> UsesOf(BufferId buffer) const {
    std::vector<Use> uses;
    for (const int number : uses_.StepsWith(buffer)) {
      const Step& step = program_.steps[number];
      const ViewExtents& extents = extents_[number];
      for (size_t r = 0; r < step.reads.size(); ++r) {
        if (step.reads[r].buffer != buffer) continue;
        uses.push_back({number, /*is_write=*/false, r, extents.OfRead(r)});
      }
      for (size_t w = 0; w < step.writes.size(); ++w) {
        if (step.writes[w].buffer != buffer) continue;
        uses.push_back({number, /*is_write=*/true, w, extents.OfWrite(w)});
      }
    }
    return uses;
  }

  // Whether that part of the target holds nothing else from the first write to the source until the
  // copy, and what was copied for as long as the source is read.
  bool IsRoomFree(const Placement& placement, int number, BufferId source, BufferId target) const {
    int last_use = 0;
    for (const Use& use : UsesOf(source)) {
      if (use.is_write && use.step > number) return false;
      // The target is allocated by the segment that writes it first, which knows its extents.
      if (use.is_write && segment_of_step_[use.step] != segment_of_step_[number]) return false;
      if (use.step != number) last_use = std::max(last_use, use.step);
    }
    const std::optional<std::vector<MemoryAxis>> axes = AxesOfTarget(placement);
    const Step& copy = program_.steps[number];
    const std::optional<Walk> room =
        axes ? FindWalk(copy.writes[0], copy.domain, *axes) : std::nullopt;
    const std::vector<Use> uses = UsesOf(target);
    return std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
      if (use.step == number || (use.step > number && (!use.is_write || use.step > last_use))) {
        return true;
      }
      const std::optional<Walk> other =
          room && use.extents ? FindWalk(use.Of(program_.steps[use.step]), *use.extents, *axes)
                              : std::nullopt;
      return other && AreApart(*room, *other);
    });
  }

  // The steps that look at the source, as they look at the target; nothing where one cannot.
  std::optional<std::map<int, Step>> Moved(const Placement& placement, int number, BufferId source,
                                           BufferId target) const {
    std::map<int, Step> moved;
    for (const Use& use : UsesOf(source)) {
      if (use.step == number) continue;
      const Step& step = program_.steps[use.step];
      if (!use.extents) return std::nullopt;
      const std::optional<Walk> walk = FindWalk(use.Of(step), *use.extents, placement.source);
      if (!walk) return std::nullopt;
      auto after = moved.find(use.step);
      if (after == moved.end()) after = moved.emplace(use.step, Copied(step)).first;
      View& view = use.Of(after->second);
      view = FollowWalk(std::move(view), *walk, placement.offset, placement.strides);
      view.buffer = target;
    }
    return moved;
  }

  Program& program_;
  const Accepts& accepts_;
  BufferUses uses_;
  std::vector<ViewExtents> extents_;  // by step
  std::vector<int> segment_of_step_;
};

}  // namespace

void ForwardCopies(Program& program, const Accepts& accepts) {
  Forwarder(program, accepts).Run();
  RemoveDeadSteps(program);
}

}  // namespace onnxifi::program
