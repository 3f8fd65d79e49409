// SPDX-License-Identifier: Apache-2.0
//
// What a Squeeze without axes removes: which extents count (ExtentsOfOne), and what lowering tells
// of a graph's Squeezes, for a graph with other extents (SqueezedAxes).

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SQUEEZED_AXES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SQUEEZED_AXES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/core/graph/graph.h"
#include "backends/core/tensor/dim.h"

namespace onnxifi::ops {

// Whether it is a Squeeze without axes, which removes the extents that are 1.
bool IsSqueezeOfOnes(const graph::Node& node);

// How many extents before such a Squeeze are 1, and how many it has to remove.
struct ExtentsOfOne {
  ExtentsOfOne(const tensor::Shape& shape, std::optional<size_t> declared_rank);

  // Numbers alone make the declared rank: what only a run tells stays, even as 1.
  bool are_enough() const { return wanted == known; }
  // The declared rank takes some of those that only a run tells.
  bool need_open() const { return wanted && *wanted > known && *wanted <= known + open; }

  int64_t known = 0;              // are 1 in every run
  int64_t open = 0;               // are 1 in some runs
  std::optional<int64_t> wanted;  // by the declared rank
};

// What a Squeeze without axes removes where the numbers among the extents alone make the rank that
// is declared: symbols stay, even as 1. The same graph with numbers in place of its symbols, as it
// is lowered for a shape of its own, does not show which extents these were.
struct SqueezedAxes {
  struct Node {
    int index = 0;  // of the node
    std::vector<int64_t> axes;
  };
  std::vector<Node> nodes;  // of the graph itself
  bool are_in_bodies = false;

  // The nodes name their axes.
  void Write(graph::Graph& graph) const;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SQUEEZED_AXES_H_
