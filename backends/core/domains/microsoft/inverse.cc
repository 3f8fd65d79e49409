// SPDX-License-Identifier: Apache-2.0
//
// Inverse of small matrices: the determinants of the minors, with signs and transposed, over the
// determinant.

#include <utility>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {
namespace {

using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

// Minors have n^2 times the elements of a matrix.
constexpr int64_t kMaxExtent = 8;

Status Define(Definition& d) {
  const std::optional<int> rank = d.Rank(0);
  if (!rank) return d.UnsupportedShape("Input 0 has a number of axes that is not known.");
  if (*rank < 2) {
    return d.Invalid("Input 0 has " + std::to_string(*rank) + " axes; matrices have at least 2.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t n, d.NeedExtent(0, -1));
  if (n < 1 || n > kMaxExtent) {
    return d.UnsupportedShape("Input 0 has matrices of " + std::to_string(n) + " rows; 1 to " +
                              std::to_string(kMaxExtent) + " are supported.");
  }
  const ElementType type = d.Type(0);
  const ElementType wide = type == ElementType::kFloat16 ? ElementType::kFloat32 : type;
  const Value x = d.Cast(d.In(0), wide);
  if (n == 1) {
    d.Return(0, d.Cast(d.Apply("Reciprocal", {x}), type));
    return base::Ok();
  }
  // Row k of the table: all indices but k.
  std::vector<int64_t> others, signs;
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t index = 0; index < n; ++index) {
      if (index != k) others.push_back(index);
      signs.push_back((k + index) % 2 == 0 ? 1 : -1);
    }
  }
  const Value table = d.Reshape(d.Ints1D(std::move(others)), {n, n - 1});
  const int64_t matrix = *rank - 2;  // the first of its two axes
  const Value rows = d.Apply("Gather", {x, table}, {{"axis", matrix}});
  const Value minors = d.Apply("Gather", {rows, table}, {{"axis", matrix + 2}});
  // [..., row, n - 1, column, n - 1] to [..., row, column, n - 1, n - 1]
  std::vector<int64_t> perm, turned;
  for (int64_t axis = 0; axis < matrix; ++axis) {
    perm.push_back(axis);
    turned.push_back(axis);
  }
  for (const int64_t axis : {0, 2, 1, 3}) perm.push_back(matrix + axis);
  for (const int64_t axis : {1, 0}) turned.push_back(matrix + axis);
  const Value determinants = d.Apply("Det", {d.Transpose(minors, std::move(perm))});
  const Value sign = d.Cast(d.Reshape(d.Ints1D(std::move(signs)), {n, n}), wide);
  const Value adjugate = d.Transpose(d.Mul(determinants, sign), std::move(turned));
  const Value whole = d.Unsqueeze(d.Apply("Det", {x}), {-1, -2});
  d.Return(0, d.Cast(d.Div(adjugate, whole), type));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(Inverse(X: T) -> (Y: T)
        T = float16 | float | double)",
     Define},
};

}  // namespace

std::span<const model::DomainOperator> InverseOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
