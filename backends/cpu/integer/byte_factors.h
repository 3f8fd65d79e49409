// SPDX-License-Identifier: Apache-2.0
//
// ByteFactors: what the kernels of this folder ask of a product: its factors are bytes in memory,
// less zero points that are bytes too.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_FACTORS_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_FACTORS_H_

#include <cstddef>
#include <cstdint>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::integer {

struct ByteFactor {
  bool is_signed = false;
  // The read of the step that is subtracted, the same along the depth; -1 for none.
  int zero_point_read = -1;
  bool is_zero_point_signed = false;
};

struct ByteFactors {
  ByteFactor a, b;
};

// UNSUPPORTED_* with what is in the way.
base::Result<ByteFactors> DescribeByteFactors(const device::Facts& facts);

// Flips the top bit of bytes that are signed where they should be unsigned, or the other way: the
// byte less 128, or plus it.
inline constexpr uint8_t kFlip = 0x80;
inline uint8_t RowFlip(const ByteFactor& a) { return a.is_signed ? kFlip : 0; }
inline uint8_t ColumnFlip(const ByteFactor& b) { return b.is_signed ? 0 : kFlip; }
// The zero point at an offset of its view, moved as the elements are.
inline int32_t ZeroPointAt(const ByteFactor& factor, const device::BoundView& view,
                           const std::byte* buffer, int64_t offset) {
  const std::byte* at = buffer + view.offset + offset;
  return factor.is_zero_point_signed ? static_cast<int32_t>(static_cast<int8_t>(*at))
                                     : static_cast<int32_t>(*at);
}

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_FACTORS_H_
