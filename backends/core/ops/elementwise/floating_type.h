// SPDX-License-Identifier: Apache-2.0
//
// The type in which operators of real analysis (exponential, root, division of means) compute, for
// operands of any type.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_FLOATING_TYPE_H_
#define ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_FLOATING_TYPE_H_

#include "backends/core/tensor/element_type.h"

namespace onnxifi::ops {

// A float type's ArithmeticType. Integers and bool: float64, as numpy promotes them.
inline tensor::ElementType FloatingType(tensor::ElementType type) {
  return tensor::IsFloat(type) ? tensor::ArithmeticType(type) : tensor::ElementType::kFloat64;
}

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_FLOATING_TYPE_H_
