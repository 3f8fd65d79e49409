// SPDX-License-Identifier: Apache-2.0
//
// Memory plan: buffers alive together never overlap, dead ones are reused, and a Map writes in
// place only where that is safe.

#include "backends/core/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace onnxifi::plan {
namespace {

using program::Buffer;
using program::BufferId;
using program::Dim;
using program::Program;
using program::Shape;
using program::Step;
using tensor::ElementType;

class ProgramMaker {
 public:
  BufferId AddBuffer(Buffer::Kind kind, Shape shape) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.type = ElementType::kFloat32;
    buffer.shape = std::move(shape);
    return program.AddBuffer(std::move(buffer));
  }
  // A Map that adds its reads, each seen whole and in order, or transposed where `transposed` says
  // so.
  void AddMap(const std::vector<BufferId>& reads, BufferId write, bool transposed = false) {
    Step step;
    step.domain = program.buffers[write].shape;
    program::Expr sum = program::Constant(program.exprs, ElementType::kFloat32, 0);
    for (size_t k = 0; k < reads.size(); ++k) {
      program::View view = program::DenseView(reads[k], ElementType::kFloat32, step.domain);
      if (transposed) std::swap(view.strides[0], view.strides[1]);
      step.reads.push_back(view);
      sum = sum + program::Load(program.exprs, ElementType::kFloat32, static_cast<int>(k));
    }
    step.writes = {program::DenseView(write, ElementType::kFloat32, step.domain)};
    step.body = program::Map{{sum.id()}};
    program.steps.push_back(std::move(step));
  }

  Program program;
};

const BufferLifetime& Find(const std::vector<BufferLifetime>& lifetimes, BufferId buffer) {
  for (const BufferLifetime& lifetime : lifetimes) {
    if (lifetime.buffer == buffer) return lifetime;
  }
  ADD_FAILURE() << "buffer " << buffer << " has no lifetime";
  return lifetimes.front();
}

struct Buffers {
  std::vector<BufferLifetime> lifetimes;
  std::vector<int64_t> sizes_bytes;
};

Buffers MakeBuffers(std::mt19937& random, int count, unsigned step_count, unsigned longest_life) {
  Buffers buffers;
  for (int k = 0; k < count; ++k) {
    const int first = static_cast<int>(random() % step_count);
    buffers.lifetimes.push_back({k, first, first + static_cast<int>(random() % longest_life)});
    buffers.sizes_bytes.push_back(static_cast<int64_t>(random() % 5000));
  }
  return buffers;
}

void ExpectApart(const Buffers& buffers, const ArenaLayout& layout) {
  const std::vector<int64_t>& sizes = buffers.sizes_bytes;
  int64_t total = 0;
  for (size_t a = 0; a < sizes.size(); ++a) {
    total += (sizes[a] + 63) / 64 * 64;
    EXPECT_EQ(layout.offsets[a] % 64, 0);
    EXPECT_LE(layout.offsets[a] + sizes[a], layout.size_bytes);
    const BufferLifetime& one = buffers.lifetimes[a];
    for (size_t b = a + 1; b < sizes.size(); ++b) {
      const BufferLifetime& other = buffers.lifetimes[b];
      const bool in_time = one.first_write <= other.last_use && other.first_write <= one.last_use;
      const bool in_space = layout.offsets[a] < layout.offsets[b] + sizes[b] &&
                            layout.offsets[b] < layout.offsets[a] + sizes[a];
      if (in_time && in_space) ADD_FAILURE() << "buffers " << a << " and " << b << " overlap";
    }
  }
  EXPECT_LE(layout.size_bytes, total);
}

TEST(MemoryPlan, ManagesOnlyTemporariesThatAreNoOutputs) {
  ProgramMaker maker;
  BufferId input = maker.AddBuffer(Buffer::Kind::kInput, {4, 4});
  BufferId middle = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  BufferId output = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  maker.AddMap({input}, middle);
  maker.AddMap({middle}, output);
  maker.program.outputs.push_back({"y", output, {4, 4}});
  std::vector<BufferLifetime> lifetimes = FindLifetimes(maker.program);
  ASSERT_EQ(lifetimes.size(), 1u);
  EXPECT_EQ(lifetimes[0].buffer, middle);
  EXPECT_EQ(lifetimes[0].first_write, 0);
  EXPECT_EQ(lifetimes[0].last_use, 1);
}

TEST(MemoryPlan, WritesInPlaceOnAReadThatDies) {
  ProgramMaker maker;
  BufferId a = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  BufferId b = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  BufferId c = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  BufferId y = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  maker.AddMap({}, a);
  maker.AddMap({a}, b);
  maker.AddMap({b}, c);
  maker.AddMap({c}, y);
  maker.program.outputs.push_back({"y", y, {4, 4}});
  std::vector<BufferLifetime> lifetimes = FindLifetimes(maker.program);
  EXPECT_EQ(Find(lifetimes, b).shares, a);
  EXPECT_EQ(Find(lifetimes, c).shares, a);
  EXPECT_EQ(Find(lifetimes, a).last_use, 3) << "the owner lives as long as those that share it";
  ArenaLayout layout = LayOutArena(lifetimes, std::vector<int64_t>(3, 64));
  EXPECT_EQ(layout.size_bytes, 64);
}

