// SPDX-License-Identifier: Apache-2.0
//
// Gather, Scatter: elements by a table of positions, for lanes whose way through memory has too
// many turns for a loop of its own.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_GATHER_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_GATHER_H_

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

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_GATHER_H_
