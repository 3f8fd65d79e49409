// SPDX-License-Identifier: Apache-2.0
//
// Gather, Scatter: elements by a table of positions, for lanes whose way through memory has too
// many turns for a loop of its own. NearGather: positions near one another that many rows share.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_GATHER_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_GATHER_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace onnxifi::engine {

// target[k] = source[positions[k]] for k < count. Elements have `element_bytes`, which is 1, 2, 4
// or 8. Source and target do not overlap.
void Gather(const std::byte* source, const int32_t* positions, int64_t count, std::byte* target,
            int64_t element_bytes);
// target[positions[k]] = source[k] for k < count, in ascending order of k.
void Scatter(const std::byte* source, const int32_t* positions, int64_t count, std::byte* target,
             int64_t element_bytes);

// The same where neighbours among the positions lie so near one another that two vectors hold the
// elements of one vector of the target, as rows that are enlarged or shrunk have them: these are
// loaded whole and permuted, which takes a fraction of a gather's time.
class NearGather {
 public:
  static constexpr int64_t kMaxCount = 256;

  // False where positions lie further apart, or are too few, or elements have not 4 bytes. The
  // positions, at most kMaxCount of them, are 0 or larger.
  bool Find(const int32_t* positions, int64_t count, int64_t element_bytes);
  // Reads nothing beyond the elements between the first and the last that are asked for.
  void Run(const std::byte* source, std::byte* target) const;

  // What a vector of the target loads.
  struct Window {
    int32_t first;
    int32_t length;  // up to two vectors
    int32_t target;
  };

 private:
  static constexpr int64_t kMinLanes = 8;

  int64_t window_count_ = 0;
  std::array<Window, kMaxCount / kMinLanes> windows_;
  // In the window, by window and lane.
  std::array<int32_t, 2 * kMaxCount> offsets_;
};

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_GATHER_H_
