// SPDX-License-Identifier: Apache-2.0
//
// SelectFused and its kernel: a depthwise convolution with the one of 1 x 1 before or behind it, or
// both. Each thread takes a few rows of the result at a time and computes of the images between
// just the rows that these need, into rings that stay in its cache.

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/depthwise.h"
#include "backends/cpu/convolution/kernel.h"
#include "backends/cpu/convolution/pointwise.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/window_product.h"
#include "backends/cpu/convolution/windows.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// Every other convolution of a fused kernel is 1 x 1.
bool IsDepthwise(const Convolution& convolution) { return CheckDepthwise(convolution).ok(); }

// The rows that the windows of rows `out` see.
Range RowsSeen(const Convolution& convolution, const Range& out) {
  const int64_t reach = (convolution.kernel_height - 1) * convolution.dilation_y + 1;
  const int64_t first = out.begin * convolution.stride_y - convolution.pad_top;
  const int64_t end = (out.end - 1) * convolution.stride_y - convolution.pad_top + reach;
  const int64_t seen = std::clamp<int64_t>(first, 0, convolution.in_height);
  return {seen, std::clamp<int64_t>(end, seen, convolution.in_height)};
}

// A ring of rows of each image between.
struct Rings {
  int64_t rows;                  // of the result, computed at a time
  std::vector<int64_t> extents;  // rows of each ring
  std::vector<int64_t> begins;   // where each lies, in floats; and where the last ends
};

Rings MakeRings(std::span<const Convolution> fused, int64_t rows) {
  Rings rings{rows, std::vector<int64_t>(fused.size() - 1), {0}};
  int64_t seen = rows;
  for (size_t k = fused.size(); k-- > 1;) {
    const Convolution& reader = fused[k];
    seen = (seen - 1) * reader.stride_y + (reader.kernel_height - 1) * reader.dilation_y + 1;
    seen = std::min(seen, reader.in_height);
    rings.extents[k - 1] = seen;
  }
  for (size_t k = 0; k + 1 < fused.size(); ++k) {
    rings.begins.push_back(rings.begins.back() +
                           rings.extents[k] * fused[k].out_width * fused[k].out_channels);
  }
  return rings;
}

// As many rows at a time as leave most of a cache to what is read and written besides.
int64_t MaxRingFloats() { return processor::L2Floats() / 4; }
Rings ChooseRings(std::span<const Convolution> fused) {
  Rings rings = MakeRings(fused, 1);
  for (int64_t rows = 2; rows <= fused.back().out_height; ++rows) {
    Rings more = MakeRings(fused, rows);
    if (more.begins.back() > MaxRingFloats()) break;
    rings = std::move(more);
  }
  return rings;
}

// A convolution of the fused kernel with its tensors.
struct FusedConvolution {
  Convolution convolution;
  bool is_depthwise;
  runtime::PackedWeights weights;
  BoundImages images;
};

// One thread's work in one run.
class Worker {
 public:
  // `memory` has room for the rings.
  Worker(std::span<const FusedConvolution> stages, const Rings& rings, device::Addresses addresses,
         bool result_exceeds_cache, float* memory)
      : rings_(rings), memory_(memory) {
    for (const FusedConvolution& stage : stages) {
      const Convolution& convolution = stage.convolution;
      parts_.push_back({convolution, runtime::Floats(stage.weights), stage.images.At(addresses),
                        stage.images.EpilogueAt(addresses),
                        DepthwiseRows(convolution, runtime::Floats(stage.weights)),
                        stage.is_depthwise, /*next=*/0});
    }
    parts_.back().images.result_exceeds_cache = result_exceeds_cache;
  }

  // Rows [first, end) of the result, counted through all images.
  void Run(int64_t first, int64_t end) {
    const int64_t height = parts_.back().convolution.out_height;
    while (first < end) {
      const int64_t n = first / height, y = first % height;
      const int64_t stop = std::min(height, y + end - first);
      for (Part& part : parts_) part.next = 0;
      for (int64_t row = y; row < stop; row += rings_.rows) {
        Complete(parts_.size() - 1, n, {row, std::min(stop, row + rings_.rows)});
      }
      first += stop - y;
    }
  }

 private:
  struct Part {
    const Convolution& convolution;
    const float* weights;
    Images images;
    gemm::Epilogue epilogue;
    DepthwiseRows depthwise;
    bool is_depthwise;
    int64_t next;  // the first row of the image that has not been computed
  };

