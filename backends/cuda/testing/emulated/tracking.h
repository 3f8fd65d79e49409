// SPDX-License-Identifier: Apache-2.0
//
// What a launch changes in memory, without a copy of all that it might: memory is protected against
// writes, and the first write to a part of it keeps that part as it was.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_TRACKING_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_TRACKING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulated {

// One at a time, by the thread that carries out a launch.
class Tracking {
 public:
  // Whole pages.
  struct Range {
    uintptr_t begin, end;
  };
  explicit Tracking(std::vector<Range> ranges);
  ~Tracking();
  Tracking(const Tracking&) = delete;
  Tracking& operator=(const Tracking&) = delete;

  // Puts back what was there at the start and keeps what has become of it.
  void Restore();
  // The address of the first byte that is other than before Restore; 0 if there is none.
  uintptr_t FindDifference() const;

  // For the handler of signals: whether the write can be repeated now.
  static bool Allow(uintptr_t address);

 private:
  struct Part {
    uintptr_t begin, end;
    std::vector<char> original;
    // Empty if nothing had been written there when the first pass ended.
    std::vector<char> first_result;
  };
  std::vector<Range> ranges_;
  std::vector<Part> parts_;
};

}  // namespace emulated

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_TRACKING_H_
