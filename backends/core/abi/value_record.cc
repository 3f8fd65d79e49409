// SPDX-License-Identifier: Apache-2.0
//
// ValueRecord: one level at a time; levels are few, since ONNX's types nest no deeper.

#include "backends/core/abi/value_record.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace onnxifi::abi {
namespace {

using base::Code;
using base::Result;
using base::Status;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using tensor::Value;
using tensor::ValueRef;

constexpr int kDeepestValue = 8;
constexpr uint32_t kMaxRank = 64;
// As many elements of the largest type as a signed size can say.
constexpr int64_t kMaxElements = INT64_MAX / 16;

// Where a structure stands: the value that the caller named, or a part of another. Said in words
// only where something is wrong, for a sequence may have a million parts.
class Location {
 public:
  explicit Location(const std::string& what) : what_(&what) {}
  Location(const Location& whole, size_t element) : whole_(&whole), element_(element) {}

  std::string Text() const {
    if (whole_ == nullptr) return *what_;
    return "element " + std::to_string(element_) + " of " + whole_->Text();
  }

 private:
  const std::string* what_ = nullptr;
  const Location* whole_ = nullptr;
  size_t element_ = 0;
};

// Memory of the small tensors of one value: a map has a tensor per key.
class Pool {
 public:
  static constexpr size_t kMaxBytes = 64;

  // Aligned as any tensor is; lives as long as somebody has the owner.
  std::byte* Lend(std::shared_ptr<const void>& owner) {
    if (used_ == kSlots) {
      block_ = std::make_shared<Block>();
      used_ = 0;
    }
    owner = block_;
    return block_->slots[used_++].data();
  }

 private:
  static constexpr size_t kSlots = 64;
  struct Block {
    alignas(kMaxBytes) std::array<std::array<std::byte, kMaxBytes>, kSlots> slots;
  };

