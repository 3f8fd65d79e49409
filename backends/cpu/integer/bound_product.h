// SPDX-License-Identifier: Apache-2.0
//
// BindProduct: a product of bytes with numbers for its extents, ready to run.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_BOUND_PRODUCT_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_BOUND_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/integer/byte_factors.h"
#include "backends/cpu/integer/geometry.h"
#include "backends/cpu/integer/requantization.h"
#include "backends/cpu/runtime/packed_weights.h"
#include "backends/cpu/runtime/recipe.h"

namespace onnxifi::integer {

// What B takes as the kernel of the step has it: packed panels, or the taps of a depthwise
// convolution.
int64_t WeightBytes(const ProductGeometry& geometry);
void PackWeights(const ProductGeometry& geometry, const ByteFactors& factors, const uint8_t* b,
                 std::byte* to, device::Parallel& parallel);

// The first element of a view.
inline const uint8_t* BytesAt(device::Addresses addresses, const device::BoundView& view) {
  return reinterpret_cast<const uint8_t*>(addresses[view.buffer] + view.offset);
}

// What is known before addresses are.
struct ProductPlan {
  ByteFactors factors;
  engine::Code epilogue;
  std::optional<Requantization> requantization;  // the same, where it is one
};

// Without `packed` weights, B is packed in each run. Lifetime: within the runtimes.
std::unique_ptr<device::BoundKernel> BindProduct(ProductPlan plan, const device::BoundStep& step,
                                                 runtime::PackedWeights packed,
                                                 const runtime::Runtimes& runtimes);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_BOUND_PRODUCT_H_
