// SPDX-License-Identifier: Apache-2.0
//
// Symbolic evaluation: an interpreter of scalar expressions over Dims instead of numbers. Anything
// it does not understand is simply not known, and the value is then read at run time.

#include "backends/core/program/symbolic.h"

#include <algorithm>

namespace onnxifi::program {
namespace {

using tensor::IsBool;
using tensor::IsInteger;

bool IsIntegral(ElementType type) { return IsInteger(type) || IsBool(type); }

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
  known_[buffer].assign(elements.begin(), elements.end());
}

std::optional<Dims> SymbolicValues::Find(const Operand& operand) const {
  if (!IsIntegral(operand.type())) return std::nullopt;
  Dims elements;
  bool all_known = true;
  bool is_small = ForEachPoint(operand.shape, [&](const std::vector<int64_t>& coordinates) {
    std::optional<Dim> element;
    if (all_known) element = Element(operand.view, coordinates);
    if (element) {
      elements.push_back(*element);
    } else {
      all_known = false;
    }
  });
  if (!is_small || !all_known) return std::nullopt;
  return elements;
}

std::optional<Dim> SymbolicValues::Element(const View& view,
                                           const std::vector<int64_t>& coordinates) const {
  for (const Guard& guard : view.guards) {
    Dim position = guard.offset;
    for (size_t axis = 0; axis < coordinates.size(); ++axis) {
      position = position + guard.coefficients[axis] * Dim(coordinates[axis]);
    }
    Dim inside = Less(Dim(-1), position) * Less(position, guard.extent);
    if (!inside.is_constant()) return std::nullopt;
    if (inside.constant() == 0) return Dim(view.fill.i);
  }
  std::optional<int64_t> address = Address(view, coordinates);
  if (!address) return std::nullopt;
  const Buffer& buffer = program_.buffers[view.buffer];
  if (buffer.kind == Buffer::Kind::kConstant) {
    const tensor::Tensor& constant = program_.constants[buffer.index];
    if (constant.data() == nullptr || *address < 0 || *address >= constant.element_count()) {
      return std::nullopt;
    }
    return Dim(constant.AsInt(*address));
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
    if (!IsIntegral(buffer.type)) continue;
    Dim count = tensor::Product(buffer.shape);
    if (!count.is_constant() || count.constant() > kMaxElements) continue;
    const bool is_computable = map != nullptr && KnowsSomethingOf(step.reads);
    if (!is_computable && !known_.contains(write.buffer)) continue;
    std::vector<std::optional<Dim>>& elements = known_[write.buffer];
    elements.resize(static_cast<size_t>(count.constant()));
    if (map == nullptr) {
      // A scatter into it, for one: any element may be another now.
      std::fill(elements.begin(), elements.end(), std::nullopt);
      continue;
    }
    ForEachPoint(step.domain, [&](const std::vector<int64_t>& coordinates) {
      std::optional<int64_t> address = Address(write, coordinates);
      if (!address || *address < 0 || *address >= count.constant()) return;
      std::unordered_map<ExprId, std::optional<Dim>> done;
      elements[*address] =
          is_computable ? Evaluate(step, map->roots[w], coordinates, done) : std::optional<Dim>();
    });
  }
}

std::optional<Dim> SymbolicValues::Evaluate(
    const Step& step, ExprId id, const std::vector<int64_t>& coordinates,
    std::unordered_map<ExprId, std::optional<Dim>>& done) const {
  if (auto found = done.find(id); found != done.end()) return found->second;
  std::optional<Dim> value = Compute(step, id, coordinates, done);
  done.emplace(id, value);
  return value;
}

std::optional<Dim> SymbolicValues::Compute(
    const Step& step, ExprId id, const std::vector<int64_t>& coordinates,
    std::unordered_map<ExprId, std::optional<Dim>>& done) const {
  const ExprNode& node = program_.exprs[id];
  if (!IsIntegral(node.type)) return std::nullopt;
  auto operand = [&](int k) { return Evaluate(step, node.operands[k], coordinates, done); };
  switch (node.op) {
    case ExprOp::kConstant:
      return Dim(static_cast<int64_t>(node.payload));
    case ExprOp::kDim:
      return node.dim;
    case ExprOp::kIndex:
      return Dim(coordinates[node.payload]);
    case ExprOp::kLoad: {
      const View& view = step.reads[node.payload];
      if (node.operands.empty()) return Element(view, coordinates);
      std::vector<int64_t> at;
      for (size_t k = 0; k < node.operands.size(); ++k) {
        std::optional<Dim> coordinate = operand(static_cast<int>(k));
        if (!coordinate || !coordinate->is_constant()) return std::nullopt;
        at.push_back(coordinate->constant());
      }
      return Element(view, at);
    }
    case ExprOp::kSelect: {
      std::optional<Dim> condition = operand(0);
      if (!condition) return std::nullopt;
      if (condition->is_constant()) return operand(condition->constant() != 0 ? 1 : 2);
      std::optional<Dim> a = operand(1);
      std::optional<Dim> b = operand(2);
      if (!a || !b) return std::nullopt;
      return tensor::Select(*condition, *a, *b);
    }
    case ExprOp::kCast: {
      std::optional<Dim> a = operand(0);
      if (!a) return std::nullopt;
      if (IsBool(node.type)) return Dim(1) - Equal(*a, Dim(0));
      // Narrowing may wrap; extents are never wide enough for that, but only numbers are checked.
      bool narrows = tensor::BitWidth(node.type) < 32;
      if (narrows && !a->is_constant()) return std::nullopt;
      if (a->is_constant()) {
        tensor::Scalar scalar;
        scalar.i = a->constant();
        return Dim(CastScalar(ElementType::kInt64, node.type, scalar).i);
      }
      return a;
    }
    default:
      break;
  }
  std::optional<Dim> a = node.operands.empty() ? std::nullopt : operand(0);
  if (!a) return std::nullopt;
  switch (node.op) {
    case ExprOp::kNot:
      return Dim(1) - *a;
    case ExprOp::kNeg:
      return Dim(0) - *a;
    case ExprOp::kAbs:
      return Max(*a, Dim(0) - *a);
    default:
      break;
  }
  if (node.operands.size() != 2) return std::nullopt;
  std::optional<Dim> b = operand(1);
  if (!b) return std::nullopt;
  switch (node.op) {
    case ExprOp::kAdd:
      return *a + *b;
    case ExprOp::kSub:
      return *a - *b;
    case ExprOp::kMul:
      return *a * *b;
    case ExprOp::kDiv:
      // Truncation equals floor where neither side is negative.
      if (a->LowerBound() < 0 || b->LowerBound() < 0) return std::nullopt;
      return FloorDiv(*a, *b);
    case ExprOp::kMod:
      return Mod(*a, *b);
    case ExprOp::kMin:
      return Min(*a, *b);
    case ExprOp::kMax:
      return Max(*a, *b);
    case ExprOp::kEqual:
      return Equal(*a, *b);
    case ExprOp::kLess:
      return Less(*a, *b);
    case ExprOp::kLessEqual:
      return Less(*a, *b + Dim(1));
    case ExprOp::kAnd:
      return IsBool(node.type) ? std::optional<Dim>(*a * *b) : std::nullopt;
    case ExprOp::kOr:
      return IsBool(node.type) ? std::optional<Dim>(Max(*a, *b)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace onnxifi::program
