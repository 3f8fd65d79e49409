// SPDX-License-Identifier: Apache-2.0
//
// SelectWinogradFrames and its kernel: a convolution of k x 3 x 3 along three axes by Winograd's
// algorithm along the inner two. Every frame of the input is transformed once; a product's row then
// has a piece in each frame that a window sees, and the sums over frames are sums of frequencies.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/kernel.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/step_axes.h"
#include "backends/cpu/convolution/winograd.h"
#include "backends/cpu/convolution/winograd_transform.h"
#include "backends/cpu/convolution/winograd_weights.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;
using program::Contract;

constexpr size_t kFrameAxis = 2;  // of views

// One frame of one group.
WinogradShape ShapeOf(const Convolution& convolution, int64_t images, int64_t taps) {
  return {images,
          convolution.in_channels / convolution.group,
          convolution.out_channels / convolution.group,
          convolution.in_height,
          convolution.in_width,
          convolution.out_height,
          convolution.out_width,
          convolution.pad_top,
          convolution.pad_left,
          taps};
}

FrameAxis AxisOf(const device::BoundStep& step) {
  const Contract& contract = *step.step->As<Contract>();
  return {step.Number(contract.a_spatial[0]),
          step.domain[kFrameAxis],
          step.Number(contract.inner[1]),
          contract.strides[0],
          contract.dilations[0],
          step.Number(contract.pads_begin[0])};
}

