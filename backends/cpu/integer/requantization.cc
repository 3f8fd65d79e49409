// SPDX-License-Identifier: Apache-2.0
//
// FindRequantization: takes the expression apart from its root on.

#include "backends/cpu/integer/requantization.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "backends/core/program/expr.h"
#include "backends/core/tensor/convert.h"
#include "backends/cpu/integer/byte_function.h"

namespace onnxifi::integer {
namespace {

using program::Contract;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

constexpr ElementType kReal = ElementType::kFloat32;
constexpr ElementType kSum = ElementType::kInt32;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool IsByte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUint8; }

// Rounded quotients stay below it, so that they and what is added to them are 32-bit integers.
constexpr double kMaxQuotient = 0x1p30;

// Bounds: min(max(x, low), high).
struct Bounds {
  float low = -kInfinity, high = kInfinity;

  float Apply(float x) const { return std::min(std::max(x, low), high); }
};

class Finder {
 public:
  Finder(const device::BoundStep& step, device::Addresses constants, int column_axis,
         double largest_sum)
      : step_(step),
        pool_(step.program->exprs),
        constants_(constants),
        column_axis_(column_axis),
        columns_(column_axis < 0 ? 1 : step.domain[static_cast<size_t>(column_axis)]),
        largest_sum_(largest_sum) {}

  std::optional<Requantization> Find() {
    const Contract& contract = *step_.step->As<Contract>();
    if (contract.roots.size() != 1 || contract.accumulator != kSum) return std::nullopt;
    return FindOf(contract.roots[0]);
  }

  // With a function of bytes at the end.
  std::optional<Requantization> FindBelow(const ByteFunction& function) {
    found_ = {};
    std::optional<Requantization> found = FindOf(function.argument);
    if (!found) return found;
    if (function.is_real) {
      found->result = kReal;
      found->real_lookup.assign(function.reals.begin(), function.reals.end());
    } else {
      found->lookup.assign(function.bytes.begin(), function.bytes.end());
    }
    return found;
  }

 private:
  std::optional<Requantization> FindOf(ExprId value) {
    found_.result = pool_[value].type;
    if (IsByte(found_.result)) value = FindQuantized(value, found_.last);
    if (value == program::kNoExpr || pool_[value].type != kReal) return std::nullopt;
    if (!FindLinks(value) || !IsInRange()) return std::nullopt;
    // Bytes have no zeros of two signs, of which bounds take the one or the other.
    const bool has_bounds =
        std::any_of(found_.links.begin(), found_.links.end(), [](const Link& link) {
          return link.kind == LinkKind::kMin || link.kind == LinkKind::kMax;
        });
    if (found_.result == kReal && has_bounds) return std::nullopt;
    return std::move(found_);
  }

  // The elements of an expression along the columns, or one for all of them.
  using Elements = std::vector<double>;

