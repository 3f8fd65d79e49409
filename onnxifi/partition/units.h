// SPDX-License-Identifier: Apache-2.0
//
// Units: nodes that run in one island whatever it costs, because a value between them cannot be
// carried, together with every node on a way from one of them to another.

#ifndef ONNXIFI_ONNXIFI_PARTITION_UNITS_H_
#define ONNXIFI_ONNXIFI_PARTITION_UNITS_H_

#include <vector>

#include "onnxifi/partition/problem.h"

namespace onnxifi::partition {

struct Units {
  // unit_of[node]; units are numbered in a topological order of the graph that they make.
  std::vector<int32_t> unit_of;
  // The nodes of each unit, ascending.
  std::vector<std::vector<NodeIndex>> nodes;
};

// O(nodes + edges).
Units MakeUnits(const Problem& problem);

// The problem with a node for each unit: what one of its nodes refuses, the unit refuses. Values
// inside a unit are gone, those that it reads several times are read once; `value_of` gets for each
// value left the number that it had.
Problem Contract(const Problem& problem, const Units& units, std::vector<ValueIndex>& value_of);

}  // namespace onnxifi::partition

#endif  // ONNXIFI_ONNXIFI_PARTITION_UNITS_H_
