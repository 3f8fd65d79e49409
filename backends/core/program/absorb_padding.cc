// SPDX-License-Identifier: Apache-2.0
//
// AbsorbPadding: what a view adds around an image becomes the padding of the convolution or the
// window that reads it, so that a kernel sees the image as it lies in memory.

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/passes.h"
#include "backends/core/tensor/element_type.h"

namespace onnxifi::program {
namespace {

// Behind N and C.
constexpr size_t kFirstSpatialAxis = 2;

// What surrounds an image along one spatial axis.
struct Border {
  Dim before = 0;
  Dim after = 0;
  Dim extent = 0;  // of the image between
};

// The borders of `view`, an image of those spatial extents, if its guards say nothing else.
std::optional<std::vector<Border>> FindBorders(const View& view, const Shape& spatial) {
  std::vector<Border> borders(spatial.size());
  for (size_t k = 0; k < spatial.size(); ++k) borders[k].extent = spatial[k];
  std::vector<bool> has_border(spatial.size(), false);
  for (const Guard& guard : view.guards) {
    const auto is_used = [](const Dim& coefficient) { return coefficient != Dim(0); };
    if (std::ranges::count_if(guard.coefficients, is_used) != 1) return std::nullopt;
    const auto axis = static_cast<size_t>(std::ranges::find_if(guard.coefficients, is_used) -
                                          guard.coefficients.begin());
    if (axis < kFirstSpatialAxis || guard.coefficients[axis] != Dim(1)) return std::nullopt;
    const size_t k = axis - kFirstSpatialAxis;
    if (has_border[k]) return std::nullopt;
    has_border[k] = true;
    const Dim before = Dim(0) - guard.offset;
    borders[k] = {before, spatial[k] - before - guard.extent, guard.extent};
  }
  return borders;
}

// Whether each border and what the step pads already are numbers, none negative, and together
// less than a kernel: further out, a kernel would see nothing but padding.
bool AreWithinKernels(const std::vector<Border>& borders, const Dims& pads_begin,
                      const Dims& kernel, const std::vector<int64_t>& dilations) {
  for (size_t k = 0; k < borders.size(); ++k) {
    if (!kernel[k].is_constant()) return false;
    const Dim before = borders[k].before + pads_begin[k];
    for (const Dim& pad : {borders[k].before, borders[k].after, before}) {
      if (!pad.is_constant() || pad.constant() < 0) return false;
      if (pad.constant() > dilations[k] * (kernel[k].constant() - 1)) return false;
    }
  }
  return true;
}

// The image without its borders, which `pads_begin` and `spatial` of its step take over.
void Absorb(const std::vector<Border>& borders, View& image, Shape& spatial, Dims& pads_begin) {
  for (size_t k = 0; k < borders.size(); ++k) {
    image.offset = image.offset + image.strides[k + kFirstSpatialAxis] * borders[k].before;
    spatial[k] = borders[k].extent;
    pads_begin[k] = pads_begin[k] + borders[k].before;
  }
  image.guards.clear();
  image.fill = {};
}

// Whether a prologue gives zero for an element of the image that is zero.
bool KeepsZero(const ExprPool& exprs, ExprId id) {
  while (exprs[id].op == ExprOp::kCast) id = exprs[id].operands[0];
  const ExprNode& node = exprs[id];
  return node.op == ExprOp::kLoad && node.operands.empty() && node.payload == 0;
}

void AbsorbIntoConvolution(const ExprPool& exprs, Step& step, Contract& contract) {
  View& image = step.reads[0];
  const bool is_zero = tensor::IsFloat(image.type) ? image.fill.f == 0 : image.fill.i == 0;
  if (contract.form != Contract::Form::kConv || !is_zero ||
      !KeepsZero(exprs, contract.a_prologue)) {
    return;
  }
  const Dims kernel(contract.inner.begin() + 1, contract.inner.end());
  const auto borders = FindBorders(image, contract.a_spatial);
  if (!borders || !AreWithinKernels(*borders, contract.pads_begin, kernel, contract.dilations)) {
    return;
  }
  Absorb(*borders, image, contract.a_spatial, contract.pads_begin);
}

bool IsNonNegativeConstant(const ExprNode& node) {
  return node.op == ExprOp::kConstant && tensor::IsFloat(node.type) &&
         std::bit_cast<double>(node.payload) >= 0;
}

// Whether every float that the expression gives is known to be 0 or more, or NaN.
bool IsNonNegative(const ExprPool& exprs, ExprId id) {
  const ExprNode& node = exprs[id];
  switch (node.op) {
    case ExprOp::kConstant:
      return IsNonNegativeConstant(node);
    case ExprOp::kAbs:
    case ExprOp::kExp:
    case ExprOp::kSqrt:
      return true;
    case ExprOp::kMax:
      return std::ranges::any_of(
          node.operands, [&](ExprId operand) { return IsNonNegativeConstant(exprs[operand]); });
    case ExprOp::kMin:  // Clip: of a maximum and a constant
      return IsNonNegative(exprs, node.operands[0]) && IsNonNegative(exprs, node.operands[1]);
    case ExprOp::kCast:
      return tensor::IsFloat(exprs[node.operands[0]].type) &&
             IsNonNegative(exprs, node.operands[0]);
    default:
      return false;
  }
}

// Whether nothing below 0 is ever written to what `image` shows.
bool IsNonNegative(const Program& program, const BufferUses& uses, const View& image) {
  const int writer = uses.OnlyWriter(image.buffer);
  if (writer == BufferUses::kNoStep) return false;
  const Step& step = program.steps[writer];
  const auto* map = step.As<Map>();
  return map != nullptr && step.writes.size() == 1 && step.writes[0].type == image.type &&
         IsNonNegative(program.exprs, map->roots[0]);
}

// Whether windows cannot miss the image: their elements are neighbours, and it has some.
bool MeetImage(const Window& window, const std::vector<Border>& borders) {
  for (size_t k = 0; k < borders.size(); ++k) {
    const Dim after = borders[k].after + window.pads_end[k];
    const Dim& extent = borders[k].extent;
    if (window.dilations[k] != 1 || !extent.is_constant() || extent.constant() < 1) return false;
    if (!after.is_constant() || after.constant() >= window.kernel[k].constant()) return false;
  }
  return true;
}

// Whether a maximum is the same without the elements that the view adds.
bool AreNoMaxima(const Program& program, const BufferUses& uses, const Window& window,
                 const View& image, const std::vector<Border>& borders) {
  if (!tensor::IsFloat(image.type)) {
    return tensor::IsUnsigned(image.type) ? image.fill.i == 0
                                          : image.fill.i == tensor::Lowest(image.type);
  }
  if (image.fill.f == -std::numeric_limits<double>::infinity()) return true;
  return image.fill.f == 0 && MeetImage(window, borders) && IsNonNegative(program, uses, image);
}

void AbsorbIntoWindow(const Program& program, const BufferUses& uses, Step& step, Window& window) {
  // kLrn has windows along the channels, and no padding at all.
  if (window.kind != Window::Kind::kMax && window.kind != Window::Kind::kAverage) return;
  View& image = step.reads[0];
  const auto are_zero = [](const Dims& pads) {
    return std::ranges::all_of(pads, [](const Dim& pad) { return pad == Dim(0); });
  };
  const auto borders = FindBorders(image, window.in_spatial);
  if (!borders || !AreWithinKernels(*borders, window.pads_begin, window.kernel, window.dilations)) {
    return;
  }
  if (window.kind == Window::Kind::kMax) {
    // Positions count what the view adds.
    if (step.writes.size() != 1) return;
    if (!AreNoMaxima(program, uses, window, image, *borders)) return;
  } else {
    // The zeros count as elements, and what the step itself pads has to do so too.
    if (!tensor::IsFloat(image.type) || image.fill.f != 0) return;
    if (!window.count_include_pad && !(are_zero(window.pads_begin) && are_zero(window.pads_end))) {
      return;
    }
  }
  Absorb(*borders, image, window.in_spatial, window.pads_begin);
  for (size_t k = 0; k < borders->size(); ++k) {
    window.pads_end[k] = window.pads_end[k] + (*borders)[k].after;
  }
  if (window.kind == Window::Kind::kAverage) window.count_include_pad = true;
}

}  // namespace

void AbsorbPadding(Program& program) {
  const BufferUses uses(program);
  for (Step& step : program.steps) {
    if (step.reads.empty() || step.reads[0].guards.empty()) continue;
    if (auto* contract = step.As<Contract>()) AbsorbIntoConvolution(program.exprs, step, *contract);
    if (auto* window = step.As<Window>()) AbsorbIntoWindow(program, uses, step, *window);
  }
}

}  // namespace onnxifi::program
