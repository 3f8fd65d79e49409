// SPDX-License-Identifier: Apache-2.0
//
// TreeWalk: ways down decision trees as one instruction. core/ops lowers a tree ensemble to loads
// at entries that the loads before gave: the feature that an entry compares, its split, the child.
// Here they are found again in an expression, and gone down for many lanes at the same time, over
// nodes that have together what a comparison needs.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_TREE_WALK_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_TREE_WALK_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "backends/core/device/device.h"

namespace onnxifi::engine {

// int64 entries after `levels` comparisons, from `entry` on:
//   entry = children[entry, features[row, number[entry]] < splits[entry]]
// or <=, or where the feature is NaN and nan_is_first[entry].
struct TreeWalk {
  // Reads of the step.
  int rows = -1, features = -1, splits = -1, children = -1, nan_is_first = -1;
  bool is_strict = false;
  tensor::ElementType type = tensor::ElementType::kFloat32;  // of features and splits
  int64_t levels = 0;
  program::ExprId row = program::kNoExpr, entry = program::kNoExpr;  // int64
};

// The walk that ends in this node, as long as it goes; nothing for other nodes, and for one level.
std::optional<TreeWalk> FindTreeWalk(const program::ExprPool& pool, program::ExprId id);

// A walk with numbers. Immutable to callers: nodes are made in the first run. Threads: any.
class BoundTreeWalk {
 public:
  // Where tables are no constants that lie densely, or loads are guarded, each comparison is loads.
  static std::shared_ptr<const BoundTreeWalk> Create(const TreeWalk& walk,
                                                     const device::BoundStep& step);
  virtual ~BoundTreeWalk() = default;

  struct Lanes {
    const int64_t* rows;
    const int64_t* entries;
    int64_t* result;
    int64_t count;
    int64_t period;  // lanes this far apart may have the same entry
  };
  virtual void Run(device::Addresses addresses, const Lanes& lanes) const = 0;
};

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_TREE_WALK_H_
