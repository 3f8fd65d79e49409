// SPDX-License-Identifier: Apache-2.0
//
// WidenFloats: products and windows of narrow floats get their tensors from Maps that widen them,
// and give their results to Maps that round them, so that kernels for float32 compute them. With
// fast algorithms the steps between them read what was not rounded yet and give theirs to such Maps
// too, so that nothing is left of the narrow type where nobody asks for it.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numbers>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/kept_precision.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/product_operand.h"
#include "backends/core/tensor/float_format.h"

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
    if (MultipliesWeights(steps)) scope_ = KeptPrecision::Scope::kNetwork;
    std::vector<bool> are_preferred;
    for (const Step& step : steps) {
      const bool has_narrow = IsSum(step) && HasNarrow(step);
      are_preferred.push_back(has_narrow && prefers_(program_, step));
      if (!has_narrow) continue;
      std::set<ElementType>& types = are_preferred.back() ? kept_types_ : products_;
      for (const View& read : step.reads) {
        if (KeptPrecision::IsKept(read.type, scope_)) types.insert(read.type);
      }
    }
    // What a product takes as it is, is not widened in between.
    for (const ElementType type : products_) kept_types_.erase(type);
    if (!program_.has_fast_algorithms) kept_types_.clear();
    FindRounded(steps, are_preferred);
    FindKept(steps, are_preferred);
    for (size_t number = 0; number < steps.size(); ++number) {
      Step& step = steps[number];
      if (are_preferred[number]) {
        for (View& read : step.reads) WidenRead(read, step);
        AddWithWideResult(std::move(step), /*is_preferred=*/true);
      } else if (IsArithmetic(step)) {
        WidenReadsBetween(step);
        ReplaceRoots(step);
        AddWithWideResult(std::move(step), /*is_preferred=*/false);
      } else {
        Add(std::move(step));
      }
    }
    program_.steps = std::move(done_);
  }

 private:
  static bool IsSum(const Step& step) {
    return step.As<Contract>() != nullptr || step.As<Window>() != nullptr;
  }
  // Whether a product's operand is computed from constants alone: a program that has such is no
  // function of ONNX.
  bool MultipliesWeights(const std::vector<Step>& steps) const {
    std::set<BufferId> constant;
    const auto is_constant = [&](const View& view) {
      return view.buffer == kNoBuffer || constant.contains(view.buffer) ||
             program_.buffers[view.buffer].kind == Buffer::Kind::kConstant;
    };
    for (const Step& step : steps) {
      if (step.As<Contract>() != nullptr) {
        if (is_constant(step.reads[0]) || is_constant(step.reads[1])) return true;
      } else if (step.As<Map>() != nullptr && std::ranges::all_of(step.reads, is_constant)) {
        for (const View& write : step.writes) constant.insert(write.buffer);
      }
    }
    return false;
  }
  KeptPrecision KeptIn(const Step& step) const { return {program_, step, scope_}; }

  // Whether the step is one between sums, of a type that is kept wide there. What a model rounds
  // from a wider type on purpose stays as it is.
  bool IsArithmetic(const Step& step) const {
    if (!step.As<Map>() && !step.As<Reduce>() && !step.As<Row>()) return false;
    if (step.writes.size() != 1 || !kept_types_.contains(step.writes[0].type)) return false;
    const ExprNode& root = program_.exprs[BodyExprs(step).back()];
    return step.As<Map>() == nullptr || root.op != ExprOp::kCast ||
           program_.exprs[root.operands[0]].op != ExprOp::kLoad;
  }

  // Marks the buffers that hold what was rounded for somebody: results, and what a step reads that
  // may not have it otherwise. All readers of a buffer see the same.
  void FindRounded(const std::vector<Step>& steps, const std::vector<bool>& are_preferred) {
    for (const Port& port : program_.outputs) rounded_.insert(port.buffer);
    if (kept_types_.empty()) return;
    for (size_t number = 0; number < steps.size(); ++number) {
      const Step& step = steps[number];
      // Of a maximum, positions would tell.
      const bool is_sum =
          are_preferred[number] && std::ranges::all_of(step.writes, [&](const View& write) {
            return write.type == step.reads[0].type;
          });
      if (is_sum) continue;
      const bool is_arithmetic = !are_preferred[number] && IsArithmetic(step);
      for (size_t read = 0; read < step.reads.size(); ++read) {
        if (step.reads[read].buffer == kNoBuffer) continue;
        if (is_arithmetic && KeptIn(step).MayWiden(read)) continue;
        rounded_.insert(step.reads[read].buffer);
      }
    }
  }

  // Marks the buffers whose elements exist unrounded: nobody needs them otherwise, and whoever
  // writes there has float32, or copies.
  void FindKept(const std::vector<Step>& steps, const std::vector<bool>& are_preferred) {
    if (kept_types_.empty()) return;
    std::set<BufferId> others;  // that somebody writes who has no float32
    for (size_t number = 0; number < steps.size(); ++number) {
      const Step& step = steps[number];
      const bool is_wide_or_copy = GivesWide(step, are_preferred[number]) ||
                                   (step.As<Map>() != nullptr && IsArithmetic(step));
      for (const View& write : step.writes) {
        if (!is_wide_or_copy || !write.guards.empty()) others.insert(write.buffer);
      }
    }
    for (size_t number = 0; number < steps.size(); ++number) {
      const Step& step = steps[number];
      if (step.writes.size() != 1) continue;
      const View& write = step.writes[0];
      if (!kept_types_.contains(write.type) || !IsWidened(write) ||
          program_.buffers[write.buffer].kind != Buffer::Kind::kTemporary ||
          rounded_.contains(write.buffer) || others.contains(write.buffer)) {
        continue;
      }
      // Copies of what was rounded alone would only be larger.
      const bool is_copy_of_kept = std::ranges::any_of(
          step.reads, [&](const View& read) { return unrounded_.contains(read.buffer); });
      if (GivesWide(step, are_preferred[number]) || is_copy_of_kept) {
        unrounded_.insert(write.buffer);
      }
    }
  }
  // Whether the step's last operation is to round its only result from float32.
  bool GivesWide(const Step& step, bool is_preferred) const {
    if (!is_preferred && !IsArithmetic(step)) return false;
    if (step.writes.size() != 1) return false;
    const ExprNode& root = program_.exprs[BodyExprs(step).back()];
    return root.op == ExprOp::kCast && IsNarrow(root.type) && root.type == step.writes[0].type &&
           program_.exprs[root.operands[0]].type == kWide;
  }

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
    for (const View& write : step.writes) {
      wide_.erase(write.buffer);
      kept_.erase(write.buffer);
    }
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

  // Numbers that are sqrt(2), or its inverse, as far as the step's type can tell become just that,
  // by which the function that they are a part of is known. That is less than a rounding.
  void ReplaceRoots(Step& step) {
    const auto widened = [type = step.writes[0].type](float exact) {
      return type == ElementType::kFloat16
                 ? tensor::Float16Format::Decode(tensor::Float16Format::Encode(exact, true))
                 : tensor::Bfloat16Format::Decode(tensor::Bfloat16Format::Encode(exact));
    };
    std::unordered_map<ExprId, ExprId> done;
    const auto replace = [&](ExprId id) -> ExprId {
      const ExprNode& node = program_.exprs[id];
      if (node.op != ExprOp::kConstant || node.type != kWide) return kNoExpr;
      const double number = std::bit_cast<tensor::Scalar>(node.payload).f;
      for (const double exact : {std::numbers::sqrt2, std::numbers::sqrt2 / 2}) {
        if (number == static_cast<double>(widened(static_cast<float>(exact)))) {
          return Constant(program_.exprs, kWide, exact).id();
        }
      }
      return kNoExpr;
    };
    for (ExprId* id : BodyExprs(step)) *id = Rewrite(program_.exprs, *id, replace, done);
  }

  bool IsLookedUp(const Step& step, uint64_t number) const {
    return std::ranges::any_of(Reachable(program_.exprs, BodyExprs(step)), [&](ExprId id) {
      const ExprNode& node = program_.exprs[id];
      return node.op == ExprOp::kLoad && node.payload == number && !node.operands.empty();
    });
  }

  // Puts the reads of what was not rounded yet on that, and those of constants on wide ones, which
  // are computed once.
  void WidenReadsBetween(Step& step) {
    for (size_t number = 0; number < step.reads.size(); ++number) {
      View& read = step.reads[number];
      if (!IsWidened(read)) continue;
      const auto at = kept_.find(read.buffer);
      // Of a table that is looked up, a few rows are read.
      const bool is_constant = program_.buffers[read.buffer].kind == Buffer::Kind::kConstant &&
                               !IsLookedUp(step, number);
      if (at == kept_.end() && !is_constant) continue;
      if (!KeptIn(step).MayWiden(number)) continue;
      if (at != kept_.end()) {
        read.buffer = at->second;
        read.type = kWide;
        ReplaceLoads(number, step);
      } else {
        WidenRead(read, step);
      }
    }
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

  // Where the step's last operation is to round its only result, a Map does that; of a buffer that
  // exists unrounded too, from there.
  void AddWithWideResult(Step step, bool is_preferred) {
    const bool is_kept = step.writes.size() == 1 && unrounded_.contains(step.writes[0].buffer);
    // Of other steps the Map would be one more.
    if (!is_kept && !(is_preferred && GivesWide(step, is_preferred))) return Add(std::move(step));
    ExprId& root = RootsOf(step)[0];
    root = Unrounded(root);
    const View result = step.writes[0];
    Shape shape = step.domain;
    if (const Reduce* reduce = step.As<Reduce>()) shape.resize(shape.size() - reduce->axes);
    View sums = result;
    sums.type = kWide;
    if (is_kept) {
      const auto [at, is_new] = twins_.try_emplace(result.buffer, kNoBuffer);
      if (is_new) {
        const Shape whole = program_.buffers[result.buffer].shape;
        at->second = program_.AddBuffer({Buffer::Kind::kTemporary, kWide, whole});
      }
      sums.buffer = at->second;
    } else {
      sums = DenseView(program_.AddBuffer({Buffer::Kind::kTemporary, kWide, shape}), kWide, shape);
    }
    step.writes[0] = sums;
    const int node = step.node;
    Add(std::move(step));
    AddCast(sums, result, shape, node);
    if (is_kept) wide_[result.buffer] = kept_[result.buffer] = sums.buffer;
  }

  // A result of a narrow type before it was rounded: what was cast to it, and of a choice among
  // such, the choice; else the same in float32.
  ExprId Unrounded(ExprId id) {
    const ExprNode node = program_.exprs[id];
    if (node.op == ExprOp::kCast && program_.exprs[node.operands[0]].type == kWide) {
      return node.operands[0];
    }
    ExprPool* const pool = &program_.exprs;
    if (node.op != ExprOp::kSelect) return Cast(Expr(pool, id), kWide).id();
    const ExprId chosen = Unrounded(node.operands[1]);
    const ExprId other = Unrounded(node.operands[2]);
    return Select(Expr(pool, node.operands[0]), Expr(pool, chosen), Expr(pool, other)).id();
  }

  static ExprIds& RootsOf(Step& step) {
    if (Contract* contract = step.As<Contract>()) return contract->roots;
    if (Window* window = step.As<Window>()) return window->roots;
    if (Map* map = step.As<Map>()) return map->roots;
    if (Reduce* reduce = step.As<Reduce>()) return reduce->roots;
    return step.As<Row>()->roots;
  }

  Program& program_;
  const PrefersWideFloats& prefers_;
  std::vector<Step> done_;
  std::set<ElementType> kept_types_;  // of which what is not rounded goes from step to step
  std::set<ElementType> products_;    // of operands that a product takes as they are
  std::set<BufferId> rounded_;        // that are seen as the model has them
  std::set<BufferId> unrounded_;      // that exist in float32 too, before they are rounded
  std::unordered_map<BufferId, BufferId> twins_;  // of those, what is in float32
  KeptPrecision::Scope scope_ = KeptPrecision::Scope::kFunction;
  // At this point: wide copies of buffers, and those of them that were not rounded.
  std::unordered_map<BufferId, BufferId> wide_, kept_;
};

}  // namespace

void WidenFloats(Program& program, const PrefersWideFloats& prefers) {
  Widener(program, prefers).Run();
}

}  // namespace onnxifi::program
