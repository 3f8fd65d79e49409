// SPDX-License-Identifier: Apache-2.0
//
// PanelLayout: an unsigned byte is at most 255, so two products stay within 16 bits where the
// magnitudes of both columns are at most 128 together. Of a larger pair, what each is beyond 64 is
// its excess: both parts are at most 64 then.

#include "backends/cpu/integer/panel_layout.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace onnxifi::integer {
namespace {

constexpr int kMaxPair = 128;

bool HasExcess(const int8_t* quad, int64_t count) {
  int largest = 0;
  for (int64_t k = 0; k < count; k += 2) {
    largest = std::max(largest, std::abs(quad[k]) + std::abs(quad[k + 1]));
  }
  return largest > kMaxPair;
}

}  // namespace

void PanelLayout::Widen(int8_t* panel) const {
  const int64_t lanes = columns / kPanelVectors;
  std::vector<int16_t> elements(static_cast<size_t>(quad_bytes()));
  // The last ones first: they move to where none is.
  for (int64_t quad = quads; quad-- > 0;) {
    std::copy_n(panel + quads_at() + quad * quad_bytes(), quad_bytes(), elements.begin());
    auto* const wide = reinterpret_cast<int16_t*>(panel + quads_at() + 2 * quad * quad_bytes());
    for (int64_t element = 0; element < quad_bytes(); ++element) {
      const int64_t vector = element / (lanes * kQuad);
      const int64_t pair = element / 2 % (lanes * 2);
      wide[(2 * vector + element % 2) * lanes * 2 + pair] = elements[static_cast<size_t>(element)];
    }
  }
}

void PanelLayout::Finish(int8_t* panel) const {
  if (multiplier != MultiplierKind::kPairs) return;
  int8_t* const first = panel + quads_at();
  auto* const count_at = reinterpret_cast<int32_t*>(panel);
  int32_t* const numbers = count_at + 1;
  int32_t count = 0;
  for (int64_t quad = 0; quad < quads; ++quad) {
    if (!HasExcess(first + quad * quad_bytes(), quad_bytes())) continue;
    if (count == max_excess()) {
      *count_at = -1;
      return Widen(panel);
    }
    numbers[count++] = static_cast<int32_t>(quad);
  }
  *count_at = count;
  for (int32_t k = 0; k < count; ++k) {
    int8_t* const quad = first + numbers[k] * quad_bytes();
    int8_t* const excess = panel + excess_at() + k * quad_bytes();
    for (int64_t at = 0; at < quad_bytes(); at += 2) {
      const bool is_split = std::abs(quad[at]) + std::abs(quad[at + 1]) > kMaxPair;
      for (int64_t element = at; element < at + 2; ++element) {
        constexpr int8_t kMaxKept = kMaxPair / 2;
        const int8_t kept =
            is_split ? std::clamp<int8_t>(quad[element], -kMaxKept, kMaxKept) : quad[element];
        excess[element] = static_cast<int8_t>(quad[element] - kept);
        quad[element] = kept;
      }
    }
  }
}

}  // namespace onnxifi::integer
