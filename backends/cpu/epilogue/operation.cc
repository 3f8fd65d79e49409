// SPDX-License-Identifier: Apache-2.0
//
// OperationsOf: reads the expression from its root inwards, one operation at a time, until the
// accumulator.

#include "backends/cpu/epilogue/operation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

namespace onnxifi::epilogue {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using program::ExprPool;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One operation and the node that it is applied to.
struct Match {
  Operation operation;
  ExprId inner;
};

class Reader {
 public:
  Reader(const program::Program& program, const program::Step& step, ExprId root, ReadTypes types)
      : pool_(program.exprs), step_(step), root_(root), types_(types) {
    const ExprId roots[] = {root};
    for (ExprId id : Reachable(pool_, roots)) {
      const ExprNode& node = pool_[id];
      const bool is_varying =
          node.op == ExprOp::kAccumulator ||
          std::any_of(node.operands.begin(), node.operands.end(),
                      [&](ExprId operand) { return varying_.contains(operand); });
      if (is_varying) varying_.insert(id);
    }
  }

  Result<std::vector<Operation>> Read() {
    std::vector<Operation> operations;  // last first
    ExprId id = root_;
    while (pool_[id].op != ExprOp::kAccumulator) {
      const ExprNode& node = pool_[id];
      if (node.type != tensor::ElementType::kFloat32) {
        return Status(Code::kUnsupportedDatatype, "The epilogue computes in " +
                                                      std::string(tensor::Name(node.type)) +
                                                      "; kernels do operations on float32.");
      }
      std::optional<Match> match = MatchActivation(id);
      if (!match) match = MatchBinary(node);
      if (!match) {
        return Status(Code::kUnsupportedAttribute,
                      "The epilogue's operation " + std::string(program::Name(node.op)) +
                          " is none that kernels do before they store.");
      }
      operations.push_back(match->operation);
      id = match->inner;
    }
    std::reverse(operations.begin(), operations.end());
    return Joined(operations);
  }

 private:
  std::optional<double> Number(ExprId id) const {
    const ExprNode& node = pool_[id];
    if (node.op != ExprOp::kConstant || node.type != tensor::ElementType::kFloat32) {
      return std::nullopt;
    }
    return std::bit_cast<tensor::Scalar>(node.payload).f;
  }
  bool IsNumber(ExprId id, double number) const { return Number(id) == number; }

  // The operands of a commutative operation, one of which is a number.
  struct Scaled {
    double number;
    ExprId other;
  };
  std::optional<Scaled> WithNumber(ExprId id, ExprOp op) const {
    const ExprNode& node = pool_[id];
    if (node.op != op) return std::nullopt;
    if (auto number = Number(node.operands[0])) return Scaled{*number, node.operands[1]};
    if (auto number = Number(node.operands[1])) return Scaled{*number, node.operands[0]};
    return std::nullopt;
  }

  static Operation Unary(Kind kind, double alpha = 0, double beta = 0) {
    return {kind, static_cast<float>(alpha), static_cast<float>(beta), -1};
  }

  // Formulas of core/ops/elementwise/activation.cc that use their argument more than once, and
  // plain functions.
  std::optional<Match> MatchActivation(ExprId id) const {
    const ExprNode& node = pool_[id];
    switch (node.op) {
      case ExprOp::kAbs:
        return Match{Unary(Kind::kAbs), node.operands[0]};
      case ExprOp::kNeg:
        return Match{Unary(Kind::kLinear, -1), node.operands[0]};
      case ExprOp::kTanh:
        return Match{Unary(Kind::kTanh), node.operands[0]};
      case ExprOp::kSelect:
        return MatchLeakyRelu(node);
      case ExprOp::kDiv:
        if (auto x = SigmoidOf(id)) return Match{Unary(Kind::kLogistic), *x};
        return std::nullopt;
      case ExprOp::kMul:
        if (auto x = GeluOf(id)) return Match{Unary(Kind::kGelu), *x};
        return MatchProduct(node);
      default:
        return std::nullopt;
    }
  }

  // x < 0 ? alpha * x : x
  std::optional<Match> MatchLeakyRelu(const ExprNode& node) const {
    const ExprNode& condition = pool_[node.operands[0]];
    const ExprId x = node.operands[2];
    const auto scaled = WithNumber(node.operands[1], ExprOp::kMul);
    if (!scaled || scaled->other != x || condition.op != ExprOp::kLess) return std::nullopt;
    if (condition.operands[0] != x || !IsNumber(condition.operands[1], 0)) return std::nullopt;
    if (scaled->number == 0) return Match{Unary(Kind::kClip, 0, kInfinity), x};
    return Match{Unary(Kind::kLeakyRelu, scaled->number), x};
  }