class BoundWinogradFrames final : public device::BoundKernel {
 public:
  // `frame` is the step of one frame.
  BoundWinogradFrames(const device::BoundStep& step, const device::BoundStep& frame,
                      const Convolution& convolution, Tile tile, runtime::PackedWeights weights,
                      runtime::Runtime& runtime)
      : runtime_(runtime),
        batch_(step.domain[0]),
        axis_(AxisOf(step)),
        shape_(ShapeOf(convolution, batch_, axis_.kernel)),
        plan_(MakeFramePlan(tile, shape_, axis_, runtime.pool().thread_count())),
        groups_(convolution.group),
        weights_(std::move(weights)),
        images_(frame, convolution),
        source_frame_(step.reads[0].strides[kFrameAxis]),
        result_frame_(step.writes[0].strides[kFrameAxis]) {
    if (convolution.epilogue.addend >= 0) {
      addend_frame_ =
          step.reads[static_cast<size_t>(convolution.epilogue.addend)].strides[kFrameAxis];
    }
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    const int64_t chunks = batch_ * plan_.frame_chunks * plan_.tile_chunks;
    threads::ThreadPool& pool = runtime_.pool();
    const int64_t in_progress = plan_.tiles.is_by_frequency ? 1 : pool.ThreadsOf(chunks);
    const int64_t chunk_bytes = plan_.tiles.work_floats * static_cast<int64_t>(sizeof(float));
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(in_progress * chunk_bytes));
    auto* const work = reinterpret_cast<float*>(lease.data());
    for (int64_t group = 0; group < groups_; ++group) {
      Images images = images_.At(addresses);
      gemm::Epilogue epilogue = images_.EpilogueAt(addresses);
      images.source += group * shape_.in_channels;
      images.result += group * shape_.out_channels;
      if (images.addend != nullptr) images.addend += group * shape_.out_channels;
      if (epilogue.bias != nullptr) epilogue.bias += group * shape_.out_channels;
      const float* const weights =
          runtime::Floats(weights_) + group * TransformedSize(plan_.tiles.tile,
                                                              axis_.kernel * shape_.in_channels,
                                                              shape_.out_channels);
      if (plan_.tiles.is_by_frequency) {
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
          RunOnAllThreads(ChunkOf(chunk), images, epilogue, weights, work);
        }
        continue;
      }
      // Each thread has its own part of the work memory.
      const int64_t parts = pool.CountParts(chunks);
      pool.ForEachPart(parts, [&](int64_t part, int thread) {
        for (int64_t k = chunks * part / parts; k < chunks * (part + 1) / parts; ++k) {
          const Chunk chunk = ChunkOf(k);
          float* const own = work + thread * plan_.tiles.work_floats;
          TransformFrames(chunk, images, 0, axis_.Reach(chunk.frames) * chunk.tiles, own);
          Multiply(chunk, weights, 0, Frequencies(plan_.tiles.tile), own);
          TransformResults(chunk, images, epilogue, 0, chunk.frames * chunk.tiles, own);
        }
      });
    }
    return base::Ok();
  }

  std::string Detail() const override {
    const std::string side = std::to_string(static_cast<int64_t>(plan_.tiles.tile));
    return "F(" + side + "x" + side + ", 3x3), " + std::to_string(plan_.tiles.chunk) +
           " tiles of " + std::to_string(plan_.frames) + " frames at a time" +
           (plan_.tiles.is_by_frequency ? ", threads on frequencies, " : ", ") +
           processor::VectorName();
  }

 private:
  // Frames [first_frame, first_frame + frames) of the result, in chunk `number` of their tiles.
  struct Chunk {
    int64_t image, first_frame, frames;
    int64_t number, tiles;
  };

  Chunk ChunkOf(int64_t k) const {
    Chunk chunk{};
    chunk.number = k % plan_.tile_chunks;
    chunk.tiles = TilesOf(plan_.tiles, chunk.number);
    chunk.first_frame = k / plan_.tile_chunks % plan_.frame_chunks * plan_.frames;
    chunk.frames = std::min(plan_.frames, axis_.out - chunk.first_frame);
    chunk.image = k / plan_.tile_chunks / plan_.frame_chunks;
    return chunk;
  }

  void RunOnAllThreads(const Chunk& chunk, const Images& images, const gemm::Epilogue& epilogue,
                       const float* weights, float* work) const {
    threads::ThreadPool& pool = runtime_.pool();
    pool.For(axis_.Reach(chunk.frames) * chunk.tiles, /*grain=*/1,
             [&](int64_t begin, int64_t end) { TransformFrames(chunk, images, begin, end, work); });
    pool.For(Frequencies(plan_.tiles.tile), /*grain=*/1,
             [&](int64_t begin, int64_t end) { Multiply(chunk, weights, begin, end, work); });
    pool.For(chunk.frames * chunk.tiles, /*grain=*/1, [&](int64_t begin, int64_t end) {
      TransformResults(chunk, images, epilogue, begin, end, work);
    });
  }

  // Calls body(frame, first_tile, end_tile) for tiles [begin, end) of a chunk's frames.
  template <typename Body>
  static void ForFrames(const Chunk& chunk, int64_t begin, int64_t end, const Body& body) {
    while (begin < end) {
      const int64_t frame = begin / chunk.tiles, first = begin % chunk.tiles;
      const int64_t count = std::min(chunk.tiles - first, end - begin);
      body(frame, first, first + count);
      begin += count;
    }
  }

  // Tiles of what the chunk sees of the input. Those of padding are read by no product.
  void TransformFrames(const Chunk& chunk, const Images& images, int64_t begin, int64_t end,
                       float* work) const {
    const WinogradPlan& plan = plan_.tiles;
    ForFrames(chunk, begin, end, [&](int64_t frame, int64_t first, int64_t end_tile) {
      float* const target = work + frame * chunk.tiles * plan.in_stride;
      const int64_t in = chunk.first_frame * axis_.stride - axis_.pad + frame;
      if (in < 0 || in >= axis_.in) return;
      Images of_frame = images;
      of_frame.source += chunk.image * images.source_strides.image + in * source_frame_;
      TransformInput(plan, shape_, of_frame, chunk.number, first, end_tile, target);
    });
  }

  void Multiply(const Chunk& chunk, const float* weights, int64_t first, int64_t end,
                float* work) const {
    // Frames that follow one another and see the same taps are one product.
    for (int64_t frame = 0; frame < chunk.frames;) {
      const FrameAxis::Taps taps = axis_.TapsAt(chunk.first_frame + frame);
      int64_t count = 1;
      while (axis_.stride == 1 && frame + count < chunk.frames &&
             axis_.TapsAt(chunk.first_frame + frame + count) == taps) {
        ++count;
      }
      for (int64_t frequency = first; frequency < end; ++frequency) {
        MultiplyFrames(chunk, weights, frequency, frame, count, taps, work);
      }
      frame += count;
    }
  }

  void MultiplyFrames(const Chunk& chunk, const float* weights, int64_t frequency, int64_t frame,
                      int64_t count, const FrameAxis::Taps& taps, float* work) const {
    const WinogradPlan& plan = plan_.tiles;
    const int64_t depth = axis_.kernel * shape_.in_channels;
    const int64_t panel_columns = gemm::PanelColumns();
    const int64_t frame_floats = chunk.tiles * plan.in_stride;
    float* const products = work + Frequencies(plan.tile) * plan.in_frequency_stride +
                            frequency * plan.out_frequency_stride +
                            frame * chunk.tiles * plan.out_stride;
    if (taps.first == taps.end) {
      std::fill_n(products, count * chunk.tiles * plan.out_stride, 0.0F);
      return;
    }
    std::vector<int64_t> pieces;
    for (int64_t tap = taps.first; tap < taps.end; ++tap) {
      pieces.push_back(tap * axis_.dilation * frame_floats);
    }
    gemm::Product product = {
        work + frequency * plan.in_frequency_stride + frame * axis_.stride * frame_floats,
        plan.in_stride,
        weights + frequency * gemm::PackedSize(depth, shape_.out_channels),
        products,
        plan.out_stride,
        count * chunk.tiles,
        shape_.in_channels,
        shape_.out_channels,
        pieces};
    const int64_t panels = plan.out_stride / panel_columns;
    if (taps.first == 0 && taps.end == axis_.kernel) return gemm::Multiply(product, {}, 0, panels);
    // A panel's weights are those of all taps.
    for (int64_t panel = 0; panel < panels; ++panel) {
      product.b = weights + frequency * gemm::PackedSize(depth, shape_.out_channels) +
                  (panel * depth + taps.first * shape_.in_channels) * panel_columns;
      product.c = products + panel * panel_columns;
      product.columns = std::min(panel_columns, shape_.out_channels - panel * panel_columns);
      gemm::Multiply(product, {}, 0, 1);
    }
  }

  void TransformResults(const Chunk& chunk, const Images& images, const gemm::Epilogue& epilogue,
                        int64_t begin, int64_t end, float* work) const {
    ForFrames(chunk, begin, end, [&](int64_t frame, int64_t first, int64_t end_tile) {
      const int64_t out = chunk.first_frame + frame;
      Images of_frame = images;
      of_frame.result += chunk.image * images.result_strides.image + out * result_frame_;
      if (images.addend != nullptr) {
        of_frame.addend += chunk.image * images.addend_strides.image + out * addend_frame_;
      }
      TransformOutput(plan_.tiles, shape_, of_frame, epilogue, chunk.number, first, end_tile,
                      work + frame * chunk.tiles * plan_.tiles.out_stride);
    });
  }

  runtime::Runtime& runtime_;
  const int64_t batch_;
  const FrameAxis axis_;
  const WinogradShape shape_;
  const FramePlan plan_;
  const int64_t groups_;
  const runtime::PackedWeights weights_;
  const BoundImages images_;
  const int64_t source_frame_, result_frame_;  // from frame to frame, in floats
  int64_t addend_frame_ = 0;
};

