// SPDX-License-Identifier: Apache-2.0
//
// Scalar expressions: the pool that makes equal nodes one, folding of what is known without
// changing a floating-point result, and the builders that lowering writes expressions with.

#include "backends/core/program/expr.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <optional>
#include <type_traits>
#include <utility>

#include "backends/core/program/integer_arithmetic.h"
#include "backends/core/tensor/native_type.h"

namespace onnxifi::program {
namespace {

using tensor::ElementType;
using tensor::Scalar;

size_t Mix(size_t seed, size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2));
}

size_t Hash(const ExprNode& node) {
  size_t seed = static_cast<size_t>(node.op) << 8 | static_cast<size_t>(node.type);
  seed = Mix(seed, static_cast<size_t>(node.payload));
  seed = Mix(seed, node.dim.is_constant() ? static_cast<size_t>(node.dim.constant())
                                          : static_cast<size_t>(node.dim.node()->id) + 0x1000);
  for (ExprId operand : node.operands) seed = Mix(seed, static_cast<size_t>(operand));
  return seed;
}

bool SameContent(const ExprNode& a, const ExprNode& b) {
  return a.op == b.op && a.type == b.type && a.payload == b.payload && a.dim == b.dim &&
         a.operands == b.operands;
}

bool IsConstant(const ExprNode& node) { return node.op == ExprOp::kConstant; }

Scalar ValueOf(const ExprNode& node) { return Scalar{.u = node.payload}; }

ExprNode ConstantNode(ElementType type, Scalar value) {
  return {ExprOp::kConstant, type, value.u, {}, {}};
}

// The result of an integer operation in T's arithmetic; comparisons give 0 or 1. Nothing: not an
// operation on integers.
template <typename T>
std::optional<T> FoldInteger(ExprOp op, T a, T b) {
  switch (op) {
    case ExprOp::kAdd:
      return WrapAdd(a, b);
    case ExprOp::kSub:
      return WrapSub(a, b);
    case ExprOp::kMul:
      return WrapMul(a, b);
    case ExprOp::kDiv:
      return IntegerDiv(a, b);
    case ExprOp::kMod:
      return IntegerMod(a, b);
    case ExprOp::kFmod:
      return IntegerFmod(a, b);
    case ExprOp::kPow:
      return IntegerPow(a, b);
    case ExprOp::kMin:
      return std::min(a, b);
    case ExprOp::kMax:
      return std::max(a, b);
    case ExprOp::kAnd:
      return static_cast<T>(a & b);
    case ExprOp::kOr:
      return static_cast<T>(a | b);
    case ExprOp::kXor:
      return static_cast<T>(a ^ b);
    case ExprOp::kShl:
      return IntegerShl(a, b);
    case ExprOp::kShr:
      return IntegerShr(a, b);
    case ExprOp::kEqual:
      return static_cast<T>(a == b);
    case ExprOp::kLess:
      return static_cast<T>(a < b);
    case ExprOp::kLessEqual:
      return static_cast<T>(a <= b);
    default:
      return std::nullopt;
  }
}

std::optional<Scalar> FoldBinary(ExprOp op, ElementType type, Scalar a, Scalar b) {
  if (type == ElementType::kBool) {
    switch (op) {
      case ExprOp::kAnd:
      case ExprOp::kOr:
      case ExprOp::kXor:
      case ExprOp::kEqual:
      case ExprOp::kMin:
      case ExprOp::kMax:
      case ExprOp::kLess:
      case ExprOp::kLessEqual:
        type = ElementType::kUint8;
        break;
      default:
        return std::nullopt;
    }
  }
  return tensor::VisitInteger(type, [&]<typename T>(T) -> std::optional<Scalar> {
    const std::optional<T> value = FoldInteger(op, static_cast<T>(a.u), static_cast<T>(b.u));
    if (!value) return std::nullopt;
    if constexpr (std::is_signed_v<T>) {
      return Scalar{.i = *value};
    } else {
      return Scalar{.u = *value};
    }
  });
}

