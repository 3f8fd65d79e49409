// SPDX-License-Identifier: Apache-2.0
//
// Cast chains: fused operations with casts: of the first value, of the result to bytes, or of one
// between to bytes and back. Where they do what quantized networks do between two products, sums,
// products, bounds and quantizations, one pass does it all in vector registers.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_CAST_CHAIN_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_CAST_CHAIN_H_

#include <optional>

#include "backends/core/tensor/element_type.h"
#include "backends/cpu/engine/fused_operations.h"

namespace onnxifi::engine {

// Of a value that is cast to float32, and of one that float32 is cast to; nothing for types that
// only have a loop of their own.
std::optional<FusedLanes> FindCastFrom(tensor::ElementType type);
std::optional<FusedLanes> FindCastTo(tensor::ElementType type);

// With or without casts, which are those of FindCastLoop; otherwise as RunFloatChain. The result
// may be any input whose lanes have its size, or overlap none.
void RunFused(const FusedOperands& fused);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_CAST_CHAIN_H_
