// SPDX-License-Identifier: Apache-2.0
//
// FloatMode: a pass over SPIR-V after which float operations mean what they say: no product is
// fused into a sum, and zeros' signs, infinities, NaN, rounding to nearest and subnormals are kept
// as far as the device offers that.

#ifndef ONNXIFI_BACKENDS_VULKAN_FLOAT_MODE_H_
#define ONNXIFI_BACKENDS_VULKAN_FLOAT_MODE_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/vulkan/api.h"

namespace onnxifi::vulkan {

// What a device offers for floats of each width.
struct FloatControls {
  struct Width {
    uint32_t bits = 0;
    bool keeps_specials = false;     // SignedZeroInfNanPreserve
    bool rounds_to_nearest = false;  // RoundingModeRTE
    bool keeps_subnormals = false;   // DenormPreserve
  };
  std::array<Width, 3> by_width = {Width{16}, Width{32}, Width{64}};
};

// Devices may want a mode set alike for all widths, or for those other than 32: takes it away from
// the widths for which it cannot be set so.
void LimitByIndependence(VkShaderFloatControlsIndependence independence,
                         bool FloatControls::Width::*mode, FloatControls& controls);

// The module with its float operations marked and the modes of those widths that it uses asked for.
// What is no module of one entry point is returned as it is.
std::vector<uint32_t> WithFloatMode(std::span<const uint32_t> module,
                                    const FloatControls& controls);

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_FLOAT_MODE_H_
