// SPDX-License-Identifier: Apache-2.0
//
// ByteFunction: a Map from one tensor of bytes to one of bytes or floats, as activations of
// quantized networks are: what it gives for each of the 256 bytes is computed once, and looked up
// in runs.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_BYTE_FUNCTION_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_BYTE_FUNCTION_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/runtime.h"

namespace onnxifi::engine {

// Computes the Map of a step at some addresses.
using RunMap =
    std::function<base::Status(const device::BoundStep& step, device::Addresses addresses)>;

// Null where `step` is anything else, its numbers are not constant, it has so few elements that the
// table would be most of the work, or floats that take less than looking them up: `cost`, the
// picoseconds of an element without a table. `runtime` outlives what is returned. What `run` says.
base::Result<std::unique_ptr<device::BoundKernel>> BindByteFunction(const device::BoundStep& step,
                                                                    device::Addresses constants,
                                                                    int64_t cost, const RunMap& run,
                                                                    Runtime& runtime);

// The entries of a table of 256 bytes at each byte of some rows; strides are in bytes. `to` may be
// `from`. Threads: any.
void LookUpBytes(const uint8_t* table, int64_t rows, int64_t columns, const uint8_t* from,
                 int64_t from_stride, uint8_t* to, int64_t to_stride);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_BYTE_FUNCTION_H_
