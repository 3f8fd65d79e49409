// SPDX-License-Identifier: Apache-2.0
//
// Window: pooling and local response normalisation, one output at a time. The input is first
// brought to the accumulator type; sums are kept in float64 (floats) or int64 (integers).

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "backends/core/program/operand_extents.h"
#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/dense_operand.h"
#include "backends/core/reference/epilogue.h"
#include "backends/core/tensor/native_type.h"

namespace onnxifi::reference {
namespace {

using program::Window;
using tensor::ElementType;
using tensor::Extents;

struct WindowExpressions {
  Expression input;  // reads[0] as the accumulator type
  Expression roots;
  bool is_direct;  // the input has that type already
  bool writes_indices;
};

class BoundWindow final : public device::BoundKernel {
 public:
  BoundWindow(std::shared_ptr<const CompiledStep> owner, const WindowExpressions& expressions,
              const device::BoundStep& step, device::Parallel& parallel)
      : owner_(std::move(owner)),
        expressions_(expressions),
        window_(*step.step->As<Window>()),
        epilogue_(expressions.roots, window_.accumulator, step, parallel),
        grain_(Grain(step, epilogue_.count(), 1)),
        parallel_(parallel) {
    auto numbers = [&](const program::Dims& dims) {
      Extents result;
      for (const program::Dim& dim : dims) result.push_back(step.Number(dim));
      return result;
    };
    in_spatial_ = numbers(window_.in_spatial);
    kernel_ = numbers(window_.kernel);
    pads_begin_ = numbers(window_.pads_begin);
    pads_end_ = numbers(window_.pads_end);
    in_extents_ = program::OperandExtents(*step.step, 0, step.dims);
  }

  // Backends bind this for steps that their own recipe cannot do after all.
  std::string Detail() const override { return "loops"; }

  base::Status Run(device::Addresses addresses) const override {
    if (epilogue_.count() == 0) return base::Ok();
    return Guarded([&] { return RunWindow(addresses); });
  }

 private:
  // What the window at one output saw.
  template <typename T>
  struct Seen {
    T value;
    int64_t index;  // of the maximum; -1 if the window holds no element
  };

  base::Status RunWindow(device::Addresses addresses) const {
    ONNXIFI_ASSIGN_OR_RETURN(DenseOperand x, MakeDense(expressions_.input, {}, epilogue_.reads(),
                                                       expressions_.is_direct ? 0 : -1, in_extents_,
                                                       addresses, parallel_));
    Scratch values(tensor::SizeBytes(window_.accumulator, epilogue_.count()));
    Scratch indices(expressions_.writes_indices
                        ? tensor::SizeBytes(ElementType::kInt64, epilogue_.count())
                        : 0);
    ONNXIFI_RETURN_IF_ERROR(ReduceAll(x, values.data(), indices.data()));
    if (expressions_.writes_indices) StoreIndices(indices, addresses);
    return epilogue_.Run(values.data(), addresses);
  }

  base::Status ReduceAll(const DenseOperand& x, std::byte* values, std::byte* indices) const {
    return tensor::VisitNative(window_.accumulator,
                               [&]<typename T>(T) { return ReduceTyped<T>(x, values, indices); });
  }

  template <typename T>
  base::Status ReduceTyped(const DenseOperand& x, std::byte* values, std::byte* indices) const {
    const T* data = reinterpret_cast<const T*>(x.data);
    T* out = reinterpret_cast<T*>(values);
    auto* positions = reinterpret_cast<int64_t*>(indices);
    return ForRange(parallel_, epilogue_.count(), grain_, [&](int64_t begin, int64_t end) {
      Extents at(epilogue_.domain().size());
      for (int64_t output = begin; output < end; ++output) {
        int64_t rest = output;
        for (size_t axis = at.size(); axis-- > 0;) {
          at[axis] = rest % epilogue_.domain()[axis];
          rest /= epilogue_.domain()[axis];
        }
        const Seen<T> seen = window_.kind == Window::Kind::kLrn ? Normalise(data, x.strides, at)
                                                                : ReduceWindow(data, x.strides, at);
        out[output] = seen.value;
        if (expressions_.writes_indices) positions[output] = seen.index;
      }
    });
  }

  template <typename T>
  Seen<T> ReduceWindow(const T* data, const Extents& strides, const Extents& at) const {
    using Sum = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
    const T* image = data + at[0] * strides[0] + at[1] * strides[1];
    const size_t axes = kernel_.size();
    T maximum = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                     : std::numeric_limits<T>::lowest();
    int64_t index = -1;
    Sum sum = 0;
    int64_t count = 0;
    const int64_t taps = tensor::ElementCount(kernel_);
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t rest = tap;
      int64_t offset = 0;
      int64_t flat = 0, flat_step = 1;  // row-major position in X's spatial axes
      int64_t reversed = 0;             // with the axes' order reversed
      bool is_element = true;
      bool is_padding = true;  // inside the input or its padding
      for (size_t axis = axes; axis-- > 0;) {
        // Unsigned, so that the strangest strides and pads wrap and then fail the comparison.
        const auto position = static_cast<int64_t>(
            static_cast<uint64_t>(at[axis + 2]) * static_cast<uint64_t>(window_.strides[axis]) +
            static_cast<uint64_t>(rest % kernel_[axis]) *
                static_cast<uint64_t>(window_.dilations[axis]) -
            static_cast<uint64_t>(pads_begin_[axis]));
        rest /= kernel_[axis];
        is_element &= position >= 0 && position < in_spatial_[axis];
        // A tap is never before the padding; only rounding the output's extent up leads beyond its
        // end.
        is_padding &=
            position < in_spatial_[axis] || position - in_spatial_[axis] < pads_end_[axis];
        if (!is_element) continue;
        offset += position * strides[axis + 2];
        flat += position * flat_step;
        flat_step *= in_spatial_[axis];
        reversed = reversed * in_spatial_[axis] + position;
      }
      if (is_element || (window_.count_include_pad && is_padding)) ++count;
      if (!is_element) continue;
      const T value = image[offset];
      switch (window_.kind) {
        case Window::Kind::kMax:
          // The first of equals stays; NaN wins over everything.
          if (index < 0 || value > maximum || (value != value && maximum == maximum)) {
            maximum = value;
            const int64_t channel = at[0] * in_extents_[1] + at[1];
            index = channel * flat_step + (window_.column_major ? reversed : flat);
          }
          break;
        case Window::Kind::kLp:
          sum += PowerOfMagnitude<Sum>(value);
          break;
        default:
          sum += static_cast<Sum>(value);
          break;
      }
    }
    if (window_.kind == Window::Kind::kMax) return {maximum, index};
    if (window_.kind == Window::Kind::kLp) {
      return {
          static_cast<T>(std::pow(static_cast<double>(sum), 1.0 / static_cast<double>(window_.p))),
          -1};
    }
    return {count == 0 ? T{0} : static_cast<T>(sum / static_cast<Sum>(count)), -1};
  }

