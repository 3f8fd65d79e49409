// SPDX-License-Identifier: Apache-2.0
//
// Structures of callers as values and back; every fault that a structure can have.

#include "backends/core/abi/value_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <span>

namespace onnxifi::abi {
namespace {

using base::Code;
using tensor::ElementType;
using tensor::Tensor;
using tensor::Value;
using tensor::ValueRef;

ValueRef Make(Value value) { return std::make_shared<const Value>(std::move(value)); }

bool Equal(const Value& a, const Value& b) {
  if (a.kind != b.kind || a.element_count() != b.element_count()) return false;
  if (a.kind == Value::Kind::kTensor || a.kind == Value::Kind::kMap) {
    if (a.tensor.type() != b.tensor.type() || a.tensor.extents() != b.tensor.extents()) {
      return false;
    }
    if (a.tensor.type() == ElementType::kString) {
      if (a.tensor.strings() != b.tensor.strings()) return false;
    } else if (!std::ranges::equal(a.tensor.bytes(), b.tensor.bytes())) {
      return false;
    }
  }
  for (size_t k = 0; k < a.elements().size(); ++k) {
    if (!Equal(*a.elements()[k], *b.elements()[k])) return false;
  }
  return true;
}

TEST(ValueRecord, GivesBackWhatItTells) {
  const std::vector<int64_t> keys = {7, -7};
  const std::array<uint8_t, 2> packed = {0x21, 0x03};
  const ValueRef numbers =
      Make(Value(Tensor::FromValues<uint8_t>(ElementType::kUint4, {3}, packed)));
  const ValueRef texts = Make(Value(Tensor::FromStrings({1, 2}, {std::string("a\0b", 3), ""})));
  const Value map =
      Value::Map(Tensor::FromValues<int64_t>(ElementType::kInt64, {2}, keys), {numbers, texts});
  const Value all =
      Value::Sequence({Make(map), Make(Value()), Make(Value::Sequence(std::vector<ValueRef>()))});
  const std::string name = "name";
  const ValueRecord record(name, all);
  EXPECT_STREQ(record.get().name, "name");
  const auto copy = CopyValue(record.get(), "It");
  ASSERT_TRUE(copy.ok()) << copy.status().Text();
  EXPECT_TRUE(Equal(**copy, all));
  EXPECT_TRUE(IsSound(record.get()));
}

TEST(ValueRecord, TellsMapsInRowsAsMaps) {
  const Tensor texts = Tensor::FromStrings({2}, {"a", "a longer key than others"});
  const std::array<int64_t, 2> numbers = {7, -7};
  const Tensor keys = Tensor::FromValues<int64_t>(ElementType::kInt64, {2}, numbers);
  for (const Tensor& of : {texts, keys}) {
    for (const int64_t rows : {0, 1, 3}) {
      Tensor matrix = *Tensor::Allocate(ElementType::kFloat32, {rows, 3});
      auto* const at = reinterpret_cast<float*>(matrix.mutable_data());
      for (int64_t k = 0; k < 3 * rows; ++k) at[k] = static_cast<float>(k);
      // The keys lie in the columns 2 and 0.
      std::vector<ValueRef> maps;
      for (int64_t row = 0; row < rows; ++row) {
        std::vector<ValueRef> values;
        for (const int64_t column : {2, 0}) {
          const std::array<float, 1> number = {static_cast<float>(3 * row + column)};
          values.push_back(
              Make(Value(Tensor::FromValues<float>(ElementType::kFloat32, {}, number))));
        }
        maps.push_back(Make(Value::Map(of, std::move(values))));
      }
      const Value expected = Value::Sequence(std::move(maps));
      const Value in_rows = Value::Sequence(tensor::MapRows{of, matrix, {2, 0}});
      EXPECT_EQ(in_rows.element_count(), static_cast<size_t>(rows));
      const std::string name = "name";
      const ValueRecord record(name, in_rows);
      EXPECT_TRUE(IsSound(record.get()));
      const auto copy = CopyValue(record.get(), "It");
      ASSERT_TRUE(copy.ok()) << copy.status().Text();
      EXPECT_TRUE(Equal(**copy, expected)) << rows;
      EXPECT_TRUE(Equal(in_rows, expected)) << rows;
    }
  }
}

TEST(ValueRecord, LooksAtTheKeysOfEveryMap) {
  const std::array<int64_t, 2> good = {1, 2}, twice = {1, 1};
  const auto map_of = [](std::span<const int64_t> keys) {
    const ValueRef value = Make(Value(Tensor::FromStrings({}, {"v"})));
    return Make(
        Value::Map(Tensor::FromValues<int64_t>(ElementType::kInt64, {2}, keys), {value, value}));
  };
  const std::string name = "name";
  const Value sound = Value::Sequence({map_of(good), map_of(good)});
  EXPECT_TRUE(IsSound(ValueRecord(name, sound).get()));
  const Value unsound = Value::Sequence({map_of(good), map_of(twice)});
  EXPECT_FALSE(IsSound(ValueRecord(name, unsound).get()));
}

TEST(ValueRecord, NamesEveryFaultOfAStructure) {
  const std::string name = "x";
  const Value text(Tensor::FromStrings({1}, {"a"}));
  const ValueRecord good(name, text);
  const std::array<int64_t, 2> keys = {1, 1};
  const std::array<int64_t, 1> two = {2};
  const std::array<int64_t, 2> huge = {int64_t{1} << 40, int64_t{1} << 40};
  const onnxString broken = {nullptr, 3};
  const std::array<const onnxValue*, 2> elements = {&good.get(), &good.get()};
  struct Fault {
    std::function<void(onnxValue&)> spoil;
    Code code;
  };
  const Fault faults[] = {
      {[](onnxValue& v) { v.struct_size = 8; }, Code::kInvalidSize},
      {[](onnxValue& v) { v.kind = 4; }, Code::kInvalidDatatype},
      {[](onnxValue& v) { v.data_type = 0; }, Code::kInvalidDatatype},
      {[](onnxValue& v) { v.rank = 65; }, Code::kInvalidShape},
      {[](onnxValue& v) { v.extents = nullptr; }, Code::kInvalidPointer},
      {[&](onnxValue& v) { v.rank = 2, v.extents = huge.data(); }, Code::kInvalidShape},
      {[](onnxValue& v) { v.strings = nullptr; }, Code::kInvalidMemoryLocation},
      {[&](onnxValue& v) { v.strings = &broken; }, Code::kInvalidMemoryLocation},
      {[&](onnxValue& v) {
         v.data_type = ONNXIFI_DATATYPE_INT64, v.data = keys.data(), v.data_size_bytes = 16;
       },
       Code::kInvalidSize},
      {[](onnxValue& v) { v.kind = ONNXIFI_SDK_VALUE_SEQUENCE, v.element_count = 1; },
       Code::kInvalidPointer},
      {[&](onnxValue& v) {
         v.kind = ONNXIFI_SDK_VALUE_MAP, v.element_count = 2, v.elements = elements.data();
       },
       Code::kInvalidShape},
      {[&](onnxValue& v) {
         v.kind = ONNXIFI_SDK_VALUE_MAP, v.element_count = 2, v.elements = elements.data();
         v.data_type = ONNXIFI_DATATYPE_INT64, v.extents = two.data(), v.data = keys.data();
         v.data_size_bytes = 16;
       },
       Code::kInvalidShape},
  };
  for (size_t k = 0; k < std::size(faults); ++k) {
    onnxValue record = good.get();
    faults[k].spoil(record);
    const auto copy = CopyValue(record, "Input 'x'");
    ASSERT_FALSE(copy.ok()) << k;
    EXPECT_FALSE(IsSound(record)) << k;
    EXPECT_EQ(copy.status().code(), faults[k].code) << k << ": " << copy.status().Text();
  }
}

// What is copied is cleaned up; what is handed on as it is must be clean.
TEST(ValueRecord, IsUnsoundWithFieldsOfOtherKinds) {
  const std::string name = "x";
  const Value nothing;
  const ValueRecord good(name, nothing);
  ASSERT_TRUE(IsSound(good.get()));
  const std::array<int64_t, 1> one = {1};
  const onnxString text = {"a", 1};
  onnxValue strings = good.get();
  strings.kind = ONNXIFI_SDK_VALUE_TENSOR;
  strings.data_type = ONNXIFI_SDK_DATATYPE_STRING;
  strings.rank = 1;
  strings.extents = one.data();
  strings.strings = &text;
  ASSERT_TRUE(IsSound(strings));
  onnxValue sequence = good.get();
  sequence.kind = ONNXIFI_SDK_VALUE_SEQUENCE;
  ASSERT_TRUE(IsSound(sequence));
  for (onnxValue record : {good.get(), strings}) {
    record.element_count = 3;
    EXPECT_FALSE(IsSound(record));
  }
  for (onnxValue record : {good.get(), sequence}) {
    record.rank = 4;
    EXPECT_FALSE(IsSound(record));
  }
  for (onnxValue record : {good.get(), sequence, strings}) {
    record.data_size_bytes = 100;
    EXPECT_FALSE(IsSound(record));
  }
}

TEST(ValueRecord, RefusesWhatIsNestedWithoutEnd) {
  onnxValue record = {};
  record.struct_size = sizeof(record);
  record.kind = ONNXIFI_SDK_VALUE_SEQUENCE;
  const std::array<const onnxValue*, 1> itself = {&record};
  record.element_count = 1;
  record.elements = itself.data();
  const auto copy = CopyValue(record, "It");
  ASSERT_FALSE(copy.ok());
  EXPECT_EQ(copy.status().code(), Code::kInvalidShape);
  record.name = "It";
  EXPECT_FALSE(IsSound(record));
}

TEST(ValueRecord, TakesTheFieldsOfAnOlderStructureOnly) {
  const std::string name = "x";
  const Value nothing;
  const ValueRecord good(name, nothing);
  onnxValue record = good.get();
  record.struct_size = offsetof(onnxValue, kind) + sizeof(record.kind);
  record.element_count = 5;
  const auto copy = CopyValue(record, "It");
  ASSERT_TRUE(copy.ok()) << copy.status().Text();
  EXPECT_EQ((*copy)->kind, Value::Kind::kNothing);
  EXPECT_FALSE(IsSound(record));
}

}  // namespace
}  // namespace onnxifi::abi
