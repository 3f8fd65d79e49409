// SPDX-License-Identifier: Apache-2.0
//
// Tiling: the inputs of a case in extents that are more than one vector, with a tail. The cases of
// ONNX have a few elements; a vector loop, its tail and the blocks of a product begin beyond them.

#ifndef ONNXIFI_CONFORMANCE_SUITES_TILING_H_
#define ONNXIFI_CONFORMANCE_SUITES_TILING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "client/onnx_file/tensor_file.h"

namespace onnxifi::suites {

// No tensor is tiled to more elements.
inline constexpr int64_t kMaxTiledElements = int64_t{1} << 14;

// Whether an input, by its position, may list extents, axes or factors: it has at most one axis and
// few elements, and is not the first.
bool MayBeList(const onnx_file::DenseTensor& tensor, size_t position);

// One way to enlarge a case.
struct Enlargement {
  // Each axis of an input that has the extent `from` gets the extent `to`.
  int64_t from = 0;
  int64_t to = 0;
  // The inputs, some of them tiled.
  std::vector<onnx_file::DenseTensor> inputs;
  // Those that may be lists and are as they were. They are to be initializers: the extents of
  // outputs may follow from them.
  std::vector<onnx_file::DenseTensor> lists;
};

// The ways to enlarge the inputs, those that are likely to make sense first. Whether one does, only
// the operator can tell: extents that were equal stay equal, but attributes stay as they are.
// Element i of an enlarged axis is made of element (i + i / from) mod from: other tiles repeat in
// another order, so that reading the wrong tile gives another value; floats of tile k are
// divided by k + 1, so that sums of products over tiles stay as large as those of the case, and a
// gate that they go through stays where it tells numbers apart.
std::vector<Enlargement> ListEnlargements(std::span<const onnx_file::DenseTensor> inputs);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_TILING_H_
