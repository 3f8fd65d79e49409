// SPDX-License-Identifier: Apache-2.0
//
// FindKey: looks numbers up in a sorted table, by halving it inside an expression.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_INDEX_FIND_KEY_H_
#define ONNXIFI_BACKENDS_CORE_OPS_INDEX_FIND_KEY_H_

#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

struct FoundKey {
  Expr at;        // int64, in [0, number of keys)
  Expr is_there;  // bool: whether the key at `at` equals the element
};

// `element` of `type` among `keys`, which are ascending, each once, and at least one. T is float,
// double or int64_t.
template <typename T>
FoundKey FindKey(Lowering& lowering, StepBuilder& map, Expr element, ElementType type,
                 std::vector<T> keys);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_INDEX_FIND_KEY_H_
