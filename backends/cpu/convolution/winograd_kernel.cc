// SPDX-License-Identifier: Apache-2.0
//
// SelectWinograd and its kernel: which variant, if any, and the phases on the thread pool.

#include <optional>
#include <string>
#include <utility>

#include "backends/cpu/convolution/kernel.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/winograd.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;

// A variant has to promise so much of the direct algorithm's cost: below that it is not worth its
// memory, and the promise is no measurement.
constexpr double kWorthwhile = 0.75;

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

std::optional<Tile> ChooseTile(const WinogradShape& shape) {
  const double direct = DirectCost(shape);
  const double narrow = WinogradCost(Tile::k2x2, shape);
  const double wide = WinogradCost(Tile::k4x4, shape);
  if (std::min(narrow, wide) > kWorthwhile * direct) return std::nullopt;
  return wide < narrow ? Tile::k4x4 : Tile::k2x2;
}

class BoundWinograd final : public device::BoundKernel {
 public:
  BoundWinograd(const device::BoundStep& step, const Convolution& convolution, Tile tile,
                PackedWeights weights, runtime::Runtime& runtime)
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
    const int64_t in_progress =
        plan_.is_by_frequency ? 1 : std::min<int64_t>(chunks, runtime_.pool().thread_count());
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
      RunGroup(images, epilogue, WeightsOf(group), chunks, in_progress, work);
    }
    return base::Ok();
  }

  std::string Detail() const override {
    const std::string side = std::to_string(static_cast<int64_t>(plan_.tile));
    return "F(" + side + "x" + side + ", 3x3), " + std::to_string(plan_.chunk) +
           " tiles at a time" + (plan_.is_by_frequency ? ", threads on frequencies" : "");
  }

 private:
  const float* WeightsOf(int64_t group) const {
    return Floats(weights_) +
           group * TransformedSize(plan_.tile, shape_.in_channels, shape_.out_channels);
  }

  void RunGroup(const Images& images, const gemm::Epilogue& epilogue, const float* weights,
                int64_t chunks, int64_t in_progress, float* work) const {
    if (plan_.is_by_frequency) {
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        RunChunk(chunk, images, epilogue, weights, work);
      }
      return;
    }
    // Each thread has its own part of the work memory.
    runtime_.pool().For(in_progress, /*grain=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        RunChunks(plan_, shape_, weights, images, epilogue, chunks * part / in_progress,
                  chunks * (part + 1) / in_progress, work + part * plan_.work_floats);
      }
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
  const PackedWeights weights_;
  const BoundImages images_;
};

class WinogradKernel final : public device::Kernel {
 public:
  WinogradKernel(const Convolution& convolution, runtime::Runtime& runtime)
      : convolution_(convolution), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const WinogradShape shape = ShapeOf(convolution_, step.domain[0]);
    // A batch that makes a variant worthwhile for one image makes it so for more.
    const Tile tile = ChooseTile(shape).value_or(Tile::k2x2);
    const device::BoundView& view = step.reads[1];
    const Weights weights = {reinterpret_cast<const float*>(constants[view.buffer]) + view.offset,
                             view.strides[0], view.strides[1], view.strides[2], view.strides[3]};
    const int64_t size = TransformedSize(tile, shape.in_channels, shape.out_channels);
    ONNXIFI_ASSIGN_OR_RETURN(
        PackedWeights packed,
        weights_.Find(static_cast<int>(tile), runtime_.memory(), convolution_.group * size,
                      [&](float* transformed) {
                        for (int64_t group = 0; group < convolution_.group; ++group) {
                          Weights own = weights;
                          own.data += group * shape.out_channels * weights.out_stride;
                          TransformWeights(tile, own, shape.in_channels, shape.out_channels,
                                           runtime_.pool(), transformed + group * size);
                        }
                      }));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundWinograd>(step, convolution_, tile, std::move(packed), runtime_));
  }

 private:
  const Convolution convolution_;
  runtime::Runtime& runtime_;
  WeightStore weights_;
};

std::unique_ptr<device::Kernel> BuildWinograd(const Convolution& convolution,
                                              runtime::Runtime& runtime) {
  return std::make_unique<WinogradKernel>(convolution, runtime);
}

}  // namespace

SelectResult SelectWinograd(const Convolution& convolution) {
  const bool fits = convolution.kernel_height == 3 && convolution.kernel_width == 3 &&
                    convolution.stride_y == 1 && convolution.stride_x == 1 &&
                    convolution.dilation_y == 1 && convolution.dilation_x == 1;
  if (!fits) {
    return Status(Code::kUnsupportedAttribute,
                  "The convolution is not 3 x 3 with strides and dilations of 1.");
  }
  const WinogradShape shape = ShapeOf(convolution, /*batch=*/1);
  if (!ChooseTile(shape)) {
    return Status(Code::kUnsupportedShape,
                  "The transforms and the larger weights would cost more than " +
                      std::to_string(static_cast<int>(100 * kWorthwhile)) +
                      " % of the direct algorithm.");
  }
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<Recipe>("winograd", convolution, BuildWinograd));
}

}  // namespace onnxifi::convolution
