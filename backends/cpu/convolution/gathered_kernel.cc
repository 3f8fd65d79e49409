// SPDX-License-Identifier: Apache-2.0
//
// SelectGathered and its kernel: a convolution along any number of axes as a product of gathered
// windows and packed weights. The depth is divided into blocks: of one, the panel of weights stays
// in the L1 cache and the windows of a chunk stay in the L2 cache, and sums are added to those of
// the block before. A result whose channels are not innermost, as a caller's, is turned chunk by
// chunk.

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/windows.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/grid.h"
#include "backends/cpu/gemm/step_epilogue.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/runtime/aligned_constant.h"
#include "backends/cpu/runtime/packed_weights.h"
#include "backends/cpu/runtime/plain_operand.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;
using program::Contract;
using program::Dim;

constexpr size_t kFirstSpatial = 2;  // axes of images are N, C and the spatial ones

// What is a number before the step is bound.
struct GatheredConvolution {
  int64_t group = 1;
  int64_t in_channels = 1, out_channels = 1;  // of one group
  int64_t taps = 1;                           // of a kernel
  gemm::StepEpilogue epilogue;

  int64_t depth() const { return taps * in_channels; }
  int64_t panels() const {
    return (out_channels + gemm::PanelColumns() - 1) / gemm::PanelColumns();
  }
  int64_t packed_size() const { return gemm::PackedSize(depth(), out_channels); }
};

// Along each axis the taps that some window has inside of its image: of a small image, a kernel's
// outermost ones may meet nothing but padding. At least one.
struct UsedTaps {
  tensor::Extents first, count;

  int64_t total() const { return tensor::ElementCount(count); }
  bool operator==(const UsedTaps& other) const = default;
};

UsedTaps FindUsedTaps(const device::BoundStep& step) {
  const Contract& contract = *step.step->As<Contract>();
  UsedTaps used;
  for (size_t axis = 0; axis < contract.a_spatial.size(); ++axis) {
    const int64_t in = step.Number(contract.a_spatial[axis]);
    const int64_t out = step.domain[kFirstSpatial + axis];
    const int64_t pad = step.Number(contract.pads_begin[axis]);
    const int64_t dilation = contract.dilations[axis];
    const int64_t last_window = std::max<int64_t>(out - 1, 0) * contract.strides[axis] - pad;
    int64_t first = 0, end = step.Number(contract.inner[1 + axis]);
    while (first + 1 < end && last_window + first * dilation < 0) ++first;
    while (end - 1 > first && (end - 1) * dilation - pad >= in) --end;
    used.first.push_back(first);
    used.count.push_back(end - first);
  }
  return used;
}

// Weights of every group, the depth in the order of Windows. `weights` is the first used tap's.
void PackTaps(const GatheredConvolution& convolution, const float* weights,
              const device::BoundView& view, const tensor::Extents& kernel,
              device::Parallel& parallel, float* packed) {
  parallel.For(
      convolution.group * convolution.panels(), /*grain=*/1, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const int64_t group = k / convolution.panels();
          const int64_t panel = k % convolution.panels();
          for (int64_t tap = 0; tap < convolution.taps; ++tap) {
            const float* first = weights + group * convolution.out_channels * view.strides[0];
            int64_t rest = tap;
            for (size_t axis = kernel.size(); axis-- > 0;) {
              first += rest % kernel[axis] * view.strides[kFirstSpatial + axis];
              rest /= kernel[axis];
            }
            gemm::PackRows({first, view.strides[1], view.strides[0]}, convolution.in_channels,
                           convolution.out_channels, tap * convolution.in_channels,
                           convolution.depth(), panel, panel + 1,
                           packed + group * convolution.packed_size());
          }
        }
      });
}

