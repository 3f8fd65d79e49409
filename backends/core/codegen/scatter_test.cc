// SPDX-License-Identifier: Apache-2.0
//
// Scatter compared with the reference bit by bit, around the numbers of updates and targets at
// which it is other kernels that do it: many updates of one target, few of many, none at all.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <utility>

#include "backends/core/codegen/testing/step_fixture.h"

namespace onnxifi::codegen {
namespace {

using program::Index;
using program::Shape;
using program::View;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;

struct Scatter {
  Extents domain;
  Extents target;
  Index::Combine combine = Index::Combine::kAdd;
  ElementType type = kFloat;
  // Coordinates are drawn from so many values along each axis; 0: from all of them, and from some
  // on both sides that are no targets.
  int64_t spread = 0;
  bool is_transposed = false;  // the views of updates and of the target
};

std::span<float> Floats(tensor::Tensor& tensor) {
  return {reinterpret_cast<float*>(tensor.mutable_data()),
          static_cast<size_t>(tensor.element_count())};
}

View BufferOf(StepMaker& make, Extents extents, ElementType type, bool is_transposed) {
  if (!is_transposed) return make.Buffer(extents, type);
  std::reverse(extents.begin(), extents.end());
  View view = make.Buffer(extents, type);
  std::reverse(view.strides.begin(), view.strides.end());
  return view;
}

RandomStep MakeScatter(const Scatter& of, uint32_t seed) {
  StepMaker make(seed);
  std::mt19937 random(seed);
  make.step.domain = Shape(of.domain.begin(), of.domain.end());
  make.step.reads = {BufferOf(make, of.domain, of.type, of.is_transposed)};
  for (const int64_t extent : of.target) {
    make.step.reads.push_back(make.Buffer(of.domain, ElementType::kInt64));
    tensor::Tensor& at = make.made.buffers.back();
    auto* values = reinterpret_cast<int64_t*>(at.mutable_data());
    for (int64_t k = 0; k < at.element_count(); ++k) {
      const auto number = static_cast<int64_t>(random());
      values[k] =
          of.spread > 0 ? std::min(extent - 1, number % of.spread) : number % (extent + 4) - 2;
    }
  }
  make.step.writes = {BufferOf(make, of.target, of.type, of.is_transposed)};
  if (of.type == kFloat) {
    // Of many magnitudes, so that every order of additions has a sum of its own.
    for (tensor::Tensor& buffer : make.made.buffers) {
      if (buffer.type() != kFloat) continue;
      for (float& value : Floats(buffer)) {
        value = std::ldexp(static_cast<float>(random() % 2000) / 1000 - 1,
                           static_cast<int>(random() % 24) - 12);
        if (of.combine == Index::Combine::kMul) value = std::copysign(1 + value / 8192, value);
      }
    }
  }
  make.step.body = Index{.kind = Index::Kind::kScatter,
                         .combine = of.combine,
                         .target = Shape(of.target.begin(), of.target.end())};
  make.FinishStep(0);
  return std::move(make.made);
}

constexpr Index::Combine kCombines[] = {Index::Combine::kNone, Index::Combine::kAdd,
                                        Index::Combine::kMul, Index::Combine::kMin,
                                        Index::Combine::kMax};

class ScatterTest : public StepTest {
 protected:
  void ExpectSameBits(const RandomStep& step) {
    reference::Device reference;
    const auto expected = RunStep(reference, step);
    const auto actual = RunStep(*device_, step);
    ASSERT_TRUE(expected.ok()) << expected.status().Text();
    ASSERT_TRUE(actual.ok()) << actual.status().Text();
    const std::span<const std::byte> right = expected->back().bytes();
    const std::span<const std::byte> bytes = actual->back().bytes();
    const auto differs = std::mismatch(right.begin(), right.end(), bytes.begin());
    EXPECT_EQ(differs.first, right.end())
        << "byte " << differs.first - right.begin() << " of " << right.size();
  }
};

TEST_F(ScatterTest, DuplicatesTakeEffectInOrderWhateverTheirNumber) {
  uint32_t seed = 0;
  for (const int64_t updates : {0, 1, 2, 63, 1023, 1024, 1025, 4097, 33000}) {
    for (const int64_t targets : {1, 15, 16, 1000}) {
      for (const Index::Combine combine : kCombines) {
        SCOPED_TRACE(testing::Message() << updates << " updates of " << targets << " targets, "
                                        << static_cast<int>(combine));
        ExpectSameBits(
            MakeScatter({.domain = {updates}, .target = {targets}, .combine = combine}, seed++));
      }
    }
  }
}

TEST_F(ScatterTest, FewUpdatesFindTheirPlaceAmongManyTargets) {
  uint32_t seed = 1000;
  for (const int64_t updates : {3, 900, 3001}) {
    for (const Index::Combine combine : kCombines) {
      for (const int64_t spread : {0, 50}) {
        SCOPED_TRACE(testing::Message() << updates << " updates, " << static_cast<int>(combine));
        ExpectSameBits(MakeScatter(
            {.domain = {updates}, .target = {1'500'007}, .combine = combine, .spread = spread},
            seed++));
      }
    }
  }
}

TEST_F(ScatterTest, ManyUpdatesMayAllMeet) {
  uint32_t seed = 2000;
  for (const Index::Combine combine : kCombines) {
    SCOPED_TRACE(static_cast<int>(combine));
    ExpectSameBits(MakeScatter(
        {.domain = {100, 1003}, .target = {40, 700}, .combine = combine, .spread = 1}, seed++));
    ExpectSameBits(
        MakeScatter({.domain = {100, 1003}, .target = {40, 700}, .combine = combine}, seed++));
  }
}

TEST_F(ScatterTest, OneDuplicateIsEnough) {
  constexpr int64_t kUpdates = 5003;
  for (const Index::Combine combine : kCombines) {
    for (const int64_t duplicates : {0, 1}) {
      SCOPED_TRACE(testing::Message()
                   << duplicates << " duplicates, " << static_cast<int>(combine));
      RandomStep step =
          MakeScatter({.domain = {kUpdates}, .target = {kUpdates + 7}, .combine = combine}, 2500);
      auto* at = reinterpret_cast<int64_t*>(step.buffers[1].mutable_data());
      // Every target once, or not at all, or too far away.
      for (int64_t k = 0; k < kUpdates; ++k) at[k] = k * 13 % (kUpdates + 20) - 5;
      if (duplicates == 1) at[4999] = at[2];
      ExpectSameBits(step);
    }
  }
}

TEST_F(ScatterTest, ViewsMayHaveAnyStrides) {
  uint32_t seed = 3000;
  for (const Index::Combine combine : kCombines) {
    for (const int64_t rows : {3, 41}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << static_cast<int>(combine));
      ExpectSameBits(MakeScatter({.domain = {rows, 7, 31},
                                  .target = {13, 5, 17},
                                  .combine = combine,
                                  .is_transposed = true},
                                 seed++));
    }
  }
  // A target without axes has one element.
  for (const int64_t updates : {5, 2000}) {
    ExpectSameBits(MakeScatter({.domain = {updates}, .target = {}}, seed++));
  }
  ExpectSameBits(MakeScatter({.domain = {3000}, .target = {0}}, seed++));
  ExpectSameBits(MakeScatter({.domain = {}, .target = {9}}, seed++));
}

TEST_F(ScatterTest, EveryTypeIsCombined) {
  uint32_t seed = 4000;
  for (const ElementType type :
       {ElementType::kInt4, ElementType::kUint4, ElementType::kInt8, ElementType::kUint16,
        ElementType::kInt32, ElementType::kInt64, ElementType::kUint64, ElementType::kFloat16,
        ElementType::kBfloat16, ElementType::kFloat8E4M3Fn, ElementType::kFloat6E2M3,
        ElementType::kFloat64}) {
    ++seed;
    if (type == ElementType::kFloat64 && !has_float64_) continue;
    SCOPED_TRACE(tensor::Name(type));
    const Index::Combine combine = kCombines[1 + seed % 4];
    for (const int64_t updates : {700, 1700}) {
      ExpectSameBits(MakeScatter(
          {.domain = {updates}, .target = {333}, .combine = combine, .type = type}, seed));
    }
  }
  for (const ElementType type : {ElementType::kBool, ElementType::kComplex64}) {
    ExpectSameBits(MakeScatter(
        {.domain = {1700}, .target = {333}, .combine = Index::Combine::kNone, .type = type},
        seed++));
  }
}

TEST_F(ScatterTest, NoNumberAndZerosAreWhatTheReferenceMakesOfThem) {
  for (const Index::Combine combine : kCombines) {
    for (const int64_t updates : {600, 3000}) {
      SCOPED_TRACE(testing::Message() << updates << " updates, " << static_cast<int>(combine));
      RandomStep step =
          MakeScatter({.domain = {updates}, .target = {200}, .combine = combine}, 5000);
      const std::span<float> values = Floats(step.buffers[0]);
      for (size_t k = 0; k + 3 < values.size(); k += 50) {
        // NaN has many bit patterns, of which arithmetic may choose any.
        if (combine == Index::Combine::kNone) values[k] = std::numeric_limits<float>::quiet_NaN();
        values[k + 1] = std::numeric_limits<float>::infinity();
        values[k + 2] = -0.0F;
        values[k + 3] = 0.0F;
      }
      if (combine == Index::Combine::kMul || combine == Index::Combine::kAdd) {
        ExpectRight(step, "generated");
      } else {
        ExpectSameBits(step);
      }
    }
  }
}

TEST_F(ScatterTest, CoordinatesFarOutsideAreNoTargets) {
  for (const int64_t updates : {500, 2500}) {
    RandomStep step = MakeScatter({.domain = {updates}, .target = {64}}, 6000);
    auto* at = reinterpret_cast<int64_t*>(step.buffers[1].mutable_data());
    at[0] = std::numeric_limits<int64_t>::min();
    at[1] = std::numeric_limits<int64_t>::max();
    at[2] = int64_t{1} << 32;
    at[3] = -(int64_t{1} << 32) + 5;
    ExpectSameBits(step);
  }
}

}  // namespace
}  // namespace onnxifi::codegen
