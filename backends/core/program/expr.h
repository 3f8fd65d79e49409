// SPDX-License-Identifier: Apache-2.0
//
// Scalar expressions: what a step computes per element, as a hash-consed, typed DAG. Every device's
// engine reads this: the reference interprets it, the code generators print it.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_EXPR_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_EXPR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/core/base/hash_index.h"
#include "backends/core/base/small_vector.h"
#include "backends/core/tensor/convert.h"
#include "backends/core/tensor/dim.h"
#include "backends/core/tensor/element_type.h"

namespace onnxifi::program {

using ExprId = int32_t;
inline constexpr ExprId kNoExpr = -1;
// Operands of an expression, roots of a step.
using ExprIds = base::SmallVector<ExprId, 4>;

// Arithmetic is done in the node's own type. float16, bfloat16, the 8- and 4-bit floats and the
// packed integers are storage types: only kLoad, kConstant, kCast, kSelect (and kBitcast) may have
// them; lowering casts to ArithmeticType around anything else. Integers wrap modulo 2^n. Division
// of integers truncates; by zero it gives 0. Float operations follow IEEE 754.
// The list, with what each operation means, is scalar_operations.def.
enum class ExprOp : uint8_t {
#define ONNXIFI_LEAF(id, name) id,
#define ONNXIFI_UNARY(id, name, engine) id,
#define ONNXIFI_BINARY(id, name, units) id,
#define ONNXIFI_OTHER(id, name, arity) id,
#include "backends/core/program/scalar_operations.def"
};
std::string_view Name(ExprOp op);
// How many operands the operation combines; 0 for leaves, a load's coordinates not counted.
int OperandCount(ExprOp op);
bool IsLeaf(ExprOp op);
bool IsComparison(ExprOp op);

struct ExprNode {
  ExprOp op;
  tensor::ElementType type;
  uint64_t payload = 0;
  tensor::Dim dim;
  ExprIds operands;
};

// Owns the nodes of one program. Operands have smaller ids than their users, so ascending order is
// an evaluation order.
class ExprPool {
 public:
  const ExprNode& operator[](ExprId id) const { return nodes_[id]; }
  int size() const { return static_cast<int>(nodes_.size()); }
  // Returns the node equal to `node`, adding it if there is none. Folds what is trivially known: a
  // cast to the same type, a select by a constant, integer arithmetic on two constants, the first
  // of two roundings that only bounds are between.
  ExprId Add(ExprNode node);

 private:
  std::vector<ExprNode> nodes_;
  base::HashIndex by_hash_;
};

// The nodes below `roots`, each once, operands first.
std::vector<ExprId> Reachable(const ExprPool& pool, std::span<const ExprId> roots);
// Rewrites below `root`: `replace(node id)`, called once per node, returns an id to put there, or
// kNoExpr to keep (operands still rewritten). `done` carries what was rewritten from one root to
// the next. Depth of the expression costs no stack.
template <typename Replace>
ExprId Rewrite(ExprPool& pool, ExprId root, Replace&& replace,
               std::unordered_map<ExprId, ExprId>& done) {
  struct Visit {
    ExprId id;
    bool has_operands_done;
  };
  std::vector<Visit> pending{{root, false}};
  while (!pending.empty()) {
    const Visit visit = pending.back();
    pending.pop_back();
    if (done.contains(visit.id)) continue;
    if (visit.has_operands_done) {
      ExprNode node = pool[visit.id];
      for (ExprId& operand : node.operands) operand = done.at(operand);
      done.emplace(visit.id, pool.Add(std::move(node)));
    } else if (const ExprId replaced = replace(visit.id); replaced != kNoExpr) {
      done.emplace(visit.id, replaced);
    } else {
      pending.push_back({visit.id, true});
      for (ExprId operand : pool[visit.id].operands) pending.push_back({operand, false});
    }
  }
  return done.at(root);
}
// One definition per node, in evaluation order.
std::string ToString(const ExprPool& pool, ExprId root);

// A handle that writes like arithmetic. Binary operators want equal types on both sides.
class Expr {
 public:
  Expr() = default;
  Expr(ExprPool* pool, ExprId id) : pool_(pool), id_(id) {}
  ExprPool* pool() const { return pool_; }
  ExprId id() const { return id_; }
  tensor::ElementType type() const { return (*pool_)[id_].type; }

 private:
  ExprPool* pool_ = nullptr;
  ExprId id_ = kNoExpr;
};

Expr Constant(ExprPool& pool, tensor::ElementType type, double value);      // rounded to `type`
Expr IntConstant(ExprPool& pool, tensor::ElementType type, int64_t value);  // exact
Expr ScalarConstant(ExprPool& pool, tensor::ElementType type, tensor::Scalar value);
Expr DimExpr(ExprPool& pool, tensor::Dim dim);
Expr Coordinate(ExprPool& pool, int axis);
Expr Load(ExprPool& pool, tensor::ElementType type, int read);
Expr LoadAt(ExprPool& pool, tensor::ElementType type, int read, std::span<const Expr> coordinates);
Expr State(ExprPool& pool, tensor::ElementType type, int k);
Expr Other(ExprPool& pool, tensor::ElementType type, int k);
Expr RowResult(ExprPool& pool, tensor::ElementType type, int pass, int k);
Expr Accumulator(ExprPool& pool, tensor::ElementType type);
Expr Random(Expr counter, uint64_t seed);

Expr Unary(ExprOp op, Expr a);
Expr Binary(ExprOp op, Expr a, Expr b);
Expr Select(Expr condition, Expr a, Expr b);
Expr Cast(Expr a, tensor::ElementType type, bool saturate = true,
          tensor::Rounding rounding = tensor::Rounding::kNearestEven);
Expr Bitcast(Expr a, tensor::ElementType type);
// A constant of a's type.
Expr Like(Expr a, double value);

inline Expr operator+(Expr a, Expr b) { return Binary(ExprOp::kAdd, a, b); }
inline Expr operator-(Expr a, Expr b) { return Binary(ExprOp::kSub, a, b); }
inline Expr operator*(Expr a, Expr b) { return Binary(ExprOp::kMul, a, b); }
inline Expr operator/(Expr a, Expr b) { return Binary(ExprOp::kDiv, a, b); }
inline Expr operator-(Expr a) { return Unary(ExprOp::kNeg, a); }
inline Expr operator<(Expr a, Expr b) { return Binary(ExprOp::kLess, a, b); }
inline Expr operator<=(Expr a, Expr b) { return Binary(ExprOp::kLessEqual, a, b); }
inline Expr operator>(Expr a, Expr b) { return b < a; }
inline Expr operator>=(Expr a, Expr b) { return b <= a; }
inline Expr operator==(Expr a, Expr b) { return Binary(ExprOp::kEqual, a, b); }
inline Expr operator&&(Expr a, Expr b) { return Binary(ExprOp::kAnd, a, b); }
inline Expr operator||(Expr a, Expr b) { return Binary(ExprOp::kOr, a, b); }
inline Expr operator!(Expr a) { return Unary(ExprOp::kNot, a); }
inline Expr Minimum(Expr a, Expr b) { return Binary(ExprOp::kMin, a, b); }
inline Expr Maximum(Expr a, Expr b) { return Binary(ExprOp::kMax, a, b); }

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_EXPR_H_