class BoundGathered final : public device::BoundKernel {
 public:
  // `convolution` has the used taps alone.
  BoundGathered(const device::BoundStep& step, const GatheredConvolution& convolution,
                const UsedTaps& used, runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        convolution_(convolution),
        weights_(std::move(weights)),
        epilogue_(convolution.epilogue, step),
        source_(step.reads[0]),
        result_(step.writes[0]),
        batch_(step.domain[0]) {
    const Contract& contract = *step.step->As<Contract>();
    windows_.channels = convolution.in_channels;
    windows_.channel_stride = source_.strides[1];
    const size_t spatial = contract.a_spatial.size();
    for (size_t axis = 0; axis < spatial; ++axis) {
      windows_.axes[kMaxSpatialAxes - spatial + axis] = {
          step.Number(contract.a_spatial[axis]),
          step.domain[kFirstSpatial + axis],
          used.count[axis],
          contract.strides[axis],
          contract.dilations[axis],
          step.Number(contract.pads_begin[axis]) - used.first[axis] * contract.dilations[axis],
          source_.strides[kFirstSpatial + axis]};
    }
    // A panel of a block takes half of the L1 cache, the windows of a chunk half of the L2 cache.
    block_depth_ = std::clamp<int64_t>(processor::L1Floats() / 2 / gemm::PanelColumns(), 64, 1024);
    block_depth_ = std::min(block_depth_, convolution.depth());
    const int64_t most_rows = processor::L2Floats() / 2 / block_depth_;
    chunk_rows_ = std::max<int64_t>(1, most_rows / gemm::BlockRows()) * gemm::BlockRows();
    chunk_rows_ = std::min(chunk_rows_, windows_.count());
    is_direct_ = result_.strides[1] == 1;
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    if (batch_ == 0 || windows_.count() == 0) return base::Ok();
    threads::ThreadPool& pool = runtime_.pool();
    // Of a chunk, threads that have different panels gather the same windows.
    const gemm::Work work = {batch_ * windows_.count(), 1, convolution_.depth(),
                             convolution_.panels()};
    const gemm::Grid grid = gemm::ChooseGrid(work, pool.thread_count());
    const int64_t part_floats =
        chunk_rows_ * (block_depth_ + (is_direct_ ? 0 : convolution_.out_channels));
    ONNXIFI_ASSIGN_OR_RETURN(
        const runtime::WorkMemory::Lease lease,
        runtime_.work_memory().Lend(grid.row_parts * grid.panel_parts * part_floats *
                                    static_cast<int64_t>(sizeof(float))));
    auto* const scratch = reinterpret_cast<float*>(lease.data());
    const gemm::Epilogue epilogue = epilogue_.At(addresses);
    gemm::ForParts(work, grid, pool, [&](int64_t number, const gemm::Part& part) {
      for (int64_t row = part.first_block; row < part.end_block;) {
        const int64_t image = row / windows_.count();
        const int64_t first = row % windows_.count();
        const int64_t rows =
            std::min({chunk_rows_, part.end_block - row, windows_.count() - first});
        RunChunk(addresses, epilogue, image, first, rows, part, scratch + number * part_floats);
        row += rows;
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return "chunks of " + std::to_string(chunk_rows_) + ", depth " +
           std::to_string(convolution_.depth()) + " in blocks of " + std::to_string(block_depth_) +
           ", " + processor::VectorName();
  }

 private:
  // Sums of one group and chunk, a row per position, and what is added to them.
  struct Sums {
    float* data;
    int64_t row;
    const float* addend;  // null: nothing
    int64_t addend_row;
  };

  void RunChunk(device::Addresses addresses, const gemm::Epilogue& epilogue, int64_t image,
                int64_t first, int64_t rows, const gemm::Part& part, float* scratch) const {
    const int64_t columns = convolution_.out_channels;
    const Columns range = {part.first_panel * gemm::PanelColumns(),
                           std::min(part.end_panel * gemm::PanelColumns(), columns)};
    for (int64_t group = 0; group < convolution_.group; ++group) {
      float* const result = At(addresses, result_, image, group * columns, first);
      Sums sums = {result, result_.strides.back(), nullptr, 0};
      if (epilogue_.addend()) {
        sums.addend = At(addresses, *epilogue_.addend(), image, group * columns, first);
        sums.addend_row = epilogue_.addend()->strides.back();
      }
      if (!is_direct_) {
        float* const turned = scratch + chunk_rows_ * block_depth_;
        sums.data = turned;
        sums.row = columns;
      }
      const float* const source = At(addresses, source_, image, group * windows_.channels, 0);
      RunGroup(epilogue, source, group, first, rows, part, sums, scratch);
      if (!is_direct_) {
        Copy(sums.data, columns, 1, rows, range, result, result_.strides.back(),
             result_.strides[1]);
      }
    }
  }

  void RunGroup(const gemm::Epilogue& epilogue, const float* source, int64_t group, int64_t first,
                int64_t rows, const gemm::Part& part, const Sums& sums, float* scratch) const {
    const int64_t columns = convolution_.out_channels;
    const float* const packed = runtime::Floats(weights_) + group * convolution_.packed_size();
    for (int64_t depth = 0; depth < convolution_.depth(); depth += block_depth_) {
      const int64_t end_depth = std::min(convolution_.depth(), depth + block_depth_);
      windows_.Gather(source, first, rows, depth, end_depth, scratch);
      for (int64_t panel = part.first_panel; panel < part.end_panel; ++panel) {
        const int64_t column = panel * gemm::PanelColumns();
        // The summand is added to the first block, all else to the last.
        gemm::Epilogue own;
        if (end_depth == convolution_.depth()) own = epilogue;
        if (own.bias != nullptr) own.bias += group * columns + column;
        if (depth > 0) {
          own.addend = sums.data + column;
          own.addend_stride = sums.row;
        } else if (sums.addend != nullptr) {
          own.addend = sums.addend + column;
          own.addend_stride = sums.addend_row;
        }
        gemm::Multiply({scratch,
                        end_depth - depth,
                        packed + (panel * convolution_.depth() + depth) * gemm::PanelColumns(),
                        sums.data + column,
                        sums.row,
                        rows,
                        end_depth - depth,
                        std::min(gemm::PanelColumns(), columns - column),
                        {}},
                       own, 0, 1);
      }
    }
  }

  struct Columns {
    int64_t begin, end;
  };

  // The first of `rows` positions in the first of some columns, from one order to another.
  static void Copy(const float* from, int64_t from_row, int64_t from_column, int64_t rows,
                   const Columns& columns, float* to, int64_t to_row, int64_t to_column) {
    constexpr int64_t kRowsAtOnce = 16;  // of a cache line
    for (int64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
      const int64_t end = std::min(rows, begin + kRowsAtOnce);
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        for (int64_t row = begin; row < end; ++row) {
          to[row * to_row + column * to_column] = from[row * from_row + column * from_column];
        }
      }
    }
  }

  static float* At(device::Addresses addresses, const device::BoundView& view, int64_t image,
                   int64_t channel, int64_t position) {
    return gemm::FloatsAt(addresses, view) + image * view.strides[0] + channel * view.strides[1] +
           position * view.strides.back();
  }

  runtime::Runtime& runtime_;
  const GatheredConvolution convolution_;
  const runtime::PackedWeights weights_;
  const gemm::BoundEpilogue epilogue_;
  const device::BoundView source_, result_;
  const int64_t batch_;
  Windows windows_;
  int64_t block_depth_ = 1, chunk_rows_ = 1;
  // Whether products write the result where it is: its channels lie innermost.
  bool is_direct_ = true;
};

class GatheredKernel final : public device::Kernel {
 public:
  GatheredKernel(const GatheredConvolution& convolution, runtime::Runtime& runtime)
      : convolution_(convolution), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const device::BoundView& view = step.reads[1];
    const UsedTaps used = FindUsedTaps(step);
    GatheredConvolution convolution = convolution_;
    convolution.taps = used.total();
    int64_t first = view.offset;
    for (size_t axis = 0; axis < used.first.size(); ++axis) {
      first += used.first[axis] * view.strides[kFirstSpatial + axis];
    }
    const auto pack = [&](float* to) -> Status {
      ONNXIFI_ASSIGN_OR_RETURN(
          const runtime::AlignedConstant aligned,
          runtime::AlignedConstant::Create(runtime_.memory(), constants[view.buffer],
                                           runtime::ConstantBytes(step, view.buffer)));
      PackTaps(convolution, reinterpret_cast<const float*>(aligned.data()) + first, view,
               used.count, runtime_.pool(), to);
      return base::Ok();
    };
    ONNXIFI_ASSIGN_OR_RETURN(runtime::PackedWeights packed,
                             store_.Find(NumberOf(used), runtime_.memory(),
                                         convolution.group * convolution.packed_size(), pack));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundGathered>(step, convolution, used, std::move(packed), runtime_));
  }

 private:
  // Of the weights that are packed for these taps.
  int NumberOf(const UsedTaps& used) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(layouts_.begin(), layouts_.end(), used);
    const auto number = static_cast<int>(found - layouts_.begin());
    if (found == layouts_.end()) layouts_.push_back(used);
    return number;
  }

