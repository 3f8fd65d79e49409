// SPDX-License-Identifier: Apache-2.0
//
// SelectDouble and its kernel: convolutions of float64, and transposed ones, as products of
// gathered windows and packed weights, to which a tensor may be added. A window has what each of
// its taps meets, or 0; threads take some windows of an image and group each. Of images whose
// pixels lie side by side, windows are the columns of the product, gathered in runs of pixels;
// else they are its rows.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/used_taps.h"
#include "backends/cpu/gemm/double_gemm.h"
#include "backends/cpu/runtime/plain_operand.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;
using program::Contract;
using program::ExprOp;
using tensor::ElementType;

// Windows that are gathered together.
constexpr int64_t kChunkRows = 32;

// Which element each tap of a window meets along one axis.
struct Axis {
  int64_t in, out, kernel, stride, dilation, pad;
  bool is_transposed;
  int64_t source_stride, result_stride, weight_stride, addend_stride;

  // -1 for padding.
  int64_t Met(int64_t position, int64_t tap) const {
    if (!is_transposed) {
      const int64_t at = position * stride - pad + tap * dilation;
      return at < 0 || at >= in ? -1 : at;
    }
    const int64_t at = position + pad - tap * dilation;
    return at < 0 || at % stride != 0 || at / stride >= in ? -1 : at / stride;
  }
};

class BoundDouble final : public device::BoundKernel {
 public:
  // `addend` is a read of the step, or -1.
  BoundDouble(const device::BoundStep& step, int addend, device::Addresses constants,
              runtime::Runtime& runtime)
      : runtime_(runtime),
        source_(step.reads[0]),
        weights_(step.reads[1]),
        result_(step.writes[0]),
        has_addend_(addend >= 0),
        addend_(has_addend_ ? step.reads[static_cast<size_t>(addend)] : result_),
        width_(gemm::DoubleColumns()) {
    const Contract& contract = *step.step->As<Contract>();
    const bool is_transposed = contract.form == Contract::Form::kConvTranspose;
    batch_ = step.domain[0];
    group_ = contract.group;
    outputs_ = step.domain[1] / group_;
    channels_ = step.Number(contract.inner[0]);
    for (size_t axis = 0; axis < contract.a_spatial.size(); ++axis) {
      axes_.push_back(
          {step.Number(contract.a_spatial[axis]), step.domain[kFirstSpatial + axis],
           step.Number(contract.inner[1 + axis]), contract.strides[axis], contract.dilations[axis],
           step.Number(contract.pads_begin[axis]), is_transposed,
           source_.strides[kFirstSpatial + axis], result_.strides[kFirstSpatial + axis],
           weights_.strides[kFirstSpatial + axis], addend_.strides[kFirstSpatial + axis]});
      taps_ *= axes_.back().kernel;
      positions_ *= axes_.back().out;
    }
    // [C, M / group, kernel] of a transposed one, else [M, C / group, kernel].
    weight_of_output_ = weights_.strides[is_transposed ? 1 : 0];
    weight_of_channel_ = weights_.strides[is_transposed ? 0 : 1];
    weight_of_group_ = weights_.strides[0] * (is_transposed ? channels_ : outputs_);
    panels_ = (outputs_ + width_ - 1) / width_;
    has_window_columns_ = !is_transposed && positions_ >= width_ && source_.strides[1] != 1 &&
                          axes_.back().source_stride == 1 && AreResultsEven();
    if (const std::byte* constant = constants[weights_.buffer]; constant != nullptr) {
      packed_.resize(static_cast<size_t>(PackedSize()));
      Pack(reinterpret_cast<const double*>(constant) + weights_.offset, packed_.data());
    }
  }

  bool ReadsAtRun(int read) const override { return read != 1 || packed_.empty(); }

