// SPDX-License-Identifier: Apache-2.0
//
// GatheredElements: what GatherElements lowers to, against a plain loop: elements of every size,
// positions of both types inside and outside of the axis, any axis, positions that are broadcast;
// and what is left to tiles.

#include "backends/cpu/engine/gathered_elements.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/random_step.h"
#include "backends/cpu/engine/testing/engine_device.h"
#include "backends/cpu/engine/testing/lowered_node.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

using tensor::ElementType;
using tensor::Extents;

struct Case {
  ElementType type = ElementType::kFloat32;
  ElementType positions = ElementType::kInt64;
  Extents data = {3, 7, 21};
  Extents result = {3, 5, 19};
  int64_t axis = 1;
  bool is_broadcast = false;  // positions along the last axis
  bool is_repeated = false;   // positions along all other axes
};

std::unique_ptr<program::Program> Lower(const Case& test) {
  return LowerNode("GatherElements", 13,
                   {TypeOf(test.type, test.data), TypeOf(test.positions, test.result)},
                   {{"axis", test.axis}});
}

// Whether the kernel is bound; then it computes what a loop does.
bool Compare(const Case& test) {
  reference::RandomStep made;
  made.program = std::move(*Lower(test));
  program::Step& step = made.program.steps[0];
  std::mt19937_64 random(7);
  const int64_t extent = test.data[static_cast<size_t>(test.axis)];
  const int64_t element_bytes = tensor::BitWidth(test.type) / 8;
  std::vector<int64_t> positions;
  // The data are guarded.
  const size_t guarded = step.reads[0].guards.empty() ? 1 : 0;
  program::View& at = step.reads[1 - guarded];
  for (size_t b = 0; b < made.program.buffers.size(); ++b) {
    const program::Buffer& buffer = made.program.buffers[b];
    Extents shape;
    for (const program::Dim& dim : buffer.shape) shape.push_back(dim.constant());
    tensor::Tensor tensor = *tensor::Tensor::Allocate(buffer.type, shape);
    std::byte* const bytes = tensor.mutable_data();
    if (static_cast<program::BufferId>(b) == at.buffer) {
      for (int64_t k = 0; k < tensor.element_count(); ++k) {
        int64_t position =
            static_cast<int64_t>(random() % static_cast<uint64_t>(2 * extent)) - extent;
        if (random() % 9 == 0) position = k % 2 == 0 ? extent : -extent - 1;
        if (random() % 31 == 0) position = k % 2 == 0 ? INT32_MAX : INT32_MIN;
        tensor::StoreScalar(test.positions, bytes, k, {.i = position});
        positions.push_back(position);
      }
    } else {
      const bool is_bool = buffer.type == ElementType::kBool;
      for (int64_t k = 0; k < tensor.element_count() * element_bytes; ++k) {
        bytes[k] = static_cast<std::byte>(is_bool ? random() % 2 : random());
      }
    }
    made.buffers.push_back(std::move(tensor));
  }
  if (test.is_broadcast) at.strides.back() = program::Dim(0);
  if (test.is_repeated) at.strides[0] = at.strides[1] = program::Dim(0);
  Shredder shredder;
  EngineDevice device(shredder, {.worth_a_thread = 0});
  const std::vector<int64_t> dims;
  Runtime runtime(shredder);
  const bool is_bound =
      BindGatheredElements(device::Bind(made.program, step, dims), runtime) != nullptr;
  const auto actual = RunStep(device, made);
  EXPECT_TRUE(actual.ok()) << actual.status().Text();
  if (!actual.ok()) return is_bound;
  const std::byte* const result = (*actual)[static_cast<size_t>(step.writes[0].buffer)].data();
  const std::byte* const data =
      made.buffers[static_cast<size_t>(step.reads[guarded].buffer)].data();
  for (int64_t k = 0; k < tensor::ElementCount(test.result); ++k) {
    Extents place(3);
    int64_t left = k;
    for (size_t axis = 3; axis-- > 0;) {
      place[axis] = left % test.result[axis];
      left /= test.result[axis];
    }
    int64_t number = test.is_broadcast ? k - place[2] : k;
    if (test.is_repeated) number = place[2];
    int64_t position = positions[static_cast<size_t>(number)];
    if (position < 0) position += extent;
    const bool is_inside = position >= 0 && position < extent;
    place[static_cast<size_t>(test.axis)] = is_inside ? position : 0;
    const int64_t from = (place[0] * test.data[1] + place[1]) * test.data[2] + place[2];
    std::vector<std::byte> expected(static_cast<size_t>(element_bytes));
    if (is_inside) std::memcpy(expected.data(), data + from * element_bytes, expected.size());
    EXPECT_EQ(std::memcmp(result + k * element_bytes, expected.data(), expected.size()), 0) << k;
    if (testing::Test::HasFailure()) break;
  }
  return is_bound;
}

