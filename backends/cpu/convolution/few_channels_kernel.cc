// SPDX-License-Identifier: Apache-2.0
//
// SelectFewChannels and its kernel: a convolution along one or two axes of few channels to few
// outputs, as filters of images, flows, masks and spatial attention are. Vectors go along the rows
// of the result (plane_sums.h). Some rows at a time, what their windows see is copied with its
// padding, plane by plane, however it lies; with strides, a row as one row per remainder, so that
// what neighbours read lies side by side.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/plane_sums.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/used_taps.h"
#include "backends/cpu/gemm/grid.h"
#include "backends/cpu/gemm/step_epilogue.h"
#include "backends/cpu/gemm/vector_matrix.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/runtime/packed_weights.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;
using program::Contract;

// More channels are worth bringing next to each other.
constexpr int64_t kMaxChannels = 8;
// Of kernels per channel; with more, vectors along the channels are full.
constexpr int64_t kMaxGroups = 4;

// Each group has so many channels and outputs.
struct GroupShape {
  int64_t groups, channels, outputs;
};

int64_t RoundUp(int64_t number, int64_t unit) { return (number + unit - 1) / unit * unit; }

// Group by group taps, each of them for all outputs: channels first, then rows and columns.
void PackTaps(const float* weights, const device::BoundView& view, const UsedTaps& used,
              const GroupShape& shape, float* packed) {
  for (int64_t group = 0; group < shape.groups; ++group) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      for (int64_t tap = 0; tap < used.total(); ++tap) {
        const float* first =
            weights + group * shape.outputs * view.strides[0] + c * view.strides[1];
        int64_t rest = tap;
        for (size_t axis = used.count.size(); axis-- > 0;) {
          first +=
              (used.first[axis] + rest % used.count[axis]) * view.strides[kFirstSpatial + axis];
          rest /= used.count[axis];
        }
        for (int64_t o = 0; o < shape.outputs; ++o) *packed++ = first[o * view.strides[0]];
      }
    }
  }
}

// A copy of what the windows of some rows of the result see, of one group.
struct Strip {
  int64_t out_rows;           // of the result
  int64_t in_rows;            // of each plane
  int64_t piece;              // from remainder to remainder of a row, in floats
  int64_t row;                // from row to row
  std::vector<bool> is_used;  // by remainder: whether a tap reads it

  int64_t plane() const { return in_rows * row; }
};

Strip StripOf(const Windows& windows, int64_t images, int64_t threads) {
  const WindowAxis& y = windows.axes[1];
  const WindowAxis& x = windows.axes[2];
  Strip strip;
  strip.piece = std::max<int64_t>(x.out, 1) + (x.kernel - 1) * x.dilation / x.stride;
  strip.is_used.resize(static_cast<size_t>(x.stride));
  for (int64_t tap = 0; tap < x.kernel; ++tap) {
    strip.is_used[static_cast<size_t>(tap * x.dilation % x.stride)] = true;
  }
  strip.row = x.stride * strip.piece;
  // Enough rows that copying some of them twice counts little, in as many strips as threads want.
  const int64_t most_floats = std::max(processor::L1Floats() * 2 / 3, processor::L2Floats() / 8);
  const int64_t rows_per_thread = (images * y.out + 2 * threads - 1) / (2 * threads);
  strip.out_rows = std::clamp<int64_t>(most_floats / (windows.channels * y.stride * strip.row), 1,
                                       std::max<int64_t>(1, std::min(y.out, rows_per_thread)));
  strip.in_rows = (strip.out_rows - 1) * y.stride + (y.kernel - 1) * y.dilation + 1;
  return strip;
}

