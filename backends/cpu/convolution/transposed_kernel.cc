// SPDX-License-Identifier: Apache-2.0
//
// SelectTransposed and its kernel: a transposed convolution along one to three axes as one
// convolution for each remainder of its strides: what lies at positions o with the same
// (o + padding) % stride is made of the same taps of the kernel, every stride-th, over neighbours
// of the input. Windows of these are gathered, backwards, unless they are pixels that can be read
// where they lie, and multiplied with packed weights; results are a stride apart.

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/used_taps.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/step_epilogue.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/runtime/packed_weights.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;
using program::Contract;
using Numbers = std::array<int64_t, kMaxSpatialAxes>;

constexpr int64_t kMaxPhases = 64;

// The axes of a step, outermost first, those that it has not being of one element.
struct Axes {
  Numbers in, out, kernel, stride, pad;

  explicit Axes(const device::BoundStep& step) {
    in.fill(1);
    out.fill(1);
    kernel.fill(1);
    stride.fill(1);
    pad.fill(0);
    const Contract& contract = *step.step->As<Contract>();
    const size_t spatial = contract.a_spatial.size();
    tensor::Extents own_in, own_kernel;
    for (size_t own = 0; own < spatial; ++own) {
      const size_t axis = kMaxSpatialAxes - spatial + own;
      in[axis] = own_in.emplace_back(step.Number(contract.a_spatial[own]));
      out[axis] = step.domain[kFirstSpatial + own];
      kernel[axis] = own_kernel.emplace_back(step.Number(contract.inner[1 + own]));
      pad[axis] = step.Number(contract.pads_begin[own]);
    }
    const tensor::Extents strides = TransposedStrides(own_in, own_kernel, contract.strides);
    std::copy(strides.begin(), strides.end(), stride.end() - static_cast<int64_t>(spatial));
  }

  // A number for weights that are packed for these strides.
  int Layout() const {
    return static_cast<int>((stride[0] * (kMaxPhases + 1) + stride[1]) * (kMaxPhases + 1) +
                            stride[2]);
  }
};

// A stride along each axis of a view, 0 for axes that it has not.
Numbers StridesOf(const device::BoundView& view) {
  Numbers strides = {};
  const size_t spatial = view.strides.size() - kFirstSpatial;
  for (size_t own = 0; own < spatial; ++own) {
    strides[kMaxSpatialAxes - spatial + own] = view.strides[kFirstSpatial + own];
  }
  return strides;
}

// The results with one remainder along every axis.
struct Phase {
  Windows windows;      // over the input, taps from the last to the first
  Numbers first_out{};  // where their results begin
  Numbers remainder{};
  bool is_direct = false;  // each window is a pixel of the input
  int64_t packed = 0;      // where the weights of its taps begin, in floats

  int64_t rows() const { return windows.axes[0].out * windows.axes[1].out; }
};

int64_t Taps(int64_t kernel, int64_t stride, int64_t remainder) {
  return remainder < kernel ? (kernel - remainder + stride - 1) / stride : 0;
}

// What is a number before the step is bound.
struct TransposedConvolution {
  int64_t group = 1;
  int64_t in_channels = 1, out_channels = 1;  // of one group
  gemm::StepEpilogue epilogue;
};

// Weights of every phase and group, the depth in the order of its windows. Where no tap is left,
// zeros of one.
struct Packing {
  const TransposedConvolution& convolution;
  Numbers kernel, stride;