  Status Run(device::Addresses addresses) const override {
    const int64_t windows = has_window_columns_ ? width_ : kChunkRows;
    const int64_t chunks = (positions_ + windows - 1) / windows;
    const int64_t items = batch_ * group_ * chunks;
    if (items == 0) return base::Ok();
    if (panels_ == 0) return base::Ok();
    // About 4 multiply-adds in a nanosecond; another thread is worth some microseconds.
    constexpr int64_t kWorthAThread = 3000 * 4;
    const int64_t grain = kWorthAThread / (windows * panels_ * width_ * (Depth() + 1)) + 1;
    threads::ThreadPool& pool = runtime_.pool();
    const int64_t parts = pool.CountParts((items + grain - 1) / grain);
    const int64_t packed_here = packed_.empty() ? PackedSize() : 0;
    ONNXIFI_ASSIGN_OR_RETURN(
        const runtime::WorkMemory::Lease lease,
        runtime_.work_memory().Lend((packed_here + pool.ThreadsOf(parts) * PartDoubles()) *
                                    static_cast<int64_t>(sizeof(double))));
    auto* const memory = reinterpret_cast<double*>(lease.data());
    double* const scratch = memory + packed_here;
    const double* packed = packed_.data();
    if (packed_here > 0) {
      Pack(reinterpret_cast<const double*>(addresses[weights_.buffer]) + weights_.offset, memory);
      packed = memory;
    }
    const auto* const source =
        reinterpret_cast<const double*>(addresses[source_.buffer]) + source_.offset;
    auto* const result = reinterpret_cast<double*>(addresses[result_.buffer]) + result_.offset;
    const auto* const addend =
        reinterpret_cast<const double*>(addresses[addend_.buffer]) + addend_.offset;
    pool.ForEachPart(parts, [&](int64_t part, int thread) {
      double* const own = scratch + thread * PartDoubles();
      for (int64_t item = items * part / parts; item < items * (part + 1) / parts; ++item) {
        const int64_t group = item / chunks % group_;
        const int64_t image = item / chunks / group_;
        const Chunk chunk = {
            source + image * source_.strides[0] + group * channels_ * source_.strides[1],
            packed + group * PackedSize() / group_,
            result + image * result_.strides[0] + group * outputs_ * result_.strides[1],
            addend + image * addend_.strides[0] + group * outputs_ * addend_.strides[1],
            item % chunks * windows,
            std::min(windows, positions_ - item % chunks * windows)};
        if (has_window_columns_) {
          RunColumns(chunk, own);
        } else {
          RunRows(chunk, own);
        }
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return "depth " + std::to_string(Depth()) + ", " +
           (has_window_columns_ ? "runs of " + std::to_string(width_) + " windows"
                                : std::to_string(panels_) + " panels");
  }

 private:
  // Some windows of one image and group.
  struct Chunk {
    const double* source;
    const double* packed;
    double* result;
    const double* addend;
    int64_t first, count;
  };

  int64_t Depth() const { return taps_ * channels_; }
  // Of a thread: windows, and behind them either the remainders of a row or sums.
  int64_t PartDoubles() const {
    if (!has_window_columns_) return kChunkRows * (Depth() + width_);
    return width_ * Depth() + axes_.back().stride * RemainderLength(width_);
  }
  int64_t PackedSize() const {
    return group_ * Depth() * (has_window_columns_ ? outputs_ : panels_ * width_);
  }

  // Whether neighbouring windows have neighbouring results.
  bool AreResultsEven() const {
    int64_t stride = 1;
    for (size_t axis = axes_.size(); axis-- > 0; stride *= axes_[axis].out) {
      if (axes_[axis].out != 1 && axes_[axis].result_stride != stride) return false;
    }
    return true;
  }

  // Calls body(tap, index along each axis) for every tap.
  template <class Body>
  void ForTaps(Body body) const {
    std::array<int64_t, kMaxSpatialAxes> at{};
    for (int64_t tap = 0; tap < taps_; ++tap) {
      body(tap, at);
      for (size_t axis = axes_.size(); axis-- > 0;) {
        if (++at[axis] < axes_[axis].kernel) break;
        at[axis] = 0;
      }
    }
  }

  // Rows of weights, the depth tap by tap and then channel by channel.
  void PackOutputs(const double* weights, double* packed) const {
    for (int64_t output = 0; output < group_ * outputs_; ++output) {
      const double* const of_output =
          weights + output / outputs_ * weight_of_group_ + output % outputs_ * weight_of_output_;
      ForTaps([&](int64_t tap, const std::array<int64_t, kMaxSpatialAxes>& at) {
        const double* from = of_output;
        for (size_t axis = 0; axis < axes_.size(); ++axis) {
          from += at[axis] * axes_[axis].weight_stride;
        }
        double* const to = packed + output * Depth() + tap * channels_;
        for (int64_t channel = 0; channel < channels_; ++channel) {
          to[channel] = gemm::DoubleAt(from + channel * weight_of_channel_);
        }
      });
    }
  }

  // Panels of columns, likewise.
  void Pack(const double* weights, double* packed) const {
    if (has_window_columns_) return PackOutputs(weights, packed);
    for (int64_t panel = 0; panel < group_ * panels_; ++panel) {
      const int64_t first = panel % panels_ * width_;
      const int64_t columns = std::min(width_, outputs_ - first);
      const double* const group = weights + panel / panels_ * weight_of_group_;
      double* const to = packed + panel * Depth() * width_;
      ForTaps([&](int64_t tap, const std::array<int64_t, kMaxSpatialAxes>& at) {
        const double* from = group + first * weight_of_output_;
        for (size_t axis = 0; axis < axes_.size(); ++axis) {
          from += at[axis] * axes_[axis].weight_stride;
        }
        for (int64_t channel = 0; channel < channels_; ++channel) {
          double* const row = to + (tap * channels_ + channel) * width_;
          std::fill_n(row, width_, 0.0);
          for (int64_t column = 0; column < columns; ++column) {
            row[column] =
                gemm::DoubleAt(from + column * weight_of_output_ + channel * weight_of_channel_);
          }
        }
      });
    }
  }

  // Each window is a column.
  void RunColumns(const Chunk& chunk, double* windows) const {
    if (chunk.count < width_) std::fill_n(windows, Depth() * width_, 0.0);
    for (int64_t begin = 0; begin < chunk.count;) begin += GatherRun(chunk, begin, windows);
    gemm::DoubleProduct product = {};
    product.a = {chunk.packed, Depth(), 1};
    product.b = windows;
    product.c = chunk.result + chunk.first;
    product.c_row = result_.strides[1];
    product.c_column = 1;
    product.rows = outputs_;
    product.depth = Depth();
    product.columns = chunk.count;
    gemm::MultiplyDoubles(product);
    if (has_addend_) Add(chunk);
  }

  // The windows from `begin` of a chunk on that are of one row of the result; how many these are.
  int64_t GatherRun(const Chunk& chunk, int64_t begin, double* windows) const {
    const Axis& x = axes_.back();
    std::array<int64_t, kMaxSpatialAxes> position{};
    int64_t rest = chunk.first + begin;
    for (size_t axis = axes_.size(); axis-- > 0;) {
      position[axis] = rest % axes_[axis].out;
      rest /= axes_[axis].out;
    }
    const size_t last = axes_.size() - 1;
    const int64_t count = std::min(chunk.count - begin, x.out - position[last]);
    const int64_t first_x = position[last] * x.stride - x.pad;
    double* const remainders = windows + width_ * Depth();
    ForTaps([&](int64_t tap, const std::array<int64_t, kMaxSpatialAxes>& at) {
      if (at[last] != 0) return;  // all taps of a row at once
      int64_t offset = 0;
      bool is_inside = true;
      for (size_t axis = 0; axis < last; ++axis) {
        const int64_t met = axes_[axis].Met(position[axis], at[axis]);
        is_inside = is_inside && met >= 0;
        offset += met * axes_[axis].source_stride;
      }
      for (int64_t channel = 0; channel < channels_; ++channel) {
        double* to = windows + (tap * channels_ + channel) * width_ + begin;
        const double* const row = chunk.source + offset + channel * source_.strides[1];
        const int64_t step = channels_ * width_;
        if (!is_inside) {
          for (int64_t k = 0; k < x.kernel; ++k) std::fill_n(to + k * step, count, 0.0);
        } else if (x.stride == 1) {
          for (int64_t k = 0; k < x.kernel; ++k) {
            CopyInside(row, first_x + k * x.dilation, 1, count, to + k * step);
          }
        } else {
          CopyRemainders(row, first_x, count, remainders);
          for (int64_t k = 0; k < x.kernel; ++k) {
            const int64_t from = k * x.dilation;
            std::memcpy(to + k * step,
                        remainders + from % x.stride * RemainderLength(count) + from / x.stride,
                        static_cast<size_t>(count) * sizeof(double));
          }
        }
      }
    });
    return count;
  }

  // to[k] is element `first` + k * step of a row, or 0 beyond its ends.
  void CopyInside(const double* row, int64_t first, int64_t step, int64_t count, double* to) const {
    const int64_t in = axes_.back().in;
    const int64_t low = first >= 0 ? 0 : std::min(count, (-first + step - 1) / step);
    const int64_t high = std::clamp(first >= in ? low : (in - 1 - first) / step + 1, low, count);
    std::fill(to, to + low, 0.0);
    std::fill(to + high, to + count, 0.0);
    if (low == high) return;
    const double* const from = row + first + low * step;
    if (step == 1) {
      std::memcpy(to + low, from, static_cast<size_t>(high - low) * sizeof(double));
    } else {
      for (int64_t k = 0; k < high - low; ++k) to[low + k] = gemm::DoubleAt(from + k * step);
    }
  }

  // What `count` windows see of a row, by the remainder of its place and the stride: what a tap
  // meets lies side by side then.
  void CopyRemainders(const double* row, int64_t first, int64_t count, double* to) const {
    const int64_t length = RemainderLength(count);
    for (int64_t remainder = 0; remainder < axes_.back().stride; ++remainder, to += length) {
      CopyInside(row, first + remainder, axes_.back().stride, length, to);
    }
  }
  int64_t RemainderLength(int64_t count) const {
    const Axis& x = axes_.back();
    return count + (x.kernel - 1) * x.dilation / x.stride;
  }

  // The addend of a chunk's results.
  void Add(const Chunk& chunk) const {
    for (int64_t window = 0; window < chunk.count; ++window) {
      int64_t rest = chunk.first + window, offset = 0;
      for (size_t axis = axes_.size(); axis-- > 0;) {
        offset += rest % axes_[axis].out * axes_[axis].addend_stride;
        rest /= axes_[axis].out;
      }
      for (int64_t output = 0; output < outputs_; ++output) {
        double* const to = chunk.result + chunk.first + window + output * result_.strides[1];
        const double number = gemm::DoubleAt(to) +
                              gemm::DoubleAt(chunk.addend + offset + output * addend_.strides[1]);
        std::memcpy(to, &number, sizeof(number));
      }
    }
  }

  // Each window is a row.
  void RunRows(const Chunk& chunk, double* windows) const {
    double* const sums = windows + kChunkRows * Depth();
    const auto& [source, packed, result, addend, first, rows] = chunk;
    // Of the rows in the result and in the addend.
    std::array<int64_t, kChunkRows> offsets, addend_offsets;
    for (int64_t row = 0; row < rows; ++row) {
      std::array<int64_t, kMaxSpatialAxes> position{};
      int64_t rest = first + row, offset = 0, addend_offset = 0;
      for (size_t axis = axes_.size(); axis-- > 0;) {
        position[axis] = rest % axes_[axis].out;
        rest /= axes_[axis].out;
        offset += position[axis] * axes_[axis].result_stride;
        addend_offset += position[axis] * axes_[axis].addend_stride;
      }
      offsets[static_cast<size_t>(row)] = offset;
      addend_offsets[static_cast<size_t>(row)] = addend_offset;
      GatherWindow(source, position, windows + row * Depth());
    }
    for (int64_t panel = 0; panel < panels_; ++panel) {
      const int64_t columns = std::min(width_, outputs_ - panel * width_);
      gemm::DoubleProduct product = {};
      product.a = {windows, Depth(), 1};
      product.b = packed + panel * Depth() * width_;
      product.c = sums;
      product.c_row = width_;
      product.c_column = 1;
      product.rows = rows;
      product.depth = Depth();
      product.columns = columns;
      gemm::MultiplyDoubles(product);
      const int64_t output = panel * width_;
      for (int64_t row = 0; row < rows; ++row) {
        const auto at = static_cast<size_t>(row);
        double* const to = result + offsets[at] + output * result_.strides[1];
        const double* const add = addend + addend_offsets[at] + output * addend_.strides[1];
        for (int64_t column = 0; column < columns; ++column) {
          double number = sums[row * width_ + column];
          if (has_addend_) number += gemm::DoubleAt(add + column * addend_.strides[1]);
          std::memcpy(to + column * result_.strides[1], &number, sizeof(number));
        }
      }
    }
  }

  void GatherWindow(const double* source, const std::array<int64_t, kMaxSpatialAxes>& position,
                    double* window) const {
    ForTaps([&](int64_t tap, const std::array<int64_t, kMaxSpatialAxes>& at) {
      double* const to = window + tap * channels_;
      int64_t offset = 0;
      for (size_t axis = 0; axis < axes_.size(); ++axis) {
        const int64_t met = axes_[axis].Met(position[axis], at[axis]);
        if (met < 0) {
          std::fill_n(to, channels_, 0.0);
          return;
        }
        offset += met * axes_[axis].source_stride;
      }
      for (int64_t channel = 0; channel < channels_; ++channel) {
        to[channel] = gemm::DoubleAt(source + offset + channel * source_.strides[1]);
      }
    });
  }

  runtime::Runtime& runtime_;
  const device::BoundView source_, weights_, result_;
  const bool has_addend_;
  const device::BoundView addend_;  // the result where there is none
  const int64_t width_;             // of a panel
  int64_t batch_ = 1, group_ = 1, outputs_ = 1, channels_ = 1, taps_ = 1, positions_ = 1;
  int64_t weight_of_output_ = 0, weight_of_channel_ = 0, weight_of_group_ = 0;
  int64_t panels_ = 1;
  bool has_window_columns_ = false;
  std::vector<Axis> axes_;
  std::vector<double> packed_;  // empty where the weights are computed at run time
};

class DoubleKernel final : public device::Kernel {
 public:
  DoubleKernel(int addend, runtime::Runtime& runtime) : addend_(addend), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundDouble>(step, addend_, constants, runtime_));
  }

 private:
  const int addend_;
  runtime::Runtime& runtime_;
};

class DoubleRecipe final : public Recipe {
 public:
  explicit DoubleRecipe(int addend) : Recipe("float64 convolution"), addend_(addend) {}

