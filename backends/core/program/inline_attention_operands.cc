// SPDX-License-Identifier: Apache-2.0
//
// InlineAttentionOperands: where several heads of queries share keys and values, exporters repeat
// these in memory (Unsqueeze, Expand, Reshape), and others scale keys before they are multiplied:
// the whole cache for every token. Attention reads them where they were before instead: its axis of
// heads becomes two, along one of which the keys stand still, and sums are scaled.

#include <bit>
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

// A Map that fills a dense buffer with elements of another one, some of them several times, or all
// of them times a number.
struct Copy {
  View read;
  std::optional<double> factor;
  std::vector<MemoryAxis> target;  // outermost first
  Dims source;                     // strides of `read` along the same axes
};

// The number that an expression has at all coordinates.
std::optional<double> FindNumber(const Program& program, const Step& step, ExprId id) {
  const ExprNode& node = program.exprs[id];
  if (node.op == ExprOp::kConstant) return std::bit_cast<double>(node.payload);
  if (node.op != ExprOp::kLoad || !node.operands.empty()) return std::nullopt;
  const View& view = step.reads[node.payload];
  if (view.buffer == kNoBuffer || !view.guards.empty()) return std::nullopt;
  const Buffer& buffer = program.buffers[static_cast<size_t>(view.buffer)];
  if (buffer.kind != Buffer::Kind::kConstant) return std::nullopt;
  const tensor::Tensor& value = program.constants[static_cast<size_t>(buffer.index)];
  if (value.element_count() != 1) return std::nullopt;
  return value.AsDouble(0);
}

// The read of the Map whose elements it copies; the number that it multiplies them by.
struct Source {
  uint64_t read;
  std::optional<double> factor;
};

std::optional<Source> FindSource(const Program& program, const Step& step, ExprId id) {
  const ExprNode& root = program.exprs[id];
  if (root.op == ExprOp::kLoad && root.operands.empty()) return Source{root.payload, {}};
  if (root.op != ExprOp::kMul || root.type != ElementType::kFloat32 ||
      !program.has_fast_algorithms) {
    return std::nullopt;
  }
  for (const size_t number : {0, 1}) {
    const ExprNode& other = program.exprs[root.operands[1 - number]];
    const std::optional<double> factor = FindNumber(program, step, root.operands[number]);
    if (factor && other.op == ExprOp::kLoad && other.operands.empty()) {
      return Source{other.payload, factor};
    }
  }
  return std::nullopt;
}

std::optional<Copy> FindCopy(const Program& program, const Step& step) {
  const Map* const map = step.As<Map>();
  if (map == nullptr || step.writes.size() != 1) return std::nullopt;
  const std::optional<Source> source = FindSource(program, step, map->roots[0]);
  if (!source) return std::nullopt;
  const View& read = step.reads[source->read];
  const View& write = step.writes[0];
  if (read.type != write.type || !read.guards.empty() || !write.guards.empty() ||
      !(write.offset == Dim(0))) {
    return std::nullopt;
  }
  Copy found{read, source->factor, {}, {}};
  bool repeats = false, has_rows = false;
  for (size_t axis = 0; axis < step.domain.size(); ++axis) {
    if (step.domain[axis] == Dim(1)) continue;
    found.target.push_back({write.strides[axis], step.domain[axis]});
    found.source.push_back(read.strides[axis]);
    repeats = repeats || read.strides[axis] == Dim(0);
    has_rows = has_rows || read.strides[axis] == Dim(1);
  }
  if (!(repeats || found.factor) || !has_rows) return std::nullopt;
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

class Inliner {
 public:
  Inliner(Program& program, const PrefersAttention& prefers)
      : program_(program), prefers_(prefers), uses_(program) {}

  void Run() {
    for (int number = 0; number < static_cast<int>(program_.steps.size()); ++number) {
      if (program_.steps[static_cast<size_t>(number)].As<Attention>() == nullptr) continue;
      constexpr size_t kKeys = 1, kValues = 2;
      for (const size_t read : {kKeys, kValues}) {
        while (Inline(number, read)) continue;
      }
    }
  }

 private:
  // Whether the read is another one now.
  bool Inline(int number, size_t read) {
    Step& step = program_.steps[static_cast<size_t>(number)];
    const int writer = uses_.OnlyWriter(step.reads[read].buffer);
    if (writer == BufferUses::kNoStep || writer > number) return false;
    const Step& map = program_.steps[static_cast<size_t>(writer)];
    const std::optional<Copy> copy = FindCopy(program_, map);
    if (!copy || uses_.ReadsWhatIsWrittenAfter(writer, map)) return false;
    Step after{step.domain, step.reads, step.writes, *step.As<Attention>(), step.node};
    if (!SplitHeads(*copy, read, after)) return false;
    const Shape extents = OperandShape(after, static_cast<int>(read));
    const std::optional<Walk> walk = FindWalk(after.reads[read], extents, copy->target);
    if (!walk) return false;
    View& view = after.reads[read];
    view = FollowWalk(std::move(view), *walk, copy->read.offset, copy->source);
    view.buffer = copy->read.buffer;
    if (copy->factor && !ScaleSums(*copy->factor, read, after)) return false;
    if (!prefers_(program_, after)) return false;
    uses_.Remove(number, step);
    step = std::move(after);
    uses_.Add(number, step);
    return true;
  }

  // Keys are factors of the scores' sums, values of the results'. False where what is read is more
  // than converted before it is multiplied.
  bool ScaleSums(double factor, size_t read, Step& step) {
    Attention& attention = *step.As<Attention>();
    const bool is_of_keys = read == 1;
    if (!IsRead(is_of_keys ? attention.key_prologue : attention.value_prologue, read)) return false;
    const Expr sum = Accumulator(program_.exprs, ElementType::kFloat32);
    const ExprId scaled = (sum * Like(sum, factor)).id();
    std::unordered_map<ExprId, ExprId> done;
    const auto replace = [&](ExprId id) { return id == sum.id() ? scaled : kNoExpr; };
    if (is_of_keys) {
      attention.score = Rewrite(program_.exprs, attention.score, replace, done);
    } else {
      for (ExprId& root : attention.roots) root = Rewrite(program_.exprs, root, replace, done);
    }
    return true;
  }

  // Whether an expression is what a step reads, or that in another type of floats.
  bool IsRead(ExprId id, size_t read) const {
    const ExprNode* node = &program_.exprs[id];
    while (node->op == ExprOp::kCast && tensor::IsFloat(node->type)) {
      node = &program_.exprs[node->operands[0]];
    }
    return node->op == ExprOp::kLoad && node->operands.empty() && node->payload == read &&
           tensor::IsFloat(node->type);
  }

  // Gives the axes of the target each an axis of the step's own, where one of these runs through
  // several. False where a body says the step's coordinates, or others.
  bool SplitHeads(const Copy& copy, size_t read, Step& step) {
    for (size_t axis = step.domain.size() - 2; axis-- > 0;) {
      const std::optional<Shape> parts =
          FindParts(copy, step.reads[read].strides[axis], step.domain[axis]);
      if (parts && parts->size() > 1 && !SplitAxis(axis, *parts, step)) return false;
    }
    return true;
  }

  // The extents of the target's axes that an axis of this stride and extent runs through.
  static std::optional<Shape> FindParts(const Copy& copy, const Dim& stride, const Dim& extent) {
    const std::vector<MemoryAxis>& target = copy.target;
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

void InlineAttentionOperands(Program& program, const PrefersAttention& prefers) {
  Inliner(program, prefers).Run();
  RemoveDeadSteps(program);
}

}  // namespace onnxifi::program
