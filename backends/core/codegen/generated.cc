// SPDX-License-Identifier: Apache-2.0
//
// Generated: a binding finds the form of its loops, and with it the kernels: source is written once
// per form of a step, numbers once per binding. Where there are several kernels they hand each
// other the device's scratch memory.

#include "backends/core/codegen/generated.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/codegen/loop_nest.h"
#include "backends/core/codegen/scratch.h"

namespace onnxifi::codegen {
namespace {

using base::Result;
using base::Status;

class BoundGenerated final : public device::BoundKernel {
 public:
  explicit BoundGenerated(Services& services) : services_(services) {}

  Status Enqueue(device::Queue& queue, device::Addresses addresses) const override {
    if (starts_.size() == 1) return starts_[0].launch.Enqueue(&queue, addresses);
    const Scratch::Use use(services_.scratch, queue);
    for (const Start& start : starts_) {
      std::array<std::byte*, kScratchPieces> places;
      for (size_t piece = 0; piece < kScratchPieces; ++piece) {
        places[piece] = use.at(offset_bytes_[piece]);
      }
      if (start.swaps_scratch) std::swap(places[0], places[1]);
      ONNXIFI_RETURN_IF_ERROR(start.launch.Enqueue(&queue, addresses, places));
    }
    return base::Ok();
  }
  std::string Detail() const override { return std::string(detail_); }

 private:
  friend class Kernel;
  struct Start {
    KernelLaunch launch;
    bool swaps_scratch;
  };

  Services& services_;
  std::vector<Start> starts_;
  std::array<int64_t, kScratchPieces> offset_bytes_ = {};  // of each piece of working memory
  std::string_view detail_;
};

class Kernel final : public device::Kernel {
 public:
  Kernel(const device::Facts& facts, const Capabilities& capabilities, Services& services)
      : program_(facts.program),
        step_(facts.step),
        capabilities_(capabilities),
        services_(services),
        facts_(FindLoopFacts(program_, step_)) {}

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                    device::Addresses /*constants*/) override {
    const KernelSequence sequence = MakeKernelSequence(facts_, step, capabilities_);
    auto bound = std::make_unique<BoundGenerated>(services_);
    bound->detail_ = sequence.detail;
    for (const KernelSequence::Launch& part : sequence.launches) {
      ONNXIFI_ASSIGN_OR_RETURN(
          std::shared_ptr<const KernelVariant> variant,
          variants_[static_cast<size_t>(part.kernel)].Find(services_, part.loops.form, [&] {
            return Generate(program_, step_, part.kernel, part.loops.form, capabilities_,
                            services_.driver.dialect(), services_.driver.product_library());
          }));
      ONNXIFI_ASSIGN_OR_RETURN(KernelLaunch launch,
                               KernelLaunch::Create(services_, std::move(variant), part.loops));
      bound->starts_.push_back({std::move(launch), part.swaps_scratch});
    }
    int64_t scratch_bytes = 0;
    for (size_t piece = 0; piece < kScratchPieces; ++piece) {
      bound->offset_bytes_[piece] = scratch_bytes;
      scratch_bytes += Scratch::Aligned(sequence.scratch_bytes[piece]);
    }
    ONNXIFI_RETURN_IF_ERROR(services_.scratch.Reserve(scratch_bytes));
    return std::unique_ptr<device::BoundKernel>(std::move(bound));
  }

 private:
  const program::Program& program_;
  const program::Step& step_;
  const Capabilities capabilities_;
  Services& services_;
  const LoopFacts facts_;
  std::array<KernelVariants, kMaxKernels> variants_;
};

class GeneratedRecipe final : public Recipe {
 public:
  GeneratedRecipe(const device::Facts& facts, const Capabilities& capabilities)
      : facts_(facts), capabilities_(capabilities) {}
  std::string_view implementation() const override { return "generated"; }
  std::unique_ptr<device::Kernel> Build(Services& services) const override {
    return std::make_unique<Kernel>(facts_, capabilities_, services);
  }

 private:
  const device::Facts facts_;
  const Capabilities capabilities_;
};

}  // namespace

Result<std::unique_ptr<const Recipe>> SelectGenerated(const device::Facts& facts,
                                                      const Capabilities& capabilities) {
  ONNXIFI_RETURN_IF_ERROR(Check(facts.program, facts.step, capabilities));
  return std::unique_ptr<const Recipe>(std::make_unique<GeneratedRecipe>(facts, capabilities));
}

}  // namespace onnxifi::codegen
