// SPDX-License-Identifier: Apache-2.0
//
// SelectFewTransposed and its kernel: a transposed convolution to fewer outputs than a vector has
// lanes, as decoders end with. Each pixel of the input times all taps and outputs is one product,
// whose columns fill vectors, and which is added to the sums of the results that it reaches. Of a
// pixel, the taps along the last axis and their outputs lie side by side in both.

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/used_taps.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/step_epilogue.h"
#include "backends/cpu/gemm/vector_matrix.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/runtime/packed_weights.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;
using program::Contract;

constexpr int64_t kMaxOutputs = 7;

// One axis of the step; those that it has not are of one element.
struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
  int64_t source_stride = 0, result_stride = 0;

  // The positions [first, end) of the input that results [begin, end_out) are made of.
  int64_t FirstIn(int64_t begin) const {
    const int64_t from = begin + pad - (kernel - 1) * dilation;
    return from > 0 ? std::min(in, (from + stride - 1) / stride) : 0;
  }
  int64_t EndIn(int64_t end_out) const {
    return std::clamp<int64_t>((end_out - 1 + pad) / stride + 1, 0, in);
  }
  // The result that position `from` reaches through a tap.
  int64_t ReachOf(int64_t from, int64_t tap) const { return from * stride - pad + tap * dilation; }
};
using Axes = std::array<Axis, kMaxSpatialAxes>;

Axes AxesOf(const device::BoundStep& step) {
  const Contract& contract = *step.step->As<Contract>();
  const size_t spatial = contract.a_spatial.size();
  Axes axes;
  for (size_t own = 0; own < spatial; ++own) {
    axes[kMaxSpatialAxes - spatial + own] = {step.Number(contract.a_spatial[own]),
                                             step.domain[kFirstSpatial + own],
                                             step.Number(contract.inner[1 + own]),
                                             contract.strides[own],
                                             contract.dilations[own],
                                             step.Number(contract.pads_begin[own]),
                                             step.reads[0].strides[kFirstSpatial + own],
                                             step.writes[0].strides[kFirstSpatial + own]};
  }
  return axes;
}

// Columns are taps, the last axis innermost, and then outputs.
void PackColumns(const float* weights, const device::BoundView& view, const Axes& axes,
                 int64_t channels, int64_t outputs, float* packed) {
  const int64_t taps = axes[0].kernel * axes[1].kernel * axes[2].kernel;
  const size_t spatial = view.strides.size() - kFirstSpatial;
  std::vector<float> rows(static_cast<size_t>(channels * taps * outputs));
  for (int64_t tap = 0; tap < taps; ++tap) {
    const float* first = weights;
    int64_t rest = tap;
    for (size_t own = spatial; own-- > 0;) {
      const int64_t kernel = axes[kMaxSpatialAxes - spatial + own].kernel;
      first += rest % kernel * view.strides[kFirstSpatial + own];
      rest /= kernel;
    }
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t m = 0; m < outputs; ++m) {
        rows[static_cast<size_t>((c * taps + tap) * outputs + m)] =
            first[c * view.strides[0] + m * view.strides[1]];
      }
    }
  }
  const int64_t columns = taps * outputs;
  const int64_t panels = (columns + gemm::PanelColumns() - 1) / gemm::PanelColumns();
  gemm::PackPanels({rows.data(), columns, 1}, channels, columns, 0, panels, packed);
}

