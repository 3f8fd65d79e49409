// SPDX-License-Identifier: Apache-2.0
//
// ByteFunction: element by element against a plain loop, for both types of bytes to bytes and
// floats, in any order of axes; and what it leaves to tiles.

#include "backends/cpu/engine/byte_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/engine/testing/engine_device.h"

namespace onnxifi::engine {
namespace {

using program::Expr;
using tensor::ElementType;
using tensor::Extents;
using testing::HasSubstr;
using testing::Not;

constexpr float kScale = 0.25F;

struct Case {
  ElementType from = ElementType::kUint8;
  ElementType to = ElementType::kUint8;
  Extents extents = {3, 5, 437};
  Extents from_strides = {5 * 437, 437, 1};
  Extents to_strides = {5 * 437, 437, 1};
  bool is_scale_constant = true;
  bool adds_coordinate = false;
  bool takes_roots = true;
  bool is_one_buffer = false;  // of arguments, and behind them results
};

// (x - 3)^2 * scale, and the root of that, in bytes rounded to even and bounded by them.
class Square {
 public:
  explicit Square(const Case& test) : test_(test) {
    const int64_t count = tensor::ElementCount(test.extents);
    from_.resize(static_cast<size_t>(count));
    for (size_t k = 0; k < from_.size(); ++k) from_[k] = static_cast<uint8_t>(k * 73 + k / 256);
    result_bytes_ = tensor::BitWidth(test.to) / 8;
    to_.assign(static_cast<size_t>(count * result_bytes_ + kGap), std::byte{0x5A});
    AddBuffer(program::Buffer::Kind::kInput, test.from, count);
    AddBuffer(
        test.is_scale_constant ? program::Buffer::Kind::kConstant : program::Buffer::Kind::kInput,
        ElementType::kFloat32, 1);
    AddBuffer(program::Buffer::Kind::kTemporary, test.to, count);
    program::Step step;
    step.domain = {test.extents.begin(), test.extents.end()};
    step.reads = {View(0, test.from, test.from_strides), View(1, ElementType::kFloat32, {0, 0, 0})};
    step.writes = {View(2, test.to, test.to_strides)};
    if (test.is_one_buffer) {
      program_.buffers[2].shape = {count * 2};
      step.reads[0].buffer = 2;
      step.writes[0].offset = count;
    }
    program::ExprPool& pool = program_.exprs;
    const Expr x = Cast(Load(pool, test.from, 0), ElementType::kFloat32);
    const Expr less = x - Like(x, 3);
    Expr value = less * less * Load(pool, ElementType::kFloat32, 1);
    for (int k = 0; k < 4 && test.takes_roots; ++k) {
      value = Unary(program::ExprOp::kSqrt, value);
      if (k < 3) value = value * value;
    }
    if (test.adds_coordinate) value = value + Cast(Coordinate(pool, 2), ElementType::kFloat32);
    if (test.to != ElementType::kFloat32) {
      value = Maximum(Minimum(Unary(program::ExprOp::kRoundEven, value),
                              Like(value, tensor::LargestFinite(test.to))),
                      Like(value, tensor::Lowest(test.to)));
      value = Cast(value, test.to);
    }
    step.body = program::Map{{value.id()}};
    program_.steps.push_back(std::move(step));
  }

  // What the kernel says of itself, after a run in `parallel` that gave the right results.
  std::string Run(device::Parallel& parallel) {
    EngineDevice device(parallel, {});
    const program::Step& step = program_.steps[0];
    device::Selection selection = *device.Select({program_, step});
    std::unique_ptr<device::Kernel> kernel = *device.Build(*selection.recipe);
    float scale = kScale;
    auto* const at_scale = reinterpret_cast<std::byte*>(&scale);
    std::byte* const constants[] = {nullptr, test_.is_scale_constant ? at_scale : nullptr, nullptr};
    const std::vector<int64_t> dims;
    std::unique_ptr<device::BoundKernel> bound =
        *kernel->Bind(device::Bind(program_, step, dims), constants);
    auto* const from = reinterpret_cast<std::byte*>(from_.data());
    std::vector<std::byte> both(from, from + (test_.is_one_buffer ? from_.size() : 0));
    both.insert(both.end(), to_.begin(), to_.end());
    std::byte* const addresses[] = {from, bound->ReadsAtRun(1) ? at_scale : nullptr, both.data()};
    EXPECT_TRUE(bound->Run(addresses).ok());
    std::copy(both.end() - static_cast<ptrdiff_t>(to_.size()), both.end(), to_.begin());
    Compare();
    return bound->Detail();
  }