bool IsBinary(ExprOp op) { return OperandCount(op) == 2; }

}  // namespace

std::string_view Name(ExprOp op) {
  switch (op) {
#define ONNXIFI_NAME(id, name) \
  case ExprOp::id:             \
    return name;
#define ONNXIFI_LEAF(id, name) ONNXIFI_NAME(id, name)
#define ONNXIFI_UNARY(id, name, engine) ONNXIFI_NAME(id, name)
#define ONNXIFI_BINARY(id, name, units) ONNXIFI_NAME(id, name)
#define ONNXIFI_OTHER(id, name, arity) ONNXIFI_NAME(id, name)
#include "backends/core/program/scalar_operations.def"
#undef ONNXIFI_NAME
  }
  return "unknown";
}

int OperandCount(ExprOp op) {
  switch (op) {
#define ONNXIFI_UNARY(id, name, engine) \
  case ExprOp::id:                      \
    return 1;
#define ONNXIFI_BINARY(id, name, units) \
  case ExprOp::id:                      \
    return 2;
#define ONNXIFI_OTHER(id, name, arity) \
  case ExprOp::id:                     \
    return arity;
#include "backends/core/program/scalar_operations.def"
    default:
      return 0;
  }
}

bool IsLeaf(ExprOp op) {
  switch (op) {
#define ONNXIFI_LEAF(id, name) case ExprOp::id:
#include "backends/core/program/scalar_operations.def"
    return true;
    default:
      return false;
  }
}

bool IsComparison(ExprOp op) {
  switch (op) {
#define ONNXIFI_COMPARISON(id, name, token) case ExprOp::id:
#include "backends/core/program/scalar_operations.def"
    return true;
    default:
      return false;
  }
}

ExprId ExprPool::Add(ExprNode node) {
  // Only exact rewrites: casts of constants round as at run time; float arithmetic is left to the
  // device, which may round or flush in its own way, and identities such as x + 0 are not exact for
  // -0.
  if (node.op == ExprOp::kDim && node.dim.is_constant()) {
    node = ConstantNode(ElementType::kInt64, Scalar{.i = node.dim.constant()});
  } else if (node.op == ExprOp::kCast || node.op == ExprOp::kBitcast) {
    const ExprNode& source = nodes_[node.operands[0]];
    if (source.type == node.type) return node.operands[0];
    if (node.op == ExprOp::kCast && IsConstant(source) && !tensor::IsComplex(source.type) &&
        !tensor::IsComplex(node.type)) {
      node = ConstantNode(
          node.type,
          tensor::CastScalar(source.type, node.type, ValueOf(source), (node.payload & 1) != 0,
                             static_cast<tensor::Rounding>(node.payload >> 1)));
    }
  } else if (node.op == ExprOp::kSelect) {
    const ExprNode& condition = nodes_[node.operands[0]];
    if (IsConstant(condition)) return node.operands[condition.payload != 0 ? 1 : 2];
    if (node.operands[1] == node.operands[2]) return node.operands[1];
  } else if (node.op == ExprOp::kNot) {
    const ExprNode& source = nodes_[node.operands[0]];
    if (source.op == ExprOp::kNot) return source.operands[0];
    if (IsConstant(source)) {
      node = ConstantNode(ElementType::kBool, Scalar{.u = source.payload != 0 ? 0u : 1u});
    }
  } else if (IsBinary(node.op)) {
    const ExprNode& a = nodes_[node.operands[0]];
    const ExprNode& b = nodes_[node.operands[1]];
    if (IsConstant(a) && IsConstant(b)) {
      std::optional<Scalar> value = FoldBinary(node.op, a.type, ValueOf(a), ValueOf(b));
      if (value && IsComparison(node.op)) value = Scalar{.u = value->u & 1};
      if (value) node = ConstantNode(node.type, *value);
    } else if (tensor::IsInteger(node.type) && IsConstant(b)) {
      const bool adds_nothing =
          b.payload == 0 && (node.op == ExprOp::kAdd || node.op == ExprOp::kSub);
      const bool scales_by_one =
          b.payload == 1 && (node.op == ExprOp::kMul || node.op == ExprOp::kDiv);
      if (adds_nothing || scales_by_one) return node.operands[0];
    } else if (tensor::IsInteger(node.type) && IsConstant(a)) {
      const bool is_neutral = (a.payload == 0 && node.op == ExprOp::kAdd) ||
                              (a.payload == 1 && node.op == ExprOp::kMul);
      if (is_neutral) return node.operands[1];
    }
  }
  const size_t hash = Hash(node);
  const ExprId known =
      by_hash_.Find(hash, [&](ExprId id) { return SameContent(nodes_[id], node); });
  if (known != base::HashIndex::kNone) return known;
  // What most operators need, and small enough for the allocator's fastest path.
  if (nodes_.empty()) nodes_.reserve(12);
  nodes_.push_back(std::move(node));
  const ExprId id = size() - 1;
  by_hash_.Add(hash, id);
  return id;
}

