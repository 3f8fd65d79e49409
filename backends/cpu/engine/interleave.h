// SPDX-License-Identifier: Apache-2.0
//
// Interleave: elements of two or three planes, as an image's channels are, to pixels.
// Transpositions are for more planes.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_INTERLEAVE_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_INTERLEAVE_H_

#include <cstddef>
#include <cstdint>

namespace onnxifi::engine {

inline constexpr int64_t kMinInterleavedPlanes = 2;
inline constexpr int64_t kMaxInterleavedPlanes = 3;

// pixels[k * planes + p] = source[k + p * plane_step] for k < count. Elements have `element_bytes`,
// which is 1, 2, 4 or 8, at addresses of any alignment. Planes and pixels do not overlap.
void Interleave(const std::byte* source, int64_t plane_step, int64_t planes, int64_t count,
                std::byte* pixels, int64_t element_bytes);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_INTERLEAVE_H_
