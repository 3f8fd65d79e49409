// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml ZipMap, CastMap, DictVectorizer: columns to maps, and maps to one row of their values.

#include <algorithm>
#include <set>
#include <string>

#include "backends/core/ops/host_step.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using tensor::Tensor;
using Strings = std::vector<std::string>;

template <typename T>
Tensor OneElement(ElementType type, T number) {
  return Tensor::FromValues<T>(type, {}, std::span<const T>(&number, 1));
}

// 0, or `text`, as a value of a map. Undefined for types that no map of ONNX has.
Result<Tensor> Zero(const Lowering& lowering, ElementType type, const std::string& text) {
  switch (type) {
    case ElementType::kFloat32:
      return OneElement<float>(type, 0);
    case ElementType::kFloat64:
      return OneElement<double>(type, 0);
    case ElementType::kInt64:
      return OneElement<int64_t>(type, 0);
    case ElementType::kString:
      return Tensor::FromStrings({}, {text});
    default:
      return Status(Code::kUnsupportedDatatype, lowering.node().op_type + ": Values of type " +
                                                    std::string(Name(type)) +
                                                    " are not supported.");
  }
}

// The keys of one of two attributes, of which exactly one is given.
Result<Tensor> ReadKeys(const Lowering& lowering, std::string_view numbers,
                        std::string_view texts) {
  const auto* names = lowering.node().FindAttribute<Strings>(texts);
  const auto* ids = lowering.Ints(numbers);
  const bool has_names = names != nullptr && !names->empty();
  const bool has_ids = ids != nullptr && !ids->empty();
  if (has_names == has_ids) {
    return lowering.InvalidModel("One of the attributes " + std::string(numbers) + " and " +
                                 std::string(texts) + " is required.");
  }
  if (has_names) return Tensor::FromStrings({static_cast<int64_t>(names->size())}, *names);
  return Tensor::FromValues<int64_t>(ElementType::kInt64, {static_cast<int64_t>(ids->size())},
                                     *ids);
}

// The columns whose keys stay: of equal keys the last one.
std::vector<int64_t> LastOfEqualKeys(const Tensor& keys) {
  std::set<std::string> later;
  std::vector<int64_t> columns;
  for (int64_t k = keys.element_count(); k-- > 0;) {
    if (later.insert(program::KeyOf(keys, k)).second) columns.push_back(k);
  }
  std::reverse(columns.begin(), columns.end());
  return columns;
}

Tensor Chosen(const Tensor& keys, const std::vector<int64_t>& columns) {
  const auto count = static_cast<int64_t>(columns.size());
  if (keys.type() == ElementType::kString) {
    Strings texts;
    for (const int64_t column : columns)
      texts.push_back(keys.strings()[static_cast<size_t>(column)]);
    return Tensor::FromStrings({count}, std::move(texts));
  }
  std::vector<int64_t> numbers;
  for (const int64_t column : columns) numbers.push_back(keys.AsInt(column));
  return Tensor::FromValues<int64_t>(ElementType::kInt64, {count}, numbers);
}

Status LowerZipMap(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (x.type() != ElementType::kFloat32) return lowering.UnsupportedType(0);
  if (x.rank() != 1 && x.rank() != 2) {
    return lowering.InvalidModel("Input 0 has " + std::to_string(x.rank()) +
                                 " axes; 1 or 2 are required.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor keys,
                           ReadKeys(lowering, "classlabels_int64s", "classlabels_strings"));
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(x.shape.back(), keys.element_count(),
                                                "The columns of input 0 and the labels"));
  program::MakeMaps maps;
  maps.columns = keys.element_count();
  maps.key_columns = LastOfEqualKeys(keys);
  maps.keys = Chosen(keys, maps.key_columns);
  HostStep step(lowering, std::move(maps));
  step.Read(x);
  lowering.SetNonTensorValue(
      0, step.WriteNonTensorValue(program::ValueType::Sequence(program::ValueType::Map(
             keys.type(), program::ValueType::Tensor(ElementType::kFloat32, 0)))));
  step.Emit();
  return base::Ok();
}

