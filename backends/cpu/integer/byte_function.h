// SPDX-License-Identifier: Apache-2.0
//
// ByteFunction: the last part of an epilogue, from bytes to bytes or float32: what a quantized
// network does between two quantizations, or behind the last one, an activation mostly. It has 256
// results.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_FUNCTION_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_FUNCTION_H_

#include <array>
#include <cstdint>
#include <optional>

#include "backends/core/device/device.h"

namespace onnxifi::integer {

struct ByteFunction {
  program::ExprId argument;  // of type int8 or uint8
  bool is_real;              // whether the results are float32
  // By the argument's bits.
  std::array<uint8_t, 256> bytes{};
  std::array<float, 256> reals{};
};

// Nothing where the result of the Contract is of another type, or depends on something else than
// one byte that is quantized before and numbers that are constant.
std::optional<ByteFunction> FindByteFunction(const device::BoundStep& step,
                                             device::Addresses constants);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_FUNCTION_H_