  // Of an expression of constants alone that differ along columns at most. Sums and products of
  // float32 numbers round in float64 and then to float32 as they do at once.
  std::optional<Elements> Evaluate(ExprId id, int depth = 0) const {
    constexpr int kMaxDepth = 12;
    if (depth == kMaxDepth) return std::nullopt;
    const ExprNode& node = pool_[id];
    const bool is_number = node.type == kReal || node.type == kSum || IsByte(node.type);
    if (!is_number) return std::nullopt;
    if (node.op == ExprOp::kConstant) {
      return Elements{ToNumber(node.type, tensor::Scalar{.u = node.payload})};
    }
    if (node.op == ExprOp::kLoad) return node.operands.empty() ? Load(node) : std::nullopt;
    if (node.op == ExprOp::kCast) {
      const ElementType from = pool_[node.operands[0]].type;
      const bool is_exact = IsByte(from)
                                ? node.type == kReal || node.type == kSum
                                : from == node.type || (from == kSum && node.type == kReal);
      if (!is_exact) return std::nullopt;
      std::optional<Elements> elements = Evaluate(node.operands[0], depth + 1);
      if (elements && node.type == kReal) {
        for (double& element : *elements) element = static_cast<float>(element);
      }
      return elements;
    }
    if (node.type != kReal || node.operands.size() != 2) return std::nullopt;
    const auto apply = [&](double a, double b) -> double {
      switch (node.op) {
        case ExprOp::kAdd:
          return a + b;
        case ExprOp::kSub:
          return a - b;
        case ExprOp::kMul:
          return a * b;
        default:
          return a / b;
      }
    };
    if (node.op != ExprOp::kAdd && node.op != ExprOp::kSub && node.op != ExprOp::kMul &&
        node.op != ExprOp::kDiv) {
      return std::nullopt;
    }
    const std::optional<Elements> a = Evaluate(node.operands[0], depth + 1);
    const std::optional<Elements> b = a ? Evaluate(node.operands[1], depth + 1) : std::nullopt;
    if (!b) return std::nullopt;
    Elements result(std::max(a->size(), b->size()));
    for (size_t k = 0; k < result.size(); ++k) {
      result[k] =
          static_cast<float>(apply((*a)[a->size() == 1 ? 0 : k], (*b)[b->size() == 1 ? 0 : k]));
    }
    return result;
  }

  static double ToNumber(ElementType type, tensor::Scalar scalar) {
    if (type == kReal) return scalar.f;
    return type == ElementType::kUint8 ? static_cast<double>(scalar.u)
                                       : static_cast<double>(scalar.i);
  }

  std::optional<Elements> Load(const ExprNode& node) const {
    const device::BoundView& view = step_.reads[node.payload];
    const std::byte* constant = constants_[static_cast<size_t>(view.buffer)];
    if (constant == nullptr || !view.guards.empty() || view.type != node.type ||
        view.strides.size() != step_.domain.size()) {
      return std::nullopt;
    }
    int64_t stride = 0;
    for (size_t axis = 0; axis < view.strides.size(); ++axis) {
      if (step_.domain[axis] == 1 || view.strides[axis] == 0) continue;
      if (static_cast<int>(axis) != column_axis_) return std::nullopt;
      stride = view.strides[axis];
    }
    Elements elements(static_cast<size_t>(stride == 0 ? 1 : columns_));
    for (size_t k = 0; k < elements.size(); ++k) {
      elements[k] = ToNumber(
          view.type,
          tensor::LoadScalar(view.type, constant, view.offset + static_cast<int64_t>(k) * stride));
    }
    return elements;
  }

  std::optional<double> NumberOf(ExprId id) const {
    const std::optional<Elements> elements = Evaluate(id);
    if (!elements || elements->size() != 1) return std::nullopt;
    return (*elements)[0];
  }

  // The operand that is no number, where the other is one.
  struct WithNumber {
    ExprId value;
    double number;
  };
  std::optional<WithNumber> FindWithNumber(const ExprNode& node) const {
    for (const int side : {1, 0}) {
      const std::optional<double> number = NumberOf(node.operands[static_cast<size_t>(side)]);
      if (number) return WithNumber{node.operands[static_cast<size_t>(1 - side)], *number};
    }
    return std::nullopt;
  }

  // What is bounded by `id`.
  ExprId FindBounded(ExprId id, Bounds& bounds) const {
    for (;;) {
      const ExprNode& node = pool_[id];
      if (node.type != kReal || (node.op != ExprOp::kMin && node.op != ExprOp::kMax)) return id;
      const std::optional<WithNumber> found = FindWithNumber(node);
      if (!found || std::isnan(found->number)) return id;
      const float bound = bounds.Apply(static_cast<float>(found->number));
      (node.op == ExprOp::kMax ? bounds.low : bounds.high) = bound;
      id = found->value;
    }
  }

