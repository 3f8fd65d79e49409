// SPDX-License-Identifier: Apache-2.0
//
// View: how a step sees a buffer. Transpose, slice, expand, flip, split and pad are views, so they
// move no data: a value of the graph is lowered to a view, and only a reader that needs it dense
// makes a copy.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_VIEW_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_VIEW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/core/tensor/convert.h"
#include "backends/core/tensor/dim.h"
#include "backends/core/tensor/element_type.h"

namespace onnxifi::program {

using tensor::Dim;
using tensor::Dims;
using tensor::ElementType;
using tensor::Shape;

using BufferId = int32_t;
inline constexpr BufferId kNoBuffer = -1;

// A condition on coordinates: 0 <= offset + sum(coefficients[a] * coordinate[a]) < extent. A
// coefficient per axis.
struct Guard {
  Dims coefficients;
  Dim offset;
  Dim extent;

  bool operator==(const Guard&) const = default;
};

// Element at coordinate c: buffer[offset + sum(strides[a] * c[a])], counted in elements of `type`
// (for the packed types too: an element's bits are at index * BitWidth(type)). Where any guard
// fails, reading gives `fill` and touches no memory. Writing views have no guards. A view has no
// extents of its own; the domain of the step that uses it has.
struct View {
  BufferId buffer = kNoBuffer;
  ElementType type = ElementType::kUndefined;
  Dim offset;
  Dims strides;
  std::vector<Guard> guards;
  tensor::Scalar
      fill{};  // of the class of `type`: f for floats, i for signed, u for unsigned and bool

  int rank() const { return static_cast<int>(strides.size()); }
  // Same buffer, type, addresses and guards (fill too where there are guards).
  bool operator==(const View& other) const;
};

// Whether two views are of the same elements over a domain; how they step along an axis of extent 1
// says nothing.
bool SameOver(const Shape& domain, View a, const View& b);

// A value during lowering: a view and the extents it is looked at with.
struct Operand {
  View view;
  Shape shape;

  ElementType type() const { return view.type; }
  int rank() const { return static_cast<int>(shape.size()); }
};

// The whole of a dense buffer.
View DenseView(BufferId buffer, ElementType type, const Shape& shape);
Dims DenseStrides(const Shape& shape);
// Offset 0, row-major, no guards, no gaps.
bool IsDense(const Operand& operand);

// Each returns an operand on the same buffer.
Operand Permute(const Operand& operand, const std::vector<int>& axes);
// Element k of the result along `axis` is element start + k * step; extent elements. The caller
// keeps it in range.
Operand Slice(const Operand& operand, int axis, Dim start, Dim step, Dim extent);
Operand InsertAxis(const Operand& operand, int axis);  // extent 1, stride 0
Operand RemoveAxis(const Operand& operand, int axis);  // at coordinate 0
// Numpy broadcasting to `shape`: missing leading axes and axes of extent 1 get stride 0. The caller
// checked legality; an axis whose extent equals the target's keeps its stride.
View BroadcastTo(const Operand& operand, const Shape& shape);
// Surrounds with `before` and `after` elements of `fill` per axis (negative: crops). Nothing if the
// operand already has guards with another fill: a view holds one.
std::optional<Operand> Pad(const Operand& operand, const Dims& before, const Dims& after,
                           tensor::Scalar fill);
// The view under new extents, if strides (and the coefficients of its guards) can say it; the
// element counts are equal.
std::optional<Operand> Reshape(const Operand& operand, const Shape& shape);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_VIEW_H_
