// SPDX-License-Identifier: Apache-2.0
//
// SelectRecurrent: what the kernel takes, and constant weights packed once.

#include "backends/cpu/recurrent/recipe.h"

#include <string>
#include <utility>

#include "backends/cpu/recurrent/recurrence.h"
#include "backends/cpu/recurrent/weights.h"
#include "backends/cpu/runtime/packed_weights.h"

namespace onnxifi::recurrent {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Recurrent;

class Kernel final : public device::Kernel {
 public:
  Kernel(bool has_constant_weights, runtime::Runtime& runtime)
      : has_constant_weights_(has_constant_weights), runtime_(runtime) {}

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                    device::Addresses constants) override {
    runtime::PackedWeights weights;
    if (has_constant_weights_) {
      const Recurrent& recurrent = *step.step->As<Recurrent>();
      const int64_t directions = step.domain[0];
      const int64_t hidden = step.domain[3];
      const device::BoundView& view = step.reads[Recurrent::kWeights];
      const auto pack = [&](float* to) {
        PackWeights(recurrent, directions, hidden, view, constants[view.buffer], runtime_.pool(),
                    to);
        return base::Ok();
      };
      ONNXIFI_ASSIGN_OR_RETURN(
          weights, store_.Find(/*layout=*/0, runtime_.memory(),
                               directions * PackedWeightFloats(recurrent, hidden), pack));
    }
    return BindRecurrence(step, std::move(weights), runtime_);
  }

 private:
  const bool has_constant_weights_;
  runtime::Runtime& runtime_;
  runtime::WeightStore store_;
};

class Recipe final : public runtime::Recipe {
 public:
  explicit Recipe(bool has_constant_weights) : has_constant_weights_(has_constant_weights) {}

  std::string_view implementation() const override { return "recurrent"; }
  bool TakesAnyAddress(int /*read*/) const override { return true; }
  Result<std::unique_ptr<device::Kernel>> Build(const runtime::Runtimes& runtimes) const override {
    return std::unique_ptr<device::Kernel>(
        std::make_unique<Kernel>(has_constant_weights_, runtimes.own));
  }

 private:
  const bool has_constant_weights_;
};

// That vectors lie along the last axis of a view.
Status CheckContiguous(const program::View& view, const char* what) {
  if (!view.guards.empty()) {
    return Status(Code::kUnsupportedShape, std::string(what) + " are padded by their view.");
  }
  if (view.strides.back() == program::Dim(1)) return base::Ok();
  return Status(Code::kUnsupportedShape,
                std::string(what) + " of a row do not lie next to each other.");
}

}  // namespace

runtime::RecipeResult SelectRecurrent(const device::Facts& facts) {
  // Packed weights and their sizes are far from any limit of int64 below this.
  constexpr int64_t kMaxHidden = int64_t{1} << 16;
  const program::Step& step = facts.step;
  const Recurrent& recurrent = *step.As<Recurrent>();
  if (recurrent.type != tensor::ElementType::kFloat32) {
    return Status(
        Code::kUnsupportedDatatype,
        "The recurrence is in " + std::string(tensor::Name(recurrent.type)) + ", not in float32.");
  }
  if (step.domain[3].constant() > kMaxHidden) {
    return Status(Code::kUnsupportedShape,
                  "The hidden size of " + std::to_string(step.domain[3].constant()) +
                      " exceeds the limit of " + std::to_string(kMaxHidden) + ".");
  }
  ONNXIFI_RETURN_IF_ERROR(
      CheckContiguous(step.reads[Recurrent::kProjected], "The projected inputs"));
  if (step.writes[Recurrent::kSequence].buffer != program::kNoBuffer) {
    ONNXIFI_RETURN_IF_ERROR(
        CheckContiguous(step.writes[Recurrent::kSequence], "The hidden states"));
  }
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<Recipe>(facts.IsConstant(step.reads[Recurrent::kWeights])));
}

}  // namespace onnxifi::recurrent
