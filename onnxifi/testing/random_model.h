// SPDX-License-Identifier: Apache-2.0
//
// RandomModel: seeded models of operators whose results are whole numbers, so that every device and
// every way to cut them gives the same bits: branches, diamonds, nodes with several outputs,
// branches of If that capture, loops, shapes computed by nodes, a symbolic extent.

#ifndef ONNXIFI_ONNXIFI_TESTING_RANDOM_MODEL_H_
#define ONNXIFI_ONNXIFI_TESTING_RANDOM_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

namespace onnxifi {

// One line of a model in ONNX's textual form. All values are float[N, 4], so that any may be read
// in place of any other of the same line.
struct RandomNode {
  // With %0, %1, ... where it names what it reads, and @0, @1, ... for what it makes.
  std::string text;
  std::vector<int> reads;  // values; 0 and 1 are the inputs
  std::vector<int> makes;
  // The operators in it.
  std::vector<std::string> operators;
};

struct RandomModel {
  std::vector<RandomNode> nodes;
  int value_count = 2;
  std::vector<int> outputs;
  // Whether there is one more output, "anchor", which an operator makes of z that is not among
  // RandomOperators().
  bool has_anchor = false;

  std::string Text() const;
  // Without nodes whose results nobody reads.
  void Prune();
};

// The operators that may occur.
const std::vector<std::string>& RandomOperators();
inline constexpr const char* kAnchorOperator = "Sign";

// `has_loops`: whether there may be loops among the lines, behind which no extent is known.
RandomModel MakeRandomModel(uint32_t seed, int node_count, bool has_loops);

}  // namespace onnxifi

#endif  // ONNXIFI_ONNXIFI_TESTING_RANDOM_MODEL_H_
