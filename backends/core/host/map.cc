// SPDX-License-Identifier: Apache-2.0
//
// Maps.

#include "backends/core/host/map.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>

namespace onnxifi::host {
namespace {

using base::Code;
using base::Result;
using base::Status;
using tensor::ElementType;
using tensor::Tensor;
using tensor::Value;
using tensor::ValueRef;

// The positions of a map's entries by ascending key.
std::vector<int64_t> Ascending(const Tensor& keys) {
  std::vector<int64_t> order(static_cast<size_t>(keys.element_count()));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    if (keys.type() != ElementType::kString) return keys.AsInt(a) < keys.AsInt(b);
    return keys.strings()[static_cast<size_t>(a)] < keys.strings()[static_cast<size_t>(b)];
  });
  return order;
}

// The positions of the entries with `keys`; -1 for those that the map lacks.
std::vector<int64_t> Found(const Tensor& map_keys, const Tensor& keys) {
  std::unordered_map<std::string, int64_t> positions;
  for (int64_t k = 0; k < map_keys.element_count(); ++k) {
    positions.emplace(program::KeyOf(map_keys, k), k);
  }
  std::vector<int64_t> found;
  for (int64_t k = 0; k < keys.element_count(); ++k) {
    const auto entry = positions.find(program::KeyOf(keys, k));
    found.push_back(entry == positions.end() ? -1 : entry->second);
  }
  return found;
}

Result<const Value*> MapInput(Inputs inputs, const program::ListMap& attributes) {
  if (!Has(inputs, 0) || inputs[0]->kind != Value::Kind::kMap) {
    return WrongInput(inputs, 0, "a map");
  }
  const Value& map = *inputs[0];
  if (attributes.keys && map.tensor.type() != attributes.keys->type()) {
    return Status(Code::kMismatchingDatatype,
                  "The keys of the map are of " + std::string(Name(map.tensor.type())) + "; " +
                      std::string(Name(attributes.keys->type())) + " is required.");
  }
  for (const ValueRef& value : map.elements()) {
    if (value->is_tensor() && value->tensor.type() == attributes.fallback.type() &&
        value->tensor.element_count() == 1) {
      continue;
    }
    return Status(Code::kMismatchingDatatype,
                  "A value of the map is " + tensor::Describe(*value) + "; one element of " +
                      std::string(Name(attributes.fallback.type())) + " is required.");
  }
  return &map;
}

}  // namespace

Outputs Run(const program::MakeMaps& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, TensorInput(inputs, 0));
  if (x->type() != ElementType::kFloat32 || x->rank() < 1 || x->rank() > 2 ||
      x->extents().back() != attributes.columns) {
    return WrongInput(inputs, 0,
                      "a tensor of float of " + std::to_string(attributes.columns) + " columns");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const ValueRef kept, Kept(inputs[0]));
  const int64_t rows = x->rank() == 1 ? 1 : x->extents()[0];
  return One(Value::Sequence(tensor::MapRows{
      attributes.keys, kept->tensor.Reshaped({rows, attributes.columns}), attributes.key_columns}));
}

Outputs Run(const program::ListMap& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Value* map, MapInput(inputs, attributes));
  const std::vector<int64_t> positions =
      attributes.keys ? Found(map->tensor, *attributes.keys) : Ascending(map->tensor);
  const auto entry = [&](int64_t at) -> const Tensor& {
    return at < 0 ? attributes.fallback : map->elements()[static_cast<size_t>(at)]->tensor;
  };
  const ElementType type = attributes.fallback.type();
  const tensor::Extents extents = {1, static_cast<int64_t>(positions.size())};
  if (type == ElementType::kString) {
    std::vector<std::string> texts;
    for (const int64_t at : positions) texts.push_back(entry(at).strings()[0]);
    return One(Tensor::FromStrings(extents, std::move(texts)));
  }
  ONNXIFI_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(type, extents));
  const auto width = static_cast<size_t>(tensor::BitWidth(type) / 8);
  std::byte* to = result.mutable_data();
  for (const int64_t at : positions) {
    std::memcpy(to, entry(at).data(), width);
    to += width;
  }
  return One(std::move(result));
}

}  // namespace onnxifi::host
