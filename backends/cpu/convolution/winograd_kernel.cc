// SPDX-License-Identifier: Apache-2.0
//
// SelectWinograd and its kernel: which variant, if any, and the phases on the thread pool.

#include <string>
#include <utility>

#include "backends/cpu/convolution/kernel.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/winograd.h"
#include "backends/cpu/convolution/winograd_transform.h"
#include "backends/cpu/convolution/winograd_weights.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;

// Of one group.
WinogradShape ShapeOf(const Convolution& convolution, int64_t batch) {
  return {batch,
          convolution.in_channels / convolution.group,
          convolution.out_channels / convolution.group,
          convolution.in_height,
          convolution.in_width,
          convolution.out_height,
          convolution.out_width,
          convolution.pad_top,
          convolution.pad_left};
}

// The weights of all groups, one after the other.
struct TilePacking {
  using Layout = Tile;
  static Tile Choose(const Convolution& convolution, int64_t batch) {
    // A batch that makes a variant worthwhile for one image makes it so for more.
    return ChooseTile(ShapeOf(convolution, batch)).value_or(Tile::k2x2);
  }
  static int64_t GroupSize(const Convolution& convolution, Tile tile) {
    return TransformedSize(tile, convolution.in_channels / convolution.group,
                           convolution.out_channels / convolution.group);
  }
  static int64_t Size(const Convolution& convolution, Tile tile) {
    return convolution.group * GroupSize(convolution, tile);
  }
  static void Pack(const Convolution& convolution, Tile tile, const Weights& weights,
                   device::Parallel& parallel, float* packed) {
    const int64_t in = convolution.in_channels / convolution.group;
    const int64_t out = convolution.out_channels / convolution.group;
    for (int64_t group = 0; group < convolution.group; ++group) {
      Weights own = weights;
      own.data += group * out * weights.out_stride;
      TransformWeights(tile, own, in, out, parallel, packed + group * GroupSize(convolution, tile));
    }
  }
};

class BoundWinograd final : public device::BoundKernel {
 public:
  BoundWinograd(const device::BoundStep& step, const Convolution& convolution, Tile tile,
                runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        shape_(ShapeOf(convolution, step.domain[0])),
        plan_(MakePlan(tile, shape_, runtime.pool().thread_count())),
        groups_(convolution.group),
        weights_(std::move(weights)),
        images_(step, convolution) {}

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    const int64_t chunks = (plan_.tiles + plan_.chunk - 1) / plan_.chunk;
    const int64_t in_progress = plan_.is_by_frequency ? 1 : runtime_.pool().ThreadsOf(chunks);
    const int64_t chunk_bytes = plan_.work_floats * static_cast<int64_t>(sizeof(float));
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(in_progress * chunk_bytes));
    auto* work = reinterpret_cast<float*>(lease.data());
    for (int64_t group = 0; group < groups_; ++group) {
      Images images = images_.At(addresses);
      gemm::Epilogue epilogue = images_.EpilogueAt(addresses);
      images.source += group * shape_.in_channels;
      images.result += group * shape_.out_channels;
      if (images.addend != nullptr) images.addend += group * shape_.out_channels;
      if (epilogue.bias != nullptr) epilogue.bias += group * shape_.out_channels;
      RunGroup(images, epilogue, WeightsOf(group), chunks, work);
    }
    return base::Ok();
  }

  std::string Detail() const override {
    const std::string side = std::to_string(static_cast<int64_t>(plan_.tile));
    return "F(" + side + "x" + side + ", 3x3), " + std::to_string(plan_.chunk) +
           " tiles at a time" + (plan_.is_by_frequency ? ", threads on frequencies, " : ", ") +
           processor::VectorName();
  }

 private:
  const float* WeightsOf(int64_t group) const {
    return runtime::Floats(weights_) +
           group * TransformedSize(plan_.tile, shape_.in_channels, shape_.out_channels);
  }

  void RunGroup(const Images& images, const gemm::Epilogue& epilogue, const float* weights,
                int64_t chunks, float* work) const {
    if (plan_.is_by_frequency) {
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        RunChunk(chunk, images, epilogue, weights, work);
      }
      return;
    }
    // Each thread has its own part of the work memory.
    const int64_t parts = runtime_.pool().CountParts(chunks);
    runtime_.pool().ForEachPart(parts, [&](int64_t part, int thread) {
      RunChunks(plan_, shape_, weights, images, epilogue, chunks * part / parts,
                chunks * (part + 1) / parts, work + thread * plan_.work_floats);
    });
  }

  void RunChunk(int64_t chunk, const Images& images, const gemm::Epilogue& epilogue,
                const float* weights, float* work) const {
    const int64_t tiles = TilesOf(plan_, chunk);
    threads::ThreadPool& pool = runtime_.pool();
    pool.For(tiles, /*grain=*/1, [&](int64_t begin, int64_t end) {
      TransformInput(plan_, shape_, images, chunk, begin, end, work);
    });
    pool.For(Frequencies(plan_.tile), /*grain=*/1, [&](int64_t begin, int64_t end) {
      MultiplyFrequencies(plan_, shape_, weights, chunk, begin, end, work);
    });
    pool.For(tiles, /*grain=*/1, [&](int64_t begin, int64_t end) {
      TransformOutput(plan_, shape_, images, epilogue, chunk, begin, end, work);
    });
  }

  runtime::Runtime& runtime_;
  const WinogradShape shape_;
  const WinogradPlan plan_;
  const int64_t groups_;
  const runtime::PackedWeights weights_;
  const BoundImages images_;
};

}  // namespace

Status CheckWinograd(const ConvolutionQuery& described) {
  ONNXIFI_RETURN_IF_ERROR(described.axes_status);
  if (!described.has_fast_algorithms) {
    return {Code::kUnsupportedAttribute,
            "The graph was initialised without algorithms that round differently."};
  }
  ONNXIFI_RETURN_IF_ERROR(described.nhwc_status);
  const Convolution& convolution = described.convolution;
  const bool fits = convolution.kernel_height == 3 && convolution.kernel_width == 3 &&
                    convolution.stride_y == 1 && convolution.stride_x == 1 &&
                    convolution.dilation_y == 1 && convolution.dilation_x == 1;
  if (fits) return base::Ok();
  return {Code::kUnsupportedAttribute,
          "The convolution is not 3 x 3 with strides and dilations of 1."};
}

Status CheckWorthwhile(const WinogradShape& shape) {
  if (ChooseTile(shape)) return base::Ok();
  return {Code::kUnsupportedShape, "The transforms and the larger weights would cost more than " +
                                       std::to_string(static_cast<int>(100 * kWorthwhile)) +
                                       " % of the direct algorithm."};
}

runtime::RecipeResult SelectWinograd(const ConvolutionQuery& described) {
  ONNXIFI_RETURN_IF_ERROR(CheckWinograd(described));
  const Convolution& convolution = described.convolution;
  ONNXIFI_RETURN_IF_ERROR(CheckWorthwhile(ShapeOf(convolution, convolution.batch)));
  return MakeRecipe<BoundWinograd, TilePacking>("winograd", convolution);
}

}  // namespace onnxifi::convolution
