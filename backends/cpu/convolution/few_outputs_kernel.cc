// SPDX-License-Identifier: Apache-2.0
//
// SelectFewOutputs and its kernel: a convolution with fewer outputs than a vector has lanes, as
// last layers have, along any number of axes. Vectors go along the depth: each result is the
// product of a window and the weights of its output. Windows are gathered, unless they are pixels
// that lie where they can be read.

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/used_taps.h"
#include "backends/cpu/gemm/matrix_vector.h"
#include "backends/cpu/gemm/step_epilogue.h"
#include "backends/cpu/gemm/vector_matrix.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/runtime/packed_weights.h"
#include "backends/cpu/runtime/plain_operand.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;
using program::Contract;

// Outputs, channels and taps of each row of packed weights, in the order of Windows.
void PackOutputs(const float* weights, const device::BoundView& view, const UsedTaps& used,
                 int64_t outputs, int64_t channels, float* packed) {
  for (int64_t output = 0; output < outputs; ++output) {
    for (int64_t tap = 0; tap < used.total(); ++tap) {
      const float* first = weights + output * view.strides[0];
      int64_t rest = tap;
      for (size_t axis = used.count.size(); axis-- > 0;) {
        first += (used.first[axis] + rest % used.count[axis]) * view.strides[kFirstSpatial + axis];
        rest /= used.count[axis];
      }
      for (int64_t c = 0; c < channels; ++c) *packed++ = first[c * view.strides[1]];
    }
  }
}

class BoundFewOutputs final : public device::BoundKernel {
 public:
  BoundFewOutputs(const device::BoundStep& step, const gemm::StepEpilogue& epilogue,
                  const UsedTaps& used, runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        weights_(std::move(weights)),
        epilogue_(epilogue, step),
        source_(step.reads[0]),
        result_(step.writes[0]),
        batch_(step.domain[0]),
        outputs_(step.domain[1]),
        windows_(WindowsOf(step, used)),
        depth_(windows_.depth()) {
    const WindowAxis& x = windows_.axes[2];
    const bool has_dense_channels = windows_.channel_stride == 1 || windows_.channels == 1;
    // One tap, and windows that lie one after the other in memory.
    const auto follows = [&](const WindowAxis& axis, int64_t distance) {
      return axis.out == 1 || axis.source_stride == distance;
    };
    const WindowAxis& y = windows_.axes[1];
    is_direct_ = used.total() == 1 && has_dense_channels && follows(y, x.source_stride * x.out) &&
                 follows(windows_.axes[0], x.source_stride * x.out * y.out) &&
                 std::ranges::all_of(windows_.axes, [](const WindowAxis& axis) {
                   return axis.stride == 1 && axis.pad == 0 && axis.in == axis.out;
                 });
    // The windows of a chunk take half of the L2 cache.
    chunk_ =
        std::clamp<int64_t>(processor::L2Floats() / 2 / std::max<int64_t>(1, depth_), 16, 1024);
    chunk_ = std::min(chunk_, std::max<int64_t>(1, windows_.count()));
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    const int64_t count = windows_.count();
    if (batch_ == 0 || count == 0) return base::Ok();
    const int64_t chunks = (count + chunk_ - 1) / chunk_;
    const int64_t part_floats = (is_direct_ ? 0 : chunk_ * depth_) + (outputs_ + 1) * chunk_;
    threads::ThreadPool& pool = runtime_.pool();
    const int64_t all = batch_ * chunks;
    const int64_t parts = pool.CountParts(all);
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(pool.ThreadsOf(parts) * part_floats *
                                                         static_cast<int64_t>(sizeof(float))));
    auto* const scratch = reinterpret_cast<float*>(lease.data());
    const gemm::Epilogue epilogue = epilogue_.At(addresses);
    pool.ForEachPart(parts, [&](int64_t part, int thread) {
      for (int64_t chunk = all * part / parts; chunk < all * (part + 1) / parts; ++chunk) {
        const int64_t window = chunk % chunks * chunk_;
        RunChunk(addresses, epilogue, chunk / chunks, window, std::min(chunk_, count - window),
                 scratch + thread * part_floats);
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return "chunks of " + std::to_string(chunk_) + ", depth " + std::to_string(depth_) + ", " +
           processor::VectorName();
  }

 private:
  void RunChunk(device::Addresses addresses, const gemm::Epilogue& epilogue, int64_t image,
                int64_t first, int64_t count, float* scratch) const {
    const float* const source = gemm::FloatsAt(addresses, source_) + image * source_.strides[0];
    gemm::MatrixVector product = {};
    if (is_direct_) {
      product.w_stride = windows_.axes[2].source_stride;
      product.w = source + first * product.w_stride;
    } else {
      windows_.Gather(source, first, count, 0, depth_, scratch);
      product.w_stride = depth_;
      product.w = scratch;
      scratch += chunk_ * depth_;
    }
    product.x = runtime::Floats(weights_);
    product.x_stride = depth_;
    product.y = scratch;
    product.y_stride = chunk_;
    product.vectors = outputs_;
    product.depth = depth_;
    gemm::MultiplyVectors(product, {}, 0, count);
    float* const result = gemm::FloatsAt(addresses, result_) + image * result_.strides[0] +
                          first * result_.strides.back();
    const bool is_planar = result_.strides.back() == 1;
    float* const bias = scratch + outputs_ * chunk_;
    for (int64_t output = 0; output < outputs_; ++output) {
      gemm::Epilogue own = epilogue;
      if (epilogue.bias != nullptr) {
        std::fill_n(bias, count, epilogue.bias[output]);
        own.bias = bias;
      }
      float* const sums = scratch + output * chunk_;
      float* const to = result + output * result_.strides[1];
      gemm::FinishSums({sums, chunk_, 0, 1}, own, 1, 0, count, is_planar ? to : sums, chunk_);
      if (is_planar) continue;
      for (int64_t k = 0; k < count; ++k) to[k * result_.strides.back()] = sums[k];
    }
  }

  runtime::Runtime& runtime_;
  const runtime::PackedWeights weights_;
  const gemm::BoundEpilogue epilogue_;
  const device::BoundView source_, result_;
  const int64_t batch_, outputs_;
  const Windows windows_;
  const int64_t depth_;
  int64_t chunk_ = 1;
  bool is_direct_ = false;  // windows are pixels, read where they lie
};

class FewOutputsKernel final : public device::Kernel {
 public:
  FewOutputsKernel(const gemm::StepEpilogue& epilogue, runtime::Runtime& runtime)
      : epilogue_(epilogue), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const device::BoundView& view = step.reads[1];
    const UsedTaps used = FindUsedTaps(step);
    const int64_t channels = step.Number(step.step->As<Contract>()->inner[0]);
    const int64_t outputs = step.domain[1];
    const auto pack = [&](const float* weights, float* packed) {
      PackOutputs(weights, view, used, outputs, channels, packed);
    };
    ONNXIFI_ASSIGN_OR_RETURN(
        runtime::PackedWeights packed,
        runtime::FindPacked(step, 1, constants, runtime_.memory(), store_, layouts_.NumberOf(used),
                            outputs * used.total() * channels, pack));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundFewOutputs>(step, epilogue_, used, std::move(packed), runtime_));
  }

 private:
  const gemm::StepEpilogue epilogue_;
  runtime::Runtime& runtime_;
  runtime::WeightStore store_;
  TapLayouts layouts_;
};

}  // namespace