class BoundFewChannels final : public device::BoundKernel {
 public:
  BoundFewChannels(const device::BoundStep& step, const gemm::StepEpilogue& epilogue,
                   const UsedTaps& used, const GroupShape& shape, runtime::PackedWeights weights,
                   runtime::Runtime& runtime)
      : runtime_(runtime),
        weights_(std::move(weights)),
        epilogue_(epilogue, step),
        source_(step.reads[0]),
        result_(step.writes[0]),
        batch_(step.domain[0]),
        has_rows_(step.domain.size() > kFirstSpatial + 1),
        shape_(shape),
        windows_(WindowsOf(step, used)),
        strip_(StripOf(windows_, batch_, runtime.pool().thread_count())),
        sums_stride_(RoundUp(windows_.axes[2].out, kPlaneLanes)) {
    const WindowAxis& y = windows_.axes[1];
    const WindowAxis& x = windows_.axes[2];
    for (int64_t c = 0; c < shape_.channels; ++c) {
      for (int64_t row = 0; row < y.kernel; ++row) {
        for (int64_t column = 0; column < x.kernel; ++column) {
          const int64_t at = column * x.dilation;
          taps_.push_back(c * strip_.plane() + row * y.dilation * strip_.row +
                          at % x.stride * strip_.piece + at / x.stride);
        }
      }
    }
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    const WindowAxis& y = windows_.axes[1];
    const WindowAxis& x = windows_.axes[2];
    if (batch_ == 0 || y.out == 0 || x.out == 0) return base::Ok();
    const int64_t strips = (y.out + strip_.out_rows - 1) / strip_.out_rows;
    const gemm::Work work = {batch_ * strips, strip_.out_rows * x.out, windows_.depth(),
                             /*panels=*/1, /*are_panels_divided=*/false};
    threads::ThreadPool& pool = runtime_.pool();
    const gemm::Grid grid = gemm::ChooseGrid(work, pool.thread_count());
    // Vectors that begin in a strip may end behind it.
    const int64_t strip_floats = shape_.channels * strip_.plane() + kPlaneLanes;
    const int64_t thread_floats = strip_floats + (shape_.outputs + 1) * sums_stride_;
    ONNXIFI_ASSIGN_OR_RETURN(
        const runtime::WorkMemory::Lease lease,
        runtime_.work_memory().Lend(gemm::ThreadsOf(grid, pool) * thread_floats *
                                    static_cast<int64_t>(sizeof(float))));
    const gemm::Epilogue epilogue = epilogue_.At(addresses);
    gemm::ForParts(work, grid, pool, [&](int64_t thread, const gemm::Part& part) {
      float* const copy = reinterpret_cast<float*>(lease.data()) + thread * thread_floats;
      for (int64_t strip = part.first_block; strip < part.end_block; ++strip) {
        const int64_t first = strip % strips * strip_.out_rows;
        for (int64_t group = 0; group < shape_.groups; ++group) {
          RunStrip(addresses, epilogue,
                   {strip / strips, group, first, std::min(strip_.out_rows, y.out - first)}, copy,
                   copy + strip_floats);
        }
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return "strips of " + std::to_string(strip_.out_rows) + " rows, " +
           std::to_string(taps_.size()) + " taps of " + std::to_string(shape_.outputs) +
           " outputs, " + processor::VectorName();
  }

 private:
  struct Rows {
    int64_t image, group;
    int64_t first, count;  // rows of the result
  };

  void RunStrip(device::Addresses addresses, const gemm::Epilogue& epilogue, const Rows& rows,
                float* copy, float* sums) const {
    const WindowAxis& y = windows_.axes[1];
    const float* const source = gemm::FloatsAt(addresses, source_) +
                                rows.image * source_.strides[0] +
                                rows.group * shape_.channels * source_.strides[1];
    const int64_t in_rows = (rows.count - 1) * y.stride + (y.kernel - 1) * y.dilation + 1;
    for (int64_t c = 0; c < shape_.channels; ++c) {
      for (int64_t row = 0; row < in_rows; ++row) {
        CopyRow(source + c * source_.strides[1], rows.first * y.stride + row - y.pad,
                copy + c * strip_.plane() + row * strip_.row);
      }
    }
    const int64_t first_output = rows.group * shape_.outputs;
    const float* const weights = runtime::Floats(weights_) +
                                 rows.group * static_cast<int64_t>(taps_.size()) * shape_.outputs;
    const float* const bias = epilogue.bias == nullptr ? nullptr : epilogue.bias + first_output;
    for (int64_t row = 0; row < rows.count; ++row) {
      SumPlaneRow({copy + row * y.stride * strip_.row, taps_, weights, bias, shape_.outputs,
                   windows_.axes[2].out, sums, sums_stride_});
      for (int64_t o = 0; o < shape_.outputs; ++o) {
        Finish(addresses, epilogue, rows.image, first_output + o, rows.first + row,
               sums + o * sums_stride_, sums + shape_.outputs * sums_stride_);
      }
    }
  }

  // Row y of a plane, which may be in the padding.
  void CopyRow(const float* plane, int64_t y, float* target) const {
    const WindowAxis& x = windows_.axes[2];
    const bool is_padding = y < 0 || y >= windows_.axes[1].in;
    const float* const from = plane + y * windows_.axes[1].source_stride;
    for (int64_t remainder = 0; remainder < x.stride; ++remainder, target += strip_.piece) {
      if (!strip_.is_used[static_cast<size_t>(remainder)]) continue;
      if (is_padding) {
        std::fill_n(target, strip_.piece, 0.0F);
        continue;
      }
      // Element k is that at x = k * stride + start.
      const int64_t start = remainder - x.pad;
      const int64_t low = std::clamp<int64_t>((-start + x.stride - 1) / x.stride, 0, strip_.piece);
      const int64_t high =
          start >= x.in
              ? low
              : std::clamp<int64_t>((x.in - start + x.stride - 1) / x.stride, low, strip_.piece);
      std::fill_n(target, low, 0.0F);
      const int64_t step = x.stride * x.source_stride;
      const float* const first = from + (low * x.stride + start) * x.source_stride;
      CopySteps(first, step, high - low, target + low);
      std::fill(target + high, target + strip_.piece, 0.0F);
    }
  }

  // The epilogue, but for the bias, of one row of one output. `spare` holds a row.
  void Finish(device::Addresses addresses, gemm::Epilogue epilogue, int64_t image, int64_t output,
              int64_t y, float* sums, float* spare) const {
    const int64_t width = windows_.axes[2].out;
    const auto row_of = [&](const device::BoundView& view) {
      return gemm::FloatsAt(addresses, view) + image * view.strides[0] + output * view.strides[1] +
             (has_rows_ ? y * view.strides[kFirstSpatial] : 0);
    };
    epilogue.bias = nullptr;
    if (epilogue_.addend()) {
      const int64_t step = epilogue_.addend()->strides.back();
      epilogue.addend = row_of(*epilogue_.addend());
      if (step != 1) {
        CopySteps(epilogue.addend, step, width, spare);
        epilogue.addend = spare;
      }
    }
    float* const to = row_of(result_);
    const int64_t step = result_.strides.back();
    const bool is_planar = step == 1;
    if (is_planar || !epilogue.IsNothing()) {
      gemm::FinishSums({sums, sums_stride_, 0, 1}, epilogue, 1, 0, width, is_planar ? to : sums,
                       sums_stride_);
    }
    if (is_planar) return;
    for (int64_t x = 0; x < width; ++x) to[x * step] = sums[x];
  }

  runtime::Runtime& runtime_;
  const runtime::PackedWeights weights_;
  const gemm::BoundEpilogue epilogue_;
  const device::BoundView source_, result_;
  const int64_t batch_;
  const bool has_rows_;
  const GroupShape shape_;
  const Windows windows_;
  const Strip strip_;
  const int64_t sums_stride_;
  std::vector<int64_t> taps_;  // of a window, in a strip
};

class FewChannelsKernel final : public device::Kernel {
 public:
  FewChannelsKernel(const gemm::StepEpilogue& epilogue, runtime::Runtime& runtime)
      : epilogue_(epilogue), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const device::BoundView& view = step.reads[1];
    const UsedTaps used = FindUsedTaps(step);
    const Contract& contract = *step.step->As<Contract>();
    const GroupShape shape = {contract.group, step.Number(contract.inner[0]),
                              step.domain[1] / contract.group};
    const auto pack = [&](const float* weights, float* packed) {
      PackTaps(weights, view, used, shape, packed);
    };
    ONNXIFI_ASSIGN_OR_RETURN(
        runtime::PackedWeights packed,
        runtime::FindPacked(step, 1, constants, runtime_.memory(), store_, layouts_.NumberOf(used),
                            step.domain[1] * used.total() * shape.channels, pack));
    return std::unique_ptr<device::BoundKernel>(std::make_unique<BoundFewChannels>(
        step, epilogue_, used, shape, std::move(packed), runtime_));
  }

 private:
  const gemm::StepEpilogue epilogue_;
  runtime::Runtime& runtime_;
  runtime::WeightStore store_;
  TapLayouts layouts_;
};

}  // namespace

runtime::RecipeResult SelectFewChannels(const device::Facts& facts) {
  const program::Step& step = facts.step;
  ONNXIFI_RETURN_IF_ERROR(CheckGathered(facts));
  const Contract& contract = *step.As<Contract>();
  if (contract.a_spatial.size() > 2) {
    return Status(Code::kUnsupportedShape, "The convolution has " +
                                               std::to_string(contract.a_spatial.size()) +
                                               " spatial axes; the kernel has 1 or 2.");
  }
  const int64_t channels = contract.inner[0].constant();
  const int64_t outputs = step.domain[1].constant() / contract.group;
  if (channels > kMaxChannels || outputs > kMaxPlaneOutputs || contract.group > kMaxGroups) {
    return Status(Code::kUnsupportedShape,
                  "The convolution has " + std::to_string(contract.group) + " groups of " +
                      std::to_string(channels) + " channels and " + std::to_string(outputs) +
                      " outputs; the kernel takes up to " + std::to_string(kMaxGroups) +
                      " groups of " + std::to_string(kMaxChannels) + " and " +
                      std::to_string(kMaxPlaneOutputs) + ".");
  }
  const bool has_one_tap =
      std::all_of(contract.inner.begin() + 1, contract.inner.end(),
                  [](const program::Dim& taps) { return taps == program::Dim(1); });
  if (has_one_tap) {
    return Status(Code::kUnsupportedShape, "The kernel has one tap: pixels are read as they lie.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const gemm::StepEpilogue epilogue,
                           gemm::SelectEpilogue(facts, /*channel_axis=*/1));
  return MakePackingRecipe<FewChannelsKernel>("few channels", epilogue);
}

}  // namespace onnxifi::convolution