  std::shared_ptr<Block> block_;
  size_t used_ = kSlots;
};

// What lies inside the caller's structure; the rest is zero.
Result<onnxValue> Read(const onnxValue& record, const Location& location) {
  constexpr size_t kSmallest = offsetof(onnxValue, kind) + sizeof(record.kind);
  if (record.struct_size < kSmallest) {
    return Status(Code::kInvalidSize,
                  location.Text() + " has a structure of " + std::to_string(record.struct_size) +
                      " bytes; its kind alone ends after " + std::to_string(kSmallest) + ".");
  }
  onnxValue copy = {};
  std::memcpy(&copy, &record, std::min(record.struct_size, sizeof(copy)));
  return copy;
}

Result<Extents> ReadExtents(const onnxValue& record, const Location& location) {
  if (record.rank > kMaxRank) {
    return Status(Code::kInvalidShape,
                  location.Text() + " has rank " + std::to_string(record.rank) +
                      "; the largest one taken is " + std::to_string(kMaxRank) + ".");
  }
  if (record.rank > 0 && record.extents == nullptr) {
    return Status(Code::kInvalidPointer, location.Text() + " has rank " +
                                             std::to_string(record.rank) + " and NULL extents.");
  }
  Extents extents;
  for (uint32_t axis = 0; axis < record.rank; ++axis) {
    extents.push_back(record.extents[axis]);
    if (extents.back() < 0) {
      return Status(Code::kInvalidShape,
                    "Dimension " + std::to_string(axis) + " of " + location.Text() + " is " +
                        std::to_string(extents.back()) + ", below the smallest (0).");
    }
  }
  if (tensor::ElementCount(extents) > kMaxElements) {
    return Status(Code::kInvalidShape, location.Text() + " of shape " + tensor::ToString(extents) +
                                           " has more than the largest number of elements (" +
                                           std::to_string(kMaxElements) + ").");
  }
  return extents;
}

Result<Tensor> ReadTensor(const onnxValue& record, const Location& location, Pool& pool) {
  const auto type = tensor::ElementTypeFromOnnx(static_cast<int64_t>(record.data_type));
  if (!type) {
    return Status(Code::kInvalidDatatype, location.Text() + " has element type " +
                                              std::to_string(record.data_type) +
                                              ", which is no element type of a value.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(Extents extents, ReadExtents(record, location));
  const int64_t count = tensor::ElementCount(extents);
  const void* elements =
      *type == ElementType::kString ? static_cast<const void*>(record.strings) : record.data;
  if (count > 0 && elements == nullptr) {
    return Status(Code::kInvalidMemoryLocation,
                  location.Text() + " has " + std::to_string(count) + " elements and NULL " +
                      (*type == ElementType::kString ? "strings." : "data."));
  }
  if (*type != ElementType::kString) {
    const int64_t size_bytes = tensor::SizeBytes(*type, count);
    if (static_cast<uint64_t>(size_bytes) != record.data_size_bytes) {
      return Status(Code::kInvalidSize,
                    location.Text() + " has " + std::to_string(record.data_size_bytes) +
                        " bytes of data; " + std::to_string(count) + " elements of " +
                        std::string(Name(*type)) + " have " + std::to_string(size_bytes) + ".");
    }
    const auto bytes = static_cast<size_t>(size_bytes);
    if (bytes > 0 && bytes <= Pool::kMaxBytes) {
      std::shared_ptr<const void> owner;
      std::byte* const small = pool.Lend(owner);
      std::memcpy(small, record.data, bytes);
      return Tensor::Borrow(*type, std::move(extents), small, std::move(owner));
    }
    ONNXIFI_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(*type, std::move(extents)));
    if (count > 0) {
      std::memcpy(copy.mutable_data(), record.data, static_cast<size_t>(copy.size_bytes()));
    }
    return copy;
  }
  std::vector<std::string> strings;
  for (int64_t k = 0; k < count; ++k) {
    const onnxString& text = record.strings[k];
    if (text.data == nullptr && text.size_bytes > 0) {
      return Status(Code::kInvalidMemoryLocation,
                    "String " + std::to_string(k) + " of " + location.Text() + " has " +
                        std::to_string(text.size_bytes) + " bytes at NULL.");
    }
    strings.emplace_back(text.data != nullptr ? text.data : "", text.size_bytes);
  }
  return Tensor::FromStrings(std::move(extents), std::move(strings));
}

Status CheckKeys(const Tensor& keys, size_t values, const Location& location) {
  if (keys.type() != ElementType::kString && keys.type() != ElementType::kInt64) {
    return {Code::kInvalidDatatype, location.Text() + " has keys of " +
                                        std::string(Name(keys.type())) +
                                        "; a map has keys of int64 or string."};
  }
  if (keys.rank() != 1 || static_cast<size_t>(keys.element_count()) != values) {
    return {Code::kInvalidShape, location.Text() + " has keys of shape " +
                                     tensor::ToString(keys.extents()) + " for " +
                                     std::to_string(values) + " values."};
  }
  const auto check = [&](auto sorted, const auto& spell) -> Status {
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice == sorted.end()) return base::Ok();
    return {Code::kInvalidShape, location.Text() + " has the key '" + spell(*twice) + "' twice."};
  };
  if (keys.type() == ElementType::kString) {
    return check(std::vector<std::string_view>(keys.strings().begin(), keys.strings().end()),
                 [](std::string_view key) { return std::string(key); });
  }
  const std::span<const int64_t> numbers = keys.values<int64_t>();
  return check(std::vector<int64_t>(numbers.begin(), numbers.end()),
               [](int64_t key) { return std::to_string(key); });
}

Result<Value> Copy(const onnxValue& given, const Location& location, int depth, Pool& pool) {
  ONNXIFI_ASSIGN_OR_RETURN(const onnxValue record, Read(given, location));
  if (depth > kDeepestValue) {
    return Status(Code::kInvalidShape, location.Text() + " is nested deeper than the limit of " +
                                           std::to_string(kDeepestValue) + ".");
  }
  switch (record.kind) {
    case ONNXIFI_SDK_VALUE_NOTHING:
      return Value();
    case ONNXIFI_SDK_VALUE_TENSOR: {
      ONNXIFI_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(record, location, pool));
      return Value(std::move(tensor));
    }
    case ONNXIFI_SDK_VALUE_SEQUENCE:
    case ONNXIFI_SDK_VALUE_MAP:
      break;
    default:
      return Status(Code::kInvalidDatatype, location.Text() + " is of kind " +
                                                std::to_string(record.kind) +
                                                "; the largest one known is " +
                                                std::to_string(ONNXIFI_SDK_VALUE_MAP) + ".");
  }
  if (record.element_count > 0 && record.elements == nullptr) {
    return Status(
        Code::kInvalidPointer,
        location.Text() + " has " + std::to_string(record.element_count) + " elements at NULL.");
  }
  // Some at once, which live as long as one of them. Their number is nothing to rely on.
  constexpr size_t kAtOnce = 64;
  std::vector<ValueRef> elements;
  while (elements.size() < record.element_count) {
    const size_t first = elements.size();
    const size_t count = std::min(kAtOnce, record.element_count - first);
    const auto values = std::make_shared<std::vector<Value>>(count);
    for (size_t k = 0; k < count; ++k) {
      const Location part(location, first + k);
      const onnxValue* const element = record.elements[first + k];
      if (element == nullptr) return Status(Code::kInvalidPointer, part.Text() + " is NULL.");
      ONNXIFI_ASSIGN_OR_RETURN((*values)[k], Copy(*element, part, depth + 1, pool));
      elements.emplace_back(values, &(*values)[k]);
    }
  }
  if (record.kind == ONNXIFI_SDK_VALUE_SEQUENCE) return Value::Sequence(std::move(elements));
  ONNXIFI_ASSIGN_OR_RETURN(Tensor keys, ReadTensor(record, location, pool));
  ONNXIFI_RETURN_IF_ERROR(CheckKeys(keys, elements.size(), location));
  return Value::Map(std::move(keys), std::move(elements));
}