  // 1 / (1 + exp(-x))
  std::optional<ExprId> SigmoidOf(ExprId id) const {
    const ExprNode& node = pool_[id];
    if (node.op != ExprOp::kDiv || !IsNumber(node.operands[0], 1)) return std::nullopt;
    const auto sum = WithNumber(node.operands[1], ExprOp::kAdd);
    if (!sum || sum->number != 1) return std::nullopt;
    const ExprNode& exponential = pool_[sum->other];
    if (exponential.op != ExprOp::kExp) return std::nullopt;
    const ExprNode& negated = pool_[exponential.operands[0]];
    if (negated.op != ExprOp::kNeg) return std::nullopt;
    return negated.operands[0];
  }

  // The product of x, 1 / 2 and 1 + erf(x / sqrt(2)), in any order.
  std::optional<ExprId> GeluOf(ExprId id) const {
    double number = 1;
    std::vector<ExprId> factors;
    std::vector<ExprId> open = {id};
    while (!open.empty()) {
      const ExprId factor = open.back();
      open.pop_back();
      const ExprNode& node = pool_[factor];
      if (const auto given = Number(factor)) {
        number *= *given;
      } else if (node.op == ExprOp::kMul && factors.size() + open.size() < 3) {
        open.insert(open.end(), node.operands.begin(), node.operands.end());
      } else {
        factors.push_back(factor);
      }
    }
    if (number != 0.5 || factors.size() != 2) return std::nullopt;
    for (int k : {0, 1}) {
      const ExprId x = factors[static_cast<size_t>(k)];
      const auto sum = WithNumber(factors[static_cast<size_t>(1 - k)], ExprOp::kAdd);
      if (!sum || sum->number != 1 || pool_[sum->other].op != ExprOp::kErf) continue;
      if (IsOverRootOfTwo(pool_[sum->other].operands[0], x)) return x;
    }
    return std::nullopt;
  }

  // Whether `id` is x / sqrt(2), as far as the type of the model can tell.
  bool IsOverRootOfTwo(ExprId id, ExprId x) const {
    const double unit = types_ == ReadTypes::kFloat32 ? 1e-7 : 0x1p-9;
    const auto is_about = [&](double number, double exact) {
      return std::fabs(number - exact) <= unit * exact;
    };
    if (const auto scaled = WithNumber(id, ExprOp::kMul)) {
      return scaled->other == x && is_about(scaled->number, std::numbers::sqrt2 / 2);
    }
    const ExprNode& node = pool_[id];
    if (node.op != ExprOp::kDiv || node.operands[0] != x) return false;
    const auto divisor = Number(node.operands[1]);
    return divisor && is_about(*divisor, std::numbers::sqrt2);
  }

  // x * x, x * sigmoid(alpha * x), x * max(0, min(1, alpha * x + beta))
  std::optional<Match> MatchProduct(const ExprNode& node) const {
    if (node.operands[0] == node.operands[1]) {
      return Match{Unary(Kind::kSquare), node.operands[0]};
    }
    for (int k : {0, 1}) {
      const ExprId x = node.operands[k];
      const ExprId gate = node.operands[1 - k];
      if (const auto argument = SigmoidOf(gate)) {
        if (*argument == x) return Match{Unary(Kind::kSwish, 1), x};
        const auto scaled = WithNumber(*argument, ExprOp::kMul);
        if (scaled && scaled->other == x) {
          return Match{Unary(Kind::kSwish, scaled->number), x};
        }
      }
      const auto above = WithNumber(gate, ExprOp::kMax);
      if (!above || above->number != 0) continue;
      const auto below = WithNumber(above->other, ExprOp::kMin);
      if (!below || below->number != 1) continue;
      const auto sum = WithNumber(below->other, ExprOp::kAdd);
      if (!sum) continue;
      const auto scaled = WithNumber(sum->other, ExprOp::kMul);
      if (scaled && scaled->other == x) {
        return Match{Unary(Kind::kHardSwish, scaled->number, sum->number), x};
      }
    }
    return std::nullopt;
  }