  // What `id`, bytes, is the quantized form of; kNoExpr where it is none.
  ExprId FindQuantized(ExprId id, Quantizer& quantizer) const {
    const ExprNode& cast = pool_[id];
    if (cast.op != ExprOp::kCast || !IsByte(cast.type) || pool_[cast.operands[0]].type != kReal) {
      return program::kNoExpr;
    }
    const bool is_signed = cast.type == ElementType::kInt8;
    Bounds bounds;
    ExprId value = FindBounded(cast.operands[0], bounds);
    const auto is_of_type = [&](float bound) {
      return bound == std::trunc(bound) && bound >= (is_signed ? -128.0F : 0.0F) &&
             bound <= (is_signed ? 127.0F : 255.0F);
    };
    if (!is_of_type(bounds.low) || !is_of_type(bounds.high)) return program::kNoExpr;
    if (pool_[value].op == ExprOp::kAdd) {
      const std::optional<WithNumber> sum = FindWithNumber(pool_[value]);
      constexpr double kMaxZeroPoint = 0xFFFF;
      if (!sum || sum->number != std::trunc(sum->number) || std::abs(sum->number) > kMaxZeroPoint) {
        return program::kNoExpr;
      }
      quantizer.zero_point = static_cast<int32_t>(sum->number);
      value = sum->value;
    }
    if (pool_[value].op != ExprOp::kRoundEven || pool_[value].type != kReal) {
      return program::kNoExpr;
    }
    value = pool_[value].operands[0];
    if (pool_[value].op == ExprOp::kDiv) {
      const std::optional<double> divisor = NumberOf(pool_[value].operands[1]);
      constexpr double kMinDivisor = 0x1p-60, kMaxDivisor = 0x1p60;
      if (divisor) {
        if (!(*divisor >= kMinDivisor && *divisor <= kMaxDivisor)) return program::kNoExpr;
        SetDivisor(static_cast<float>(*divisor), quantizer);
        value = pool_[value].operands[0];
      }
    }
    quantizer.low = static_cast<int32_t>(bounds.low);
    quantizer.high = static_cast<int32_t>(bounds.high);
    // Bounds before the quotient are bounds of the result, which never descends.
    Bounds before;
    value = FindBounded(value, before);
    const Quantizer whole = quantizer;
    if (before.low != -kInfinity) quantizer.low = static_cast<int32_t>(whole.Apply(before.low));
    if (before.high != kInfinity) quantizer.high = static_cast<int32_t>(whole.Apply(before.high));
    return value;
  }

  static void SetDivisor(float divisor, Quantizer& quantizer) {
    quantizer.divisor = divisor;
    const double inverse = 1 / static_cast<double>(divisor);
    quantizer.below = quantizer.above = static_cast<float>(inverse);
    // Products of two float32 numbers are exact.
    const double product = static_cast<double>(quantizer.below) * static_cast<double>(divisor);
    if (product > 1) quantizer.below = std::nextafter(quantizer.below, 0.0F);
    if (product < 1) quantizer.above = std::nextafter(quantizer.above, kInfinity);
  }

  // (byte - zero_point) * scale. The byte, or kNoExpr.
  ExprId FindDequantized(ExprId id, Dequantizer& dequantizer) const {
    const ExprNode& product = pool_[id];
    if (product.op != ExprOp::kMul || product.type != kReal) return program::kNoExpr;
    const std::optional<WithNumber> scaled = FindWithNumber(product);
    if (!scaled || !std::isfinite(scaled->number)) return program::kNoExpr;
    dequantizer.scale = static_cast<float>(scaled->number);
    const ExprNode& cast = pool_[scaled->value];
    if (cast.op != ExprOp::kCast) return program::kNoExpr;
    ExprId value = cast.operands[0];
    const ExprNode& difference = pool_[value];
    if (difference.op == ExprOp::kSub && difference.type == kSum) {
      const std::optional<double> zero_point = NumberOf(difference.operands[1]);
      const ExprNode& wide = pool_[difference.operands[0]];
      if (!zero_point || std::abs(*zero_point) > 255 || wide.op != ExprOp::kCast) {
        return program::kNoExpr;
      }
      dequantizer.zero_point = static_cast<int32_t>(*zero_point);
      value = wide.operands[0];
    }
    return IsByte(pool_[value].type) ? value : program::kNoExpr;
  }