// Keys that were found to be sound: maps of a sequence mostly share them.
struct SoundKeys {
  const void* elements = nullptr;
  int64_t count = -1;
  onnxEnum type = 0;
};

bool IsSoundTensor(const onnxValue& record, bool has_text) {
  const auto type = tensor::ElementTypeFromOnnx(static_cast<int64_t>(record.data_type));
  if (!type || record.rank > kMaxRank || (record.rank > 0 && record.extents == nullptr)) {
    return false;
  }
  const std::span<const int64_t> extents(record.extents, record.rank);
  if (std::ranges::any_of(extents, [](int64_t extent) { return extent < 0; })) return false;
  const int64_t count = tensor::ElementCount(extents);
  if (count > kMaxElements) return false;
  if (*type != ElementType::kString) {
    return record.data_size_bytes == static_cast<uint64_t>(tensor::SizeBytes(*type, count)) &&
           (count == 0 || record.data != nullptr);
  }
  if (count > 0 && record.strings == nullptr) return false;
  return !has_text || std::ranges::all_of(std::span(record.strings, static_cast<size_t>(count)),
                                          [](const onnxString& text) {
                                            return text.data != nullptr || text.size_bytes == 0;
                                          });
}

bool AreSoundKeys(const onnxValue& record, SoundKeys& known) {
  const bool are_texts = record.data_type == static_cast<onnxEnum>(ElementType::kString);
  if (!are_texts && record.data_type != static_cast<onnxEnum>(ElementType::kInt64)) return false;
  if (record.rank != 1 || record.extents == nullptr ||
      static_cast<size_t>(record.extents[0]) != record.element_count) {
    return false;
  }
  const void* const elements =
      are_texts ? static_cast<const void*>(record.strings) : static_cast<const void*>(record.data);
  const int64_t count = record.extents[0];
  const bool is_known =
      elements == known.elements && count == known.count && record.data_type == known.type;
  if (!IsSoundTensor(record, /*has_text=*/!is_known)) return false;
  if (is_known) return true;
  const auto differ = [](auto sorted) {
    std::ranges::sort(sorted);
    return std::ranges::adjacent_find(sorted) == sorted.end();
  };
  if (are_texts) {
    std::vector<std::string_view> texts;
    for (const onnxString& text : std::span(record.strings, record.element_count)) {
      texts.emplace_back(text.data != nullptr ? text.data : "", text.size_bytes);
    }
    if (!differ(std::move(texts))) return false;
  } else {
    const auto* numbers = static_cast<const std::byte*>(record.data);
    std::vector<int64_t> copy(record.element_count);
    if (count > 0) std::memcpy(copy.data(), numbers, copy.size() * sizeof(int64_t));
    if (!differ(std::move(copy))) return false;
  }
  known = {elements, count, record.data_type};
  return true;
}

bool IsSoundAt(const onnxValue& record, int depth, SoundKeys& known) {
  if (record.struct_size < sizeof(record) || depth > kDeepestValue) return false;
  // Readers may look at fields that mean nothing for the kind.
  const bool has_elements =
      record.kind == ONNXIFI_SDK_VALUE_SEQUENCE || record.kind == ONNXIFI_SDK_VALUE_MAP;
  const bool has_extents =
      record.kind == ONNXIFI_SDK_VALUE_TENSOR || record.kind == ONNXIFI_SDK_VALUE_MAP;
  const bool has_bytes = has_extents && record.data_type != ONNXIFI_SDK_DATATYPE_STRING;
  if ((!has_elements && record.element_count != 0) || (!has_extents && record.rank != 0) ||
      (!has_bytes && record.data_size_bytes != 0)) {
    return false;
  }
  switch (record.kind) {
    case ONNXIFI_SDK_VALUE_NOTHING:
      return true;
    case ONNXIFI_SDK_VALUE_TENSOR:
      return IsSoundTensor(record, /*has_text=*/true);
    case ONNXIFI_SDK_VALUE_MAP:
      if (!AreSoundKeys(record, known)) return false;
      break;
    case ONNXIFI_SDK_VALUE_SEQUENCE:
      break;
    default:
      return false;
  }
  if (record.element_count > 0 && record.elements == nullptr) return false;
  return std::ranges::all_of(std::span(record.elements, record.element_count),
                             [&](const onnxValue* element) {
                               return element != nullptr && IsSoundAt(*element, depth + 1, known);
                             });
}

}  // namespace

