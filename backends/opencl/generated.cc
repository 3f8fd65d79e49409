// SPDX-License-Identifier: Apache-2.0
//
// Generated: a binding finds the form of its loops, and with it the kernel: source is written once
// per form of a step, numbers once per binding.

#include "backends/opencl/generated.h"

#include <utility>

namespace onnxifi::opencl {
namespace {

using base::Result;
using base::Status;
using codegen::LoopNest;

class BoundGenerated final : public device::BoundKernel {
 public:
  explicit BoundGenerated(Launch launch) : launch_(std::move(launch)) {}
  Status Enqueue(device::Queue& queue, device::Addresses addresses) const override {
    return launch_.Enqueue(queue, addresses);
  }

 private:
  const Launch launch_;
};

class Kernel final : public device::Kernel {
 public:
  Kernel(const device::Facts& facts, const codegen::Capabilities& capabilities, Services& services)
      : program_(facts.program),
        step_(facts.step),
        capabilities_(capabilities),
        services_(services),
        facts_(codegen::FindLoopFacts(program_, step_)) {}

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                    device::Addresses /*constants*/) override {
    const LoopNest loops = codegen::MakeLoopNest(facts_, step);
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const Variant> variant,
                             variants_.Find(services_, loops.form, [&] {
                               return codegen::Generate(program_, step_, loops.form, capabilities_,
                                                        codegen::OpenClDialect());
                             }));
    ONNXIFI_ASSIGN_OR_RETURN(Launch launch, Launch::Create(services_, std::move(variant), loops));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundGenerated>(std::move(launch)));
  }

 private:
  const program::Program& program_;
  const program::Step& step_;
  const codegen::Capabilities capabilities_;
  Services& services_;
  const codegen::LoopFacts facts_;
  Variants variants_;
};

class GeneratedRecipe final : public Recipe {
 public:
  GeneratedRecipe(const device::Facts& facts, const codegen::Capabilities& capabilities)
      : facts_(facts), capabilities_(capabilities) {}
  std::string_view implementation() const override { return "generated"; }
  std::unique_ptr<device::Kernel> Build(Services& services) const override {
    return std::make_unique<Kernel>(facts_, capabilities_, services);
  }

 private:
  const device::Facts facts_;
  const codegen::Capabilities capabilities_;
};

}  // namespace

Result<std::unique_ptr<const Recipe>> SelectGenerated(const device::Facts& facts,
                                                      const codegen::Capabilities& capabilities) {
  ONNXIFI_RETURN_IF_ERROR(codegen::Check(facts.program, facts.step, capabilities));
  return std::unique_ptr<const Recipe>(std::make_unique<GeneratedRecipe>(facts, capabilities));
}

}  // namespace onnxifi::opencl
