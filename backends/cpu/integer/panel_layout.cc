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

bool PanelLayout::FindExcess(int8_t* panel, int vector) const {
  auto* const count = reinterpret_cast<int32_t*>(panel) + vector * NumbersOfVector();
  int32_t* const numbers = count + 1;
  *count = 0;
  const int8_t* quad = panel + quads_at() + vector * vector_bytes();
  for (int64_t number = 0; number < quads; ++number, quad += quad_bytes()) {
    if (!HasExcess(quad, vector_bytes())) continue;
    if (*count == max_excess()) return false;
    numbers[(*count)++] = static_cast<int32_t>(number);
  }
  return true;
}

void PanelLayout::SplitExcess(int8_t* panel, int vector) const {
  const PanelExcess found = ExcessOf(panel, vector);
  int8_t* excess = panel + ExcessAt(vector);
  for (int64_t k = 0; k < found.count; ++k, excess += vector_bytes()) {
    int8_t* const quad =
        panel + quads_at() + found.numbers[k] * quad_bytes() + vector * vector_bytes();
    for (int64_t at = 0; at < vector_bytes(); at += 2) {
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

void PanelLayout::Finish(int8_t* panel) const {
  if (multiplier != MultiplierKind::kPairs) return;
  bool is_found = true;
  for (int vector = 0; vector < kPanelVectors; ++vector) {
    is_found = is_found && FindExcess(panel, vector);
  }
  if (!is_found) {
    *reinterpret_cast<int32_t*>(panel) = -1;
    return Widen(panel);
  }
  for (int vector = 0; vector < kPanelVectors; ++vector) SplitExcess(panel, vector);
}

}  // namespace onnxifi::integer
