// SPDX-License-Identifier: Apache-2.0
//
// Random windows over tensors with channels or pixels innermost, compared with the reference's
// loops: every element has to be the same, on every instruction set that the processor has.

#include "backends/cpu/pooling/pooling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"
#include "backends/core/reference/host_memory.h"
#include "backends/core/reference/random_step.h"
#include "backends/cpu/engine/testing/engine_device.h"
#include "backends/cpu/pooling/plane_reduction.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::pooling {
namespace {

using program::Buffer;
using program::Dim;
using program::Expr;
using program::View;
using program::Window;
using tensor::ElementType;
using tensor::Extents;

constexpr ElementType kFloat32 = ElementType::kFloat32;

// The kernels of this folder alone as a device.
class PoolingDevice final : public device::Device {
 public:
  PoolingDevice(device::Parallel& parallel, const engine::Settings& settings)
      : runtime_(parallel, settings) {}

  device::Memory& memory() override { return memory_; }
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<const device::Recipe> recipe, SelectPooling(facts));
    device::Selection selection;
    selection.recipe = std::move(recipe);
    return selection;
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override {
    return static_cast<const engine::Recipe&>(recipe).BuildKernel(runtime_);
  }

 private:
  reference::HostMemory memory_;
  engine::Runtime runtime_;
};

class RandomPooling {
 public:
  explicit RandomPooling(uint32_t seed)
      : random_(seed), is_planar_(seed % 2 == 0), has_specials_(seed % 5 < 3) {
    const Extents domain = MakeWindow();
    Extents source = {domain[0], domain[1]};
    for (const Dim& extent : window_.in_spatial) source.push_back(extent.constant());
    AddView(source, Buffer::Kind::kInput, step_.reads);
    MakeEpilogue(domain);
    for (size_t k = 0; k < window_.roots.size(); ++k) {
      AddView(domain, Buffer::Kind::kTemporary, step_.writes);
    }
    for (int64_t extent : domain) step_.domain.emplace_back(extent);
    step_.body = window_;
    made_.program.steps.push_back(std::move(step_));
  }

  const reference::RandomStep& step() const { return made_; }

