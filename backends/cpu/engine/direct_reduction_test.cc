// SPDX-License-Identifier: Apache-2.0
//
// Direct reductions as core/ops lowers the Reduce operators: that they are recognised, and all
// axes of tensors of many extents, with gaps, against the reference's loops on every instruction
// set.

#include "backends/cpu/engine/direct_reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/device.h"
#include "backends/core/reference/random_step.h"
#include "backends/cpu/engine/testing/engine_device.h"
#include "backends/cpu/engine/testing/lowered_node.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

using tensor::ElementType;
using tensor::Extents;

constexpr ElementType kFloat32 = ElementType::kFloat32;
constexpr const char* kOperators[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
                                      "ReduceProd"};

// Over `axes`, which are an attribute in this version.
std::unique_ptr<program::Program> Lower(const std::string& op_type, const Extents& extents,
                                        const std::vector<int64_t>& axes,
                                        ElementType type = kFloat32) {
  return LowerNode(op_type, 11, {TypeOf(type, extents)}, {{"axes", axes}});
}

// Those whose elements are computed, which are reduced tile by tile.
constexpr const char* kComputing[] = {"ReduceSumSquare", "ReduceL1"};

// `gap`: elements between runs along the last axis that are not reduced.
reference::RandomStep MakeCase(const std::string& op_type, const Extents& extents,
                               const std::vector<int64_t>& axes, int64_t gap, ElementType type,
                               std::mt19937& random) {
  reference::RandomStep made;
  made.program = std::move(*Lower(op_type, extents, axes, type));
  program::Step& step = made.program.steps[0];
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float special[] = {std::nanf(""), kInfinity, -kInfinity, 0.0f, -0.0f};
  for (size_t b = 0; b < made.program.buffers.size(); ++b) {
    program::Buffer& buffer = made.program.buffers[b];
    Extents shape;
    for (const program::Dim& dim : buffer.shape) shape.push_back(dim.constant());
    if (static_cast<program::BufferId>(b) == step.reads[0].buffer) {
      const int64_t last = shape.back();
      shape.back() += gap;
      buffer.shape[buffer.shape.size() - 1] = shape.back();
      for (program::Dim& stride : step.reads[0].strides) {
        if (stride.constant() >= last) stride = stride.constant() / last * shape.back();
      }
    }
    tensor::Tensor tensor = *tensor::Tensor::Allocate(type, shape);
    // Sums of integers wrap.
    const double most = tensor::IsFloat(type) ? 2 : tensor::LargestFinite(type);
    const double least = tensor::IsUnsigned(type) ? 0 : -most;
    for (int64_t k = 0; k < tensor.element_count(); ++k) {
      tensor::Scalar number{.f = std::uniform_real_distribution<double>(least, most)(random)};
      if (tensor::IsFloat(type) && random() % 64 == 0) {
        number.f = special[random() % std::size(special)];
      }
      tensor::StoreScalar(type, tensor.mutable_data(), k,
                          tensor::CastScalar(ElementType::kFloat64, type, number));
    }
    made.buffers.push_back(std::move(tensor));
  }
  return made;
}

void CompareWithReference(std::span<const char* const> operators, const Extents& extents,
                          const std::vector<int64_t>& axes, ElementType type,
                          std::mt19937& random) {
  Shredder shredder;
  EngineDevice device(shredder, {.loops = LoopSet::kReference, .worth_a_thread = 0});
  reference::Device reference;
  for (const char* op_type : operators) {
    for (const int64_t gap : {0, 3}) {
      SCOPED_TRACE(testing::Message()
                   << op_type << " of " << tensor::Name(type) << testing::PrintToString(extents)
                   << " over " << testing::PrintToString(axes) << ", gap " << gap);
      const reference::RandomStep made = MakeCase(op_type, extents, axes, gap, type, random);
      const auto expected = RunStep(reference, made);
      const auto actual = RunStep(device, made);
      ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status().Text();
      const auto result = static_cast<size_t>(made.program.steps[0].writes[0].buffer);
      const tensor::Tensor& x = (*expected)[result];
      const tensor::Tensor& y = (*actual)[result];
      const int64_t bytes = tensor::SizeBytes(type, 1);
      for (int64_t k = 0; k < x.element_count(); ++k) {
        const bool is_nan =
            tensor::IsFloat(type) && std::isnan(x.AsDouble(k)) && std::isnan(y.AsDouble(k));
        ASSERT_TRUE(is_nan || std::memcmp(x.data() + k * bytes, y.data() + k * bytes,
                                          static_cast<size_t>(bytes)) == 0)
            << "element " << k << ": " << y.AsDouble(k) << " instead of " << x.AsDouble(k);
      }
    }
  }
}

void CompareAll(std::span<const char* const> operators, std::span<const ElementType> types) {
  const Extents shapes[] = {{1, 1, 5},     {2, 3, 7},     {3, 17, 33},  {1, 70, 129},
                            {5, 9, 200},   {40, 3, 65},   {2, 31, 900}, {150, 2, 100},
                            {2, 300, 141}, {1, 2, 20'000}};
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    std::mt19937 random(12);
    for (const Extents& extents : shapes) {
      const std::vector<int64_t> choices[] = {{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}};
      for (const std::vector<int64_t>& axes : choices) {
        for (const ElementType type : types) {
          CompareWithReference(operators, extents, axes, type, random);
        }
      }
    }
  });
}

TEST(DirectReductionTest, AgreesWithTheReference) {
  constexpr ElementType kTypes[] = {kFloat32,
                                    ElementType::kFloat64,
                                    ElementType::kInt32,
                                    ElementType::kInt64,
                                    ElementType::kUint8,
                                    ElementType::kInt16,
                                    ElementType::kUint64};
  CompareAll(kOperators, kTypes);
}

TEST(DirectReductionTest, TilesAgreeWithTheReference) {
  constexpr ElementType kTypes[] = {kFloat32, ElementType::kFloat64, ElementType::kInt32};
  CompareAll(kComputing, kTypes);
  constexpr ElementType kWidened[] = {ElementType::kFloat16, ElementType::kBfloat16};
  CompareAll(kOperators, kWidened);
}

TEST(DirectReductionTest, RecognisesWhatOperatorsLowerTo) {
  device::Serial serial;
  Runtime runtime(serial);
  const std::vector<int64_t> dims;
  for (const char* op_type : kOperators) {
    const std::pair<Extents, std::vector<int64_t>> cases[] = {
        {{4, 30, 100}, {1}}, {{4, 30, 100}, {2}}, {{4, 30, 100}, {1, 2}}, {{4, 90, 100}, {1}}};
    for (const auto& [extents, axes] : cases) {
      SCOPED_TRACE(testing::Message() << op_type << testing::PrintToString(axes));
      const std::unique_ptr<program::Program> program = Lower(op_type, extents, axes);
      const program::Step& step = program->steps[0];
      const std::optional<DirectReduction> found = FindDirectReduction(program->exprs, step);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->read, 0);
      const auto roots = std::make_shared<const Code>(
          Code::Compile(program->exprs, step.As<program::Reduce>()->roots, LoopSet::kFast));
      EXPECT_NE(BindDirectReduction(*found, roots, device::Bind(*program, step, dims), runtime),
                nullptr);
    }
  }
  const std::unique_ptr<program::Program> squares = Lower("ReduceSumSquare", {4, 30, 100}, {2});
  EXPECT_FALSE(FindDirectReduction(squares->exprs, squares->steps[0]).has_value());
}

}  // namespace
}  // namespace onnxifi::engine
