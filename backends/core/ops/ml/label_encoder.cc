// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml LabelEncoder, CategoryMapper: a table from keys to values, and a value for the rest.
// The keys are sorted, and each element halves them until one is left; strings by their numbers.

#include <algorithm>
#include <cmath>
#include <map>

#include "backends/core/ops/index/find_key.h"
#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using tensor::Tensor;
using Strings = std::vector<std::string>;

Tensor OneString(std::string text) { return Tensor::FromStrings({}, {std::move(text)}); }

template <typename T>
Tensor OneNumber(ElementType type, T number) {
  return Tensor::FromValues<T>(type, {}, std::span<const T>(&number, 1));
}

template <typename T>
Tensor List(ElementType type, const std::vector<T>& numbers) {
  return Tensor::FromValues<T>(type, {static_cast<int64_t>(numbers.size())}, numbers);
}

Tensor List(const Strings& texts) {
  return Tensor::FromStrings({static_cast<int64_t>(texts.size())}, texts);
}

// The list `stem` + one of "_tensor", "s_strings" and so on, of which exactly one is given.
Result<Tensor> GivenList(const Lowering& lowering, const std::string& stem) {
  std::vector<Tensor> given;
  if (const Tensor* tensor = lowering.node().FindAttribute<Tensor>(stem + "_tensor")) {
    given.push_back(*tensor);
  }
  if (const auto* texts = lowering.node().FindAttribute<Strings>(stem + "_strings")) {
    given.push_back(List(*texts));
  }
  if (const auto* numbers = lowering.Ints(stem + "_int64s")) {
    given.push_back(List(ElementType::kInt64, *numbers));
  }
  if (const auto* numbers = lowering.Floats(stem + "_floats")) {
    given.push_back(List(ElementType::kFloat32, *numbers));
  }
  if (given.size() != 1) {
    return lowering.InvalidModel(std::to_string(given.size()) + " attributes " + stem +
                                 "_... are given; one is required.");
  }
  if (given[0].rank() != 1) {
    return lowering.InvalidModel("Attribute " + stem + "_tensor has " +
                                 std::to_string(given[0].rank()) + " axes; one is required.");
  }
  return given[0];
}

Result<Tensor> GivenFallback(const Lowering& lowering, ElementType type) {
  if (const Tensor* tensor = lowering.node().FindAttribute<Tensor>("default_tensor")) {
    if (tensor->type() != type || tensor->element_count() != 1) {
      return lowering.InvalidModel("Attribute default_tensor has " +
                                   std::to_string(tensor->element_count()) + " elements of " +
                                   std::string(Name(tensor->type())) + "; one of " +
                                   std::string(Name(type)) + " is required.");
    }
    return *tensor;
  }
  switch (type) {
    case ElementType::kString:
      return OneString(lowering.String("default_string", "_Unused"));
    case ElementType::kInt64:
      return OneNumber<int64_t>(type, lowering.Int("default_int64", -1));
    case ElementType::kFloat32:
      return OneNumber<float>(type, lowering.Float("default_float", -0.0F));
    // Those that only tensors can give, for which the model should have given the default too.
    case ElementType::kFloat64:
      return OneNumber<double>(type, -0.0);
    case ElementType::kInt32:
      return OneNumber<int32_t>(type, -1);
    case ElementType::kInt16:
      return OneNumber<int16_t>(type, -1);
    default:
      return Status(Code::kUnsupportedDatatype, lowering.node().op_type + ": Values of type " +
                                                    std::string(Name(type)) +
                                                    " are not supported.");
  }
}

// The keys in ascending order, each once, as numbers that compare like elements of the input.
template <typename T>
struct SortedKeys {
  std::vector<T> keys;
  std::vector<int64_t> positions;  // of the values
  int64_t position_of_nan = -1;
};

// Of equal keys the last one counts.
template <typename T, typename KeyAt>
SortedKeys<T> Sort(int64_t count, KeyAt&& key_at) {
  SortedKeys<T> sorted;
  std::map<T, int64_t> positions;
  for (int64_t k = 0; k < count; ++k) {
    const T key = key_at(k);
    if (key != key) {
      sorted.position_of_nan = k;
    } else {
      positions[key] = k;
    }
  }
  for (const auto& [key, position] : positions) {
    sorted.keys.push_back(key);
    sorted.positions.push_back(position);
  }
  return sorted;
}

// The position of the value of an element, or that of the fallback, `count`.
template <typename T>
Expr FindPosition(Lowering& lowering, StepBuilder& map, Expr element, ElementType type,
                  SortedKeys<T> sorted, int64_t count) {
  const auto number = [&](int64_t value) {
    return IntConstant(map.exprs(), ElementType::kInt64, value);
  };
  Expr position = number(count);
  if (!sorted.keys.empty()) {
    const FoundKey key = FindKey<T>(lowering, map, element, type, std::move(sorted.keys));
    const Expr found = map.ReadAtUnchecked(
        lowering.ConstantTensor(List(ElementType::kInt64, sorted.positions)), {key.at});
    position = Select(key.is_there, found, position);
  }
  if (sorted.position_of_nan >= 0) {
    position = Select(Unary(ExprOp::kIsNan, element), number(sorted.position_of_nan), position);
  }
  return position;
}

