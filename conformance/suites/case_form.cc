// SPDX-License-Identifier: Apache-2.0
//
// CaseForm: one function per kind of change.

#include "conformance/suites/case_form.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/onnx_file/model_inputs.h"
#include "conformance/suites/data_set.h"

namespace onnxifi::suites {
namespace {

using cases::Variant;
using onnx_file::DenseTensor;
using onnx_file::ElementType;
using onnx_file::FileValue;
using onnx_file::ModelOutline;

CaseForm Obstacle(std::string sentence) {
  CaseForm form;
  form.obstacle = std::move(sentence);
  return form;
}

std::vector<std::byte> ToBytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Which inputs are weights: all but the first, or the only one; `with_first` all.
base::Result<CaseForm> MakeWeights(Variant variant, std::span<const std::byte> model,
                                   const ModelOutline& outline, std::span<const FileValue> inputs) {
  if (inputs.empty()) return Obstacle("The case has no input.");
  const bool with_first = variant == Variant::kConstants || inputs.size() == 1;
  CaseForm form;
  for (size_t index = 0; index < inputs.size(); ++index) {
    // Only descriptors cannot carry strings.
    const bool can_be_weight = variant == Variant::kDescriptors
                                   ? CanCross(outline.inputs[index])
                                   : outline.inputs[index].kind == onnx_file::ValueKind::kTensor;
    if (can_be_weight && (index != 0 || with_first)) {
      form.weights.push_back(inputs[index].tensor);
    } else {
      form.inputs.push_back(inputs[index]);
    }
  }
  if (form.weights.empty()) return Obstacle("No input of the case can be a weight.");
  if (variant == Variant::kConstants && !form.inputs.empty()) {
    return Obstacle("An input of the case is no tensor and cannot be an initializer.");
  }
  // Extents that a model declares of its outputs may be those of a traced input.
  ONNXIFI_ASSIGN_OR_RETURN(const std::string open, onnx_file::ChangeExtents(model, {}));
  if (variant == Variant::kDescriptors) {
    form.model = ToBytes(open);
    return form;
  }
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::string made,
      onnx_file::MakeInitializers(std::as_bytes(std::span(open)), form.weights));
  form.model = ToBytes(made);
  form.weights.clear();
  return form;
}

base::Result<CaseForm> MakeSymbols(std::span<const std::byte> model, const ModelOutline& outline,
                                   std::span<const FileValue> inputs) {
  onnx_file::ExtentsByName extents;
  bool is_changed = false;
  for (const onnx_file::ValueOutline& input : outline.inputs) {
    if (input.kind != onnx_file::ValueKind::kTensor || !input.shape) continue;
    // A list of extents, axes or pads: its length is a rank, which has to be known.
    const bool is_list = input.shape->size() == 1 &&
                         (input.type == ElementType::kInt64 || input.type == ElementType::kInt32);
    if (is_list) continue;
    std::vector<onnx_file::Dimension>& symbols = extents[input.name];
    for (size_t axis = 0; axis < input.shape->size(); ++axis) {
      symbols.emplace_back(fmt::format("{}_{}", input.name, axis));
      is_changed = true;
    }
  }
  if (!is_changed)
    return Obstacle("No input of the case is a tensor with an axis, lists left out.");
  CaseForm form;
  ONNXIFI_ASSIGN_OR_RETURN(const std::string made, onnx_file::ChangeExtents(model, extents));
  form.model = ToBytes(made);
  form.inputs.assign(inputs.begin(), inputs.end());
  return form;
}

void Poison(FileValue& value) {
  const bool is_float =
      value.tensor.type == ElementType::kFloat32 || value.tensor.type == ElementType::kFloat64 ||
      value.tensor.type == ElementType::kFloat16 || value.tensor.type == ElementType::kBfloat16;
  // Ones alone are NaN in all of them.
  if (is_float) std::ranges::fill(value.tensor.bytes, std::byte{0xFF});
  for (FileValue& element : value.elements) Poison(element);
}

}  // namespace

base::Result<CaseForm> MakeForm(Variant variant, std::span<const std::byte> model,
                                const ModelOutline& outline, std::span<const FileValue> inputs) {
  switch (variant) {
    case Variant::kInitializers:
    case Variant::kConstants:
    case Variant::kDescriptors:
      return MakeWeights(variant, model, outline, inputs);
    case Variant::kSymbols:
      return MakeSymbols(model, outline, inputs);
    case Variant::kPlain:
    case Variant::kBounds:
    case Variant::kRerun:
    case Variant::kTiled:
    case Variant::kCallers:
      break;
  }
  CaseForm form;
  form.model.assign(model.begin(), model.end());
  form.inputs.assign(inputs.begin(), inputs.end());
  return form;
}

std::vector<FileValue> PoisonFloats(std::vector<FileValue> inputs) {
  for (FileValue& input : inputs) Poison(input);
  return inputs;
}

}  // namespace onnxifi::suites