  template <typename Sum, typename T>
  Sum PowerOfMagnitude(T value) const {
    return static_cast<Sum>(
        std::pow(std::fabs(static_cast<double>(value)), static_cast<double>(window_.p)));
  }

  // x / (bias + alpha / size * sum of squares over the channels around c) ^ beta, as ONNX's LRN.
  template <typename T>
  Seen<T> Normalise(const T* data, const Extents& strides, const Extents& at) const {
    int64_t offset = at[0] * strides[0];
    for (size_t axis = 2; axis < at.size(); ++axis) offset += at[axis] * strides[axis];
    const T* pixel = data + offset;
    const int64_t size = kernel_[0];
    const int64_t first = std::max<int64_t>(0, at[1] - (size - 1) / 2);
    const int64_t last = std::min(in_extents_[1] - 1, at[1] + size / 2);
    double sum = 0;
    for (int64_t channel = first; channel <= last; ++channel) {
      const auto value = static_cast<double>(pixel[channel * strides[1]]);
      sum += value * value;
    }
    const double scale = window_.bias + window_.alpha / static_cast<double>(size) * sum;
    return {static_cast<T>(static_cast<double>(pixel[at[1] * strides[1]]) /
                           std::pow(scale, window_.beta)),
            -1};
  }

  void StoreIndices(const Scratch& indices, device::Addresses addresses) const {
    const device::BoundView& view = epilogue_.writes()[1];
    Sweep sweep(epilogue_.domain());
    for (int64_t position = 0; position < epilogue_.count(); position += kBlock) {
      sweep.Move(position, std::min(kBlock, epilogue_.count() - position));
      StoreColumn(view, addresses[view.buffer], sweep,
                  indices.data() + position * static_cast<int64_t>(sizeof(int64_t)));
    }
  }

  std::shared_ptr<const CompiledStep> owner_;  // of the expressions
  const WindowExpressions& expressions_;
  const Window& window_;
  Epilogue epilogue_;
  int64_t grain_;
  device::Parallel& parallel_;
  Extents in_spatial_, kernel_, pads_begin_, pads_end_;
  Extents in_extents_;
};

class WindowStep final : public CompiledStep {
 public:
  explicit WindowStep(WindowExpressions expressions) : expressions_(std::move(expressions)) {}

  std::unique_ptr<device::BoundKernel> Bind(const device::BoundStep& step,
                                            device::Parallel& parallel) const override {
    return std::make_unique<BoundWindow>(shared_from_this(), expressions_, step, parallel);
  }

 private:
  WindowExpressions expressions_;
};

}  // namespace

CompileResult CompileWindow(const program::Program& program, const program::Step& step) {
  const Window& window = *step.As<Window>();
  const ElementType type = window.accumulator;
  const bool is_native = tensor::ArithmeticType(type) == type && !tensor::IsBool(type) &&
                         (tensor::IsFloat(type) || tensor::IsInteger(type));
  const bool needs_float = window.kind == Window::Kind::kLp || window.kind == Window::Kind::kLrn;
  if (!is_native || (needs_float && !tensor::IsFloat(type))) {
    return base::Status(base::Code::kUnsupportedDatatype,
                        "A window cannot be reduced in " + std::string(tensor::Name(type)) +
                            (needs_float ? "; its kind needs float32 or float64."
                                         : "; it needs a float or an integer type."));
  }
  program::ExprPool pool;
  const ElementType input_type = step.reads[0].type;
  const program::Expr loaded = program::Load(pool, input_type, 0);
  ONNXIFI_ASSIGN_OR_RETURN(Expression input,
                           Expression::Compile(pool, {program::Cast(loaded, type).id()}));
  const bool writes_indices = window.kind == Window::Kind::kMax && step.writes.size() == 2;
  program::ExprIds root_ids = window.roots;
  if (writes_indices) root_ids.resize(1);
  ONNXIFI_ASSIGN_OR_RETURN(Expression roots,
                           Expression::Compile(program.exprs, std::move(root_ids)));
  return std::shared_ptr<const CompiledStep>(std::make_shared<WindowStep>(
      WindowExpressions{std::move(input), std::move(roots), input_type == type, writes_indices}));
}

}  // namespace onnxifi::reference
