// SPDX-License-Identifier: Apache-2.0
//
// Constant, ConstantOfShape: values out of attributes.

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"

namespace onnxifi::ops {
namespace {

using tensor::Tensor;

template <typename T>
Tensor Vector(ElementType type, const std::vector<T>& values) {
  return Tensor::FromValues<T>(type, {static_cast<int64_t>(values.size())}, values);
}

template <typename T>
Tensor Single(ElementType type, const T& value) {
  return Tensor::FromValues<T>(type, {}, std::span<const T>(&value, 1));
}

Status LowerConstant(Lowering& lowering) {
  using Strings = std::vector<std::string>;
  const graph::Node& node = lowering.node();
  std::optional<Tensor> value;
  if (const Tensor* given = node.FindAttribute<Tensor>("value")) {
    value = *given;
  } else if (const Tensor* sparse = node.FindAttribute<Tensor>("sparse_value")) {
    value = *sparse;  // dense since its import
  } else if (const float* number = node.FindAttribute<float>("value_float")) {
    value = Single(ElementType::kFloat32, *number);
  } else if (const std::vector<float>* numbers = lowering.Floats("value_floats")) {
    value = Vector(ElementType::kFloat32, *numbers);
  } else if (const int64_t* integer = node.FindAttribute<int64_t>("value_int")) {
    value = Single(ElementType::kInt64, *integer);
  } else if (const std::vector<int64_t>* integers = lowering.Ints("value_ints")) {
    value = Vector(ElementType::kInt64, *integers);
  } else if (const std::string* text = node.FindAttribute<std::string>("value_string")) {
    value = Tensor::FromStrings({}, {*text});
  } else if (const Strings* texts = node.FindAttribute<Strings>("value_strings")) {
    value = Tensor::FromStrings({static_cast<int64_t>(texts->size())}, *texts);
  }
  if (!value) {
    return lowering.UnsupportedAttribute("No value attribute is given.");
  }

  lowering.Set(0, lowering.ConstantTensor(*std::move(value)));
  return base::Ok();
}

Status LowerConstantOfShape(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  ONNXIFI_ASSIGN_OR_RETURN(Shape shape, lowering.IntegersOrRuntime(0, lowering.DeclaredRank(0)));
  for (Dim& extent : shape) {
    ONNXIFI_ASSIGN_OR_RETURN(extent, AsExtent(lowering, extent));
  }
  Tensor value = Single(ElementType::kFloat32, 0.0f);
  if (const Tensor* given = lowering.node().FindAttribute<Tensor>("value")) {
    if (given->element_count() != 1) {
      return lowering.InvalidModel("value has " + std::to_string(given->element_count()) +
                                   " elements instead of one.");
    }
    value = given->Reshaped({});
  }

  const Operand element = lowering.ConstantTensor(std::move(value));
  lowering.Set(0, {program::BroadcastTo(element, shape), shape});
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Constant", 25, LowerConstant},
    {"ConstantOfShape", 25, LowerConstantOfShape},
};

}  // namespace

std::span<const Operator> ConstantOperators() { return kOperators; }

}  // namespace onnxifi::ops