 private:
  int64_t Roll(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool Chance(int percent) { return Roll(1, 100) <= percent; }

  // The output's extents [N, C, spatial].
  Extents MakeWindow() {
    window_.kind = Chance(50) ? Window::Kind::kMax : Window::Kind::kAverage;
    window_.count_include_pad = Chance(50);
    if (window_.kind == Window::Kind::kMax && Chance(40)) {
      type_ = Chance(50) ? ElementType::kUint8 : ElementType::kInt8;
    } else if (window_.kind == Window::Kind::kMax && Chance(40)) {
      type_ = ElementType::kBfloat16;
    } else if (Chance(30)) {
      type_ = ElementType::kFloat64;
    }
    window_.accumulator = tensor::ArithmeticType(type_);
    const auto axes = static_cast<size_t>(Roll(1, 3));
    // One axis beyond the reach of a byte, of few channels, since the reference visits each
    // element.
    const auto long_axis = Chance(6) ? static_cast<size_t>(Roll(0, 2)) : axes;
    Extents domain = {Roll(1, 3), Chance(10) ? Roll(100, 1200) : Roll(1, 70)};
    if (long_axis < axes) domain = {Roll(1, 2), Roll(1, 4)};
    while (window_.strides.size() < axes) {
      const bool is_long = window_.strides.size() == long_axis;
      const int64_t extent = is_long            ? Roll(300, 700)
                             : long_axis < axes ? Roll(1, 3)
                                                : Roll(1, axes == 1   ? 60
                                                          : axes == 2 ? 16
                                                                      : 7);
      const bool is_global = Chance(15);
      const int64_t kernel = is_global ? extent : Roll(1, is_long ? 300 : 4);
      const int64_t dilation = is_global || Chance(70) ? 1 : Roll(2, 3);
      const int64_t stride = is_global ? 1 : Roll(1, 3);
      const int64_t reach = dilation * (kernel - 1) + 1;
      const int64_t before = is_global || Chance(40) ? 0 : Roll(0, reach);
      const int64_t after = is_global || Chance(40) ? 0 : Roll(0, reach);
      const int64_t room = extent + before + after - reach;
      if (room < 0) continue;
      // Rounded up at times, beyond the padding.
      domain.push_back((room + (Chance(30) ? stride - 1 : 0)) / stride + 1);
      window_.in_spatial.emplace_back(extent);
      window_.kernel.emplace_back(kernel);
      window_.strides.push_back(stride);
      window_.dilations.push_back(dilation);
      window_.pads_begin.emplace_back(before);
      window_.pads_end.emplace_back(after);
    }
    return domain;
  }

  void MakeEpilogue(const Extents& domain) {
    program::ExprPool& pool = made_.program.exprs;
    const ElementType wide = window_.accumulator;
    const Expr reduced = program::Accumulator(pool, wide);
    Expr result = reduced;
    if (Chance(30)) {
      AddView(domain, Buffer::Kind::kInput, step_.reads);
      const int read = static_cast<int>(step_.reads.size()) - 1;
      result = result + program::Cast(program::Load(pool, type_, read), wide);
    }
    if (Chance(30)) {
      AddNumber(domain.size());
      const int read = static_cast<int>(step_.reads.size()) - 1;
      result = result + program::Cast(program::Load(pool, type_, read), wide);
    }
    if (Chance(30)) result = program::Maximum(result, program::Like(result, 0));
    window_.roots = {program::Cast(result, type_).id()};
    // The second write of a maximum would be its indices.
    if (window_.kind == Window::Kind::kAverage && Chance(20)) window_.roots.push_back(reduced.id());
  }

  // A constant number behind others. An epilogue of bytes and constants may become a table.
  void AddNumber(size_t rank) {
    View view;
    view.type = type_;
    view.offset = Dim(Roll(0, 5));
    view.strides.assign(rank, Dim(0));
    AddBuffer(Buffer::Kind::kConstant, 6, view);
    step_.reads.push_back(view);
  }

  // Channels or pixels innermost, at times a slice of a wider tensor.
  void AddView(const Extents& extents, Buffer::Kind kind, std::vector<View>& views) {
    const int64_t before = Chance(40) ? Roll(0, 9) : 0;
    const int64_t inner = is_planar_ ? extents.back() : extents[1];
    const int64_t row = before + inner + (Chance(40) ? Roll(0, 9) : 0);
    View view;
    view.type = type_;
    view.offset = Dim(before);
    view.strides.assign(extents.size(), Dim(1));
    int64_t stride = row;
    for (size_t axis = extents.size() - (is_planar_ ? 1 : 0); axis-- > (is_planar_ ? 1 : 2);) {
      view.strides[axis] = Dim(stride);
      stride *= extents[axis];
    }
    view.strides[0] = Dim(stride);
    AddBuffer(kind, stride * extents[0], view);
    views.push_back(view);
  }

  void AddBuffer(Buffer::Kind kind, int64_t count, View& view) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.type = type_;
    buffer.shape = {count};
    view.buffer = made_.program.AddBuffer(buffer);
    tensor::Tensor tensor = *tensor::Tensor::Allocate(type_, Extents{count});
    const bool is_tiny = Chance(20);
    for (int64_t k = 0; k < count; ++k) {
      if (type_ == ElementType::kFloat64) {
        // More digits than float32 has, and at times numbers so small that they have fewer.
        double value = MakeValue();
        value *= is_tiny ? 1e-315 : 1 + 1e-12;
        std::memcpy(tensor.mutable_data() + k * 8, &value, 8);
      } else if (type_ == kFloat32) {
        const float value = MakeValue();
        std::memcpy(tensor.mutable_data() + k * 4, &value, 4);
      } else if (type_ == ElementType::kBfloat16) {
        const auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(MakeValue()) >> 16);
        std::memcpy(tensor.mutable_data() + k * 2, &bits, 2);
      } else {
        tensor.mutable_data()[k] = static_cast<std::byte>(random_());
      }
    }
    made_.buffers.push_back(std::move(tensor));
  }

  float MakeValue() {
    if (!has_specials_ || Chance(97)) {
      return std::uniform_real_distribution<float>(-3, 3)(random_);
    }
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float specials[] = {
        0.0F, -0.0F, kInfinity, -kInfinity, 1e-42F, 3e38F, std::numeric_limits<float>::quiet_NaN()};
    return specials[Roll(0, 6)];
  }

  std::mt19937 random_;
  const bool is_planar_;
  // What the order of a maximum matters for, among others.
  const bool has_specials_;
  ElementType type_ = kFloat32;
  Window window_;
  program::Step step_;
  reference::RandomStep made_;
};

void ExpectEqualBits(const std::vector<tensor::Tensor>& expected,
                     const std::vector<tensor::Tensor>& actual, const std::string& where) {
  for (size_t b = 0; b < expected.size(); ++b) {
    for (int64_t k = 0; k < expected[b].element_count(); ++k) {
      const double wanted = expected[b].AsDouble(k);
      const double found = actual[b].AsDouble(k);
      if (std::isnan(wanted) && std::isnan(found)) continue;
      ASSERT_EQ(std::bit_cast<uint64_t>(wanted), std::bit_cast<uint64_t>(found))
          << where << ", buffer " << b << ", element " << k << ": " << found << " instead of "
          << wanted;
    }
  }
}