Expr FindPosition(Lowering& lowering, StepBuilder& map, const Operand& x, const Tensor& keys) {
  const int64_t count = keys.element_count();
  const Expr element = map.Read(x);
  if (keys.type() == ElementType::kFloat32) {
    return FindPosition(
        lowering, map, element, keys.type(),
        Sort<float>(count, [&](int64_t k) { return static_cast<float>(keys.AsDouble(k)); }), count);
  }
  if (keys.type() == ElementType::kFloat64) {
    return FindPosition(lowering, map, element, keys.type(),
                        Sort<double>(count, [&](int64_t k) { return keys.AsDouble(k); }), count);
  }
  // Equal strings have equal numbers.
  const auto number_at = [&](int64_t k) {
    if (keys.type() != ElementType::kString) return keys.AsInt(k);
    return static_cast<int64_t>(
        lowering.program().strings->NumberOf(keys.strings()[static_cast<size_t>(k)]));
  };
  return FindPosition(lowering, map, Cast(element, ElementType::kInt64), ElementType::kInt64,
                      Sort<int64_t>(count, number_at), count);
}

// `values` with the fallback behind them.
Tensor WithFallback(const Tensor& values, const Tensor& fallback) {
  const int64_t count = values.element_count();
  if (values.type() == ElementType::kString) {
    Strings texts = values.strings();
    texts.push_back(fallback.strings()[0]);
    return List(texts);
  }
  std::vector<std::byte> bytes(values.bytes().begin(), values.bytes().end());
  bytes.insert(bytes.end(), fallback.bytes().begin(), fallback.bytes().end());
  return Tensor::FromBytes(values.type(), {count + 1}, bytes);
}

Status LowerLookUp(Lowering& lowering, const Tensor& keys, const Tensor& values,
                   const Tensor& fallback) {
  const Operand& x = lowering.In(0);
  if (x.type() != keys.type()) {
    return Status(Code::kMismatchingDatatype, lowering.node().op_type + ": Input 0 is of " +
                                                  std::string(Name(x.type())) + ", the keys are " +
                                                  std::string(Name(keys.type())) + ".");
  }
  const bool is_known = x.type() == ElementType::kString || x.type() == ElementType::kFloat32 ||
                        x.type() == ElementType::kFloat64 || tensor::IsInteger(x.type());
  if (!is_known) return lowering.UnsupportedType(0);
  if (keys.element_count() != values.element_count()) {
    return lowering.InvalidModel("There are " + std::to_string(keys.element_count()) +
                                 " keys for " + std::to_string(values.element_count()) +
                                 " values.");
  }
  StepBuilder map(lowering, x.shape);
  const Expr position = FindPosition(lowering, map, x, keys);
  const Operand table = lowering.ConstantTensor(WithFallback(values, fallback));
  lowering.Set(0, map.WriteMap(map.ReadAtUnchecked(table, {position}), values.type()));
  return base::Ok();
}

// Strings to their numbers in a list, or numbers to their strings.
Status LowerClasses(Lowering& lowering, const Strings& texts, const std::vector<int64_t>& numbers) {
  if (lowering.In(0).type() == ElementType::kString) {
    return LowerLookUp(lowering, List(texts), List(ElementType::kInt64, numbers),
                       OneNumber<int64_t>(ElementType::kInt64, lowering.Int("default_int64", -1)));
  }
  return LowerLookUp(lowering, List(ElementType::kInt64, numbers), List(texts),
                     OneString(lowering.String("default_string", "_Unused")));
}

Status LowerLabelEncoder(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  if (lowering.version() == 1) {
    const auto* classes = lowering.node().FindAttribute<Strings>("classes_strings");
    if (classes == nullptr) {
      return lowering.InvalidModel("The attribute classes_strings is missing.");
    }
    std::vector<int64_t> numbers;
    for (size_t k = 0; k < classes->size(); ++k) numbers.push_back(static_cast<int64_t>(k));
    return LowerClasses(lowering, *classes, numbers);
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor keys, GivenList(lowering, "keys"));
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor values, GivenList(lowering, "values"));
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor fallback, GivenFallback(lowering, values.type()));
  return LowerLookUp(lowering, keys, values, fallback);
}

Status LowerCategoryMapper(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const auto* texts = lowering.node().FindAttribute<Strings>("cats_strings");
  const auto* numbers = lowering.Ints("cats_int64s");
  if (texts == nullptr || numbers == nullptr || texts->size() != numbers->size()) {
    return lowering.InvalidModel(
        "Attributes cats_strings and cats_int64s must be given with equal lengths.");
  }
  return LowerClasses(lowering, *texts, *numbers);
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr Operator kOperators[] = {
    {"CategoryMapper", 1, LowerCategoryMapper, kDomain, InputKinds::kStrings},
    {"LabelEncoder", 4, LowerLabelEncoder, kDomain, InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> LabelEncoderOperators() { return kOperators; }

}  // namespace onnxifi::ops
