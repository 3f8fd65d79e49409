// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml OneHotEncoder: each element compared with all categories, along a new last axis.

#include <algorithm>
#include <set>
#include <string>

#include "backends/core/ops/ml/rows.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using tensor::Tensor;

// Of equal categories the last one counts: 1 for those that count.
template <typename T>
std::vector<uint8_t> CountedCategories(const std::vector<T>& categories) {
  std::vector<uint8_t> counts(categories.size(), 0);
  std::set<T> later;
  for (size_t k = categories.size(); k-- > 0;) counts[k] = later.insert(categories[k]).second;
  return counts;
}

struct Categories {
  Tensor list;
  std::vector<uint8_t> counts;
};

// Strings are looked up among strings, numbers, made integers, among integers.
Result<Categories> ReadCategories(const Lowering& lowering, bool is_text) {
  const std::string name = is_text ? "cats_strings" : "cats_int64s";
  if (is_text) {
    const auto* texts = lowering.node().FindAttribute<std::vector<std::string>>(name);
    if (texts != nullptr && !texts->empty()) {
      return Categories{Tensor::FromStrings({static_cast<int64_t>(texts->size())}, *texts),
                        CountedCategories(*texts)};
    }
  } else if (const auto* numbers = lowering.Ints(name); numbers != nullptr && !numbers->empty()) {
    return Categories{Tensor::FromValues<int64_t>(
                          ElementType::kInt64, {static_cast<int64_t>(numbers->size())}, *numbers),
                      CountedCategories(*numbers)};
  }
  return lowering.InvalidModel("The attribute " + name + " is missing, and input 0 is of " +
                               std::string(Name(lowering.In(0).type())) + ".");
}

// Every element has one category: as many ones as elements.
Status RequireKnownCategories(Lowering& lowering, const Operand& encoded, const Shape& elements) {
  const ReductionGeometry reduced = ReduceAllAxes(encoded);
  StepBuilder reduce(lowering, reduced.data.shape);
  program::Reduction reduction;
  const Expr count =
      AddSum(reduction, Cast(reduce.ReadView(reduced.data.view), ElementType::kInt64));
  const Operand ones = WriteReduction(lowering, reduce, reduced, std::move(reduction),
                                      {{count, ElementType::kInt64}})[0];
  const Dim known = lowering.ReadAtRunTime(lowering.Reshaped(ones, {Dim(1)}), 1, 0).front();
  const Dim all = tensor::Product(elements);
  return lowering.Require(Equal(known, all), Code::kMismatchingShape,
                          "An element has an unknown category, and the attribute zeros is 0; "
                          "elements with known ones and all elements:",
                          {known, all});
}

Status LowerOneHotEncoder(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  const bool is_text = x.type() == ElementType::kString;
  if (!is_text && !IsFeatureType(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_ASSIGN_OR_RETURN(const Categories categories, ReadCategories(lowering, is_text));
  const int64_t count = categories.list.element_count();
  Shape shape = x.shape;
  shape.emplace_back(count);

  StepBuilder map(lowering, shape);
  Expr element = map.Read(program::InsertAxis(x, x.rank()));
  // Equal strings have equal numbers.
  if (!is_text) element = Cast(element, ElementType::kInt64);
  Expr is_hot = element == map.Read(lowering.ConstantTensor(categories.list));
  if (std::find(categories.counts.begin(), categories.counts.end(), 0) != categories.counts.end()) {
    is_hot = is_hot && map.Read(lowering.ConstantTensor(Tensor::FromValues<uint8_t>(
                           ElementType::kBool, {count}, categories.counts)));
  }
  const Operand encoded = map.WriteMap(is_hot, ElementType::kFloat32);
  if (lowering.Int("zeros", 1) == 0) {
    ONNXIFI_RETURN_IF_ERROR(RequireKnownCategories(lowering, encoded, x.shape));
  }
  lowering.Set(0, encoded);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"OneHotEncoder", 1, LowerOneHotEncoder, "ai.onnx.ml", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> OneHotEncoderOperators() { return kOperators; }

}  // namespace onnxifi::ops
