// SPDX-License-Identifier: Apache-2.0
//
// TreeTables: the nodes of trees as arrays of entries that all make the same comparison. A way down
// ends in the entry of a leaf, which leads to itself, so that ways of any length may go on.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_ML_TREE_TABLES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_ML_TREE_TABLES_H_

#include <cstdint>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/ops/lowering.h"
#include "backends/core/ops/ml/trees.h"

namespace onnxifi::ops {

struct TreeTables {
  // By entry; those of the leaves come first, in order.
  std::vector<int32_t> features;
  std::vector<double> splits;  // numbers of the type in which features are compared
  // Two per entry: the second child, where the comparison does not hold, and the first, where it
  // does: a bool is the position.
  std::vector<int32_t> children;
  std::vector<uint8_t> nan_is_first;  // whether NaN goes to the first child

  bool is_strict = false;  // feature < split, else feature <= split
  // Features that are subnormal count as the normal number next to them that is not zero. That
  // takes place of splits that are subnormal, which devices may flush to zero.
  bool needs_normal_features = false;
  std::vector<int32_t> roots;
  int64_t depth = 0;  // comparisons on the longest way
  int64_t feature_count = 0;
};

// `type`: in which features are compared, float32 or float64. INVALID_MODEL where a node is below
// itself; UNSUPPORTED_ATTRIBUTE for more entries than positions can count.
base::Result<TreeTables> MakeTreeTables(const Lowering& lowering, const Trees& trees,
                                        ElementType type);

// The one target that the leaves below each root have weights for, -1 where none has any. Empty if
// a root has several, or if ways share so many nodes that it is not worth to look.
std::vector<int64_t> FindOwnTargets(const TreeTables& tables, const Trees& trees);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_ML_TREE_TABLES_H_
