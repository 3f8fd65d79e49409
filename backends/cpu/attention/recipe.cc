// SPDX-License-Identifier: Apache-2.0
//
// Recipe: which kernel does a step is known once its extents are.

#include "backends/cpu/attention/recipe.h"

#include <utility>

#include "backends/core/reference/scratch.h"
#include "backends/cpu/attention/shape.h"
#include "backends/cpu/engine/runtime.h"
#include "backends/cpu/gemm/matrix_vector.h"

namespace onnxifi::attention {
namespace {

using KernelResult = base::Result<std::unique_ptr<device::Kernel>>;

// Of a step whose domain is empty.
class BoundNothing final : public device::BoundKernel {
 public:
  base::Status Run(device::Addresses /*addresses*/) const override { return base::Ok(); }
};

class AttentionKernel final : public device::Kernel {
 public:
  AttentionKernel(std::shared_ptr<const AttentionCode> code, const runtime::Runtimes& runtimes)
      : code_(std::move(code)), runtime_(runtimes.own), engine_(runtimes.engine) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(
      const device::BoundStep& step, device::Addresses /*constants*/) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&] {
      bound = MakeBound(step);
      return base::Ok();
    }));
    return bound;
  }

 private:
  std::unique_ptr<device::BoundKernel> MakeBound(const device::BoundStep& step) const {
    if (tensor::ElementCount(step.domain) == 0) return std::make_unique<BoundNothing>();
    AttentionShape shape(*code_, step);
    // Beyond these, packing keys for all of them costs less than reading keys again.
    if (shape.heads.rows() <= gemm::kMaxVectors) {
      return BindFewRows(code_, step, std::move(shape), runtime_, engine_);
    }
    return BindBlocks(code_, step, std::move(shape), runtime_.pool().thread_count(), engine_);
  }

  const std::shared_ptr<const AttentionCode> code_;  // shared with what it bound
  runtime::Runtime& runtime_;
  engine::Runtime& engine_;
};

class AttentionRecipe final : public runtime::Recipe {
 public:
  explicit AttentionRecipe(const device::Facts& facts) : facts_(facts) {}

  std::string_view implementation() const override { return "attention"; }
  // Queries, keys and values are read as floats.
  bool TakesAnyAddress(int read) const override { return read >= 3; }
  KernelResult Build(const runtime::Runtimes& runtimes) const override {
    std::unique_ptr<device::Kernel> kernel;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&] {
      kernel = std::make_unique<AttentionKernel>(
          std::make_shared<const AttentionCode>(
              AttentionCode::Compile(facts_, runtimes.engine.settings().loops)),
          runtimes);
      return base::Ok();
    }));
    return kernel;
  }

 private:
  const device::Facts facts_;
};

}  // namespace

runtime::RecipeResult SelectAttention(const device::Facts& facts) {
  ONNXIFI_RETURN_IF_ERROR(AttentionCode::Check(facts));
  return std::unique_ptr<const device::Recipe>(std::make_unique<AttentionRecipe>(facts));
}

}  // namespace onnxifi::attention
