// SPDX-License-Identifier: Apache-2.0
//
// Maps whose items take 16 bytes at a time, compared with the reference around the ends of rows, at
// offsets that are no multiples of 16 bytes, and for elements of every width.

#include <utility>
#include <vector>

#include "backends/core/codegen/testing/tiled_fixture.h"

namespace onnxifi::codegen {
namespace {

using program::Dim;
using program::Expr;
using program::Shape;

class MapLanesTest : public TiledTest {
 protected:
  // Casts rows of `from`, `gap` elements apart and from element `offset` on, to `to`.
  RandomStep MakeCast(ElementType from, ElementType to, int64_t rows, int64_t columns, int64_t gap,
                      int64_t offset) {
    StepMaker make(++seed_);
    View view = make.Buffer({rows, columns + gap + offset}, from);
    view.offset = offset;
    make.step.domain = {rows, columns};
    make.step.body = program::Map{{Cast(make.Read(view), to).id()}};
    make.step.writes = {make.Buffer({rows, columns}, to)};
    make.FinishStep(0);
    return std::move(make.made);
  }
  void ExpectRightCast(ElementType from, ElementType to, int64_t rows, int64_t columns,
                       int64_t gap = 0, int64_t offset = 0) {
    SCOPED_TRACE(testing::Message()
                 << rows << " x " << columns << " " << tensor::Name(from) << " to "
                 << tensor::Name(to) << ", gap " << gap << ", offset " << offset);
    ExpectRight(MakeCast(from, to, rows, columns, gap, offset), "generated");
  }

  uint32_t seed_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Tunings, MapLanesTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Gpu" : "Processor";
                         });

TEST_P(MapLanesTest, EveryPairOfWidthsIsRightAroundTheEndsOfRows) {
  using enum ElementType;
  const std::pair<ElementType, ElementType> pairs[] = {
      {kFloat32, kFloat16}, {kFloat16, kFloat32}, {kBfloat16, kFloat32}, {kInt8, kFloat32},
      {kFloat32, kInt8},    {kUint8, kInt16},     {kBool, kInt64},       {kInt64, kBool},
      {kInt32, kUint32},    {kInt16, kBfloat16},  {kUint64, kUint16},    {kFloat32, kFloat64}};
  for (const auto& [from, to] : pairs) {
    if (to == kFloat64 && !has_float64_) continue;
    for (const int64_t columns : {1, 3, 4, 15, 16, 17, 64, 1000, 1003}) {
      ExpectRightCast(from, to, 1, columns);
    }
    // Rows that are no multiples of a word, and words with some elements left over behind them.
    ExpectRightCast(from, to, 3, 48, 16);
    ExpectRightCast(from, to, 3, 50, 14);
    ExpectRightCast(from, to, 3, 48, 3);
    ExpectRightCast(from, to, 2, 33, 0, 1);
    ExpectRightCast(from, to, 2, 32, 16, 16);
  }
}

// Copies of complex and other wide elements.
TEST_P(MapLanesTest, CopiesAreRight) {
  using enum ElementType;
  for (const ElementType type : {kInt8, kUint16, kFloat32, kUint64, kFloat64}) {
    if (type == kFloat64 && !has_float64_) continue;
    for (const int64_t columns : {5, 16, 130}) {
      ExpectRightCast(type, type, 1, columns);
      ExpectRightCast(type, type, 3, columns, 16 - columns % 16);
    }
  }
}

TEST_P(MapLanesTest, WhatAllElementsOfARowShareIsLoadedOnce) {
  for (const int64_t columns : {1, 4, 8, 9, 64, 67}) {
    SCOPED_TRACE(columns);
    StepMaker make(static_cast<uint32_t>(columns));
    View per_row = make.Buffer({5}, ElementType::kFloat16);
    per_row.strides.emplace_back(0);
    View per_column = make.Buffer({columns});
    per_column.strides.insert(per_column.strides.begin(), Dim(0));
    const View scalar = make.Buffer({});
    const Expr x = make.Read(make.Buffer({5, columns}));
    const Expr row = Cast(make.Read(per_row), kFloat);
    const Expr place = Cast(Coordinate(make.pool(), 1), kFloat);
    const Expr line = Cast(Coordinate(make.pool(), 0), kFloat);
    const Expr value = x * row + make.Read(per_column) * make.Read(scalar) + place * line;
    make.step.domain = {5, columns};
    make.step.body = program::Map{{value.id(), Cast(value, ElementType::kInt8).id()}};
    make.step.writes = {make.Buffer({5, columns}), make.Buffer({5, columns}, ElementType::kInt8)};
    make.FinishStep(0);
    ExpectRight(make.made, "generated");
  }
}

// A guard that changes along the row, one that does not, and a read at coordinates from data.
TEST_P(MapLanesTest, GuardedAndIndexedReadsAreRight) {
  for (const bool is_along_row : {false, true}) {
    StepMaker make(70 + (is_along_row ? 1 : 0));
    View padded = make.Buffer({4, 32});
    padded.offset = is_along_row ? -2 : -32;
    padded.fill = {.f = 7};
    padded.guards = {is_along_row ? program::Guard{{0, 1}, -2, 32} : program::Guard{{1, 0}, -1, 4}};
    const Expr x = make.Read(padded);
    View shared = padded;
    if (!is_along_row) shared.strides[1] = 0;
    const Expr y = make.Read(shared);
    make.step.domain = is_along_row ? Shape{4, 36} : Shape{6, 32};
    const Extents out = is_along_row ? Extents{4, 36} : Extents{6, 32};
    make.step.body = program::Map{{(x + y).id()}};
    make.step.writes = {make.Buffer(out)};
    make.FinishStep(0);
    ExpectRight(make.made, "generated");
  }
  StepMaker make(80);
  const View table = make.Buffer({9, 32});
  const View rows = make.Buffer({5, 1}, ElementType::kUint8);
  View index = rows;
  index.strides[1] = 0;
  const Expr at = Cast(make.Read(index), ElementType::kInt64);
  make.step.reads.push_back(table);
  const Expr coordinates[] = {at, Coordinate(make.pool(), 1)};
  const Expr value = LoadAt(make.pool(), kFloat, 1, coordinates);
  make.step.domain = {5, 32};
  make.step.body = program::Map{{value.id()}};
  make.step.writes = {make.Buffer({5, 32})};
  make.FinishStep(0);
  ExpectRight(make.made, "generated");
}

}  // namespace
}  // namespace onnxifi::codegen
