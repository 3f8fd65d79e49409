// SPDX-License-Identifier: Apache-2.0
//
// Trees: a tree ensemble as every version of its operators describes it.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_ML_TREES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_ML_TREES_H_

#include <cstdint>
#include <vector>

namespace onnxifi::ops {

struct Trees {
  enum class Mode : uint8_t {
    kLessEqual,
    kLess,
    kGreaterEqual,
    kGreater,
    kEqual,
    kNotEqual,
    kMember
  };
  enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };
  struct Branch {
    int64_t index = 0;  // of a leaf or a node
    bool is_leaf = false;
  };
  struct Node {
    Mode mode = Mode::kLessEqual;
    int64_t feature = 0;
    double split = 0;
    std::vector<double> members;   // kMember
    bool missing_is_true = false;  // NaN goes there, else where the comparison sends it
    Branch on_true, on_false;
  };
  // What a leaf gives to a target; one that gives nothing has none.
  struct Weight {
    int64_t leaf = 0;
    int64_t target = 0;
    double weight = 0;
  };

  std::vector<Node> nodes;
  int64_t leaf_count = 0;
  std::vector<Weight> weights;
  std::vector<Branch> roots;
  int64_t target_count = 0;
  Aggregate aggregate = Aggregate::kSum;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_ML_TREES_H_
