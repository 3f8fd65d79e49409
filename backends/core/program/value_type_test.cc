// SPDX-License-Identifier: Apache-2.0

#include "backends/core/program/value_type.h"

#include <gtest/gtest.h>

namespace onnxifi::program {
namespace {

using base::Code;
using tensor::ElementType;
using tensor::Tensor;
using tensor::Value;
using tensor::ValueRef;

ValueType Floats(int rank) { return ValueType::Tensor(ElementType::kFloat32, rank); }

ValueRef Zeros(ElementType type, tensor::Extents extents) {
  return std::make_shared<const Value>(*Tensor::Allocate(type, std::move(extents)));
}

ValueType OfExtents(std::vector<int64_t> extents) {
  ValueType type = Floats(static_cast<int>(extents.size()));
  type.extents = std::move(extents);
  return type;
}

TEST(ValueTypeTest, JoinsWhatBothHold) {
  struct Case {
    ValueType a, b, joined;
  };
  const ValueType unknown = ValueType::Tensor(ElementType::kUndefined, ValueType::kNoRank);
  const Case cases[] = {
      {Floats(2), Floats(2), Floats(2)},
      {Floats(2), Floats(1), Floats(ValueType::kAnyRank)},
      {Floats(ValueType::kNoRank), Floats(1), Floats(1)},
      {Floats(ValueType::kAnyRank), Floats(1), Floats(ValueType::kAnyRank)},
      {ValueType::Sequence(unknown), ValueType::Sequence(Floats(3)),
       ValueType::Sequence(Floats(3))},
      {Floats(1).Optional(), Floats(1), Floats(1).Optional()},
      {OfExtents({2, 3}), OfExtents({4, 3}), OfExtents({ValueType::kAnyExtent, 3})},
      {OfExtents({2, 3}), OfExtents({2}), Floats(ValueType::kAnyRank)},
      {OfExtents({2}), Floats(1), Floats(1)},
      {Floats(ValueType::kNoRank), OfExtents({2}), OfExtents({2})},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(*Join(one.a, one.b, "It"), one.joined) << ToString(one.a) << ToString(one.b);
    EXPECT_EQ(*Join(one.b, one.a, "It"), one.joined) << ToString(one.a) << ToString(one.b);
  }
  const auto mixed = Join(Floats(1), ValueType::Sequence(Floats(1)), "It");
  ASSERT_FALSE(mixed.ok());
  EXPECT_EQ(mixed.status().code(), Code::kMismatchingDatatype);
  EXPECT_FALSE(Join(Floats(1), ValueType::Tensor(ElementType::kInt64, 1), "It").ok());
}

TEST(ValueTypeTest, ChecksEveryLevelOfAValue) {
  const ValueType rows = ValueType::Sequence(Floats(1));
  const Value good =
      Value::Sequence({Zeros(ElementType::kFloat32, {3}), Zeros(ElementType::kFloat32, {0})});
  EXPECT_TRUE(CheckValue(good, rows, "It").ok());
  EXPECT_TRUE(CheckValue(Value(), rows.Optional(), "It").ok());
  EXPECT_EQ(CheckValue(Value(), rows, "It").code(), Code::kMismatchingDatatype);
  EXPECT_EQ(CheckValue(Value::Sequence({Zeros(ElementType::kFloat32, {})}), rows, "It").code(),
            Code::kMismatchingShape);
  const base::Status wrong =
      CheckValue(Value::Sequence({Zeros(ElementType::kFloat64, {3})}), rows, "It");
  EXPECT_EQ(wrong.code(), Code::kMismatchingDatatype);
  EXPECT_EQ(wrong.Text(),
            "Element 0 of It is a tensor of double of shape [3]; required is: tensor of float with "
            "1 axes.");
  const base::Status longer = CheckValue(*Zeros(ElementType::kFloat32, {2, 3}),
                                         OfExtents({ValueType::kAnyExtent, 1}), "It");
  EXPECT_EQ(longer.code(), Code::kMismatchingShape);
  EXPECT_EQ(longer.Text(),
            "It is a tensor of float of shape [2, 3]; required is: tensor of float of shape [?, "
            "1].");
  EXPECT_TRUE(
      CheckValue(*Zeros(ElementType::kFloat32, {2, 1}), OfExtents({ValueType::kAnyExtent, 1}), "It")
          .ok());
  const ValueType map = ValueType::Map(ElementType::kInt64, Floats(0));
  const std::vector<ValueRef> values = {Zeros(ElementType::kFloat32, {})};
  EXPECT_TRUE(
      CheckValue(Value::Map(*Tensor::Allocate(ElementType::kInt64, {1}), values), map, "It").ok());
  EXPECT_FALSE(CheckValue(Value::Map(Tensor::FromStrings({1}, {"a"}), values), map, "It").ok());
}

TEST(ValueTypeTest, ChecksMapsInRowsAsItChecksMaps) {
  const auto rows_of = [](ElementType keys, ElementType numbers, int64_t rows) {
    return Value::Sequence(tensor::MapRows{keys == ElementType::kString
                                               ? Tensor::FromStrings({1}, {"a"})
                                               : *Tensor::Allocate(keys, {1}),
                                           *Tensor::Allocate(numbers, {rows, 2}),
                                           {1}});
  };
  const ValueType maps = ValueType::Sequence(ValueType::Map(ElementType::kInt64, Floats(0)));
  for (const int64_t rows : {0, 2}) {
    EXPECT_TRUE(
        CheckValue(rows_of(ElementType::kInt64, ElementType::kFloat32, rows), maps, "It").ok());
  }
  EXPECT_EQ(CheckValue(rows_of(ElementType::kString, ElementType::kFloat32, 2), maps, "It").code(),
            Code::kMismatchingDatatype);
  EXPECT_EQ(CheckValue(rows_of(ElementType::kInt64, ElementType::kFloat64, 2), maps, "It").Text(),
            "Element 0 of Element 0 of It is a tensor of double of shape []; required is: tensor "
            "of float with 0 axes.");
  EXPECT_FALSE(CheckValue(rows_of(ElementType::kInt64, ElementType::kFloat32, 2),
                          ValueType::Sequence(Floats(0)), "It")
                   .ok());
}

}  // namespace
}  // namespace onnxifi::program