class BoundFewTransposed final : public device::BoundKernel {
 public:
  BoundFewTransposed(const device::BoundStep& step, const gemm::StepEpilogue& epilogue,
                     int64_t channels, runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        weights_(std::move(weights)),
        epilogue_(epilogue, step),
        source_(step.reads[0]),
        result_(step.writes[0]),
        batch_(step.domain[0]),
        outputs_(step.domain[1]),
        channels_(channels),
        axes_(AxesOf(step)) {
    const Axis& x = axes_[2];
    columns_ = axes_[0].kernel * axes_[1].kernel * x.kernel * outputs_;
    pixels_.channels = channels_;
    pixels_.channel_stride = source_.strides[1];
    for (size_t axis = 0; axis < kMaxSpatialAxes; ++axis) {
      const Axis& own = axes_[axis];
      pixels_.axes[axis] = {own.in, own.in, 1, 1, 1, 0, own.source_stride};
    }
    const auto follows = [&](const Axis& axis, int64_t distance) {
      return axis.in == 1 || axis.source_stride == distance;
    };
    is_direct_ =
        (source_.strides[1] == 1 || channels_ == 1) && follows(axes_[1], x.source_stride * x.in);
    // The axis that is divided: the first along which there is more than one pixel.
    while (divided_ + 1 < kMaxSpatialAxes && axes_[divided_].in == 1) ++divided_;
    const bool is_line = divided_ + 1 == kMaxSpatialAxes;
    // Sums of a chunk stay in the L2 cache, unless it would be so short that its neighbours
    // multiply much of the same. Beside them a block of products stays there.
    const Axis& own = axes_[divided_];
    int64_t floats = is_line ? outputs_ : RowFloats(x.in);  // of one position along the axis
    for (size_t axis = 0; axis + 1 < kMaxSpatialAxes; ++axis) {
      if (axis != divided_) floats *= axes_[axis].out;
    }
    const int64_t cache = processor::L2Floats() / 4;
    constexpr int64_t kPartsPerThread = 2;
    const int64_t threads = runtime.pool().thread_count();
    const int64_t parts = threads > 1 ? threads * kPartsPerThread : 1;
    const int64_t least = std::max<int64_t>(1, 4 * own.kernel * own.dilation);
    chunk_ = std::min((own.out * batch_ + parts - 1) / parts, cache / std::max<int64_t>(1, floats));
    chunk_ = std::clamp<int64_t>(std::max(chunk_, least), 1, std::max<int64_t>(1, own.out));
    row_ = is_line ? chunk_ : x.out;
    row_in_ = is_line ? 0 : x.in;
    for (int64_t begin = 0; is_line && begin < own.out; begin += chunk_) {
      const int64_t end = std::min(own.out, begin + chunk_);
      row_in_ = std::max(row_in_, own.EndIn(end) - own.FirstIn(begin));
    }
    sum_rows_ = divided_ == 0 ? chunk_ * axes_[1].out
                              : axes_[0].out * (divided_ == 1 ? chunk_ : axes_[1].out);
    const int64_t pixels = std::max<int64_t>(1, cache / std::max<int64_t>(1, columns_));
    block_x_ = std::max<int64_t>(1, std::min(pixels, row_in_));
    block_y_ = std::clamp<int64_t>(pixels / block_x_, 1, std::max<int64_t>(1, axes_[1].in));
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    const int64_t out = axes_[divided_].out;
    const int64_t chunks = (out + chunk_ - 1) / chunk_;
    const int64_t items = batch_ * chunks;
    if (items == 0 || axes_[0].out * axes_[1].out * axes_[2].out == 0) return base::Ok();
    threads::ThreadPool& pool = runtime_.pool();
    const int64_t products =
        batch_ * axes_[0].in * axes_[1].in * axes_[2].in * channels_ * columns_;
    constexpr int64_t kWorthAThread = 1 << 17;
    const int64_t parts = pool.CountParts(std::clamp<int64_t>(products / kWorthAThread, 1, items));
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(pool.ThreadsOf(parts) * PartFloats() *
                                                         static_cast<int64_t>(sizeof(float))));
    auto* const scratch = reinterpret_cast<float*>(lease.data());
    const gemm::Epilogue epilogue = epilogue_.At(addresses);
    pool.ForEachPart(parts, [&](int64_t part, int thread) {
      for (int64_t item = items * part / parts; item < items * (part + 1) / parts; ++item) {
        const int64_t begin = item % chunks * chunk_;
        RunChunk(addresses, epilogue, item / chunks, begin, std::min(out, begin + chunk_),
                 scratch + thread * PartFloats());
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return "chunks of " + std::to_string(chunk_) + ", " + std::to_string(columns_) + " columns, " +
           processor::VectorName();
  }

 private:
  // Of a row of sums that pixels of the input reach.
  int64_t RowFloats(int64_t pixels) const {
    return (std::max<int64_t>(0, pixels - 1) * axes_[2].stride + axes_[2].kernel) * outputs_;
  }
  // Gathered pixels of a block, their products, the sums of a chunk, a row of an output, and its
  // bias.
  int64_t BlockPixels() const { return block_y_ * block_x_; }
  int64_t GatheredFloats() const { return is_direct_ ? 0 : BlockPixels() * channels_; }
  int64_t SumFloats() const { return sum_rows_ * RowFloats(row_in_); }
  int64_t PartFloats() const {
    return GatheredFloats() + BlockPixels() * columns_ + SumFloats() + 2 * row_;
  }

  // Results [begin, end) along the divided axis.
  void RunChunk(device::Addresses addresses, const gemm::Epilogue& epilogue, int64_t image,
                int64_t begin, int64_t end, float* scratch) const {
    std::array<Range, kMaxSpatialAxes> in, out;
    for (size_t axis = 0; axis < kMaxSpatialAxes; ++axis) {
      in[axis] = {0, axes_[axis].in};
      out[axis] = {0, axes_[axis].out};
    }
    out[divided_] = {begin, end};
    const int64_t first = axes_[divided_].FirstIn(begin);
    in[divided_] = {first, std::max(first, axes_[divided_].EndIn(end))};
    const float* const source = gemm::FloatsAt(addresses, source_) + image * source_.strides[0];
    float* const sums = scratch + GatheredFloats() + BlockPixels() * columns_;
    const int64_t row_floats = RowFloats(in[2].size());
    std::fill_n(sums, out[0].size() * out[1].size() * row_floats, 0.0F);
    for (int64_t z = in[0].begin; z < in[0].end; ++z) {
      for (int64_t y = in[1].begin; y < in[1].end; y += block_y_) {
        for (int64_t x = in[2].begin; x < in[2].end; x += block_x_) {
          const Block block = {z, y, x, std::min(block_y_, in[1].end - y),
                               std::min(block_x_, in[2].end - x)};
          const float* const products = MultiplyBlock(source, block, scratch);
          AddBlock(products, block, out, sums + (x - in[2].begin) * axes_[2].stride * outputs_,
                   row_floats);
        }
      }
    }
    for (int64_t z = out[0].begin; z < out[0].end; ++z) {
      for (int64_t y = out[1].begin; y < out[1].end; ++y) {
        float* const result = gemm::FloatsAt(addresses, result_) + image * result_.strides[0] +
                              z * axes_[0].result_stride + y * axes_[1].result_stride;
        const int64_t row = (z - out[0].begin) * out[1].size() + y - out[1].begin;
        FinishRow(epilogue, sums + row * row_floats, out[2], in[2], result, sums + SumFloats());
      }
    }
  }

  // Pixels of the input: of one z, some rows, or a part of one.
  struct Block {
    int64_t z, y, x, rows, columns;
  };

  // All taps and outputs of each pixel.
  const float* MultiplyBlock(const float* source, const Block& block, float* scratch) const {
    const int64_t pixels = block.rows * block.columns;
    float* const products = scratch + GatheredFloats();
    gemm::Product product{};
    product.a = source + block.z * axes_[0].source_stride + block.y * axes_[1].source_stride +
                block.x * axes_[2].source_stride;
    product.a_stride = axes_[2].source_stride;
    if (!is_direct_) {
      const int64_t first = (block.z * axes_[1].in + block.y) * axes_[2].in + block.x;
      pixels_.Gather(source, first, pixels, 0, channels_, scratch);
      product.a = scratch;
      product.a_stride = channels_;
    }
    product.b = runtime::Floats(weights_);
    product.c = products;
    product.c_stride = columns_;
    product.rows = pixels;
    product.depth = channels_;
    product.columns = columns_;
    gemm::Multiply(product, {}, 0, (columns_ + gemm::PanelColumns() - 1) / gemm::PanelColumns());
    return products;
  }

  // Adds a block's products to the rows of sums `out` that they reach; `sums` is where the block
  // begins in the first one.
  void AddBlock(const float* products, const Block& block,
                const std::array<Range, kMaxSpatialAxes>& out, float* sums,
                int64_t row_floats) const {
    const int64_t width = axes_[2].kernel * outputs_;
    const int64_t step = axes_[2].stride * outputs_;
    // Sums of neighbours overlap, and what was stored a moment ago is slow to load in other pieces:
    // where these are most of them, those that do not overlap go in turns.
    constexpr int64_t kShort = 16;
    const int64_t turns = width < kShort ? (width + step - 1) / step : 1;
    for (int64_t tap_z = 0; tap_z < axes_[0].kernel; ++tap_z) {
      const int64_t z = axes_[0].ReachOf(block.z, tap_z) - out[0].begin;
      if (z < 0 || z >= out[0].size()) continue;
      for (int64_t row = 0; row < block.rows; ++row) {
        for (int64_t tap_y = 0; tap_y < axes_[1].kernel; ++tap_y) {
          const int64_t y = axes_[1].ReachOf(block.y + row, tap_y) - out[1].begin;
          if (y < 0 || y >= out[1].size()) continue;
          const float* const from =
              products + row * block.columns * columns_ + (tap_z * axes_[1].kernel + tap_y) * width;
          float* const to = sums + (z * out[1].size() + y) * row_floats;
          for (int64_t first = 0; first < std::min(turns, block.columns); ++first) {
            for (int64_t x = first; x < block.columns; x += turns) {
              float* const sum = to + x * step;
              const float* const product = from + x * columns_;
              for (int64_t k = 0; k < width; ++k) sum[k] += product[k];
            }
          }
        }
      }
    }
  }

  // Results `x` of a row out of its sums, which begin where pixel in_x.begin does.
  void FinishRow(const gemm::Epilogue& epilogue, const float* sums, const Range& x,
                 const Range& in_x, float* result, float* own) const {
    const Axis& axis = axes_[2];
    const int64_t moved = axis.pad - in_x.begin * axis.stride;
    const int64_t reach = in_x.size() > 0 ? (in_x.size() - 1) * axis.stride + axis.kernel : 0;
    float* const bias = own + row_;
    const bool is_planar = axis.result_stride == 1;
    for (int64_t m = 0; m < outputs_; ++m) {
      for (int64_t k = x.begin; k < x.end; ++k) {
        const int64_t from = k + moved;
        own[k - x.begin] = from >= 0 && from < reach ? sums[from * outputs_ + m] : 0.0F;
      }
      gemm::Epilogue last = epilogue;
      if (epilogue.bias != nullptr) {
        std::fill_n(bias, x.size(), epilogue.bias[m]);
        last.bias = bias;
      }
      float* const to = result + m * result_.strides[1] + x.begin * axis.result_stride;
      gemm::FinishSums({own, row_, 0, 1}, last, 1, 0, x.size(), is_planar ? to : own, row_);
      if (is_planar) continue;
      for (int64_t k = 0; k < x.size(); ++k) to[k * axis.result_stride] = own[k];
    }
  }

  runtime::Runtime& runtime_;
  const runtime::PackedWeights weights_;
  const gemm::BoundEpilogue epilogue_;
  const device::BoundView source_, result_;
  const int64_t batch_, outputs_, channels_;
  const Axes axes_;
  Windows pixels_;
  int64_t columns_ = 1;
  size_t divided_ = 0;
  int64_t chunk_ = 1;             // results along it
  int64_t row_ = 1, row_in_ = 1;  // a row of a chunk, of the result and of the input
  int64_t sum_rows_ = 1;          // of a chunk
  int64_t block_y_ = 1, block_x_ = 1;
  bool is_direct_ = false;  // pixels are read where they lie
};

class FewTransposedKernel final : public device::Kernel {
 public:
  FewTransposedKernel(const gemm::StepEpilogue& epilogue, runtime::Runtime& runtime)
      : epilogue_(epilogue), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const device::BoundView& view = step.reads[1];
    const Axes axes = AxesOf(step);
    const int64_t channels = step.Number(step.step->As<Contract>()->inner[0]);
    const int64_t outputs = step.domain[1];
    const int64_t columns = axes[0].kernel * axes[1].kernel * axes[2].kernel * outputs;
    const auto pack = [&](const float* weights, float* packed) {
      PackColumns(weights, view, axes, channels, outputs, packed);
    };
    ONNXIFI_ASSIGN_OR_RETURN(
        runtime::PackedWeights packed,
        runtime::FindPacked(step, 1, constants, runtime_.memory(), store_, /*layout=*/0,
                            gemm::PackedSize(channels, columns), pack));
    return std::unique_ptr<device::BoundKernel>(std::make_unique<BoundFewTransposed>(
        step, epilogue_, channels, std::move(packed), runtime_));
  }

 private:
  const gemm::StepEpilogue epilogue_;
  runtime::Runtime& runtime_;
  runtime::WeightStore store_;
};

}  // namespace

runtime::RecipeResult SelectFewTransposed(const device::Facts& facts) {
  const program::Step& step = facts.step;
  ONNXIFI_RETURN_IF_ERROR(CheckGathered(facts));
  const Contract& contract = *step.As<Contract>();
  const int64_t outputs = step.domain[1].constant();
  if (contract.group != 1 || outputs > kMaxOutputs) {
    return Status(Code::kUnsupportedShape, "The convolution has " + std::to_string(outputs) +
                                               " outputs in " + std::to_string(contract.group) +
                                               " groups; the kernel has at most " +
                                               std::to_string(kMaxOutputs) + " in one.");
  }
  // Below 8 columns most of a vector stays empty; oneDNN is slower still, since it multiplies once
  // per tap, for some extents in plain loops.
  constexpr int64_t kMinColumns = 4;
  int64_t columns = outputs;
  for (size_t axis = 1; axis < contract.inner.size(); ++axis) {
    columns *= contract.inner[axis].constant();
  }
  if (columns < kMinColumns) {
    return Status(Code::kUnsupportedShape, "There are " + std::to_string(columns) +
                                               " taps of outputs, below " +
                                               std::to_string(kMinColumns) + ".");
  }
  if (contract.dilations.back() != 1) {
    return Status(Code::kUnsupportedAttribute, "The last dilation is " +
                                                   std::to_string(contract.dilations.back()) +
                                                   "; the kernel has 1.");
  }
  for (const program::Dim& pad : contract.pads_begin) {
    if (pad.LowerBound() < 0) {
      return Status(Code::kUnsupportedShape, "A padding may be negative.");
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(const gemm::StepEpilogue epilogue,
                           gemm::SelectEpilogue(facts, /*channel_axis=*/1));
  if (epilogue.addend >= 0) {
    return Status(Code::kUnsupportedAttribute, "A tensor is added to the result.");
  }
  return MakePackingRecipe<FewTransposedKernel>("transposed to few outputs", epilogue);
}

}  // namespace onnxifi::convolution
