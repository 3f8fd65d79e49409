// SPDX-License-Identifier: Apache-2.0
//
// SelectRanking: the predicate, and the kernels' makers.

#include "backends/cpu/ranking/ranking.h"

#include <memory>
#include <string>

#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/geometry.h"
#include "backends/cpu/ranking/sort_key.h"
#include "backends/cpu/ranking/suppress.h"
#include "backends/cpu/ranking/top_k.h"

namespace onnxifi::ranking {
namespace {

using base::Code;
using base::Status;
using program::Index;

template <std::unique_ptr<device::BoundKernel> (*bind)(const device::BoundStep&, engine::Runtime&)>
class Kernel final : public device::Kernel {
 public:
  explicit Kernel(engine::Runtime& runtime) : runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&] {
      bound = bind(step, runtime_);
      return base::Ok();
    }));
    return bound;
  }

 private:
  engine::Runtime& runtime_;
};

template <std::unique_ptr<device::BoundKernel> (*bind)(const device::BoundStep&, engine::Runtime&)>
std::unique_ptr<device::Kernel> Build(const device::Facts&, engine::Runtime& runtime) {
  return std::make_unique<Kernel<bind>>(runtime);
}

runtime::RecipeResult MakeRecipe(std::string_view name, const device::Facts& facts,
                                 engine::Recipe::Builder build) {
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<engine::Recipe>(name, facts, build));
}

}  // namespace

runtime::RecipeResult SelectRanking(const device::Facts& facts) {
  const program::Step& step = facts.step;
  const Index* index = step.As<Index>();
  if (index == nullptr ||
      (index->kind != Index::Kind::kTopK && index->kind != Index::Kind::kSuppress)) {
    return Status(Code::kUnsupportedOperator, "The step orders no elements.");
  }
  if (step.domain.empty() || step.domain.size() > engine::kMaxAxes) {
    return Status(Code::kUnsupportedShape, "The step has " + std::to_string(step.domain.size()) +
                                               " axes, not 1 to " +
                                               std::to_string(engine::kMaxAxes) + ".");
  }
  if (index->kind == Index::Kind::kSuppress) {
    return MakeRecipe("suppression of boxes", facts, Build<BindSuppress>);
  }
  const tensor::ElementType type = step.reads[0].type;
  if (!HasSortKey(type)) {
    return Status(
        Code::kUnsupportedDatatype,
        "Elements of type " + std::string(tensor::Name(type)) + " have no keys to sort by.");
  }
  return MakeRecipe("sorted keys", facts, Build<BindTopK>);
}

}  // namespace onnxifi::ranking