bool IsSound(const onnxValue& record) {
  SoundKeys known;
  return record.struct_size >= sizeof(record) && record.name != nullptr &&
         IsSoundAt(record, /*depth=*/0, known);
}

Result<ValueRef> CopyValue(const onnxValue& record, const std::string& what) {
  Pool pool;
  ONNXIFI_ASSIGN_OR_RETURN(Value value, Copy(record, Location(what), /*depth=*/0, pool));
  return std::make_shared<const Value>(std::move(value));
}

ValueRecord::ValueRecord(const std::string& name, const Value& value)
    : top_(Add(value, name.c_str())) {}

const onnxValue* ValueRecord::Add(const Value& value, const char* name) {
  onnxValue& record = records_.emplace_back();
  record.struct_size = sizeof(record);
  record.name = name;
  switch (value.kind) {
    case Value::Kind::kNothing:
      record.kind = ONNXIFI_SDK_VALUE_NOTHING;
      return &record;
    case Value::Kind::kTensor:
      record.kind = ONNXIFI_SDK_VALUE_TENSOR;
      break;
    case Value::Kind::kSequence:
      record.kind = ONNXIFI_SDK_VALUE_SEQUENCE;
      break;
    case Value::Kind::kMap:
      record.kind = ONNXIFI_SDK_VALUE_MAP;
      break;
  }
  if (value.kind != Value::Kind::kSequence) AddTensor(value.tensor, record);
  if (const tensor::MapRows* rows = value.map_rows()) {
    AddRows(*rows, record);
  } else if (value.kind != Value::Kind::kTensor) {
    std::vector<const onnxValue*>& elements = elements_.emplace_back();
    elements.reserve(value.element_count());
    for (const ValueRef& element : value.elements()) elements.push_back(Add(*element, ""));
    record.element_count = elements.size();
    record.elements = elements.data();
  }
  return &record;
}

void ValueRecord::AddTensor(const Tensor& tensor, onnxValue& record) {
  record.data_type = static_cast<onnxEnum>(tensor.type());
  record.rank = static_cast<uint32_t>(tensor.rank());
  record.extents = tensor.extents().data();
  if (tensor.type() == ElementType::kString) {
    std::vector<onnxString>& strings = strings_.emplace_back();
    strings.reserve(tensor.strings().size());
    for (const std::string& text : tensor.strings()) {
      strings.push_back({text.data(), text.size()});
    }
    record.strings = strings.data();
  } else {
    record.data = tensor.data();
    record.data_size_bytes = static_cast<size_t>(tensor.size_bytes());
  }
}

void ValueRecord::AddRows(const tensor::MapRows& rows, onnxValue& record) {
  const auto count = static_cast<size_t>(rows.row_count());
  const size_t width = rows.columns.size();
  // A map, and a number in it: all others differ from them by addresses only.
  onnxValue map = {};
  map.struct_size = sizeof(map);
  map.name = "";
  map.kind = ONNXIFI_SDK_VALUE_MAP;
  map.element_count = width;
  AddTensor(rows.keys, map);
  onnxValue number = {};
  number.struct_size = sizeof(number);
  number.name = "";
  number.kind = ONNXIFI_SDK_VALUE_TENSOR;
  number.data_type = static_cast<onnxEnum>(rows.numbers.type());
  number.data_size_bytes = static_cast<size_t>(tensor::BitWidth(rows.numbers.type()) / 8);
  row_records_ = std::make_unique_for_overwrite<onnxValue[]>(count * (width + 1));
  row_elements_ = std::make_unique_for_overwrite<const onnxValue*[]>(count * (width + 1));
  const onnxValue** const maps = row_elements_.get();
  const onnxValue** next_element = maps + count;
  onnxValue* next = row_records_.get();
  for (size_t row = 0; row < count; ++row) {
    maps[row] = next;
    onnxValue& made = *next++ = map;
    made.elements = next_element;
    for (size_t key = 0; key < width; ++key) {
      *next_element++ = next;
      onnxValue& entry = *next++ = number;
      entry.data = rows.NumberAt(static_cast<int64_t>(row), key);
    }
  }
  record.element_count = count;
  record.elements = maps;
}

}  // namespace onnxifi::abi
