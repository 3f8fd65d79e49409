// SPDX-License-Identifier: Apache-2.0
//
// PostOps: reads the expression from its root inwards, one operation of oneDNN's at a time, until
// the accumulator.

#include "backends/cpu/onednn/post_ops.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "backends/core/tensor/convert.h"

namespace onnxifi::onednn {
namespace {

using base::Code;
using base::Result;
using base::Status;
using dnnl::algorithm;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using program::ExprPool;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// oneDNN appends up to 32 operations; the rest is room for the bias and a scale of our own.
constexpr size_t kMostPostOps = 28;

// One operation and the node that it is applied to.
struct Match {
  PostOp post_op;
  ExprId inner;
};

class Translator {
 public:
  Translator(const program::Program& program, const program::Step& step, ExprId root)
      : pool_(program.exprs), step_(step), root_(root) {
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

  Result<std::vector<PostOp>> Translate() {
    std::vector<PostOp> post_ops;  // last first
    ExprId id = root_;
    while (pool_[id].op != ExprOp::kAccumulator) {
      const ExprNode& node = pool_[id];
      if (node.type != tensor::ElementType::kFloat32) {
        return Status(Code::kUnsupportedDatatype, "The epilogue computes in " +
                                                      std::string(tensor::Name(node.type)) +
                                                      "; oneDNN appends operations on float32.");
      }
      std::optional<Match> match = MatchActivation(id);
      if (!match) match = MatchBinary(node);
      if (!match) {
        return Status(Code::kUnsupportedAttribute, "The epilogue's operation " +
                                                       std::string(program::Name(node.op)) +
                                                       " is none that oneDNN appends to a kernel.");
      }
      post_ops.push_back(match->post_op);
      if (post_ops.size() > kMostPostOps) {
        return Status(Code::kUnsupportedAttribute,
                      "The epilogue has more operations than oneDNN appends to a kernel (" +
                          std::to_string(kMostPostOps) + ").");
      }
      id = match->inner;
    }
    std::reverse(post_ops.begin(), post_ops.end());
    return Joined(post_ops);
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

  static PostOp Eltwise(algorithm what, double alpha = 0, double beta = 0) {
    return {what, static_cast<float>(alpha), static_cast<float>(beta), -1};
  }

  // Formulas of core/ops/elementwise/activation.cc that use their argument more than once, and
  // plain functions.
  std::optional<Match> MatchActivation(ExprId id) const {
    const ExprNode& node = pool_[id];
    switch (node.op) {
      case ExprOp::kAbs:
        return Match{Eltwise(algorithm::eltwise_abs), node.operands[0]};
      case ExprOp::kNeg:
        return Match{Eltwise(algorithm::eltwise_linear, -1), node.operands[0]};
      case ExprOp::kTanh:
        return Match{Eltwise(algorithm::eltwise_tanh), node.operands[0]};
      case ExprOp::kSelect:
        return MatchLeakyRelu(node);
      case ExprOp::kDiv:
        if (auto x = SigmoidOf(id)) return Match{Eltwise(algorithm::eltwise_logistic), *x};
        return std::nullopt;
      case ExprOp::kMul:
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
    return Match{Eltwise(algorithm::eltwise_relu, scaled->number), x};
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

  // x * x, x * sigmoid(alpha * x), x * max(0, min(1, alpha * x + beta))
  std::optional<Match> MatchProduct(const ExprNode& node) const {
    if (node.operands[0] == node.operands[1]) {
      return Match{Eltwise(algorithm::eltwise_square), node.operands[0]};
    }
    for (int k : {0, 1}) {
      const ExprId x = node.operands[k];
      const ExprId gate = node.operands[1 - k];
      if (const auto argument = SigmoidOf(gate)) {
        if (*argument == x) return Match{Eltwise(algorithm::eltwise_swish, 1), x};
        const auto scaled = WithNumber(*argument, ExprOp::kMul);
        if (scaled && scaled->other == x) {
          return Match{Eltwise(algorithm::eltwise_swish, scaled->number), x};
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
        return Match{Eltwise(algorithm::eltwise_hardswish, scaled->number, sum->number), x};
      }
    }
    return std::nullopt;
  }

  // The accumulator's side and another: a number, or a read at the element's own place.
  std::optional<Match> MatchBinary(const ExprNode& node) const {
    if (node.operands.size() != 2) return std::nullopt;
    const bool is_first_varying = varying_.contains(node.operands[0]);
    if (is_first_varying == varying_.contains(node.operands[1])) return std::nullopt;
    const ExprId inner = node.operands[is_first_varying ? 0 : 1];
    const ExprId other = node.operands[is_first_varying ? 1 : 0];
    if (const auto number = Number(other)) {
      const auto post_op = ByNumber(node.op, is_first_varying, *number);
      return post_op ? std::optional(Match{*post_op, inner}) : std::nullopt;
    }
    const ExprNode& load = pool_[other];
    if (load.op != ExprOp::kLoad || !load.operands.empty()) return std::nullopt;
    const auto read = static_cast<int>(load.payload);
    const program::View& view = step_.reads[static_cast<size_t>(read)];
    if (view.type != tensor::ElementType::kFloat32 || !view.guards.empty()) return std::nullopt;
    switch (node.op) {
      case ExprOp::kAdd:
        return Match{{algorithm::binary_add, 0, 0, read}, inner};
      case ExprOp::kMul:
        return Match{{algorithm::binary_mul, 0, 0, read}, inner};
      case ExprOp::kMax:
        return Match{{algorithm::binary_max, 0, 0, read}, inner};
      case ExprOp::kMin:
        return Match{{algorithm::binary_min, 0, 0, read}, inner};
      case ExprOp::kSub:
        if (!is_first_varying) return std::nullopt;
        return Match{{algorithm::binary_sub, 0, 0, read}, inner};
      case ExprOp::kDiv:
        if (!is_first_varying) return std::nullopt;
        return Match{{algorithm::binary_div, 0, 0, read}, inner};
      default:
        return std::nullopt;
    }
  }

  static std::optional<PostOp> ByNumber(ExprOp op, bool is_first_varying, double number) {
    switch (op) {
      case ExprOp::kAdd:
        return Eltwise(algorithm::eltwise_linear, 1, number);
      case ExprOp::kMul:
        return Eltwise(algorithm::eltwise_linear, number);
      case ExprOp::kSub:
        return is_first_varying ? Eltwise(algorithm::eltwise_linear, 1, -number)
                                : Eltwise(algorithm::eltwise_linear, -1, number);
      case ExprOp::kDiv:
        // One rounding more than the division.
        if (!is_first_varying || number == 0) return std::nullopt;
        return Eltwise(algorithm::eltwise_linear, 1 / number);
      case ExprOp::kMax:
        if (number == 0) return Eltwise(algorithm::eltwise_relu);
        return Eltwise(algorithm::eltwise_clip, number, kInfinity);
      case ExprOp::kMin:
        return Eltwise(algorithm::eltwise_clip, -kInfinity, number);
      default:
        return std::nullopt;
    }
  }

  // Bounds next to each other become one operation, as do a factor and a summand.
  static std::vector<PostOp> Joined(const std::vector<PostOp>& post_ops) {
    std::vector<PostOp> joined;
    for (const PostOp& next : post_ops) {
      if (!joined.empty() && next.algorithm == algorithm::eltwise_linear && next.alpha == 1 &&
          joined.back().algorithm == algorithm::eltwise_linear && joined.back().beta == 0) {
        joined.back().beta = next.beta;
        continue;
      }
      const bool is_upper = next.algorithm == algorithm::eltwise_clip && next.alpha == -kInfinity;
      if (!joined.empty() && is_upper) {
        PostOp& last = joined.back();
        const bool is_relu = last.algorithm == algorithm::eltwise_relu && last.alpha == 0;
        const bool is_lower = last.algorithm == algorithm::eltwise_clip && last.beta == kInfinity;
        const float lower = is_relu ? 0 : last.alpha;
        if ((is_relu || is_lower) && lower <= next.beta) {
          last = Eltwise(algorithm::eltwise_clip, lower, next.beta);
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
  std::unordered_set<ExprId> varying_;  // nodes that depend on the accumulator
};

}  // namespace

Result<std::vector<PostOp>> TranslatePostOps(const program::Program& program,
                                             const program::Step& step, ExprId root) {
  return Translator(program, step, root).Translate();
}

Result<BoundPostOps> BoundPostOps::Create(std::vector<PostOp> post_ops,
                                          std::vector<device::BoundView> operands,
                                          const Extents& extents) {
  BoundPostOps bound;
  bound.post_ops_ = std::move(post_ops);
  bound.operands_.resize(bound.post_ops_.size());
  for (size_t k = 0; k < bound.post_ops_.size(); ++k) {
    if (!bound.post_ops_[k].is_binary()) continue;
    Extents distinct = extents;
    bool is_whole = true;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      if (operands[k].strides[axis] == 0) distinct[axis] = 1;
      is_whole = is_whole && distinct[axis] == extents[axis];
    }
    const std::optional<Desc> given = Strided(distinct, operands[k].strides);
    if (!given) {
      return Status(Code::kUnsupportedShape,
                    "An operand of the epilogue has strides that oneDNN cannot say.");
    }
    bound.operands_[k] = {std::move(operands[k]), *given,
                          is_whole ? Any(distinct) : Dense(distinct)};
  }
  return bound;
}

void BoundPostOps::AddTo(dnnl::primitive_attr& attributes) const {
  if (post_ops_.empty()) return;
  dnnl::post_ops appended;
  for (size_t k = 0; k < post_ops_.size(); ++k) {
    const PostOp& post_op = post_ops_[k];
    if (post_op.is_binary()) {
      appended.append_binary(post_op.algorithm, operands_[k].wanted);
    } else {
      appended.append_eltwise(post_op.algorithm, post_op.alpha, post_op.beta);
    }
  }
  attributes.set_post_ops(appended);
}

Status BoundPostOps::AddArguments(const dnnl::primitive_desc_base& desc, SequenceBuilder& builder,
                                  std::vector<Argument>& arguments) const {
  for (size_t k = 0; k < post_ops_.size(); ++k) {
    if (!post_ops_[k].is_binary()) continue;
    const int name = DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(k)) | DNNL_ARG_SRC_1;
    const Desc chosen = desc.query_md(dnnl::query::exec_arg_md, name);
    if (chosen.get_format_kind() == dnnl::memory::format_kind::any) {
      return Status(Code::kUnsupportedShape,
                    "The primitive chooses no layout for an operand of the epilogue.");
    }
    ONNXIFI_ASSIGN_OR_RETURN(
        Place place,
        builder.As(builder.At({operands_[k].view, nullptr}, operands_[k].given), chosen));
    arguments.emplace_back(name, std::move(place));
  }
  return base::Ok();
}

}  // namespace onnxifi::onednn
