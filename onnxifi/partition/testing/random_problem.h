// SPDX-License-Identifier: Apache-2.0
//
// RandomProblem: seeded problems for property tests: branches, diamonds, nodes with several
// outputs, values read far below, values that cannot be cut, devices that claim some of it.

#ifndef ONNXIFI_ONNXIFI_PARTITION_TESTING_RANDOM_PROBLEM_H_
#define ONNXIFI_ONNXIFI_PARTITION_TESTING_RANDOM_PROBLEM_H_

#include <cstdint>
#include <random>
#include <vector>

#include "onnxifi/partition/problem.h"

namespace onnxifi::partition::testing {

struct RandomOptions {
  int node_count = 10;
  int device_count = 2;
  // Out of 100.
  int claim_percent = 80;
  int uncuttable_percent = 0;
  // Whether device 0 claims everything.
  bool has_host = false;
};

Problem RandomProblem(uint32_t seed, const RandomOptions& options);

// The same problem with its values in another order, and their consumers too.
Problem ShuffleValues(const Problem& problem, std::mt19937& random);

// The same problem with its nodes in another topological order; `node_of[new] = old`.
Problem ShuffleNodes(const Problem& problem, std::mt19937& random, std::vector<NodeIndex>& node_of);

}  // namespace onnxifi::partition::testing

#endif  // ONNXIFI_ONNXIFI_PARTITION_TESTING_RANDOM_PROBLEM_H_
