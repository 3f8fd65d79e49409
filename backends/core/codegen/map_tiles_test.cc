// SPDX-License-Identifier: Apache-2.0
//
// Maps that read along another axis than they write, compared with the reference: transpositions of
// elements of every width, around the ends of tiles, with other reads beside them, guards, and
// views of writes that lie across.

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/tiled_fixture.h"

namespace onnxifi::codegen {
namespace {

using program::Dim;
using program::Expr;
using program::Shape;

class MapTilesTest : public TiledTest {
 protected:
  // A view of a new buffer whose axis k is axis order[k] of the buffer's.
  static View Permuted(StepMaker& make, const Extents& extents, const std::vector<size_t>& order,
                       ElementType type) {
    Extents stored(extents.size());
    for (size_t k = 0; k < order.size(); ++k) stored[order[k]] = extents[k];
    View view = make.Buffer(stored, type);
    const auto strides = view.strides;
    for (size_t k = 0; k < order.size(); ++k) view.strides[k] = strides[order[k]];
    return view;
  }

  void ExpectRightPermutation(const Extents& extents, const std::vector<size_t>& order,
                              ElementType type, bool permutes_write = false) {
    SCOPED_TRACE(testing::Message()
                 << testing::PrintToString(extents) << " " << testing::PrintToString(order) << " "
                 << tensor::Name(type) << (permutes_write ? ", write" : ""));
    std::vector<size_t> straight(extents.size());
    std::iota(straight.begin(), straight.end(), 0);
    StepMaker make(++seed_);
    make.step.domain = Shape(extents.begin(), extents.end());
    const Expr x = make.Read(Permuted(make, extents, permutes_write ? straight : order, type));
    make.step.body = program::Map{{x.id()}};
    make.step.writes = {Permuted(make, extents, permutes_write ? order : straight, type)};
    make.FinishStep(0);
    ExpectRight(make.made, "generated");
  }

  uint32_t seed_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Tunings, MapTilesTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Gpu" : "Processor";
                         });

TEST_P(MapTilesTest, TranspositionsOfEveryWidthAreRightAroundTheEndsOfTiles) {
  using enum ElementType;
  for (const ElementType type :
       {kFloat32, kInt8, kBool, kFloat16, kInt64, kFloat64, kComplex64, kComplex128}) {
    if (type == kFloat64 && !has_float64_) continue;
    for (const int64_t rows : {8, 31, 64, 65, 200}) {
      for (const int64_t columns : {9, 32, 33, 130}) {
        ExpectRightPermutation({rows, columns}, {1, 0}, type);
      }
    }
    ExpectRightPermutation({70, 45}, {1, 0}, type, /*permutes_write=*/true);
  }
}

TEST_P(MapTilesTest, PermutationsOfMoreAxesAreRight) {
  // Channels last and back, heads, one axis far outside, and axes that are too short for a tile.
  ExpectRightPermutation({2, 35, 5, 7}, {0, 2, 3, 1}, ElementType::kFloat32);
  ExpectRightPermutation({2, 5, 7, 35}, {0, 3, 1, 2}, ElementType::kFloat32);
  ExpectRightPermutation({2, 3, 40, 9}, {0, 2, 1, 3}, ElementType::kFloat16);
  ExpectRightPermutation({2, 3, 9, 40}, {0, 1, 3, 2}, ElementType::kFloat16);
  ExpectRightPermutation({33, 4, 65}, {2, 1, 0}, ElementType::kUint8);
  ExpectRightPermutation({12, 13, 14}, {1, 2, 0}, ElementType::kInt64);
  ExpectRightPermutation({500, 3}, {1, 0}, ElementType::kFloat32);
  ExpectRightPermutation({3, 500}, {1, 0}, ElementType::kFloat32);
  ExpectRightPermutation({9, 500}, {1, 0}, ElementType::kFloat32);
  ExpectRightPermutation({500, 9}, {1, 0}, ElementType::kFloat32);
  ExpectRightPermutation({70, 8, 8}, {0, 2, 1}, ElementType::kFloat32);
  ExpectRightPermutation({70, 12, 60}, {1, 2, 0}, ElementType::kInt8, /*permutes_write=*/true);
}

// Two across, one along, one per row, places, and results of several types; of the second step
// items have so much to do that their loops are not unrolled.
TEST_P(MapTilesTest, OtherReadsAndPlacesAreRight) {
  for (const int64_t columns : {33, 64}) {
    StepMaker make(90);
    const Extents extents = {3, 40, columns};
    const Expr a = make.Read(Permuted(make, extents, {0, 2, 1}, kFloat));
    const Expr b = Cast(make.Read(Permuted(make, extents, {1, 2, 0}, ElementType::kInt8)), kFloat);
    const Expr c = make.Read(make.Buffer(extents));
    View per_row = make.Buffer({40});
    per_row.strides.insert(per_row.strides.begin(), Dim(0));
    per_row.strides.emplace_back(0);
    const Expr d = make.Read(per_row);
    const Expr place = Cast(Coordinate(make.pool(), 2), kFloat) -
                       Cast(Coordinate(make.pool(), 1), kFloat) * Like(a, 64);
    Expr value = a * b + c * d + place;
    for (int term = 0; columns == 64 && term < 40; ++term) value = value + a * Like(a, term % 4);
    make.step.domain = Shape(extents.begin(), extents.end());
    make.step.body = program::Map{{value.id(), Cast(a, ElementType::kInt8).id()}};
    make.step.writes = {make.Buffer(extents), make.Buffer(extents, ElementType::kInt8)};
    make.FinishStep(0);
    ExpectRight(make.made, "generated");
  }
}

TEST_P(MapTilesTest, GuardedAndReversedReadsAreRight) {
  for (const bool is_along_write : {false, true}) {
    // Padded by two before and behind.
    StepMaker make(100 + (is_along_write ? 1 : 0));
    View padded = make.Buffer({36, 40});
    std::swap(padded.strides[0], padded.strides[1]);
    padded.fill = {.f = 7};
    padded.offset = is_along_write ? -80 : -2;
    padded.guards = {is_along_write ? program::Guard{{0, 1}, -2, 36}
                                    : program::Guard{{1, 0}, -2, 40}};
    const Expr x = make.Read(padded);
    const Extents out = is_along_write ? Extents{40, 40} : Extents{44, 36};
    View reversed = make.Buffer({out[1], out[0]});
    std::swap(reversed.strides[0], reversed.strides[1]);
    reversed.offset = out[0] - 1;
    reversed.strides[0] = -1;
    const Expr y = make.Read(reversed);
    make.step.domain = Shape(out.begin(), out.end());
    make.step.body = program::Map{{(x + y * Like(y, 3)).id()}};
    make.step.writes = {make.Buffer(out)};
    make.FinishStep(0);
    ExpectRight(make.made, "generated");
  }
}

}  // namespace
}  // namespace onnxifi::codegen
