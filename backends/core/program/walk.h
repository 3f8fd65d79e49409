// SPDX-License-Identifier: Apache-2.0
//
// Walk: a view told as a start and steps along the axes of the tensor that its buffer holds, so
// that a pass can lay the tensor out in another way and have every view meet the same elements.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_WALK_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_WALK_H_

#include <optional>
#include <span>
#include <vector>

#include "backends/core/program/view.h"

namespace onnxifi::program {

// An axis of a tensor in a buffer. Axes are told outermost first; the stride of each is at least
// what the axes behind it span.
struct MemoryAxis {
  Dim stride;
  std::optional<Dim> extent;  // nothing: of no interest, for the first axis only
};

struct Walk {
  struct Step {
    int axis = -1;  // of the tensor; -1: the view stays where it is
    Dim count;
  };
  std::vector<Step> steps;  // per axis of the view
  // The smallest and largest coordinate met along each axis of the tensor.
  Dims first;
  Dims last;
};

// Nothing where the view, looked at over `extents`, is not known to stay inside each axis: where it
// crosses from one row into the next its strides mean something in this layout only. Guarded views
// are not told.
std::optional<Walk> FindWalk(const View& view, const Shape& extents,
                             std::span<const MemoryAxis> axes);

// `view` with the offset and strides that make the walk through a tensor with these strides, the
// first element of which lies at `offset`.
View FollowWalk(View view, const Walk& walk, const Dim& offset, std::span<const Dim> strides);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_WALK_H_
