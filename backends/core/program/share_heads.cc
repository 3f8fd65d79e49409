// SPDX-License-Identifier: Apache-2.0
//
// ShareHeads: where several heads of queries share keys and values, exporters repeat these in
// memory (Unsqueeze, Expand, Reshape), the whole cache for every token. Attention reads them where
// they were before instead: its axis of heads becomes two, along one of which the keys stand still.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/walk.h"

namespace onnxifi::program {
namespace {

// A Map that fills a dense buffer with elements of another one, some of them several times.
struct Repetition {
  std::vector<MemoryAxis> target;  // outermost first
  Dims source;                     // strides along the same axes
};

std::optional<Repetition> FindRepetition(const Program& program, const Step& step) {
  const Map* const map = step.As<Map>();
  if (map == nullptr || step.reads.size() != 1 || step.writes.size() != 1) return std::nullopt;
  const View& read = step.reads[0];
  const View& write = step.writes[0];
  const ExprNode& root = program.exprs[map->roots[0]];
  if (root.op != ExprOp::kLoad || !root.operands.empty() || read.type != write.type ||
      !read.guards.empty() || !write.guards.empty() || !(write.offset == Dim(0))) {
    return std::nullopt;
  }
  Repetition found;
  bool repeats = false;
  for (size_t axis = 0; axis < step.domain.size(); ++axis) {
    if (step.domain[axis] == Dim(1)) continue;
    found.target.push_back({write.strides[axis], step.domain[axis]});
    found.source.push_back(read.strides[axis]);
    repeats = repeats || read.strides[axis] == Dim(0);
  }
  if (!repeats || !(found.source.back() == Dim(1))) return std::nullopt;
  Dim span = 1;
  for (size_t axis = found.target.size(); axis-- > 0;) {
    if (!(found.target[axis].stride == span)) return std::nullopt;
    span = span * *found.target[axis].extent;
  }
  return found;
}

// `dims` with several axes in the place of one; of `parts` each has the extent of such an axis.
Dims SplitStrides(const Dims& strides, size_t axis, const Shape& parts) {
  Dims split(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(axis));
  for (size_t part = 0; part < parts.size(); ++part) {
    Dim stride = strides[axis];
    for (size_t inner = part + 1; inner < parts.size(); ++inner) stride = stride * parts[inner];
    split.push_back(stride);
  }
  split.insert(split.end(), strides.begin() + static_cast<std::ptrdiff_t>(axis) + 1, strides.end());
  return split;
}

class Sharing {
 public:
  Sharing(Program& program, const PrefersAttention& prefers)
      : program_(program), prefers_(prefers), uses_(program) {}

  void Run() {
    for (int number = 0; number < static_cast<int>(program_.steps.size()); ++number) {
      if (program_.steps[static_cast<size_t>(number)].As<Attention>() == nullptr) continue;
      constexpr size_t kKeys = 1, kValues = 2;
      for (const size_t read : {kKeys, kValues}) Share(number, read);
    }
  }

 private:
  void Share(int number, size_t read) {
    Step& step = program_.steps[static_cast<size_t>(number)];
    const int writer = uses_.OnlyWriter(step.reads[read].buffer);
    if (writer == BufferUses::kNoStep || writer > number) return;
    const Step& copy = program_.steps[static_cast<size_t>(writer)];
    const std::optional<Repetition> repetition = FindRepetition(program_, copy);
    if (!repetition || uses_.ReadsWhatIsWrittenAfter(writer, copy)) return;
    Step after{step.domain, step.reads, step.writes, *step.As<Attention>(), step.node};
    if (!SplitHeads(*repetition, read, after)) return;
    const Shape extents = OperandShape(after, static_cast<int>(read));
    const std::optional<Walk> walk = FindWalk(after.reads[read], extents, repetition->target);
    if (!walk) return;
    const View& source = copy.reads[0];
    View& view = after.reads[read];
    view = FollowWalk(std::move(view), *walk, source.offset, repetition->source);
    view.buffer = source.buffer;
    if (!prefers_(program_, after)) return;
    uses_.Remove(number, step);
    step = std::move(after);
    uses_.Add(number, step);
  }

  // Gives the axes of the target each an axis of the step's own, where one of these runs through
  // several. False where a body says the step's coordinates, or others.
  bool SplitHeads(const Repetition& repetition, size_t read, Step& step) {
    for (size_t axis = step.domain.size() - 2; axis-- > 0;) {
      const std::optional<Shape> parts =
          FindParts(repetition, step.reads[read].strides[axis], step.domain[axis]);
      if (parts && parts->size() > 1 && !SplitAxis(axis, *parts, step)) return false;
    }
    return true;
  }

  // The extents of the target's axes that an axis of this stride and extent runs through.
  static std::optional<Shape> FindParts(const Repetition& repetition, const Dim& stride,
                                        const Dim& extent) {
    const std::vector<MemoryAxis>& target = repetition.target;
    for (size_t inner = 0; inner < target.size(); ++inner) {
      if (!(target[inner].stride == stride)) continue;
      Dim product = *target[inner].extent;
      Shape parts = {product};
      for (size_t outer = inner; !(product == extent) && outer-- > 0;) {
        product = product * *target[outer].extent;
        parts.insert(parts.begin(), *target[outer].extent);
      }
      return product == extent ? std::optional(parts) : std::nullopt;
    }
    return std::nullopt;
  }

  bool SplitAxis(size_t axis, const Shape& parts, Step& step) {
    for (const ExprId id : Reachable(program_.exprs, BodyExprs(std::as_const(step)))) {
      const ExprNode& node = program_.exprs[id];
      if (node.op == ExprOp::kLoad && !node.operands.empty()) return false;
      if (node.op == ExprOp::kIndex && node.payload == axis) return false;
    }
    std::unordered_map<ExprId, ExprId> done;
    const auto replace = [&](ExprId id) {
      ExprNode node = program_.exprs[id];
      if (node.op != ExprOp::kIndex || node.payload < axis) return kNoExpr;
      node.payload += parts.size() - 1;
      return program_.exprs.Add(std::move(node));
    };
    for (ExprId* const root : BodyExprs(step)) {
      *root = Rewrite(program_.exprs, *root, replace, done);
    }
    for (std::vector<View>* const views : {&step.reads, &step.writes}) {
      for (View& view : *views) {
        view.strides = SplitStrides(view.strides, axis, parts);
        for (Guard& guard : view.guards) {
          guard.coefficients = SplitStrides(guard.coefficients, axis, parts);
        }
      }
    }
    step.domain.erase(step.domain.begin() + static_cast<std::ptrdiff_t>(axis));
    step.domain.insert(step.domain.begin() + static_cast<std::ptrdiff_t>(axis), parts.begin(),
                       parts.end());
    return true;
  }

  Program& program_;
  const PrefersAttention& prefers_;
  BufferUses uses_;
};

}  // namespace

void ShareHeads(Program& program, const PrefersAttention& prefers) {
  Sharing(program, prefers).Run();
  RemoveDeadSteps(program);
}

}  // namespace onnxifi::program