runtime::RecipeResult SelectFewOutputs(const device::Facts& facts) {
  const program::Step& step = facts.step;
  ONNXIFI_RETURN_IF_ERROR(CheckGathered(facts));
  const Contract& contract = *step.As<Contract>();
  constexpr int64_t kMaxOutputs = 7;
  constexpr int64_t kMinDepth = 32;
  const program::Dim& outputs = step.domain[1];
  if (contract.group != 1 || outputs.constant() > kMaxOutputs) {
    return Status(Code::kUnsupportedShape,
                  "The convolution has " + std::to_string(outputs.constant()) + " outputs in " +
                      std::to_string(contract.group) + " groups; the kernel has at most " +
                      std::to_string(kMaxOutputs) + " in one.");
  }
  int64_t depth = 1;
  for (const program::Dim& extent : contract.inner) depth *= extent.constant();
  if (depth < kMinDepth) {
    return Status(Code::kUnsupportedShape, "The depth is " + std::to_string(depth) + ", below " +
                                               std::to_string(kMinDepth) + ".");
  }
  // Rows of pixels are turned while they are gathered, for one output or with one tap in less time
  // than oneDNN takes.
  const auto& strides = step.reads[0].strides;
  const bool has_dense_channels =
      strides[1] == program::Dim(1) || contract.inner[0] == program::Dim(1);
  const bool is_turned = strides.back() == program::Dim(1) &&
                         (outputs == program::Dim(1) || depth == contract.inner[0].constant());
  if (!has_dense_channels && !is_turned) {
    return Status(
        Code::kUnsupportedShape,
        "The channels of the input do not lie side by side, and there are several outputs "
        "and taps.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const gemm::StepEpilogue epilogue,
                           gemm::SelectEpilogue(facts, /*channel_axis=*/1));
  if (epilogue.addend >= 0) {
    return Status(Code::kUnsupportedAttribute, "A tensor is added to the result.");
  }
  ONNXIFI_RETURN_IF_ERROR(CheckEvenPositions(step.writes[0], step.domain, "result"));
  return MakePackingRecipe<FewOutputsKernel>("few outputs", epilogue);
}

}  // namespace onnxifi::convolution