  bool TakesAnyAddress(int /*read*/) const override { return true; }
  std::unique_ptr<device::Kernel> BuildKernel(runtime::Runtime& runtime) const override {
    return std::make_unique<DoubleKernel>(addend_, runtime);
  }

 private:
  const int addend_;
};

// The read that is added to the sums, -1 where none is; nothing where the epilogue is another.
std::optional<int> FindAddend(const device::Facts& facts) {
  const program::ExprPool& pool = facts.program.exprs;
  const program::ExprNode& root = pool[facts.step.As<Contract>()->roots[0]];
  if (root.op == ExprOp::kAccumulator) return -1;
  if (root.op != ExprOp::kAdd) return std::nullopt;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const program::ExprNode& load = pool[root.operands[side]];
    if (pool[root.operands[1 - side]].op != ExprOp::kAccumulator || load.op != ExprOp::kLoad ||
        !load.operands.empty()) {
      continue;
    }
    const program::View& view = facts.step.reads[load.payload];
    if (view.guards.empty() && view.type == ElementType::kFloat64) {
      return static_cast<int>(load.payload);
    }
  }
  return std::nullopt;
}

}  // namespace

runtime::RecipeResult SelectDouble(const device::Facts& facts) {
  const program::Step& step = facts.step;
  const Contract& contract = *step.As<Contract>();
  const size_t spatial = contract.a_spatial.size();
  if (spatial == 0 || spatial > kMaxSpatialAxes) {
    return Status(Code::kUnsupportedShape, "The convolution has " + std::to_string(spatial) +
                                               " spatial axes; the kernel has 1 to " +
                                               std::to_string(kMaxSpatialAxes) + ".");
  }
  if (contract.accumulator != ElementType::kFloat64 || step.writes.size() != 1 ||
      step.writes[0].type != ElementType::kFloat64) {
    return Status(Code::kUnsupportedDatatype,
                  "The convolution has something else than one float64 result.");
  }
  const std::optional<int> addend = FindAddend(facts);
  if (!addend) {
    return Status(Code::kUnsupportedAttribute,
                  "The sums are not only added to a tensor of float64.");
  }
  for (int operand = 0; operand < 2; ++operand) {
    ONNXIFI_RETURN_IF_ERROR(
        runtime::CheckPlain(facts.program, step, operand, ElementType::kFloat64));
  }
  return std::unique_ptr<const device::Recipe>(std::make_unique<DoubleRecipe>(*addend));
}

}  // namespace onnxifi::convolution
