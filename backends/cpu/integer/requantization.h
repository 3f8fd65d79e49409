// SPDX-License-Identifier: Apache-2.0
//
// Requantization: what quantized networks do to the sums of a product before they store bytes: sums
// and products with numbers per column, bounds, QuantizeLinear followed by DequantizeLinear,
// another tensor of bytes that is dequantized and added, and QuantizeLinear at the end, behind
// which there may be any function of that byte. Tables and numbers, as a loop over sums in
// vector registers takes them (requantize.h).

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_REQUANTIZATION_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_REQUANTIZATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/core/device/device.h"

namespace onnxifi::integer {

// round(x / divisor) + zero_point, at least `low` and at most `high`.
struct Quantizer {
  float divisor = 1;
  // The float32 numbers beside 1 / divisor. Where x * below and x * above round to the same
  // integer, x / divisor does, too: all three are rounded in the order of what they round.
  float below = 1, above = 1;
  int32_t zero_point = 0;
  int32_t low = 0, high = 0;

  float Apply(float x) const;
};

// (byte - zero_point) * scale
struct Dequantizer {
  float scale = 1;
  int32_t zero_point = 0;
};

// kLeaky: x * operand where x is below 0, else x. kRescale: round(x / divisor), bounded, times the
// operand plus a summand, rounded once (folded_rounding.h).
enum class LinkKind : uint8_t { kAdd, kSub, kMul, kMin, kMax, kLeaky, kAddBytes, kRound, kRescale };

// An operation on the value so far, float32.
struct Link {
  LinkKind kind;
  // The other operand, of all columns of the step, followed by kTableSlack numbers.
  std::vector<float> table;
  std::vector<float> summands;  // kRescale: as table
  Quantizer quantizer;          // kRound and kRescale: quantizes,
  Dequantizer dequantizer;      // and dequantizes that; kAddBytes
};

struct Requantization {
  // Added to the sums, as tables are; may be empty.
  std::vector<int32_t> offsets;
  std::vector<Link> links;
  Quantizer last;  // of bytes
  // What becomes of each byte then, by its bits, another byte or float32; empty: nothing.
  std::vector<uint8_t> lookup;
  std::vector<float> real_lookup;
  tensor::ElementType result = tensor::ElementType::kInt8;  // or uint8, or float32

  int64_t result_bytes() const { return result == tensor::ElementType::kFloat32 ? 4 : 1; }
  // The read of kAddBytes; -1 for none.
  int added_read = -1;
  bool is_added_signed = false;
};
inline constexpr int64_t kTableSlack = 64;

// Nothing where the epilogue of a Contract is another, its numbers are not constant, or one of them
// is too large for 32-bit integers. Columns are those along `column_axis` of the domain, -1 for one
// column; no sum is above `largest_sum` in magnitude.
std::optional<Requantization> FindRequantization(const device::BoundStep& step,
                                                 device::Addresses constants, int column_axis,
                                                 double largest_sum);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_REQUANTIZATION_H_