  // Computes those rows of part k's result that have not been.
  void Complete(size_t k, int64_t n, Range rows) {
    Part& part = parts_[k];
    rows.begin = std::max(rows.begin, part.next);
    if (rows.begin >= rows.end) return;
    if (k > 0) Complete(k - 1, n, RowsSeen(part.convolution, rows));
    part.next = rows.end;
    const ImageRows<const float> from = SourceOf(k, n);
    const ImageRows<float> to =
        k + 1 == parts_.size() ? part.images.ResultOf(n, part.convolution.out_height) : Ring(k);
    if (part.is_depthwise) {
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        part.depthwise.Run(from, y, part.images.EpilogueOf(part.epilogue, n, y), to.At(y),
                           to.pixel);
      }
    } else {
      Multiply(part, n, rows, from, to);
    }
  }

  // Rows that follow each other everywhere are one product.
  static void Multiply(const Part& part, int64_t n, const Range& rows,
                       const ImageRows<const float>& from, const ImageRows<float>& to) {
    static constexpr int64_t kOnePiece[] = {0};
    const Convolution& convolution = part.convolution;
    const int64_t width = convolution.out_width;
    const PixelStrides& addend = part.images.addend_strides;
    const bool are_joined = from.row == width * from.pixel && to.row == width * to.pixel &&
                            (part.images.addend == nullptr || addend.row == width * addend.pixel);
    for (int64_t y = rows.begin; y < rows.end;) {
      const int64_t count =
          are_joined ? std::min({rows.end - y, from.ring - y % from.ring, to.ring - y % to.ring})
                     : 1;
      Images images = part.images;
      images.result = to.data;
      images.result_strides.pixel = to.pixel;
      const WindowRow row = {from.At(y), from.pixel, to.At(y) - to.data, addend.At(n, y, 0),
                             count * width};
      const int64_t depth = WindowDepth(convolution);
      for (int64_t group = 0; group < convolution.group; ++group) {
        MultiplyRow(convolution, {depth, kOnePiece}, part.weights, images, part.epilogue, row,
                    group, group * depth, 0, GroupPanels(convolution));
      }
      y += count;
    }
  }

  ImageRows<float> Ring(size_t k) const {
    const Convolution& convolution = parts_[k].convolution;
    const int64_t pixel = convolution.out_channels;
    return {memory_ + rings_.begins[k], convolution.out_width * pixel, pixel, rings_.extents[k]};
  }
  ImageRows<const float> SourceOf(size_t k, int64_t n) const {
    if (k == 0) return parts_[0].images.SourceOf(n, parts_[0].convolution.in_height);
    const ImageRows<float> ring = Ring(k - 1);
    return {ring.data, ring.row, ring.pixel, ring.ring};
  }

  const Rings& rings_;
  float* const memory_;
  std::vector<Part> parts_;
};

class BoundFusedKernel final : public device::BoundKernel {
 public:
  BoundFusedKernel(std::vector<FusedConvolution> stages, const Rings& rings, int64_t batch,
                   std::vector<bool> reads_at_run, runtime::Runtime& runtime)
      : stages_(std::move(stages)),
        rings_(rings),
        batch_(batch),
        reads_at_run_(std::move(reads_at_run)),
        runtime_(runtime) {
    runtime_.work_memory().Reserve(SizeBytes());
  }

  bool ReadsAtRun(int read) const override { return reads_at_run_[static_cast<size_t>(read)]; }

  Status Run(device::Addresses addresses) const override {
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(SizeBytes()));
    auto* const memory = reinterpret_cast<float*>(lease.data());
    const Convolution& last = stages_.back().convolution;
    const int64_t rows = batch_ * last.out_height;
    const int64_t parts = std::min<int64_t>(runtime_.pool().thread_count(), rows);
    const bool result_exceeds_cache =
        rows * last.out_width * last.out_channels >= kCacheExceedingFloats;
    runtime_.pool().For(parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        Worker worker(stages_, rings_, addresses, result_exceeds_cache,
                      memory + part * rings_.begins.back());
        worker.Run(part * rows / parts, (part + 1) * rows / parts);
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return std::to_string(rings_.rows) + (rings_.rows == 1 ? " row" : " rows") + " at a time, " +
           processor::VectorName();
  }

 private:
  int64_t SizeBytes() const {
    return runtime_.pool().thread_count() * rings_.begins.back() * kFloatBytes;
  }

  const std::vector<FusedConvolution> stages_;
  const Rings rings_;
  const int64_t batch_;
  const std::vector<bool> reads_at_run_;
  runtime::Runtime& runtime_;
};