std::vector<ExprId> Reachable(const ExprPool& pool, std::span<const ExprId> roots) {
  // Operands have smaller ids than their users, so the largest id pending is not reached again.
  base::SmallVector<ExprId, 16> pending;
  std::vector<ExprId> found;
  found.reserve(16);
  auto visit = [&](ExprId id) {
    if (id == kNoExpr) return;
    pending.push_back(id);
    std::push_heap(pending.begin(), pending.end());
  };
  for (ExprId root : roots) visit(root);
  while (!pending.empty()) {
    std::pop_heap(pending.begin(), pending.end());
    const ExprId id = pending.back();
    pending.pop_back();
    if (!found.empty() && found.back() == id) continue;
    found.push_back(id);
    for (ExprId operand : pool[id].operands) visit(operand);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

std::string ToString(const ExprPool& pool, ExprId root) {
  if (root == kNoExpr) return "none";
  // One definition per node: written out as a tree, a shared expression could grow exponentially.
  std::string text;
  const ExprId roots[] = {root};
  for (ExprId id : Reachable(pool, roots)) {
    const ExprNode& node = pool[id];
    if (!text.empty()) text += "; ";
    text += "%" + std::to_string(id) + " = " + std::string(Name(node.op));
    switch (node.op) {
      case ExprOp::kConstant:
        if (tensor::IsFloat(node.type) || tensor::IsComplex(node.type)) {
          text += " " + std::to_string(std::bit_cast<double>(node.payload));
        } else if (tensor::IsSigned(node.type)) {
          text += " " + std::to_string(static_cast<int64_t>(node.payload));
        } else {
          text += " " + std::to_string(node.payload);
        }
        break;
      case ExprOp::kDim:
        text += " " + node.dim.ToString();
        break;
      case ExprOp::kRow:
        text += " " + std::to_string(node.payload / 256) + "." + std::to_string(node.payload % 256);
        break;
      case ExprOp::kIndex:
      case ExprOp::kLoad:
      case ExprOp::kState:
      case ExprOp::kOther:
      case ExprOp::kCast:
      case ExprOp::kRandom:
        text += " " + std::to_string(node.payload);
        break;
      default:
        break;
    }
    if (!node.operands.empty()) {
      text += "(";
      for (size_t k = 0; k < node.operands.size(); ++k) {
        text += (k ? ", %" : "%") + std::to_string(node.operands[k]);
      }
      text += ")";
    }
    text += ": " + std::string(tensor::Name(node.type));
  }
  return text;
}

Expr Constant(ExprPool& pool, ElementType type, double value) {
  const Scalar scalar{.f = value};
  return ScalarConstant(
      pool, type,
      tensor::IsComplex(type) ? scalar : tensor::CastScalar(ElementType::kFloat64, type, scalar));
}

Expr IntConstant(ExprPool& pool, ElementType type, int64_t value) {
  if (tensor::IsComplex(type)) return Constant(pool, type, static_cast<double>(value));
  return ScalarConstant(pool, type,
                        tensor::CastScalar(ElementType::kInt64, type, Scalar{.i = value}));
}

Expr ScalarConstant(ExprPool& pool, ElementType type, Scalar value) {
  return {&pool, pool.Add(ConstantNode(type, value))};
}

Expr DimExpr(ExprPool& pool, tensor::Dim dim) {
  return {&pool, pool.Add({ExprOp::kDim, ElementType::kInt64, 0, dim, {}})};
}

Expr Coordinate(ExprPool& pool, int axis) {
  return {&pool,
          pool.Add({ExprOp::kIndex, ElementType::kInt64, static_cast<uint64_t>(axis), {}, {}})};
}

Expr Load(ExprPool& pool, ElementType type, int read) {
  return {&pool, pool.Add({ExprOp::kLoad, type, static_cast<uint64_t>(read), {}, {}})};
}

Expr LoadAt(ExprPool& pool, ElementType type, int read, std::span<const Expr> coordinates) {
  ExprNode node{ExprOp::kLoad, type, static_cast<uint64_t>(read), {}, {}};
  for (const Expr& coordinate : coordinates) {
    assert(coordinate.type() == ElementType::kInt64);
    node.operands.push_back(coordinate.id());
  }
  return {&pool, pool.Add(std::move(node))};
}

Expr State(ExprPool& pool, ElementType type, int k) {
  return {&pool, pool.Add({ExprOp::kState, type, static_cast<uint64_t>(k), {}, {}})};
}

Expr Other(ExprPool& pool, ElementType type, int k) {
  return {&pool, pool.Add({ExprOp::kOther, type, static_cast<uint64_t>(k), {}, {}})};
}

Expr RowResult(ExprPool& pool, ElementType type, int pass, int k) {
  return {&pool, pool.Add({ExprOp::kRow, type, static_cast<uint64_t>(pass) * 256 + k, {}, {}})};
}

Expr Accumulator(ExprPool& pool, ElementType type) {
  return {&pool, pool.Add({ExprOp::kAccumulator, type, 0, {}, {}})};
}

Expr Random(Expr counter, uint64_t seed) {
  assert(counter.type() == ElementType::kInt64);
  return {counter.pool(),
          counter.pool()->Add({ExprOp::kRandom, ElementType::kFloat64, seed, {}, {counter.id()}})};
}

Expr Unary(ExprOp op, Expr a) {
  const ElementType type = op == ExprOp::kIsNan ? ElementType::kBool : a.type();
  return {a.pool(), a.pool()->Add({op, type, 0, {}, {a.id()}})};
}

Expr Binary(ExprOp op, Expr a, Expr b) {
  assert(a.type() == b.type());
  const ElementType type = IsComparison(op) ? ElementType::kBool : a.type();
  return {a.pool(), a.pool()->Add({op, type, 0, {}, {a.id(), b.id()}})};
}

Expr Select(Expr condition, Expr a, Expr b) {
  assert(condition.type() == ElementType::kBool && a.type() == b.type());
  return {a.pool(),
          a.pool()->Add({ExprOp::kSelect, a.type(), 0, {}, {condition.id(), a.id(), b.id()}})};
}

Expr Cast(Expr a, ElementType type, bool saturate, tensor::Rounding rounding) {
  const uint64_t payload = (saturate ? 1u : 0u) | static_cast<uint64_t>(rounding) << 1;
  return {a.pool(), a.pool()->Add({ExprOp::kCast, type, payload, {}, {a.id()}})};
}

Expr Bitcast(Expr a, ElementType type) {
  assert(tensor::BitWidth(a.type()) == tensor::BitWidth(type));
  return {a.pool(), a.pool()->Add({ExprOp::kBitcast, type, 0, {}, {a.id()}})};
}

Expr Like(Expr a, double value) { return Constant(*a.pool(), a.type(), value); }

}  // namespace onnxifi::program