  // What is widened from bfloat16, where reads may be that; else the node itself.
  ExprId WithoutWidening(ExprId id) const {
    const ExprNode& node = pool_[id];
    if (types_ == ReadTypes::kFloat32 || node.op != ExprOp::kCast) return id;
    const bool is_widening = pool_[node.operands[0]].type == tensor::ElementType::kBfloat16;
    return is_widening ? node.operands[0] : id;
  }

  // The accumulator's side and another: a number, or a read at the element's own place.
  std::optional<Match> MatchBinary(const ExprNode& node) const {
    if (node.operands.size() != 2) return std::nullopt;
    const bool is_first_varying = varying_.contains(node.operands[0]);
    if (is_first_varying == varying_.contains(node.operands[1])) return std::nullopt;
    const ExprId inner = node.operands[is_first_varying ? 0 : 1];
    const ExprId other = node.operands[is_first_varying ? 1 : 0];
    if (const auto number = Number(other)) {
      const auto operation = ByNumber(node.op, is_first_varying, *number);
      return operation ? std::optional(Match{*operation, inner}) : std::nullopt;
    }
    const ExprNode& load = pool_[WithoutWidening(other)];
    if (load.op != ExprOp::kLoad || !load.operands.empty()) return std::nullopt;
    const auto read = static_cast<int>(load.payload);
    const program::View& view = step_.reads[static_cast<size_t>(read)];
    if (view.type != load.type || !view.guards.empty()) return std::nullopt;
    switch (node.op) {
      case ExprOp::kAdd:
        return Match{{Kind::kAdd, 0, 0, read}, inner};
      case ExprOp::kMul:
        return Match{{Kind::kMultiply, 0, 0, read}, inner};
      case ExprOp::kMax:
        return Match{{Kind::kMaximum, 0, 0, read}, inner};
      case ExprOp::kMin:
        return Match{{Kind::kMinimum, 0, 0, read}, inner};
      case ExprOp::kSub:
        if (!is_first_varying) return std::nullopt;
        return Match{{Kind::kSubtract, 0, 0, read}, inner};
      case ExprOp::kDiv:
        if (!is_first_varying) return std::nullopt;
        return Match{{Kind::kDivide, 0, 0, read}, inner};
      default:
        return std::nullopt;
    }
  }

  static std::optional<Operation> ByNumber(ExprOp op, bool is_first_varying, double number) {
    switch (op) {
      case ExprOp::kAdd:
        return Unary(Kind::kLinear, 1, number);
      case ExprOp::kMul:
        return Unary(Kind::kLinear, number);
      case ExprOp::kSub:
        return is_first_varying ? Unary(Kind::kLinear, 1, -number)
                                : Unary(Kind::kLinear, -1, number);
      case ExprOp::kDiv:
        // One rounding more than the division.
        if (!is_first_varying || number == 0) return std::nullopt;
        return Unary(Kind::kLinear, 1 / number);
      case ExprOp::kMax:
        return Unary(Kind::kClip, number, kInfinity);
      case ExprOp::kMin:
        return Unary(Kind::kClip, -kInfinity, number);
      default:
        return std::nullopt;
    }
  }

  // Bounds next to each other become one operation, as do a factor and a summand.
  static std::vector<Operation> Joined(const std::vector<Operation>& operations) {
    std::vector<Operation> joined;
    for (const Operation& next : operations) {
      if (!joined.empty()) {
        Operation& last = joined.back();
        if (next.kind == Kind::kLinear && next.alpha == 1 && last.kind == Kind::kLinear &&
            last.beta == 0) {
          last.beta = next.beta;
          continue;
        }
        const bool is_upper = next.kind == Kind::kClip && next.alpha == -kInfinity;
        const bool is_lower = last.kind == Kind::kClip && last.beta == kInfinity;
        if (is_upper && is_lower && last.alpha <= next.beta) {
          last.beta = next.beta;
          continue;
        }
      }
      joined.push_back(next);
    }
    return joined;
  }

  const ExprPool& pool_;
  const program::Step& step_;
  const ExprId root_;
  const ReadTypes types_;
  std::unordered_set<ExprId> varying_;  // nodes that depend on the accumulator
};

}  // namespace

Result<std::vector<Operation>> OperationsOf(const program::Program& program,
                                            const program::Step& step, ExprId root,
                                            ReadTypes types) {
  return Reader(program, step, root, types).Read();
}

}  // namespace onnxifi::epilogue