  int64_t SizeOf(const Numbers& remainder) const {
    return convolution.group * gemm::PackedSize(DepthOf(remainder), convolution.out_channels);
  }
  int64_t DepthOf(const Numbers& remainder) const {
    int64_t taps = 1;
    for (size_t axis = 0; axis < kMaxSpatialAxes; ++axis) {
      taps *= std::max<int64_t>(1, Taps(kernel[axis], stride[axis], remainder[axis]));
    }
    return taps * convolution.in_channels;
  }
  // body(remainders, where their weights begin), for all phases.
  template <typename Body>
  int64_t ForPhases(Body body) const {
    int64_t begin = 0;
    Numbers remainder{};
    for (remainder[0] = 0; remainder[0] < stride[0]; ++remainder[0]) {
      for (remainder[1] = 0; remainder[1] < stride[1]; ++remainder[1]) {
        for (remainder[2] = 0; remainder[2] < stride[2]; ++remainder[2]) {
          body(remainder, begin);
          begin += SizeOf(remainder);
        }
      }
    }
    return begin;
  }
  void PackPhase(const float* weights, const device::BoundView& view, const Numbers& remainder,
                 float* packed) const {
    const Numbers strides = StridesOf(view);
    Numbers taps{};
    bool has_taps = true;
    for (size_t axis = 0; axis < kMaxSpatialAxes; ++axis) {
      taps[axis] = Taps(kernel[axis], stride[axis], remainder[axis]);
      has_taps = has_taps && taps[axis] > 0;
    }
    std::fill_n(packed, SizeOf(remainder), 0.0F);
    if (!has_taps) return;
    const int64_t depth = DepthOf(remainder);
    const int64_t columns = convolution.out_channels;
    const int64_t panels = (columns + gemm::PanelColumns() - 1) / gemm::PanelColumns();
    for (int64_t group = 0; group < convolution.group; ++group) {
      for (int64_t tap = 0; tap < taps[0] * taps[1] * taps[2]; ++tap) {
        const float* first = weights + group * convolution.in_channels * view.strides[0];
        int64_t rest = tap;
        for (size_t axis = kMaxSpatialAxes; axis-- > 0;) {
          const int64_t at = taps[axis] - 1 - rest % taps[axis];
          first += (remainder[axis] + at * stride[axis]) * strides[axis];
          rest /= taps[axis];
        }
        gemm::PackRows({first, view.strides[0], view.strides[1]}, convolution.in_channels, columns,
                       tap * convolution.in_channels, depth, 0, panels,
                       packed + group * gemm::PackedSize(depth, columns));
      }
    }
  }
};

