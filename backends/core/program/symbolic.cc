// SPDX-License-Identifier: Apache-2.0
//
// Symbolic evaluation: an interpreter of scalar expressions over Dims instead of numbers. Anything
// it does not understand is simply not known, and the value is then read at run time.

#include "backends/core/program/symbolic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

namespace onnxifi::program {
namespace {

using tensor::IsBool;
using tensor::IsInteger;

using Known = std::optional<KnownElement>;

// Floats that hold any extent of practice exactly: float32 up to 2^24.
bool IsFollowedFloat(ElementType type) {
  return type == ElementType::kFloat32 || type == ElementType::kFloat64;
}

bool IsIntegral(ElementType type) { return IsInteger(type) || IsBool(type); }

bool IsFollowed(ElementType type) { return IsIntegral(type) || IsFollowedFloat(type); }

// Beyond this a quotient is not followed, so that no product of a few of them overflows, and none
// is rounded in float32.
constexpr int64_t kMaxQuotientPart = int64_t{1} << 24;

// The denominator of a float that is a whole number or, where an extent is 0, NaN. It is not
// computed with, but an operator may read it for which the two are the same at such an extent.
constexpr int64_t kMayBeNaN = 0;

bool IsExact(const KnownElement& element) {
  return std::has_single_bit(static_cast<uint64_t>(element.denominator));
}

// The quotient in lowest terms where both are numbers; nothing where it is out of bounds. Symbols
// count as extents, which are smaller than that.
Known Quotient(Dim numerator, int64_t denominator) {
  if (denominator <= 0 || denominator > kMaxQuotientPart) return std::nullopt;
  if (numerator.is_constant()) {
    const int64_t number = numerator.constant();
    if (number < -kMaxQuotientPart || number > kMaxQuotientPart) return std::nullopt;
    const int64_t divisor = std::gcd(number, denominator);
    return KnownElement{Dim(number / divisor), denominator / divisor};
  }
  return KnownElement{numerator, denominator};
}

// A float that is a whole number over a small power of two.
Known FromFloat(double value) {
  int64_t denominator = 1;
  while (std::trunc(value) != value && denominator < 1024) {
    value *= 2;
    denominator *= 2;
  }
  // The comparison is false for NaN, too.
  if (std::trunc(value) != value || !(std::abs(value) <= double{kMaxQuotientPart})) {
    return std::nullopt;
  }
  return Quotient(Dim(static_cast<int64_t>(value)), denominator);
}

Dim Floor(const KnownElement& a) { return FloorDiv(a.numerator, Dim(a.denominator)); }
Dim Ceil(const KnownElement& a) {
  return FloorDiv(a.numerator + Dim(a.denominator - 1), Dim(a.denominator));
}
Dim Truncated(const KnownElement& a) {
  if (a.denominator == 1) return a.numerator;
  if (a.numerator.LowerBound() >= 0) return Floor(a);
  return tensor::Select(Less(a.numerator, Dim(0)), Ceil(a), Floor(a));
}

// Integers divide towards zero. Exporters write (h - 1) / 16, whose dividend may be -1 as far as
// anyone knows.
std::optional<Dim> TruncatedQuotient(Dim a, Dim b) {
  if (b.LowerBound() < 0) return std::nullopt;
  if (a.LowerBound() >= 0) return FloorDiv(a, b);
  // Of a number out of a tensor, the lowest has no opposite.
  if (a.LowerBound() == std::numeric_limits<int64_t>::min()) return std::nullopt;
  const Dim quotient = FloorDiv(Max(a, Dim(0)), b);
  const Dim opposite = Dim(0) - a;
  if (opposite.UpperBound() < b.LowerBound()) return quotient;
  return quotient - FloorDiv(Max(opposite, Dim(0)), b);
}

// A function of two integers or bools.
std::optional<Dim> ComputeInteger(ExprOp op, ElementType type, Dim a, Dim b) {
  switch (op) {
    case ExprOp::kAdd:
      return a + b;
    case ExprOp::kSub:
      return a - b;
    case ExprOp::kMul:
      return a * b;
    case ExprOp::kDiv:
      return TruncatedQuotient(a, b);
    case ExprOp::kMod:
      return Mod(a, b);
    case ExprOp::kMin:
      return Min(a, b);
    case ExprOp::kMax:
      return Max(a, b);
    case ExprOp::kEqual:
      return Equal(a, b);
    case ExprOp::kLess:
      return Less(a, b);
    case ExprOp::kLessEqual:
      return Less(a, b + Dim(1));
    case ExprOp::kAnd:
      return IsBool(type) ? std::optional<Dim>(a * b) : std::nullopt;
    case ExprOp::kOr:
      return IsBool(type) ? std::optional<Dim>(Max(a, b)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// A function of one float.
Known ComputeFloat(ExprOp op, const KnownElement& a) {
  if (a.denominator == kMayBeNaN) return std::nullopt;
  switch (op) {
    case ExprOp::kFloor:
      return KnownElement{Floor(a)};
    case ExprOp::kCeil:
      return KnownElement{Ceil(a)};
    case ExprOp::kTrunc:
      return KnownElement{Truncated(a)};
    case ExprOp::kNeg:
      return KnownElement{Dim(0) - a.numerator, a.denominator};
    case ExprOp::kAbs:
      return KnownElement{Max(a.numerator, Dim(0) - a.numerator), a.denominator};
    default:
      return std::nullopt;
  }
}

// The quotient of two floats that symbols tell, where it is a small integer: exporters divide an
// extent that they have multiplied by the extent. Of a divisor that may be 0 it may be NaN.
Known SmallQuotient(const KnownElement& a, const KnownElement& b) {
  constexpr int64_t kMaxQuotient = 8;
  const Dim dividend = a.numerator * Dim(b.denominator);
  const Dim divisor = b.numerator * Dim(a.denominator);
  const bool may_be_nan = divisor.LowerBound() <= 0 && divisor.UpperBound() >= 0;
  for (int64_t quotient = 1; quotient <= kMaxQuotient; ++quotient) {
    if (dividend == divisor * Dim(quotient)) {
      return KnownElement{Dim(quotient), may_be_nan ? kMayBeNaN : 1};
    }
  }
  return std::nullopt;
}

// A function of two floats. What was rounded is not computed with further.
Known ComputeFloat(ExprOp op, const KnownElement& a, const KnownElement& b) {
  if (!IsExact(a) || !IsExact(b)) return std::nullopt;
  if (op == ExprOp::kMul) {
    return Quotient(a.numerator * b.numerator, a.denominator * b.denominator);
  }
  if (op == ExprOp::kDiv) {
    if (!b.numerator.is_constant()) return SmallQuotient(a, b);
    if (b.numerator.constant() <= 0) return std::nullopt;
    return Quotient(a.numerator * Dim(b.denominator), a.denominator * b.numerator.constant());
  }
  const int64_t denominator = std::max(a.denominator, b.denominator);
  const Dim left = a.numerator * Dim(denominator / a.denominator);
  const Dim right = b.numerator * Dim(denominator / b.denominator);
  switch (op) {
    case ExprOp::kAdd:
      return Quotient(left + right, denominator);
    case ExprOp::kSub:
      return Quotient(left - right, denominator);
    case ExprOp::kMin:
      return Quotient(Min(left, right), denominator);
    case ExprOp::kMax:
      return Quotient(Max(left, right), denominator);
    case ExprOp::kEqual:
      return KnownElement{Equal(left, right)};
    case ExprOp::kLess:
      return KnownElement{Less(left, right)};
    case ExprOp::kLessEqual:
      return KnownElement{Less(left, right + Dim(1))};
    default:
      return std::nullopt;
  }
}

// Calls visit(coordinates) for each point of a constant domain of at most kMaxElements points;
// false if it is not one.
template <typename Visit>
bool ForEachPoint(const Shape& domain, Visit&& visit) {
  int64_t count = 1;
  for (const Dim& extent : domain) {
    if (!extent.is_constant()) return false;
    if (extent.constant() > SymbolicValues::kMaxElements) return false;
    count *= extent.constant();
    if (count > SymbolicValues::kMaxElements) return false;
  }
  std::vector<int64_t> coordinates(domain.size(), 0);
  for (int64_t point = 0; point < count; ++point) {
    visit(coordinates);
    for (size_t axis = domain.size(); axis-- > 0;) {
      if (++coordinates[axis] < domain[axis].constant()) break;
      coordinates[axis] = 0;
    }
  }
  return true;
}

// The address within the buffer when it is a number, and whether the guards are known to hold.
std::optional<int64_t> Address(const View& view, const std::vector<int64_t>& coordinates) {
  Dim address = view.offset;
  for (size_t axis = 0; axis < coordinates.size(); ++axis) {
    address = address + view.strides[axis] * Dim(coordinates[axis]);
  }
  if (!address.is_constant()) return std::nullopt;
  return address.constant();
}

}  // namespace

void SymbolicValues::Set(BufferId buffer, Dims elements) {
  std::vector<Known>& known = known_[buffer];
  known.clear();
  for (const Dim& element : elements) known.push_back(KnownElement{element});
}

std::optional<Dims> SymbolicValues::Find(const Operand& operand) const {
  if (!IsFollowed(operand.type())) return std::nullopt;
  Dims elements;
  bool all_known = true;
  bool is_small = ForEachPoint(operand.shape, [&](const std::vector<int64_t>& coordinates) {
    Known element;
    if (all_known) element = Element(operand.view, coordinates);
    if (element && (element->denominator == 1 || element->denominator == kMayBeNaN)) {
      elements.push_back(element->numerator);
    } else {
      all_known = false;
    }
  });
  if (!is_small || !all_known) return std::nullopt;
  return elements;
}

Known SymbolicValues::Element(const View& view, const std::vector<int64_t>& coordinates) const {
  for (const Guard& guard : view.guards) {
    Dim position = guard.offset;
    for (size_t axis = 0; axis < coordinates.size(); ++axis) {
      position = position + guard.coefficients[axis] * Dim(coordinates[axis]);
    }
    Dim inside = Less(Dim(-1), position) * Less(position, guard.extent);
    if (!inside.is_constant()) return std::nullopt;
    if (inside.constant() == 0) {
      if (!IsIntegral(view.type)) return FromFloat(view.fill.f);
      return KnownElement{Dim(view.fill.i)};
    }
  }
  std::optional<int64_t> address = Address(view, coordinates);
  if (!address) return std::nullopt;
  const Buffer& buffer = program_.buffers[view.buffer];
  if (buffer.kind == Buffer::Kind::kConstant) {
    const tensor::Tensor& constant = program_.constants[buffer.index];
    if (constant.data() == nullptr || *address < 0 || *address >= constant.element_count()) {
      return std::nullopt;
    }
    if (IsFollowedFloat(constant.type())) return FromFloat(constant.AsDouble(*address));
    if (!IsIntegral(constant.type())) return std::nullopt;
    return KnownElement{Dim(constant.AsInt(*address))};
  }
  auto found = known_.find(view.buffer);
  if (found == known_.end() || *address < 0 ||
      *address >= static_cast<int64_t>(found->second.size())) {
    return std::nullopt;
  }
  return found->second[*address];
}

bool SymbolicValues::KnowsSomethingOf(const std::vector<View>& reads) const {
  return reads.empty() || std::any_of(reads.begin(), reads.end(), [this](const View& read) {
           return program_.buffers[read.buffer].kind == Buffer::Kind::kConstant ||
                  known_.contains(read.buffer);
         });
}

void SymbolicValues::Observe(const Step& step) {
  const Map* map = step.As<Map>();
  for (size_t w = 0; w < step.writes.size(); ++w) {
    const View& write = step.writes[w];
    // A recurrence has no write where its output is omitted.
    if (write.buffer == kNoBuffer) continue;
    const Buffer& buffer = program_.buffers[write.buffer];
    if (!IsFollowed(buffer.type)) continue;
    Dim count = tensor::Product(buffer.shape);
    if (!count.is_constant() || count.constant() > kMaxElements) continue;
    const bool is_computable = map != nullptr && KnowsSomethingOf(step.reads);
    if (!is_computable && !known_.contains(write.buffer)) continue;
    std::vector<Known>& elements = known_[write.buffer];
    elements.resize(static_cast<size_t>(count.constant()));
    if (map == nullptr) {
      // A scatter into it, for one: any element may be another now.
      std::fill(elements.begin(), elements.end(), std::nullopt);
      continue;
    }
    ForEachPoint(step.domain, [&](const std::vector<int64_t>& coordinates) {
      std::optional<int64_t> address = Address(write, coordinates);
      if (!address || *address < 0 || *address >= count.constant()) return;
      std::unordered_map<ExprId, Known> done;
      elements[*address] =
          is_computable ? Evaluate(step, map->roots[w], coordinates, done) : Known();
    });
  }
}

Known SymbolicValues::Evaluate(const Step& step, ExprId id, const std::vector<int64_t>& coordinates,
                               std::unordered_map<ExprId, Known>& done) const {
  if (auto found = done.find(id); found != done.end()) return found->second;
  Known value = Compute(step, id, coordinates, done);
  done.emplace(id, value);
  return value;
}

Known SymbolicValues::Compute(const Step& step, ExprId id, const std::vector<int64_t>& coordinates,
                              std::unordered_map<ExprId, Known>& done) const {
  const ExprNode& node = program_.exprs[id];
  if (!IsFollowed(node.type)) return std::nullopt;
  auto operand = [&](int k) { return Evaluate(step, node.operands[k], coordinates, done); };
  switch (node.op) {
    case ExprOp::kConstant:
      if (IsFollowedFloat(node.type)) return FromFloat(std::bit_cast<double>(node.payload));
      return KnownElement{Dim(static_cast<int64_t>(node.payload))};
    case ExprOp::kDim:
      return KnownElement{node.dim};
    case ExprOp::kIndex:
      return KnownElement{Dim(coordinates[node.payload])};
    case ExprOp::kLoad: {
      const View& view = step.reads[node.payload];
      if (node.operands.empty()) return Element(view, coordinates);
      std::vector<int64_t> at;
      for (size_t k = 0; k < node.operands.size(); ++k) {
        Known coordinate = operand(static_cast<int>(k));
        if (!coordinate || !coordinate->numerator.is_constant()) return std::nullopt;
        at.push_back(coordinate->numerator.constant());
      }
      return Element(view, at);
    }
    case ExprOp::kSelect: {
      Known condition = operand(0);
      if (!condition) return std::nullopt;
      const Dim chooses = condition->numerator;
      if (chooses.is_constant()) return operand(chooses.constant() != 0 ? 1 : 2);
      Known a = operand(1);
      Known b = operand(2);
      if (!a || !b || a->denominator != b->denominator) return std::nullopt;
      return KnownElement{tensor::Select(chooses, a->numerator, b->numerator), a->denominator};
    }
    case ExprOp::kCast: {
      Known known = operand(0);
      if (!known || known->denominator == kMayBeNaN) return std::nullopt;
      if (IsFollowedFloat(node.type)) return Quotient(known->numerator, known->denominator);
      if (IsBool(node.type)) return KnownElement{Dim(1) - Equal(known->numerator, Dim(0))};
      const Dim a = Truncated(*known);
      // Narrowing may wrap; extents are never wide enough for that, but only numbers are checked.
      bool narrows = tensor::BitWidth(node.type) < 32;
      if (narrows && !a.is_constant()) return std::nullopt;
      if (a.is_constant()) {
        tensor::Scalar scalar;
        scalar.i = a.constant();
        return KnownElement{Dim(CastScalar(ElementType::kInt64, node.type, scalar).i)};
      }
      return KnownElement{a};
    }
    default:
      break;
  }
  Known first = node.operands.empty() ? std::nullopt : operand(0);
  if (!first) return std::nullopt;
  const bool is_float = IsFollowedFloat(program_.exprs[node.operands[0]].type);
  if (node.operands.size() == 1) {
    if (is_float) return ComputeFloat(node.op, *first);
    const Dim a = first->numerator;
    switch (node.op) {
      case ExprOp::kNot:
        return KnownElement{Dim(1) - a};
      case ExprOp::kNeg:
        return KnownElement{Dim(0) - a};
      case ExprOp::kAbs:
        return KnownElement{Max(a, Dim(0) - a)};
      default:
        return std::nullopt;
    }
  }
  if (node.operands.size() != 2) return std::nullopt;
  Known second = operand(1);
  if (!second) return std::nullopt;
  if (is_float) return ComputeFloat(node.op, *first, *second);
  const std::optional<Dim> result =
      ComputeInteger(node.op, node.type, first->numerator, second->numerator);
  if (!result) return std::nullopt;
  return KnownElement{*result};
}

}  // namespace onnxifi::program