// The type of the values of input 0, a map with keys of `key`.
Result<ElementType> MapInput(const Lowering& lowering, ElementType key) {
  const NonTensorValue* map = lowering.InNonTensorValue(0);
  if (map == nullptr || map->type.kind != program::ValueType::Kind::kMap ||
      map->type.may_be_missing || map->type.element != key || !map->type.inner[0].is_tensor()) {
    return Status(Code::kMismatchingDatatype,
                  lowering.node().op_type + ": Input 0 is no map from " + std::string(Name(key)) +
                      " to numbers or strings.");
  }
  return map->type.inner[0].element;
}

// The values of input 0 for `keys`, or all of them where that is nothing.
Operand ListMap(Lowering& lowering, std::optional<Tensor> keys, Tensor fallback) {
  const ElementType type = fallback.type();
  std::vector<std::optional<Dim>> extents = {Dim(1), std::nullopt};
  if (keys) extents[1] = Dim(keys->element_count());
  HostStep step(lowering, program::ListMap{std::move(keys), std::move(fallback)});
  step.Read(*lowering.InNonTensorValue(0));
  const Operand values = step.WriteTensor(type, extents);
  step.Emit();
  return values;
}

Status LowerDictVectorizer(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(Tensor keys,
                           ReadKeys(lowering, "int64_vocabulary", "string_vocabulary"));
  ONNXIFI_ASSIGN_OR_RETURN(const ElementType type, MapInput(lowering, keys.type()));
  ONNXIFI_ASSIGN_OR_RETURN(Tensor zero, Zero(lowering, type, ""));
  lowering.Set(0, ListMap(lowering, std::move(keys), std::move(zero)));
  return base::Ok();
}

Result<ElementType> CastTarget(const Lowering& lowering) {
  const std::string to = lowering.String("cast_to", "TO_FLOAT");
  if (to == "TO_FLOAT") return ElementType::kFloat32;
  if (to == "TO_INT64") return ElementType::kInt64;
  if (to == "TO_STRING") return ElementType::kString;
  return lowering.InvalidModel("Attribute cast_to is '" + to +
                               "'; one of 'TO_FLOAT', 'TO_INT64' and 'TO_STRING' is required.");
}

// The keys 0, 1, ... of a sparse map; nothing for a dense one.
Result<std::optional<Tensor>> SparseKeys(const Lowering& lowering) {
  const std::string form = lowering.String("map_form", "DENSE");
  if (form == "DENSE") return std::optional<Tensor>();
  if (form != "SPARSE") {
    return lowering.InvalidModel("Attribute map_form is '" + form +
                                 "'; 'DENSE' or 'SPARSE' is required.");
  }
  const int64_t count = lowering.Int("max_map", 1);
  constexpr int64_t kMaxKeys = int64_t{1} << 24;
  if (count < 0 || count > kMaxKeys) {
    return lowering.InvalidModel("Attribute max_map is " + std::to_string(count) +
                                 ", outside [0, " + std::to_string(kMaxKeys) + "].");
  }
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < count; ++k) keys.push_back(k);
  return std::optional(Tensor::FromValues<int64_t>(ElementType::kInt64, {count}, keys));
}

// Text and numbers become each other as in Cast.
Status LowerCastMap(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const ElementType from, MapInput(lowering, ElementType::kInt64));
  ONNXIFI_ASSIGN_OR_RETURN(const ElementType to, CastTarget(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(std::optional<Tensor> keys, SparseKeys(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(Tensor zero, Zero(lowering, from, "0"));
  const Operand values = ListMap(lowering, std::move(keys), std::move(zero));
  if (from == to || (from != ElementType::kString && to != ElementType::kString)) {
    lowering.Set(0, lowering.CastTo(values, to));
    return base::Ok();
  }
  HostStep step(lowering, to == ElementType::kString
                              ? program::HostFunction(program::FormatNumbers())
                              : program::HostFunction(program::ParseNumbers{to}));
  step.Read(values);
  lowering.Set(0, step.WriteTensor(to, {values.shape.begin(), values.shape.end()}));
  step.Emit();
  return base::Ok();
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr Operator kOperators[] = {
    {"CastMap", 1, LowerCastMap, kDomain, InputKinds::kValues},
    {"DictVectorizer", 1, LowerDictVectorizer, kDomain, InputKinds::kValues},
    {"ZipMap", 1, LowerZipMap, kDomain},
};

}  // namespace

std::span<const Operator> MapOperators() { return kOperators; }

}  // namespace onnxifi::ops