 private:
  static constexpr int64_t kGap = 100;

  void AddBuffer(program::Buffer::Kind kind, ElementType type, int64_t count) {
    program_.AddBuffer({kind, type, {count}, 0});
  }
  static program::View View(program::BufferId buffer, ElementType type, const Extents& strides) {
    program::View view;
    view.buffer = buffer;
    view.type = type;
    view.strides = {strides.begin(), strides.end()};
    return view;
  }

  double Expected(uint8_t byte, int64_t coordinate) const {
    const double x = test_.from == ElementType::kInt8 ? static_cast<int8_t>(byte) : byte;
    double value = (x - 3) * (x - 3) * kScale;
    if (test_.takes_roots) value = std::sqrt(value);
    if (test_.adds_coordinate) value += static_cast<double>(coordinate);
    if (test_.to == ElementType::kFloat32) return value;
    const bool is_signed = test_.to == ElementType::kInt8;
    return std::clamp(std::nearbyint(value), is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0);
  }

  void Compare() const {
    const auto& extents = test_.extents;
    for (int64_t a = 0; a < extents[0]; ++a) {
      for (int64_t b = 0; b < extents[1]; ++b) {
        for (int64_t c = 0; c < extents[2]; ++c) {
          const auto at = [&](const Extents& strides) {
            return static_cast<size_t>(a * strides[0] + b * strides[1] + c * strides[2]);
          };
          const std::byte* const to = to_.data() + at(test_.to_strides) * result_bytes_;
          const tensor::Scalar found = tensor::LoadScalar(test_.to, to, 0);
          const double value = test_.to == ElementType::kFloat32 ? found.f
                               : test_.to == ElementType::kInt8  ? static_cast<double>(found.i)
                                                                 : static_cast<double>(found.u);
          ASSERT_EQ(value, Expected(from_[at(test_.from_strides)], c))
              << a << ", " << b << ", " << c;
        }
      }
    }
    for (size_t k = to_.size() - kGap; k < to_.size(); ++k) ASSERT_EQ(to_[k], std::byte{0x5A});
  }

  const Case test_;
  int64_t result_bytes_;
  program::Program program_;
  std::vector<uint8_t> from_;
  std::vector<std::byte> to_;
};

TEST(ByteFunctionTest, LooksUpBytesAndFloats) {
  Shredder shredder;
  for (const ElementType from : {ElementType::kUint8, ElementType::kInt8}) {
    for (const ElementType to : {ElementType::kUint8, ElementType::kInt8, ElementType::kFloat32}) {
      SCOPED_TRACE(std::string(tensor::Name(from)) + " to " + std::string(tensor::Name(to)));
      const char* const table = to == ElementType::kFloat32 ? "table of floats" : "table of bytes";
      EXPECT_THAT(Square({.from = from, .to = to}).Run(shredder), HasSubstr(table));
    }
  }
}

// As Concat of a value and of what is computed from it: both are written where they end up.
TEST(ByteFunctionTest, TakesArgumentsAndResultsInOneBuffer) {
  Shredder shredder;
  EXPECT_THAT(Square({.is_one_buffer = true}).Run(shredder), HasSubstr("table of bytes"));
}

// The innermost axis comes first.
TEST(ByteFunctionTest, TakesAnyOrderOfAxes) {
  Shredder shredder;
  const Extents strides = {1, 3 * 437, 3};
  EXPECT_THAT(Square({.from_strides = strides, .to_strides = strides}).Run(shredder),
              HasSubstr("table"));
}

TEST(ByteFunctionTest, LeavesOtherMapsToTiles) {
  Shredder shredder;
  const Extents strides = {1, 3 * 437, 3};
  EXPECT_THAT(Square({.to_strides = strides}).Run(shredder), Not(HasSubstr("table")));
  EXPECT_THAT(Square({.is_scale_constant = false}).Run(shredder), Not(HasSubstr("table")));
  EXPECT_THAT(Square({.adds_coordinate = true}).Run(shredder), Not(HasSubstr("table")));
  // Two products take less than a look-up.
  EXPECT_THAT(Square({.to = ElementType::kFloat32, .takes_roots = false}).Run(shredder),
              Not(HasSubstr("table")));
  EXPECT_THAT(Square({.extents = {3, 5, 7}, .from_strides = {35, 7, 1}, .to_strides = {35, 7, 1}})
                  .Run(shredder),
              Not(HasSubstr("table")));
}

}  // namespace
}  // namespace onnxifi::engine