class BoundTransposed final : public device::BoundKernel {
 public:
  BoundTransposed(const device::BoundStep& step, const TransposedConvolution& convolution,
                  runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        convolution_(convolution),
        weights_(std::move(weights)),
        epilogue_(convolution.epilogue, step),
        source_(step.reads[0]),
        result_(step.writes[0]),
        batch_(step.domain[0]),
        axes_(step) {
    const Numbers source = StridesOf(source_);
    const Packing packing = {convolution_, axes_.kernel, axes_.stride};
    const int64_t floats = packing.ForPhases([&](const Numbers& remainder, int64_t packed) {
      Phase phase;
      phase.remainder = remainder;
      phase.packed = packed;
      phase.windows.channels = convolution_.in_channels;
      phase.windows.channel_stride = source_.strides[1];
      phase.is_direct = source_.strides[1] == 1 || convolution_.in_channels == 1;
      bool has_taps = true;
      for (size_t axis = 0; axis < kMaxSpatialAxes; ++axis) {
        const int64_t stride = axes_.stride[axis];
        const int64_t own = Taps(axes_.kernel[axis], stride, remainder[axis]);
        has_taps = has_taps && own > 0;
        const int64_t taps = std::max<int64_t>(1, own);
        // Results o = quotient * stride + remainder - pad, of which o >= 0 and o < out.
        const int64_t before = axes_.pad[axis] - remainder[axis];
        const int64_t first = before > 0 ? (before + stride - 1) / stride : 0;
        const int64_t last = axes_.out[axis] - 1 + before;
        const int64_t end = last < 0 ? 0 : last / stride + 1;
        phase.first_out[axis] = first * stride - before;
        phase.windows.axes[axis] = {
            axes_.in[axis], std::max<int64_t>(0, end - first), taps, 1, 1, taps - 1 - first,
            source[axis]};
        phase.is_direct = phase.is_direct && taps == 1 && end <= axes_.in[axis];
      }
      if (!has_taps) {
        // Made of nothing, whatever the input holds: each window sees padding.
        phase.is_direct = false;
        for (WindowAxis& axis : phase.windows.axes) axis.in = 0;
      }
      if (phase.windows.count() > 0) phases_.push_back(phase);
    });
    // As gathered windows: a panel of a block takes half of the L1 cache, a chunk half of the L2.
    block_depth_ = std::clamp<int64_t>(processor::L1Floats() / 2 / gemm::PanelColumns(), 64, 1024);
    chunk_windows_ = std::max<int64_t>(processor::L2Floats() / 2 / block_depth_, 1);
    is_far_ = floats > processor::L2Floats() / 2;
    is_planar_ = result_.strides[1] != 1;
    for (const Phase& phase : phases_) {
      const int64_t windows = RowsOf(phase) * phase.windows.axes[2].out;
      max_windows_ = std::max(max_windows_, windows);
      if (IsTurned(phase)) max_turned_ = std::max(max_turned_, windows);
    }
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    std::vector<Item> items;
    int64_t products = 0;
    for (int64_t image = 0; image < batch_; ++image) {
      for (const Phase& phase : phases_) {
        for (int64_t row = 0; row < phase.rows(); row += RowsOf(phase)) {
          items.push_back({&phase, image, row, std::min(RowsOf(phase), phase.rows() - row)});
        }
        products += phase.windows.count() * phase.windows.depth() * convolution_.out_channels *
                    convolution_.group;
      }
    }
    if (items.empty()) return base::Ok();
    constexpr int64_t kWorthAThread = 1 << 17;
    threads::ThreadPool& pool = runtime_.pool();
    const auto count = static_cast<int64_t>(items.size());
    const int64_t worth = std::clamp<int64_t>(products / kWorthAThread, 1, count);
    const int64_t parts = pool.CountParts(worth);
    const int64_t part_floats =
        max_windows_ * block_depth_ + max_turned_ * convolution_.out_channels;
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(pool.ThreadsOf(parts) * part_floats *
                                                         static_cast<int64_t>(sizeof(float))));
    auto* const scratch = reinterpret_cast<float*>(lease.data());
    const gemm::Epilogue epilogue = epilogue_.At(addresses);
    pool.ForEachPart(parts, [&](int64_t part, int thread) {
      for (int64_t k = count * part / parts; k < count * (part + 1) / parts; ++k) {
        RunItem(addresses, epilogue, items[static_cast<size_t>(k)], scratch + thread * part_floats);
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return std::to_string(phases_.size()) + " remainders, depth in blocks of " +
           std::to_string(block_depth_) + ", " + processor::VectorName();
  }

 private:
  // Some rows of results of one phase.
  struct Item {
    const Phase* phase;
    int64_t image, row, rows;
  };

  int64_t RowsOf(const Phase& phase) const {
    const int64_t most =
        IsTurned(phase)
            ? std::min(chunk_windows_,
                       processor::L2Floats() / 4 / std::max<int64_t>(1, convolution_.out_channels))
            : chunk_windows_;
    return std::max<int64_t>(1, most / std::max<int64_t>(1, phase.windows.axes[2].out));
  }

  // Whether sums go to a copy first: where channels of the result lie apart, and where rows are so
  // narrow that blocks of several of them are worth it.
  bool IsTurned(const Phase& phase) const {
    const int64_t width = phase.windows.axes[2].out;
    return is_planar_ || (!phase.is_direct && !epilogue_.addend() &&
                          width < 3 * gemm::BlockRows() && width % gemm::BlockRows() != 0);
  }

  // The first result of a row, or what is added to it, from that of the image and channel.
  int64_t OffsetOf(const Phase& phase, const Numbers& strides, int64_t row) const {
    const int64_t rows = phase.windows.axes[1].out;
    const Numbers at = {row / rows, row % rows, 0};
    int64_t offset = 0;
    for (size_t axis = 0; axis < kMaxSpatialAxes; ++axis) {
      offset += (phase.first_out[axis] + at[axis] * axes_.stride[axis]) * strides[axis];
    }
    return offset;
  }

  void RunItem(device::Addresses addresses, const gemm::Epilogue& epilogue, const Item& item,
               float* scratch) const {
    const Phase& phase = *item.phase;
    const int64_t width = phase.windows.axes[2].out;
    const int64_t columns = convolution_.out_channels;
    const Numbers strides = StridesOf(result_);
    const int64_t pixel = axes_.stride[2] * strides[2];
    for (int64_t group = 0; group < convolution_.group; ++group) {
      float* const result = gemm::FloatsAt(addresses, result_) + item.image * result_.strides[0] +
                            group * columns * result_.strides[1];
      float* const turned = scratch + max_windows_ * block_depth_;
      Target target;
      target.epilogue = &epilogue;
      target.group = group;
      if (epilogue_.addend()) {
        const device::BoundView& addend = *epilogue_.addend();
        target.addend = gemm::FloatsAt(addresses, addend) + item.image * addend.strides[0] +
                        group * columns * addend.strides[1];
        target.addend_strides = StridesOf(addend);
      }
      target.is_turned = IsTurned(phase);
      target.results = target.is_turned ? turned : result;
      target.result_pixel = target.is_turned ? columns : pixel;
      const float* const source = gemm::FloatsAt(addresses, source_) +
                                  item.image * source_.strides[0] +
                                  group * convolution_.in_channels * source_.strides[1];
      MultiplyRows(item, target, source, scratch);
      for (int64_t row = 0; target.is_turned && row < item.rows; ++row) {
        float* const to = result + OffsetOf(phase, strides, item.row + row);
        const float* const from = turned + row * width * columns;
        if (!is_planar_) {
          for (int64_t k = 0; k < width; ++k) {
            std::copy_n(from + k * columns, columns, to + k * pixel);
          }
          continue;
        }
        for (int64_t column = 0; column < columns; ++column) {
          for (int64_t k = 0; k < width; ++k) {
            to[column * result_.strides[1] + k * pixel] = from[k * columns + column];
          }
        }
      }
    }
  }

  // Where the results of an item go, and what is added to them.
  struct Target {
    const gemm::Epilogue* epilogue = nullptr;
    int64_t group = 0;
    bool is_turned = false;
    float* results = nullptr;
    int64_t result_pixel = 0;
    const float* addend = nullptr;  // of the image and group
    Numbers addend_strides{};
  };

  void MultiplyRows(const Item& item, const Target& target, const float* source,
                    float* scratch) const {
    const Phase& phase = *item.phase;
    const int64_t width = phase.windows.axes[2].out;
    const int64_t columns = convolution_.out_channels;
    const int64_t depth = phase.windows.depth();
    const float* const packed =
        runtime::Floats(weights_) + phase.packed + target.group * gemm::PackedSize(depth, columns);
    // Without gaps between them and without a summand, all rows are those of one product.
    const bool is_joined = target.is_turned && !phase.is_direct && target.addend == nullptr;
    const int64_t rows = is_joined ? 1 : item.rows;
    const auto block_at = [&](int64_t column, int64_t at) {
      return packed + column / gemm::PanelColumns() * depth * gemm::PanelColumns() +
             at * gemm::PanelColumns();
    };
    for (int64_t first = 0; first < depth; first += block_depth_) {
      const int64_t end = std::min(depth, first + block_depth_);
      if (!phase.is_direct) {
        phase.windows.Gather(source, item.row * width, item.rows * width, first, end, scratch);
      }
      for (int64_t column = 0; column < columns; column += gemm::PanelColumns()) {
        for (int64_t row = 0; row < rows; ++row) {
          gemm::Product product{};
          product.a = scratch + row * width * (end - first);
          product.a_stride = end - first;
          if (phase.is_direct) {
            product.a = source + PixelOf(phase, item.row + row) + first;
            product.a_stride = phase.windows.axes[2].source_stride;
          }
          product.b = block_at(column, first);
          if (is_far_ && row == 0) {
            const int64_t next = column + gemm::PanelColumns();
            product.next_b = next < columns ? block_at(next, first) : block_at(0, end);
          }
          product.c = target.results + column +
                      (target.is_turned ? row * width * columns
                                        : OffsetOf(phase, StridesOf(result_), item.row + row));
          product.c_stride = target.result_pixel;
          product.rows = is_joined ? item.rows * width : width;
          product.depth = end - first;
          product.columns = std::min(gemm::PanelColumns(), columns - column);
          // The summand is added to the first block, all else to the last.
          gemm::Epilogue own;
          if (end == depth) own = *target.epilogue;
          if (own.bias != nullptr) own.bias += target.group * columns + column;
          own.addend = nullptr;
          if (first > 0) {
            own.addend = product.c;
            own.addend_stride = product.c_stride;
          } else if (target.addend != nullptr) {
            own.addend =
                target.addend + column + OffsetOf(phase, target.addend_strides, item.row + row);
            own.addend_stride = axes_.stride[2] * target.addend_strides[2];
          }
          gemm::Multiply(product, own, 0, 1);
        }
      }
    }
  }

  // The pixel of the input that the first window of a row is.
  static int64_t PixelOf(const Phase& phase, int64_t row) {
    const auto& [z, y, x] = phase.windows.axes;
    return (row / y.out - z.pad) * z.source_stride + (row % y.out - y.pad) * y.source_stride -
           x.pad * x.source_stride;
  }

  runtime::Runtime& runtime_;
  const TransposedConvolution convolution_;
  const runtime::PackedWeights weights_;
  const gemm::BoundEpilogue epilogue_;
  const device::BoundView source_, result_;
  const int64_t batch_;
  const Axes axes_;
  std::vector<Phase> phases_;
  int64_t block_depth_ = 1, chunk_windows_ = 1;
  int64_t max_windows_ = 0;  // windows of an item, at most
  int64_t max_turned_ = 0;   // the same of one whose sums go to a copy
  bool is_planar_ = false;   // channels of the result lie apart
  // No L2 cache holds the weights: they come to it a block ahead.
  bool is_far_ = false;
};

class TransposedKernel final : public device::Kernel {
 public:
  TransposedKernel(const TransposedConvolution& convolution, runtime::Runtime& runtime)
      : convolution_(convolution), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const device::BoundView& view = step.reads[1];
    const Axes axes(step);
    const Packing packing = {convolution_, axes.kernel, axes.stride};
    const int64_t floats = packing.ForPhases([](const Numbers&, int64_t) {});
    const auto pack = [&](const float* weights, float* packed) {
      packing.ForPhases([&](const Numbers& remainder, int64_t begin) {
        packing.PackPhase(weights, view, remainder, packed + begin);
      });
    };
    ONNXIFI_ASSIGN_OR_RETURN(runtime::PackedWeights packed,
                             runtime::FindPacked(step, 1, constants, runtime_.memory(), store_,
                                                 axes.Layout(), floats, pack));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundTransposed>(step, convolution_, std::move(packed), runtime_));
  }

 private:
  const TransposedConvolution convolution_;
  runtime::Runtime& runtime_;
  runtime::WeightStore store_;
};

}  // namespace