  const GatheredConvolution convolution_;
  runtime::Runtime& runtime_;
  runtime::WeightStore store_;
  std::mutex mutex_;
  std::vector<UsedTaps> layouts_;
};

class GatheredRecipe final : public Recipe {
 public:
  explicit GatheredRecipe(const GatheredConvolution& convolution)
      : Recipe("gathered"), convolution_(convolution) {}

  bool TakesAnyAddress(int read) const override { return read == 1; }
  std::unique_ptr<device::Kernel> BuildKernel(runtime::Runtime& runtime) const override {
    return std::make_unique<GatheredKernel>(convolution_, runtime);
  }

 private:
  const GatheredConvolution convolution_;
};

base::Result<int64_t> Number(const Dim& dim, std::string_view what) {
  if (dim.is_constant() && dim.constant() >= 1) return dim.constant();
  if (!dim.is_constant()) {
    return Status(Code::kUnsupportedShape,
                  "The " + std::string(what) + " is known only once the inputs are.");
  }
  return Status(Code::kUnsupportedShape, "The " + std::string(what) + " is " +
                                             std::to_string(dim.constant()) + ", less than 1.");
}

// Rows of a product are at one distance from each other.
Status CheckEvenPositions(const program::View& view, const program::Shape& domain,
                          std::string_view what) {
  for (size_t axis = domain.size() - 1; axis > kFirstSpatial; --axis) {
    if (domain[axis - 1] == Dim(1)) continue;
    if (!(view.strides[axis - 1] == view.strides[axis] * domain[axis])) {
      return Status(Code::kUnsupportedShape,
                    "The pixels of the " + std::string(what) + " do not lie evenly in memory.");
    }
  }
  return base::Ok();
}

}  // namespace

