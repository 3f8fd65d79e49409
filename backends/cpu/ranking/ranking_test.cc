// SPDX-License-Identifier: Apache-2.0
//
// Ranking, against the reference: random steps, and TopK along every axis, whole, cut into as many
// parts as there can be, and on threads.

#include "backends/cpu/ranking/ranking.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "backends/cpu/testing/divided_steps.h"

namespace onnxifi::ranking {
namespace {

using program::Index;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;

// As TopK has it: the axis along which elements are compared becomes the domain's last. Small
// numbers: many are equal.
RandomStep MakeTopK(ElementType type, const Extents& extents, size_t axis, int64_t k) {
  RandomStep made;
  std::mt19937 random(11);
  auto add = [&](ElementType element_type, Extents shape) {
    tensor::Tensor tensor = *tensor::Tensor::Allocate(element_type, shape);
    for (int64_t element = 0; element < tensor.element_count(); ++element) {
      const auto number = static_cast<int64_t>(random() % 100);
      tensor::StoreScalar(
          element_type, tensor.mutable_data(), element,
          tensor::CastScalar(ElementType::kInt64, element_type, tensor::Scalar{.i = number}));
    }
    program::Buffer buffer;
    buffer.type = element_type;
    buffer.shape = program::Shape(shape.begin(), shape.end());
    made.buffers.push_back(std::move(tensor));
    const program::BufferId id = made.program.AddBuffer(buffer);
    std::vector<int> axes;
    for (int other = 0; other < static_cast<int>(shape.size()); ++other) {
      if (other != static_cast<int>(axis)) axes.push_back(other);
    }
    axes.push_back(static_cast<int>(axis));
    return program::Permute({program::DenseView(id, element_type, buffer.shape), buffer.shape},
                            axes);
  };
  const program::Operand source = add(type, extents);
  Extents out = extents;
  out[axis] = k;
  program::Step step;
  step.domain = source.shape;
  step.reads = {source.view};
  step.writes = {add(type, out).view, add(ElementType::kInt64, out).view};
  Index index;
  index.kind = Index::Kind::kTopK;
  index.k = k;
  step.body = index;
  made.program.steps.push_back(std::move(step));
  return made;
}

void Compare(const RandomStep& step) { cpu::CompareDividedStep(SelectRanking, step); }

TEST(RankingTest, RandomStepsAgreeWithTheReference) {
  // Three of seven kinds.
  cpu::CompareDividedRandomSteps(SelectRanking, reference::Family::kIndex, 0.25);
}

TEST(RankingTest, RowsAlongEveryAxisAgreeWithTheReference) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kInt64, ElementType::kInt32,
                                 ElementType::kUint8, ElementType::kFloat16, ElementType::kBool}) {
    for (const int64_t k : {1, 5, 30}) {
      Compare(MakeTopK(type, {500, 37}, 0, k));
      Compare(MakeTopK(type, {37, 500}, 1, k));
      Compare(MakeTopK(type, {3, 300, 5, 7}, 1, k));
      Compare(MakeTopK(type, {2, 3, 40, 1}, 2, k));
      Compare(MakeTopK(type, {40, 3, 5, 7}, 0, k));
    }
  }
}

TEST(RankingTest, FewElementsOfRowsSideBySideAreTakenByVectors) {
  const auto detail = [](const RandomStep& made) {
    device::Serial serial;
    cpu::RecipeDevice device(SelectRanking, serial, {});
    const program::Step& step = made.program.steps[0];
    const device::Selection selection = *device.Select({made.program, step});
    const auto kernel = *device.Build(*selection.recipe);
    const std::vector<int64_t> dims;
    return (*kernel->Bind(device::Bind(made.program, step, dims), {}))->Detail();
  };
  for (const ElementType type : {ElementType::kFloat32, ElementType::kInt64}) {
    EXPECT_EQ(detail(MakeTopK(type, {500, 37}, 0, 3)), "vectors of rows");
    EXPECT_EQ(detail(MakeTopK(type, {3, 300, 5, 7}, 1, 16)), "vectors of rows");
    EXPECT_EQ(detail(MakeTopK(type, {1, 32, 5, 7}, 0, 1)), "vectors of rows");
    EXPECT_EQ(detail(MakeTopK(type, {37, 500}, 1, 3)), "");
    EXPECT_EQ(detail(MakeTopK(type, {500, 37}, 0, 17)), "");
  }
}

}  // namespace
}  // namespace onnxifi::ranking