tensor::Extents TransposedStrides(const tensor::Extents& in, const tensor::Extents& kernel,
                                  const tensor::Extents& strides) {
  tensor::Extents raised = strides;
  for (size_t axis = 0; axis < in.size(); ++axis) {
    if (in[axis] == 1) raised[axis] = std::max(raised[axis], kernel[axis]);
  }
  int64_t room = kMaxPhases;
  for (const int64_t stride : raised) room /= stride;
  return room >= 1 ? raised : strides;
}

runtime::RecipeResult SelectTransposed(const device::Facts& facts) {
  const program::Step& step = facts.step;
  ONNXIFI_RETURN_IF_ERROR(CheckGathered(facts));
  const Contract& contract = *step.As<Contract>();
  TransposedConvolution convolution;
  convolution.group = contract.group;
  convolution.in_channels = contract.inner[0].constant();
  convolution.out_channels = step.domain[1].constant() / contract.group;
  // Of several groups, too, most of a vector stays empty then, but oneDNN takes a hundred times as
  // long for pixels of such groups.
  constexpr int64_t kMinColumns = 8;
  if (contract.group == 1 && convolution.out_channels < kMinColumns) {
    return Status(Code::kUnsupportedShape, "There are " + std::to_string(convolution.out_channels) +
                                               " outputs; below " + std::to_string(kMinColumns) +
                                               " most of a vector would stay empty.");
  }
  int64_t phases = 1;
  for (size_t axis = 0; axis < contract.strides.size(); ++axis) {
    if (contract.dilations[axis] != 1) {
      return Status(Code::kUnsupportedAttribute, "Dilation " + std::to_string(axis) + " is " +
                                                     std::to_string(contract.dilations[axis]) +
                                                     "; the kernel has 1.");
    }
    if (contract.pads_begin[axis].LowerBound() < 0) {
      return Status(Code::kUnsupportedShape, "A padding may be negative.");
    }
    if (contract.strides[axis] > kMaxPhases / phases) {
      return Status(Code::kUnsupportedShape,
                    "The strides have more than " + std::to_string(kMaxPhases) + " remainders.");
    }
    phases *= contract.strides[axis];
  }
  ONNXIFI_ASSIGN_OR_RETURN(convolution.epilogue, gemm::SelectEpilogue(facts, /*channel_axis=*/1));
  return MakePackingRecipe<TransposedKernel>("transposed", convolution);
}

}  // namespace onnxifi::convolution