void CompareWithReference(uint32_t seed, int count, const engine::Settings& settings,
                          device::Parallel& parallel) {
  PoolingDevice device(parallel, settings);
  reference::Device reference;
  for (int k = 0; k < count; ++k, ++seed) {
    const RandomPooling made(seed);
    const auto expected = RunStep(reference, made.step());
    ASSERT_TRUE(expected.ok()) << expected.status().Text();
    const auto actual = RunStep(device, made.step());
    ASSERT_TRUE(actual.ok()) << seed << ": " << actual.status().Text();
    ExpectEqualBits(*expected, *actual,
                    "seed " + std::to_string(seed) + "\n" + ToString(made.step().program));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(PoolingTest, AgreesWithTheReference) {
  device::Serial serial;
  CompareWithReference(/*seed=*/1, /*count=*/1500, {.loops = engine::LoopSet::kReference}, serial);
}

TEST(PoolingTest, AgreesInSmallTiles) {
  engine::Shredder shredder;
  CompareWithReference(/*seed=*/10'000, /*count=*/700,
                       {.loops = engine::LoopSet::kReference,
                        .tile_lanes = 48,
                        .streamed_bytes = 0,
                        .worth_a_thread = 0},
                       shredder);
}

TEST(PoolingTest, AgreesOnEveryInstructionSet) {
  processor::ForEachTarget([](const char* name) {
    SCOPED_TRACE(name);
    device::Serial serial;
    CompareWithReference(/*seed=*/20'000, /*count=*/300, {.loops = engine::LoopSet::kReference},
                         serial);
  });
}

// Bytes, whose rows are shorter than a line, are where a column takes more than its elements.
TEST(PoolingTest, KeepsToTheMemoryThatItAsksFor) {
  PlaneWindows plane;
  plane.windows.type = ElementType::kUint8;
  plane.sliding = {Sliding{1, 1, 1, 1, 1, 0, 0}, Sliding{3, 1, 3, 1, 1, 0, 0},
                   Sliding{9, 4, 3, 2, 1, 0, 0}};
  for (size_t axis = 0; axis < kSpatialAxes; ++axis) {
    plane.windows.taps[axis] = FindTaps(plane.sliding[axis]);
  }
  plane.windows.strides = plane.windows.tap_strides = {27, 9, 1};
  PlaneBlock block;
  block.block.extents = {1, 1, 4};
  block.block.channels = 1;
  block.block.strides = {4, 4, 1};
  std::vector<std::byte> source(27), result(4);
  for (size_t k = 0; k < source.size(); ++k) source[k] = static_cast<std::byte>(k * 37 % 101);
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    const auto bytes = static_cast<size_t>(PlaneScratchBytes(plane, block.block.extents));
    constexpr std::byte kUntouched{0xA5};
    alignas(64) std::array<std::byte, 4096> scratch;
    ASSERT_LE(bytes + 64, scratch.size());
    scratch.fill(kUntouched);
    ReducePlanes(plane, block, source.data(), result.data(), scratch.data());
    for (size_t k = bytes; k < scratch.size(); ++k) ASSERT_EQ(scratch[k], kUntouched) << k;
    for (size_t x = 0; x < 4; ++x) {
      std::byte most{0};
      for (size_t k = 0; k < 9; ++k) most = std::max(most, source[k / 3 * 9 + 2 * x + k % 3]);
      EXPECT_EQ(result[x], most) << x;
    }
  });
}

TEST(PoolingTest, RefusesWhatItDoesNotDo) {
  device::Serial serial;
  PoolingDevice device(serial, {});
  auto refusal = [&](auto change) {
    const RandomPooling made(1);
    const program::Step& original = made.step().program.steps[0];
    program::Step step;
    step.domain = original.domain;
    step.reads = original.reads;
    step.writes = original.writes;
    Window window = *original.As<Window>();
    change(step, window);
    step.body = window;
    return !device.Select({made.step().program, step}).ok();
  };
  EXPECT_FALSE(refusal([](program::Step&, Window&) {}));
  EXPECT_TRUE(refusal([](program::Step& step, Window&) {
    step.reads[0].strides[1] = step.reads[0].strides.back() = Dim(2);
  }));
  EXPECT_TRUE(refusal([](program::Step&, Window& window) { window.kind = Window::Kind::kLp; }));
  EXPECT_TRUE(
      refusal([](program::Step&, Window& window) { window.accumulator = ElementType::kInt64; }));
  EXPECT_TRUE(refusal([](program::Step& step, Window& window) {
    window.kind = Window::Kind::kAverage;
    window.accumulator = kFloat32;
    step.reads[0].type = ElementType::kBfloat16;
  }));
  EXPECT_TRUE(refusal([](program::Step& step, Window& window) {
    window.kind = Window::Kind::kAverage;
    window.accumulator = step.reads[0].type = ElementType::kUint8;
  }));
  EXPECT_TRUE(refusal([](program::Step& step, Window& window) {
    window.kind = Window::Kind::kMax;
    step.writes = {step.writes[0], step.writes[0]};
  }));
}

}  // namespace
}  // namespace onnxifi::pooling
