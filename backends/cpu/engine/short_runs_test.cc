// SPDX-License-Identifier: Apache-2.0
//
// Short runs against plain loops, on every instruction set, with memory that ends where the last
// run does: what reads behind it is found with AddressSanitizer.

#include "backends/cpu/engine/short_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

constexpr uint8_t kUntouched = 0x5A;

void Check(int64_t element_bytes, int64_t length, int64_t runs, int64_t step, int64_t run_step) {
  const int64_t last = (runs - 1) * std::max<int64_t>(0, run_step) + (length - 1) * step;
  const int64_t first = run_step < 0 ? -(runs - 1) * run_step : 0;
  std::vector<std::byte> source(static_cast<size_t>((first + last + 1) * element_bytes));
  for (size_t k = 0; k < source.size(); ++k) source[k] = static_cast<std::byte>(k * 37 % 251);
  std::vector<std::byte> lanes(static_cast<size_t>(runs * length * element_bytes) + 64,
                               std::byte{kUntouched});
  std::vector<std::byte> expected = lanes;
  for (int64_t lane = 0; lane < runs * length; ++lane) {
    const int64_t element = first + lane / length * run_step + lane % length * step;
    std::copy_n(source.begin() + element * element_bytes, element_bytes,
                expected.begin() + lane * element_bytes);
  }
  LoadShortRuns(source.data() + first * element_bytes, run_step, step, runs, length, lanes.data(),
                element_bytes);
  EXPECT_EQ(lanes, expected) << runs << " runs of " << length << " elements of " << element_bytes
                             << " bytes, " << step << " and " << run_step << " apart";
}

TEST(ShortRunsTest, AreWhatPlainLoopsLoad) {
  int checked = 0;
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    for (const int64_t element_bytes : {1, 2, 4, 8}) {
      for (int64_t length = 1; length <= LongestShortRun(element_bytes); ++length) {
        for (const int64_t runs : {1, 2, 3, 16, 17, 50}) {
          for (const int64_t run_step : {-3, 0, 1, 11, 20}) {
            for (const int64_t step : {0, 1}) {
              Check(element_bytes, length, runs, step, run_step);
              ++checked;
            }
          }
        }
      }
    }
  });
  if (LongestShortRun(4) > 0) EXPECT_GT(checked, 700);
}

}  // namespace
}  // namespace onnxifi::engine
