// SPDX-License-Identifier: Apache-2.0
//
// LoadShortRuns: runs of a few elements, as the innermost axis of many small tables is, one masked
// vector each instead of a loop.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_SHORT_RUNS_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_SHORT_RUNS_H_

#include <cstddef>
#include <cstdint>

namespace onnxifi::engine {

// The longest run of elements of `element_bytes`: a few vectors; 0 where the processor has no
// masked vectors of these.
int64_t LongestShortRun(int64_t element_bytes);

// lanes[r * length + k] = source[r * run_step + k * step], for `runs` runs of `length` elements, 1
// to LongestShortRun of them; `step` is 0 or 1. At addresses of any alignment, which do not
// overlap. Nothing else is touched.
void LoadShortRuns(const std::byte* source, int64_t run_step, int64_t step, int64_t runs,
                   int64_t length, std::byte* lanes, int64_t element_bytes);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_SHORT_RUNS_H_