class FusedKernel final : public device::Kernel {
 public:
  FusedKernel(std::span<const Convolution> fused, runtime::Runtime& runtime)
      : fused_(fused.begin(), fused.end()),
        rings_(ChooseRings(fused)),
        runtime_(runtime),
        stores_(fused.size()) {}

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& /*step*/,
                                                    device::Addresses /*constants*/) override {
    return Status(Code::kInternalError, "A kernel for fused steps is bound to one step.");
  }

  Result<std::unique_ptr<device::BoundKernel>> BindFused(std::span<const device::BoundStep> steps,
                                                         device::Addresses constants) override {
    std::vector<FusedConvolution> stages;
    std::vector<bool> reads_at_run;
    for (size_t k = 0; k < fused_.size(); ++k) {
      const Convolution& convolution = fused_[k];
      const bool is_depthwise = IsDepthwise(convolution);
      ONNXIFI_ASSIGN_OR_RETURN(
          runtime::PackedWeights weights,
          is_depthwise
              ? FindWeights<TapPacking>(steps[k], convolution, TapPacking::Layout::kTaps, constants,
                                        runtime_, stores_[k])
              : FindWeights<PointwisePacking>(steps[k], convolution, WindowOrder::kRowColumnChannel,
                                              constants, runtime_, stores_[k]));
      stages.push_back(
          {convolution, is_depthwise, std::move(weights), BoundImages(steps[k], convolution)});
      // The weights are packed, and the images between lie in rings.
      for (size_t read = 0; read < steps[k].reads.size(); ++read) {
        reads_at_run.push_back(read != 1 && (read != 0 || k == 0));
      }
    }
    return std::unique_ptr<device::BoundKernel>(std::make_unique<BoundFusedKernel>(
        std::move(stages), rings_, steps[0].domain[0], std::move(reads_at_run), runtime_));
  }

 private:
  const std::vector<Convolution> fused_;
  const Rings rings_;
  runtime::Runtime& runtime_;
  std::vector<runtime::WeightStore> stores_;  // of each step
};

class FusedRecipe final : public Recipe {
 public:
  // `reads` are the reads of each step.
  FusedRecipe(std::string_view implementation, std::vector<Convolution> fused,
              std::vector<int> reads)
      : Recipe(implementation), fused_(std::move(fused)), reads_(std::move(reads)) {}

  bool TakesAnyAddress(int read) const override {
    for (const int count : reads_) {
      if (read < count) return read == 1;
      read -= count;
    }
    return false;
  }
  std::unique_ptr<device::Kernel> BuildKernel(runtime::Runtime& runtime) const override {
    return std::make_unique<FusedKernel>(fused_, runtime);
  }

 private:
  const std::vector<Convolution> fused_;
  const std::vector<int> reads_;
};

bool IsPlainPointwise(const ConvolutionQuery& described) {
  const Convolution& convolution = described.convolution;
  return described.axes_status.ok() && described.nhwc_status.ok() &&
         CheckPointwise(convolution).ok() && convolution.stride_y == 1 && convolution.stride_x == 1;
}

bool IsDepthwiseOfPixels(const ConvolutionQuery& described) {
  return described.axes_status.ok() && described.nhwc_status.ok() &&
         IsDepthwise(described.convolution);
}

// Of the largest image between.
int64_t MaxFloatsBetween(std::span<const Convolution> fused) {
  int64_t most = 0;
  for (const Convolution& convolution : fused.first(fused.size() - 1)) {
    most = std::max(most, convolution.batch * convolution.out_height * convolution.out_width *
                              convolution.out_channels);
  }
  return most;
}

}  // namespace

device::FusedSelection SelectFused(std::span<const base::Result<ConvolutionQuery>> steps) {
  const auto is = [&](size_t k, bool (*kind)(const ConvolutionQuery&)) {
    return k < steps.size() && steps[k].ok() && kind(*steps[k]);
  };
  const size_t before = is(0, IsPlainPointwise) ? 1 : 0;
  if (!is(before, IsDepthwiseOfPixels)) return {};
  const size_t behind = is(before + 1, IsPlainPointwise) ? 1 : 0;
  if (before + behind == 0) return {};
  std::vector<Convolution> fused;
  std::vector<int> reads;
  for (const auto& step : steps.first(before + 1 + behind)) {
    fused.push_back(step->convolution);
    reads.push_back(step->reads);
  }
  const std::string_view name = behind == 0   ? "pointwise and depthwise"
                                : before == 0 ? "depthwise and pointwise"
                                              : "pointwise, depthwise and pointwise";
  const auto refuse = [&](const std::string& sentence) {
    device::FusedSelection none;
    none.selection.rejected.push_back(
        Status(Code::kUnsupportedShape, sentence).Context("for " + std::string(name)));
    return none;
  };
  // With half of a cache or a fifth MobileNet takes the same time, with all of one more.
  const int64_t near = processor::L2Floats() / 4;
  if (const int64_t most = MaxFloatsBetween(fused); most <= near) {
    return refuse("What lies between stays near anyway (" + std::to_string(most) + " floats, of " +
                  std::to_string(near) + ").");
  }
  if (const int64_t least = MakeRings(fused, 1).begins.back(); least > MaxRingFloats()) {
    return refuse("The rows for one of the result have " + std::to_string(least) +
                  " floats, more than " + std::to_string(MaxRingFloats()) + ".");
  }
  device::FusedSelection selection;
  selection.steps = static_cast<int>(fused.size());
  selection.selection.recipe =
      std::make_unique<FusedRecipe>(name, std::move(fused), std::move(reads));
  return selection;
}

}  // namespace onnxifi::convolution
