// SPDX-License-Identifier: Apache-2.0
//
// Geometry: how a domain is cut into tiles once extents are known. Addresses, guards and
// coordinates are all linear forms over the domain's axes; axes that every form steps through
// evenly become one, and the order of axes and the shape of a tile follow from what lies contiguous
// in memory.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_GEOMETRY_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_GEOMETRY_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/core/tensor/tensor.h"

namespace onnxifi::engine {

// Axes of a domain that the engine takes, before any are joined.
inline constexpr int kMaxAxes = 16;

// offset + sum(steps[a] * coordinate[a]), modulo 2^64.
struct LinearForm {
  int64_t offset = 0;
  std::array<int64_t, kMaxAxes> steps{};
};

// A block of coordinates. Lanes are its coordinates in row-major order.
struct Box {
  int rank = 0;
  int64_t lanes = 0;
  std::array<int64_t, kMaxAxes> begin{};    // of its first lane
  std::array<int64_t, kMaxAxes> extents{};  // all at least 1
};

inline int64_t WrapMulAdd(int64_t sum, int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(sum) +
                              static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
// The form's value at the first lane of `box`.
int64_t ValueAtBegin(const LinearForm& form, const Box& box);

// The axes of a tiled domain and the extents of a whole tile along each; a tile at an edge is
// smaller.
class Grid {
 public:
  Grid() = default;
  // No axis has extent 0. One tile.
  explicit Grid(std::span<const int64_t> extents);

  int rank() const { return rank_; }
  int64_t extent(int axis) const { return extents_[axis]; }
  int64_t tile_extent(int axis) const { return tile_[axis]; }
  // Of a whole tile.
  int64_t TileLanes(int first_axis, int end_axis) const;

  // The axes [first_axis, end_axis) in descending order of the size of `form`'s steps, so that a
  // row-major walk meets its values in order.
  static std::vector<int> SortedAxes(const LinearForm& form, int first_axis, int end_axis);
  // Puts the axes in the order of `order`, which names each once.
  void Permute(std::span<const int> order, std::span<LinearForm* const> forms);
  // Leaves out axes of extent 1 and joins neighbours wherever every form allows it. Axes on
  // different sides of a boundary are not joined; boundaries ascend, and move with the axes.
  void Join(std::span<int> boundaries, std::span<LinearForm* const> forms);

  // Fills tiles along the axes [first_axis, end_axis), from the last of them on, with at most
  // `lanes` lanes; elsewhere tiles are as they were. Returns the lanes that it filled.
  int64_t Tile(int first_axis, int end_axis, int64_t lanes);
  // Tiles for a form that steps by 1 along `axis` where another does along the last one: square
  // ones of these two axes, so that each of them meets whole cache lines.
  void TileTransposed(int axis, int64_t lanes);

  // Tiles are numbered in row-major order along the axes [first_axis, end_axis). Moves the box
  // along these axes alone, to a tile or to the next one.
  void MoveTo(int first_axis, int end_axis, int64_t tile, Box& box) const;
  void MoveOn(int first_axis, int end_axis, Box& box) const;
  int64_t TileCount(int first_axis, int end_axis) const;

  // Whether lanes of every tile are consecutive values of the form.
  bool IsDense(const LinearForm& form) const;
  // Whether a tile at an edge has the first lanes of a whole one.
  bool HasPrefixesAtEdges() const;
  // Whether the form has the same values in every tile.
  bool IsRepeated(const LinearForm& form) const;
  // Whether the form has one value in each tile.
  bool IsUniformInTiles(const LinearForm& form) const;
  // The first tile, which is whole.
  Box WholeTile() const;

 private:
  void Measure(int first_axis, int end_axis, Box& box) const;

  int rank_ = 0;
  std::array<int64_t, kMaxAxes> extents_{};
  std::array<int64_t, kMaxAxes> tile_{};
};

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_GEOMETRY_H_