class WinogradFramesKernel final : public device::Kernel {
 public:
  WinogradFramesKernel(const Convolution& convolution, runtime::Runtime& runtime)
      : convolution_(convolution), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    ONNXIFI_ASSIGN_OR_RETURN(const program::Step frame, FrameOf(*step.step));
    const FrameAxis axis = AxisOf(step);
    // Frames that make a variant worthwhile for one image make it so for more.
    const Tile tile = ChooseTile(ShapeOf(convolution_, step.domain[0] * axis.out, axis.kernel))
                          .value_or(Tile::k2x2);
    const WinogradShape shape = ShapeOf(convolution_, 1, axis.kernel);
    const int64_t depth = axis.kernel * shape.in_channels;
    const int64_t group_floats = TransformedSize(tile, depth, shape.out_channels);
    const device::BoundView& view = step.reads[1];
    const auto pack = [&](const float* data, float* packed) {
      for (int64_t group = 0; group < convolution_.group; ++group) {
        for (int64_t tap = 0; tap < axis.kernel; ++tap) {
          const Weights weights = {
              data + group * shape.out_channels * view.strides[0] + tap * view.strides[kFrameAxis],
              view.strides[0], view.strides[1], view.strides[3], view.strides[4]};
          TransformWeights(tile, weights, shape.in_channels, shape.out_channels,
                           {tap * shape.in_channels, depth}, runtime_.pool(),
                           packed + group * group_floats);
        }
      }
    };
    ONNXIFI_ASSIGN_OR_RETURN(
        runtime::PackedWeights packed,
        runtime::FindPacked(step, 1, constants, runtime_.memory(), store_, static_cast<int>(tile),
                            convolution_.group * group_floats, pack));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundWinogradFrames>(step, device::Bind(*step.program, frame, step.dims),
                                              convolution_, tile, std::move(packed), runtime_));
  }

 private:
  const Convolution convolution_;
  runtime::Runtime& runtime_;
  runtime::WeightStore store_;
};

}  // namespace

runtime::RecipeResult SelectWinogradFrames(const device::Facts& facts) {
  ONNXIFI_ASSIGN_OR_RETURN(const program::Step frame, FrameOf(facts.step));
  ONNXIFI_ASSIGN_OR_RETURN(const ConvolutionQuery query, QueryConvolution({facts.program, frame}));
  ONNXIFI_RETURN_IF_ERROR(CheckWinograd(query));
  const program::Dim& taps = facts.step.As<Contract>()->inner[1];
  if (!taps.is_constant() || taps.constant() < 1) {
    return Status(Code::kUnsupportedShape,
                  "The kernel's extent along frames is known only once the inputs are, or 0.");
  }
  const program::Dim& frames = facts.step.domain[kFrameAxis];
  const int64_t known = frames.is_constant() ? std::max<int64_t>(1, frames.constant()) : 1;
  const Convolution& convolution = query.convolution;
  ONNXIFI_RETURN_IF_ERROR(
      CheckWorthwhile(ShapeOf(convolution, convolution.batch * known, taps.constant())));
  return MakePackingRecipe<WinogradFramesKernel>("winograd", convolution);
}

}  // namespace onnxifi::convolution
