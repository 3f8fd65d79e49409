// SPDX-License-Identifier: Apache-2.0
//
// Stream: stores past the caches, for results too large to be found there again: no line is read
// before it is overwritten, and nothing that is still needed makes room for it.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_STREAM_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_STREAM_H_

#include <cstddef>
#include <cstdint>

namespace onnxifi::engine {

// Copies bytes that lie in a cache to memory. Incomplete lines at the ends are stored as usual.
void StreamBytes(const std::byte* source, int64_t size_bytes, std::byte* target);
// Other threads see what was streamed before only after this.
void FinishStreams();

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_STREAM_H_