TEST(MemoryPlan, DoesNotWriteInPlaceWhereTheReadLivesOn) {
  ProgramMaker maker;
  BufferId a = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  BufferId b = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  BufferId y = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  maker.AddMap({}, a);
  maker.AddMap({a}, b);
  maker.AddMap({a, b}, y);
  maker.program.outputs.push_back({"y", y, {4, 4}});
  EXPECT_EQ(Find(FindLifetimes(maker.program), b).shares, program::kNoBuffer);
}

TEST(MemoryPlan, DoesNotWriteInPlaceThroughAnotherView) {
  ProgramMaker maker;
  BufferId a = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  BufferId b = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  BufferId y = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  maker.AddMap({}, a);
  maker.AddMap({a}, b, /*transposed=*/true);
  maker.AddMap({b}, y);
  maker.program.outputs.push_back({"y", y, {4, 4}});
  EXPECT_EQ(Find(FindLifetimes(maker.program), b).shares, program::kNoBuffer);
}

TEST(MemoryPlan, ABufferWrittenInPartsIsTakenOverAsAWholeAndTakesOverNone) {
  ProgramMaker maker;
  BufferId parts = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  BufferId b = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  BufferId more_parts = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  BufferId y = maker.AddBuffer(Buffer::Kind::kTemporary, {4, 4});
  auto add_half = [&maker](BufferId read, BufferId write, int64_t offset) {
    maker.AddMap({read}, write);
    Step& step = maker.program.steps.back();
    step.domain = {2, 4};
    step.reads[0].offset = step.writes[0].offset = offset;
  };
  BufferId x = maker.AddBuffer(Buffer::Kind::kInput, {4, 4});
  add_half(x, parts, 8);
  add_half(x, parts, 0);
  maker.AddMap({parts}, b);
  add_half(b, more_parts, 0);
  add_half(b, more_parts, 8);
  maker.AddMap({more_parts}, y);
  maker.program.outputs.push_back({"y", y, {4, 4}});
  std::vector<BufferLifetime> lifetimes = FindLifetimes(maker.program);
  EXPECT_EQ(Find(lifetimes, parts).first_write, 0);
  EXPECT_EQ(Find(lifetimes, b).shares, parts);
  EXPECT_EQ(Find(lifetimes, parts).last_use, 4);
  EXPECT_EQ(Find(lifetimes, more_parts).shares, program::kNoBuffer);
  EXPECT_EQ(Find(lifetimes, more_parts).last_use, 5);
}

TEST(MemoryPlan, KeepsBuffersAliveTogetherApart) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const Buffers buffers = MakeBuffers(random, 1 + static_cast<int>(random() % 40), 30, 10);
    ExpectApart(buffers, LayOutArena(buffers.lifetimes, buffers.sizes_bytes));
  }
}

TEST(MemoryPlan, KeepsThousandsOfBuffersApart) {
  std::mt19937 random(11);
  // Few alive together, as in a network, and many.
  for (const int longest_life : {8, 2000}) {
    const Buffers buffers = MakeBuffers(random, 5000, 5000, longest_life);
    ExpectApart(buffers, LayOutArena(buffers.lifetimes, buffers.sizes_bytes));
  }
}

TEST(MemoryPlan, PutsEachBufferAtTheLowestFreeOffset) {
  // Largest first: 0 at the bottom, 1 above it, 2 in the place of 0 once that is dead, 3 in the gap
  // between 2 and 1, 4, which finds none, above all.
  const std::vector<BufferLifetime> lifetimes = {
      {0, 0, 3}, {1, 2, 9}, {2, 4, 6}, {3, 5, 9}, {4, 6, 9}};
  const ArenaLayout layout =
      LayOutArena(lifetimes, std::vector<int64_t>{10 * 64, 9 * 64, 7 * 64, 3 * 64, 2 * 64});
  EXPECT_EQ(layout.offsets, (std::vector<int64_t>{0, 10 * 64, 0, 7 * 64, 19 * 64}));
  EXPECT_EQ(layout.size_bytes, 21 * 64);
}

TEST(MemoryPlan, SaturatesInsteadOfOverflowing) {
  std::vector<BufferLifetime> lifetimes = {{0, 0, 5}, {1, 0, 5}};
  std::vector<int64_t> sizes = {INT64_MAX / 2 + 100, INT64_MAX / 2 + 100};
  EXPECT_EQ(LayOutArena(lifetimes, sizes).size_bytes, INT64_MAX);
}

}  // namespace
}  // namespace onnxifi::plan
