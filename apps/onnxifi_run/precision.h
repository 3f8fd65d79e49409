// SPDX-License-Identifier: Apache-2.0
//
// RoundingPermissions: to what devices may round operands of products. Names of precisions, for the
// command line and for profiles.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_PRECISION_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_PRECISION_H_

#include <onnxifi/sdk.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace onnxifi::run {

inline constexpr std::array<std::string_view, 4> kPrecisions = {"float32", "tf32", "bfloat16",
                                                                "float16"};
static_assert(ONNXIFI_SDK_PRECISION_FLOAT32 == 0 && ONNXIFI_SDK_PRECISION_TF32 == 1 &&
              ONNXIFI_SDK_PRECISION_BFLOAT16 == 2 && ONNXIFI_SDK_PRECISION_FLOAT16 == 3);

// A library newer than this program may tell of others: "precision 7".
inline std::string PrecisionName(uint32_t precision) {
  return precision < kPrecisions.size() ? std::string(kPrecisions[precision])
                                        : "precision " + std::to_string(precision);
}

struct RoundingPermissions {
  // ONNXIFI_SDK_PRECISION_*: what both operands may be rounded to.
  uint32_t precision = ONNXIFI_SDK_PRECISION_FLOAT32;
  // Whether rows may be rounded to 8 bits before weights of 8 bits or less.
  bool dynamic_quantization = false;
};

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_PRECISION_H_
