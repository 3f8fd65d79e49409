// SPDX-License-Identifier: Apache-2.0
//
// Value: its makers and its text.

#include "backends/core/tensor/value.h"

#include <mutex>
#include <utility>

namespace onnxifi::tensor {

// Maps, and the values of them once somebody asks.
struct Value::Unrolled {
  explicit Unrolled(MapRows of) : rows(std::move(of)) {}

  const MapRows rows;
  mutable std::once_flag is_made;
  mutable std::vector<ValueRef> values;
};

namespace {

std::vector<ValueRef> ValuesOf(const MapRows& rows) {
  const size_t width = rows.columns.size();
  const auto count = static_cast<size_t>(rows.row_count());
  // A block of values for the entries of all maps, which lives as long as one of them.
  const auto entries = std::make_shared<std::vector<Value>>();
  entries->reserve(count * width);
  std::vector<ValueRef> maps;
  maps.reserve(count);
  for (int64_t row = 0; row < rows.row_count(); ++row) {
    std::vector<ValueRef> values;
    values.reserve(width);
    for (size_t key = 0; key < width; ++key) {
      entries->emplace_back(
          Tensor::Borrow(rows.numbers.type(), {}, rows.NumberAt(row, key), rows.numbers.owner()));
      values.emplace_back(entries, &entries->back());
    }
    maps.push_back(std::make_shared<const Value>(Value::Map(rows.keys, std::move(values))));
  }
  return maps;
}

}  // namespace

const std::byte* MapRows::NumberAt(int64_t row, size_t key) const {
  return numbers.data() +
         (row * numbers.extents()[1] + columns[key]) * (BitWidth(numbers.type()) / 8);
}

Value Value::Sequence(std::vector<ValueRef> elements) {
  Value value;
  value.kind = Kind::kSequence;
  value.elements_ = std::move(elements);
  return value;
}

Value Value::Sequence(MapRows maps) {
  Value value;
  value.kind = Kind::kSequence;
  value.maps_ = std::make_shared<const Unrolled>(std::move(maps));
  return value;
}

const std::vector<ValueRef>& Value::elements() const {
  if (maps_ == nullptr) return elements_;
  std::call_once(maps_->is_made, [this] { maps_->values = ValuesOf(maps_->rows); });
  return maps_->values;
}

size_t Value::element_count() const {
  return maps_ == nullptr ? elements_.size() : static_cast<size_t>(maps_->rows.row_count());
}

const MapRows* Value::map_rows() const { return maps_ == nullptr ? nullptr : &maps_->rows; }

Value Value::Map(Tensor keys, std::vector<ValueRef> values) {
  Value value;
  value.kind = Kind::kMap;
  value.tensor = std::move(keys);
  value.elements_ = std::move(values);
  return value;
}

std::string Describe(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNothing:
      return "an optional without element";
    case Value::Kind::kTensor:
      return "a tensor of " + std::string(Name(value.tensor.type())) + " of shape " +
             ToString(value.tensor.extents());
    case Value::Kind::kSequence:
      return "a sequence of " + std::to_string(value.element_count());
    case Value::Kind::kMap:
      return "a map of " + std::to_string(value.element_count());
  }
  return "a value";
}

}  // namespace onnxifi::tensor
