// SPDX-License-Identifier: Apache-2.0
//
// WidenFloats: products and windows of narrow floats get their tensors from Maps that widen them,
// and give their results to Maps that round them, so that kernels for float32 compute them.

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/product_operand.h"

namespace onnxifi::program {
namespace {

constexpr ElementType kWide = ElementType::kFloat32;

bool IsNarrow(ElementType type) {
  return tensor::IsFloat(type) && type != kWide && IsWidening(type, kWide);
}

class Widener {
 public:
  Widener(Program& program, const PrefersWideFloats& prefers)
      : program_(program), prefers_(prefers) {}

  void Run() {
    std::vector<Step> steps = std::move(program_.steps);
    for (Step& step : steps) {
      const bool is_sum = step.As<Contract>() != nullptr || step.As<Window>() != nullptr;
      if (is_sum && HasNarrow(step) && prefers_(program_, step)) {
        for (View& read : step.reads) WidenRead(read, step);
        AddWithWideResult(std::move(step));
      } else {
        Add(std::move(step));
      }
    }
    program_.steps = std::move(done_);
  }

 private:
  // Whether all of a buffer is of the type that the view has; elements under another type are none.
  bool IsWidened(const View& view) const {
    if (view.buffer == kNoBuffer || !IsNarrow(view.type)) return false;
    const Buffer& buffer = program_.buffers[view.buffer];
    return buffer.type == view.type && !buffer.value && buffer.kind != Buffer::Kind::kDynamic;
  }
  bool HasNarrow(const Step& step) const {
    return std::ranges::any_of(step.reads, [&](const View& view) { return IsWidened(view); });
  }

  void Add(Step step) {
    // What was widened of it before is no longer what it holds.
    for (const View& write : step.writes) wide_.erase(write.buffer);
    done_.push_back(std::move(step));
  }

  // A Map between two buffers, element for element.
  void AddCast(const View& from, const View& to, const Shape& shape, int node) {
    const Expr load = Load(program_.exprs, from.type, 0);
    Add({shape, {from}, {to}, Map{{Cast(load, to.type).id()}}, node});
  }

  // Puts the read on a wide copy of the whole buffer, which all readers share until somebody writes
  // there.
  void WidenRead(View& read, Step& step) {
    if (!IsWidened(read)) return;
    const auto number = static_cast<uint64_t>(&read - step.reads.data());
    const auto [at, is_new] = wide_.try_emplace(read.buffer, kNoBuffer);
    if (is_new) {
      const Shape shape = program_.buffers[read.buffer].shape;
      const BufferId wide = program_.AddBuffer({Buffer::Kind::kTemporary, kWide, shape});
      at->second = wide;
      AddCast(DenseView(read.buffer, read.type, shape), DenseView(wide, kWide, shape), shape,
              step.node);
    }
    read.buffer = at->second;
    read.type = kWide;
    ReplaceLoads(number, step);
  }

  // In expressions, a widened load is the load itself now; others round it back, which loses
  // nothing.
  void ReplaceLoads(uint64_t number, Step& step) {
    std::unordered_map<ExprId, ExprId> done;
    const auto is_load = [&](ExprId id) {
      return program_.exprs[id].op == ExprOp::kLoad && program_.exprs[id].payload == number;
    };
    const auto replace = [&](ExprId id) -> ExprId {
      const ExprNode& node = program_.exprs[id];
      const bool is_widened =
          node.op == ExprOp::kCast && node.type == kWide && is_load(node.operands[0]);
      if (!is_widened && !is_load(id)) return kNoExpr;
      ExprNode load = program_.exprs[is_widened ? node.operands[0] : id];
      // Coordinates at which one loads are no loads of narrow floats.
      const ElementType narrow = std::exchange(load.type, kWide);
      const Expr wide(&program_.exprs, program_.exprs.Add(std::move(load)));
      return is_widened ? wide.id() : Cast(wide, narrow).id();
    };
    for (ExprId* id : BodyExprs(step)) *id = Rewrite(program_.exprs, *id, replace, done);
  }

  // Where the step's last operation is to round its only result, a Map does that.
  void AddWithWideResult(Step step) {
    ExprIds& roots =
        step.As<Contract>() != nullptr ? step.As<Contract>()->roots : step.As<Window>()->roots;
    const ExprNode& root = program_.exprs[roots[0]];
    if (roots.size() != 1 || root.op != ExprOp::kCast || !IsNarrow(root.type) ||
        program_.exprs[root.operands[0]].type != kWide) {
      return Add(std::move(step));
    }
    const BufferId wide = program_.AddBuffer({Buffer::Kind::kTemporary, kWide, step.domain});
    const View sums = DenseView(wide, kWide, step.domain);
    const View result = std::exchange(step.writes[0], sums);
    const Shape domain = step.domain;
    const int node = step.node;
    roots[0] = root.operands[0];
    Add(std::move(step));
    AddCast(sums, result, domain, node);
  }

  Program& program_;
  const PrefersWideFloats& prefers_;
  std::vector<Step> done_;
  std::unordered_map<BufferId, BufferId> wide_;  // the copies that are true at this point
};

}  // namespace

void WidenFloats(Program& program, const PrefersWideFloats& prefers) {
  Widener(program, prefers).Run();
}

}  // namespace onnxifi::program