  // A table of all columns.
  template <typename T>
  std::vector<T> TableOf(const Elements& elements) const {
    std::vector<T> table(static_cast<size_t>(columns_ + kTableSlack), T{0});
    for (size_t k = 0; k < static_cast<size_t>(columns_); ++k) {
      table[k] = static_cast<T>(elements[elements.size() == 1 ? 0 : k]);
    }
    return table;
  }

  // The operations from the sums to `id`.
  bool FindLinks(ExprId id) {
    constexpr size_t kMaxLinks = 24;
    while (found_.links.size() < kMaxLinks) {
      if (FindSums(id)) {
        std::reverse(found_.links.begin(), found_.links.end());
        return true;
      }
      id = FindFusedOp(id);
      if (id == program::kNoExpr) return false;
    }
    return false;
  }

  // What begins the chain: sums as float32.
  bool FindSums(ExprId id) {
    const ExprNode* node = &pool_[id];
    if (node->op != ExprOp::kCast || node->type != kReal) return false;
    node = &pool_[node->operands[0]];
    if (node->op == ExprOp::kAdd && node->type == kSum) {
      for (const size_t side : {size_t{1}, size_t{0}}) {
        const std::optional<Elements> offsets = Evaluate(node->operands[side]);
        if (!offsets) continue;
        found_.offsets = TableOf<int32_t>(*offsets);
        node = &pool_[node->operands[1 - side]];
        break;
      }
    }
    return node->op == ExprOp::kAccumulator && node->type == kSum;
  }

  // Adds the operation that is done last, and returns what it is done to; kNoExpr where it is none.
  ExprId FindFusedOp(ExprId id) {
    const ExprNode& node = pool_[id];
    if (node.op == ExprOp::kSelect) return FindLeaky(node);
    if (node.type != kReal || node.operands.size() != 2) return program::kNoExpr;
    Link link{};
    switch (node.op) {
      case ExprOp::kAdd:
        link.kind = LinkKind::kAdd;
        break;
      case ExprOp::kSub:
        link.kind = LinkKind::kSub;
        break;
      case ExprOp::kMul:
        link.kind = LinkKind::kRound;
        if (const ExprId value = FindRounded(id, link); value != program::kNoExpr) {
          found_.links.push_back(std::move(link));
          return value;
        }
        link.kind = LinkKind::kMul;
        break;
      case ExprOp::kMin:
        link.kind = LinkKind::kMin;
        break;
      case ExprOp::kMax:
        link.kind = LinkKind::kMax;
        break;
      default:
        return program::kNoExpr;
    }
    for (const size_t side : {size_t{1}, size_t{0}}) {
      if (side == 0 && link.kind == LinkKind::kSub) break;
      const std::optional<Elements> elements = Evaluate(node.operands[side]);
      if (!elements) continue;
      link.table = TableOf<float>(*elements);
      found_.links.push_back(std::move(link));
      return node.operands[1 - side];
    }
    if (link.kind != LinkKind::kAdd || found_.added_read >= 0) return program::kNoExpr;
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const ExprId bytes = FindDequantized(node.operands[side], link.dequantizer);
      if (bytes == program::kNoExpr) continue;
      const ExprNode& load = pool_[bytes];
      if (load.op != ExprOp::kLoad || !load.operands.empty()) continue;
      found_.added_read = static_cast<int>(load.payload);
      found_.is_added_signed = load.type == ElementType::kInt8;
      link.kind = LinkKind::kAddBytes;
      found_.links.push_back(std::move(link));
      return node.operands[1 - side];
    }
    return program::kNoExpr;
  }

