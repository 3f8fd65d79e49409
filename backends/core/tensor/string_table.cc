// SPDX-License-Identifier: Apache-2.0
//
// StringTable: a map into a list whose strings never move.

#include "backends/core/tensor/string_table.h"

#include <cstring>
#include <utility>
#include <vector>

namespace onnxifi::tensor {

StringTable::StringTable(const StringTable* base)
    : base_(base), first_(base == nullptr ? 1 : base->first_ + base->texts_.size()) {}

const uint64_t* StringTable::Find(std::string_view text) const {
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return &found->second;
  return base_ == nullptr ? nullptr : base_->Find(text);
}

uint64_t StringTable::NumberOf(std::string_view text) {
  if (text.empty()) return 0;
  if (const uint64_t* known = Find(text)) return *known;
  const uint64_t number = first_ + texts_.size();
  texts_.push_back(std::make_unique<const std::string>(text));
  numbers_.emplace(*texts_.back(), number);
  return number;
}

const std::string& StringTable::Text(uint64_t number) const {
  static const std::string empty;
  if (number < first_) return base_ == nullptr ? empty : base_->Text(number);
  return number - first_ < texts_.size() ? *texts_[number - first_] : empty;
}

base::Result<Tensor> StringTable::NumbersOf(const Tensor& strings) {
  ONNXIFI_ASSIGN_OR_RETURN(Tensor numbers,
                           Tensor::Allocate(ElementType::kUint64, strings.extents()));
  std::byte* place = numbers.mutable_data();
  for (const std::string& text : strings.strings()) {
    const uint64_t number = NumberOf(text);
    std::memcpy(place, &number, sizeof(number));
    place += sizeof(number);
  }
  return numbers;
}

Tensor StringTable::StringsOf(const uint64_t* numbers, Extents extents) const {
  const auto count = static_cast<size_t>(ElementCount(extents));
  std::vector<std::string> texts;
  texts.reserve(count);
  for (size_t k = 0; k < count; ++k) texts.push_back(Text(numbers[k]));
  return Tensor::FromStrings(std::move(extents), std::move(texts));
}

}  // namespace onnxifi::tensor