runtime::RecipeResult SelectGathered(const device::Facts& facts) {
  const program::Step& step = facts.step;
  const Contract& contract = *step.As<Contract>();
  const size_t spatial = contract.a_spatial.size();
  if (spatial == 0 || spatial > kMaxSpatialAxes) {
    return Status(Code::kUnsupportedShape, "The convolution has " + std::to_string(spatial) +
                                               " spatial axes; the kernel has 1 to " +
                                               std::to_string(kMaxSpatialAxes) + ".");
  }
  if (contract.accumulator != tensor::ElementType::kFloat32 || step.writes.size() != 1 ||
      step.writes[0].type != tensor::ElementType::kFloat32) {
    return Status(Code::kUnsupportedDatatype,
                  "The convolution has something else than one float32 result.");
  }
  if (!facts.IsConstant(step.reads[1])) {
    return Status(Code::kUnsupportedAttribute, "The weights are computed at run time.");
  }
  for (int operand = 0; operand < 2; ++operand) {
    ONNXIFI_RETURN_IF_ERROR(runtime::CheckPlain(facts.program, step, operand));
  }
  GatheredConvolution convolution;
  convolution.group = contract.group;
  ONNXIFI_ASSIGN_OR_RETURN(convolution.in_channels, Number(contract.inner[0], "input's depth"));
  ONNXIFI_ASSIGN_OR_RETURN(convolution.out_channels, Number(step.domain[1], "output's depth"));
  convolution.out_channels /= contract.group;
  for (size_t axis = 1; axis < contract.inner.size(); ++axis) {
    ONNXIFI_ASSIGN_OR_RETURN(const int64_t extent, Number(contract.inner[axis], "kernel's extent"));
    convolution.taps *= extent;
  }
  constexpr int64_t kMinColumns = 8;
  if (convolution.out_channels < kMinColumns) {
    return Status(Code::kUnsupportedShape,
                  "A group has " + std::to_string(convolution.out_channels) + " outputs; below " +
                      std::to_string(kMinColumns) + " most of a vector would stay empty.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(convolution.epilogue, gemm::SelectEpilogue(facts, /*channel_axis=*/1));
  ONNXIFI_RETURN_IF_ERROR(CheckEvenPositions(step.writes[0], step.domain, "result"));
  if (const int addend = convolution.epilogue.addend; addend >= 0) {
    ONNXIFI_RETURN_IF_ERROR(
        CheckEvenPositions(step.reads[static_cast<size_t>(addend)], step.domain, "summand"));
  }
  return std::unique_ptr<const device::Recipe>(std::make_unique<GatheredRecipe>(convolution));
}

}  // namespace onnxifi::convolution
