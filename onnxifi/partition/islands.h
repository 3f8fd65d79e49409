// SPDX-License-Identifier: Apache-2.0
//
// Islands: neighbours on one device become one graph of that device, as long as the islands need
// one another in no circle.

#ifndef ONNXIFI_ONNXIFI_PARTITION_ISLANDS_H_
#define ONNXIFI_ONNXIFI_PARTITION_ISLANDS_H_

#include <vector>

#include "onnxifi/partition/placement.h"
#include "onnxifi/partition/problem.h"

namespace onnxifi::partition {

// island_of[node]. Islands are numbered in an order in which they can run; each is connected and on
// one device. In graphs of at most a few hundred islands no two neighbours on one device could be
// joined without a circle; in larger ones the search for circles ends early, and then they stay
// apart. O(edges log(nodes)).
std::vector<int32_t> MakeIslands(const Problem& problem, const Placement& placement);

}  // namespace onnxifi::partition

#endif  // ONNXIFI_ONNXIFI_PARTITION_ISLANDS_H_