TEST(GatheredElementsTest, AreThoseOfALoop) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const ElementType type : {ElementType::kFloat32, ElementType::kUint8, ElementType::kBool,
                                   ElementType::kFloat16, ElementType::kFloat64}) {
      for (const ElementType positions : {ElementType::kInt32, ElementType::kInt64}) {
        for (const int64_t axis : {0, 1, 2}) {
          SCOPED_TRACE(std::string(tensor::Name(type)) + " along axis " + std::to_string(axis));
          EXPECT_TRUE(Compare({.type = type, .positions = positions, .axis = axis}));
          EXPECT_FALSE(
              Compare({.type = type, .positions = positions, .axis = axis, .is_broadcast = true}));
          EXPECT_FALSE(
              Compare({.type = type, .positions = positions, .axis = axis, .is_repeated = true}));
        }
      }
    }
  });
}

TEST(GatheredElementsTest, LongRowsAreDivided) {
  for (const int64_t axis : {1, 2}) {
    EXPECT_TRUE(Compare({.data = {1, 3, 40'000}, .result = {1, 2, 39'999}, .axis = axis}));
  }
}

// As steps before leave positions that nothing else reads.
TEST(GatheredElementsTest, ResultsMayLieWhereTheirPositionsDo) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const auto [type, positions] : {std::pair(ElementType::kFloat32, ElementType::kInt32),
                                         std::pair(ElementType::kFloat64, ElementType::kInt64)}) {
      const Case test = {.type = type, .positions = positions};
      EXPECT_TRUE(Compare(test));
      const std::unique_ptr<program::Program> lowered = Lower(test);
      const program::Step& step = lowered->steps[0];
      const size_t guarded = step.reads[0].guards.empty() ? 1 : 0;
      const auto bytes_of = [](ElementType of, const Extents& extents) {
        return static_cast<size_t>(tensor::SizeBytes(of, tensor::ElementCount(extents)));
      };
      std::vector<std::byte> data(bytes_of(type, test.data));
      std::vector<std::byte> apart(bytes_of(type, test.result));
      std::vector<std::byte> shared(bytes_of(positions, test.result));
      std::mt19937_64 random(11);
      for (std::byte& byte : data) byte = static_cast<std::byte>(random());
      for (int64_t k = 0; k < tensor::ElementCount(test.result); ++k) {
        tensor::StoreScalar(positions, shared.data(), k,
                            {.i = static_cast<int64_t>(random() % 16) - 8});
      }
      std::vector<std::byte> kept = shared;
      Shredder shredder;
      Runtime runtime(shredder);
      const std::vector<int64_t> dims;
      const auto bound = BindGatheredElements(device::Bind(*lowered, step, dims), runtime);
      ASSERT_NE(bound, nullptr);
      std::vector<std::byte*> addresses(lowered->buffers.size());
      addresses[static_cast<size_t>(step.reads[guarded].buffer)] = data.data();
      addresses[static_cast<size_t>(step.reads[1 - guarded].buffer)] = kept.data();
      addresses[static_cast<size_t>(step.writes[0].buffer)] = apart.data();
      ASSERT_TRUE(bound->Run(addresses).ok());
      addresses[static_cast<size_t>(step.reads[1 - guarded].buffer)] = shared.data();
      addresses[static_cast<size_t>(step.writes[0].buffer)] = shared.data();
      ASSERT_TRUE(bound->Run(addresses).ok());
      EXPECT_EQ(shared, apart);
    }
  });
}

// Where positions lead beyond another axis, too, and where rows are short; above, where all of a
// row or all rows have the same.
TEST(GatheredElementsTest, OthersAreLeftToTiles) {
  EXPECT_FALSE(Compare({.data = {3, 7, 3}, .result = {3, 5, 3}}));
  const std::unique_ptr<program::Program> longer =
      Lower({.data = {3, 7, 21}, .result = {4, 5, 19}});
  device::Serial serial;
  Runtime runtime(serial);
  const std::vector<int64_t> dims;
  EXPECT_EQ(BindGatheredElements(device::Bind(*longer, longer->steps[0], dims), runtime), nullptr);
}

}  // namespace
}  // namespace onnxifi::engine
