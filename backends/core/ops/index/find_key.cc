// SPDX-License-Identifier: Apache-2.0
//
// FindKey: the table is extended to a length that can be halved to the end.

#include "backends/core/ops/index/find_key.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace onnxifi::ops {

template <typename T>
FoundKey FindKey(Lowering& lowering, StepBuilder& map, Expr element, ElementType type,
                 std::vector<T> keys) {
  const auto number = [&](int64_t value) {
    return IntConstant(map.exprs(), ElementType::kInt64, value);
  };
  // The last one again for those that are not there.
  const int64_t last = static_cast<int64_t>(keys.size()) - 1;
  int64_t size = 1;
  while (size <= last) size = 2 * size + 1;
  keys.resize(static_cast<size_t>(size), keys.back());
  const int table =
      map.AddRead(lowering.ConstantTensor(tensor::Tensor::FromValues<T>(type, {size}, keys)).view);
  const auto key_at = [&](Expr at) {
    return program::LoadAt(map.exprs(), type, table, std::span(&at, 1));
  };
  // How many keys are less than the element.
  Expr less = number(0);
  for (int64_t half = (size + 1) / 2; half > 0; half /= 2) {
    const Expr is_above = key_at(less + number(half - 1)) < element;
    less = less + Select(is_above, number(half), number(0));
  }
  const Expr at = Minimum(less, number(last));
  return {at, key_at(at) == element};
}

template FoundKey FindKey<float>(Lowering&, StepBuilder&, Expr, ElementType, std::vector<float>);
template FoundKey FindKey<double>(Lowering&, StepBuilder&, Expr, ElementType, std::vector<double>);
template FoundKey FindKey<int64_t>(Lowering&, StepBuilder&, Expr, ElementType,
                                   std::vector<int64_t>);

}  // namespace onnxifi::ops
