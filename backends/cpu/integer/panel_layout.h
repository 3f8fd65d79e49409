// SPDX-License-Identifier: Apache-2.0
//
// PanelLayout: what a packed panel of columns consists of. Where products of neighbours are added
// up in 16 bits, quads of columns are followed by their excess: what was split off of quads that
// would saturate, so that what is left of them, and the excess, saturate nothing. Each vector of
// columns has its own, since the fewer columns there are the fewer quads of them saturate. A panel
// of which too many quads have an excess is one of 16-bit integers instead.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_PANEL_LAYOUT_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_PANEL_LAYOUT_H_

#include <cstdint>

namespace onnxifi::integer {

// Elements of the depth that lie together and are multiplied together. Rows and columns end with
// zeros up to a multiple of it.
inline constexpr int64_t kQuad = 4;
constexpr int64_t Quads(int64_t depth) { return (depth + kQuad - 1) / kQuad; }

// Vectors of sums that a panel has columns for.
inline constexpr int kPanelVectors = 2;

enum class MultiplierKind { kAny, kPairs, kBytes };

// Of a vector of columns: the numbers of quads with an excess, rising, and the excess of each.
struct PanelExcess {
  int64_t count;
  const int32_t* numbers;
  const int8_t* quads;
};

struct PanelLayout {
  int64_t columns;  // PanelColumns()
  int64_t quads;
  MultiplierKind multiplier;

  // Quads of a vector that may have an excess.
  int64_t max_excess() const { return (quads + 1) / 2; }
  // For each vector how many there are and their numbers; quads; for each vector the excess. The
  // first is -1 where elements have 16 bits.
  int64_t quads_at() const {
    if (multiplier != MultiplierKind::kPairs) return 0;
    constexpr int64_t kLine = 64;
    const auto numbers = kPanelVectors * NumbersOfVector() * static_cast<int64_t>(sizeof(int32_t));
    return (numbers + kLine - 1) / kLine * kLine;
  }
  int64_t quad_bytes() const { return columns * kQuad; }
  int64_t size_bytes() const {
    return multiplier == MultiplierKind::kPairs ? excess_at() + quads * quad_bytes()
                                                : quads * quad_bytes();
  }

  bool IsWide(const int8_t* panel) const { return ExcessOf(panel, 0).count < 0; }
  PanelExcess ExcessOf(const int8_t* panel, int vector) const {
    const auto* const of_vector =
        reinterpret_cast<const int32_t*>(panel) + vector * NumbersOfVector();
    return {of_vector[0], of_vector + 1, panel + ExcessAt(vector)};
  }

  // Splits or widens the quads of a panel, once they are there.
  void Finish(int8_t* panel) const;

 private:
  int64_t NumbersOfVector() const { return 1 + max_excess(); }
  int64_t vector_bytes() const { return quad_bytes() / kPanelVectors; }
  int64_t excess_at() const { return quads_at() + quads * quad_bytes(); }
  int64_t ExcessAt(int vector) const {
    return excess_at() + vector * max_excess() * vector_bytes();
  }
  // Finds and counts those of a vector; false where there are too many.
  bool FindExcess(int8_t* panel, int vector) const;
  void SplitExcess(int8_t* panel, int vector) const;
  // Each vector of `lanes` quads becomes the elements at even places and those at odd ones.
  void Widen(int8_t* panel) const;
};

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_PANEL_LAYOUT_H_
