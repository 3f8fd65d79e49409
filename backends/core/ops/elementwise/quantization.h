// SPDX-License-Identifier: Apache-2.0
//
// Granularity of scales and zero points: how QuantizeLinear and DequantizeLinear find the number
// that belongs to an element.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_QUANTIZATION_H_
#define ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_QUANTIZATION_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// The element of input `input` (scale or zero point) for each element of input 0, in arithmetic
// type: one for the whole tensor, one per index of attribute `axis`, or one per block of attribute
// `block_size` along it. `map` is over input 0's shape.
base::Result<Expr> ReadPerGranule(Lowering& lowering, StepBuilder& map, int input);

// Attribute `name` as an element type; `otherwise` where it is missing or 0.
base::Result<ElementType> TypeAttribute(const Lowering& lowering, std::string_view name,
                                        ElementType otherwise);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_QUANTIZATION_H_