  // x < 0 ? x * slope : x. Adds the operation, and returns x.
  ExprId FindLeaky(const ExprNode& select) {
    const ExprId value = select.operands[2];
    const ExprNode& condition = pool_[select.operands[0]];
    const ExprNode& product = pool_[select.operands[1]];
    if (select.type != kReal || condition.op != ExprOp::kLess || condition.operands[0] != value ||
        product.op != ExprOp::kMul || NumberOf(condition.operands[1]) != 0.0) {
      return program::kNoExpr;
    }
    const size_t side = product.operands[0] == value ? 1 : 0;
    const std::optional<Elements> slope = Evaluate(product.operands[side]);
    if (!slope || product.operands[1 - side] != value) return program::kNoExpr;
    Link link{};
    link.kind = LinkKind::kLeaky;
    link.table = TableOf<float>(*slope);
    found_.links.push_back(std::move(link));
    return value;
  }

  // What is quantized and dequantized again by `id`.
  ExprId FindRounded(ExprId id, Link& link) const {
    const ExprId bytes = FindDequantized(id, link.dequantizer);
    return bytes == program::kNoExpr ? program::kNoExpr : FindQuantized(bytes, link.quantizer);
  }

  // Whether every value is a number and every quotient an integer of 32 bits. Comparisons are false
  // of what is no number.
  bool IsInRange() const {
    constexpr double kMaxSum = 0x1p31;
    constexpr double kMargin = 1.001;  // for what is rounded
    constexpr double kMaxDifference = 511;
    for (size_t c = 0; c < static_cast<size_t>(columns_); ++c) {
      const double offset =
          found_.offsets.empty() ? 0 : std::abs(static_cast<double>(found_.offsets[c]));
      // A sum that leaves 32 bits wraps, and is within them then.
      double largest = std::min(largest_sum_ + offset, kMaxSum);
      const auto fits = [&](const Quantizer& quantizer) {
        return largest * kMargin * static_cast<double>(quantizer.above) < kMaxQuotient;
      };
      for (const Link& link : found_.links) {
        const double number = link.table.empty() ? 0 : std::abs(static_cast<double>(link.table[c]));
        const double dequantized =
            kMaxDifference * std::abs(static_cast<double>(link.dequantizer.scale));
        switch (link.kind) {
          case LinkKind::kMul:
            largest *= number;
            break;
          case LinkKind::kLeaky:
            largest = std::max(largest, largest * number);
            break;
          case LinkKind::kRound:
            if (!fits(link.quantizer)) return false;
            largest = dequantized;
            break;
          case LinkKind::kAddBytes:
            largest += dequantized;
            break;
          default:
            largest += number;
        }
        if (!(largest * kMargin < std::numeric_limits<float>::max())) return false;
      }
      if (found_.result != kReal && !fits(found_.last)) return false;
    }
    return true;
  }

  const device::BoundStep& step_;
  const program::ExprPool& pool_;
  const device::Addresses constants_;
  const int column_axis_;
  const int64_t columns_;
  const double largest_sum_;
  Requantization found_;
};

}  // namespace

float Quantizer::Apply(float x) const {
  const float quotient = std::nearbyint(x / divisor) + static_cast<float>(zero_point);
  return std::min(std::max(quotient, static_cast<float>(low)), static_cast<float>(high));
}

std::optional<Requantization> FindRequantization(const device::BoundStep& step,
                                                 device::Addresses constants, int column_axis,
                                                 double largest_sum) {
  Finder finder(step, constants, column_axis, largest_sum);
  std::optional<Requantization> found = finder.Find();
  if (found || step.step->As<Contract>()->accumulator != kSum) return found;
  const std::optional<ByteFunction> function = FindByteFunction(step, constants);
  return function ? finder.FindBelow(*function) : std::nullopt;
}

}  // namespace onnxifi::integer
