// SPDX-License-Identifier: Apache-2.0
//
// Index steps that are several kernels, compared with the reference around the ends of the runs
// and blocks that they cut elements into.

#include <limits>
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

class IndexTest : public StepTest {};

struct Selection {
  Extents domain;
  int64_t k;
  bool largest = true;
  ElementType type = kFloat;
  bool is_transposed = false;
};

// Few distinct values, so that most elements have equals.
RandomStep MakeTopK(const Selection& of, uint32_t seed) {
  StepMaker make(seed);
  View values =
      make.Buffer(of.is_transposed ? Extents{of.domain[1], of.domain[0]} : of.domain, of.type);
  if (of.is_transposed) std::swap(values.strides[0], values.strides[1]);
  make.step.reads = {values};
  make.step.domain = Shape(of.domain.begin(), of.domain.end());
  Extents out = of.domain;
  out.back() = of.k;
  make.step.writes = {make.Buffer(out, of.type), make.Buffer(out, ElementType::kInt64)};
  make.step.body = Index{.kind = Index::Kind::kTopK, .k = of.k, .largest = of.largest};
  make.FinishStep(0);
  return std::move(make.made);
}

TEST_F(IndexTest, TopKIsRightAroundTheEndsOfRuns) {
  uint32_t seed = 0;
  // Runs of 64 become runs of 1024 and of 16384.
  for (const int64_t extent :
       {0, 1, 63, 64, 65, 130, 1023, 1024, 1025, 3000, 16384, 16385, 40000}) {
    for (const int64_t k : {int64_t{0}, int64_t{1}, int64_t{70}, extent / 2, extent}) {
      if (k > extent) continue;
      SCOPED_TRACE(testing::Message() << k << " of " << extent);
      Selection selection{.domain = {1 + seed % 3, extent}, .k = k};
      selection.largest = seed % 2 == 0;
      selection.is_transposed = seed % 5 == 2;
      ExpectRight(MakeTopK(selection, seed++), "generated");
    }
  }
}

TEST_F(IndexTest, TopKOrdersEveryTypeAndNoNumberAsTheReferenceDoes) {
  for (const ElementType type : {ElementType::kInt8, ElementType::kUint8, ElementType::kInt64,
                                 ElementType::kUint64, ElementType::kFloat16}) {
    SCOPED_TRACE(tensor::Name(type));
    ExpectRight(MakeTopK({.domain = {2, 1500}, .k = 77, .type = type}, 5), "generated");
  }
  for (const bool largest : {true, false}) {
    RandomStep step = MakeTopK({.domain = {2, 3, 300}, .k = 40, .largest = largest}, 6);
    auto* x = reinterpret_cast<float*>(step.buffers[0].mutable_data());
    for (int64_t k = 0; k + 5 < step.buffers[0].element_count(); k += 29) {
      x[k] = std::numeric_limits<float>::quiet_NaN();
      x[k + 3] = std::numeric_limits<float>::infinity();
      x[k + 4] = -0.0F;
      x[k + 5] = 0.0F;
    }
    ExpectRight(step, "generated");
  }
}

TEST_F(IndexTest, TopKWritesWhatIsAskedFor) {
  for (const size_t unwanted : {0, 1}) {
    RandomStep step = MakeTopK({.domain = {3, 100}, .k = 9}, 7);
    step.program.steps[0].writes[unwanted].buffer = program::kNoBuffer;
    ExpectRight(step, "generated");
  }
}

RandomStep MakeNonZero(const Extents& domain, bool is_count, uint32_t seed) {
  StepMaker make(seed);
  make.step.reads = {make.Buffer(domain, seed % 2 == 0 ? kFloat : ElementType::kInt8)};
  make.step.domain = Shape(domain.begin(), domain.end());
  if (is_count) {
    make.step.writes = {make.Buffer({}, ElementType::kInt64)};
    make.step.body = Index{.kind = Index::Kind::kCountNonZero};
  } else {
    make.step.writes = {make.Buffer(
        {static_cast<int64_t>(domain.size()), tensor::ElementCount(domain)}, ElementType::kInt64)};
    make.step.body = Index{.kind = Index::Kind::kNonZero};
  }
  make.FinishStep(0);
  return std::move(make.made);
}

TEST_F(IndexTest, NonZeroElementsAreFoundInOrderAroundTheEndsOfBlocks) {
  uint32_t seed = 0;
  // Blocks have 256 elements until there are 1024 of them, those of groups at most 2048.
  for (const Extents& domain : {Extents{0},
                                {1},
                                {255},
                                {256},
                                {257},
                                {5, 0, 3},
                                {3, 85},
                                {4, 16, 4},
                                {5, 7, 11, 13},
                                {262144},
                                {262145},
                                {2047},
                                {2048},
                                {3, 683},
                                {3, 300, 700},
                                {7, 300'007}}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ExpectRight(MakeNonZero(domain, /*is_count=*/false, seed), "generated");
    ExpectRight(MakeNonZero(domain, /*is_count=*/true, seed), "generated");
    ++seed;
  }
  ExpectRight(MakeNonZero({}, /*is_count=*/true, 0), "generated");
}

}  // namespace
}  // namespace onnxifi::codegen
