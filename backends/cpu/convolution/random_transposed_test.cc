// SPDX-License-Identifier: Apache-2.0
//
// Random transposed convolutions along one to three axes on the CPU device, compared with sums in
// float64: strides above the kernel, padding, groups, planes and pixels, slices of wider tensors,
// with bias, summand and activation, on any number of threads.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/device.h"
#include "backends/cpu/processor/testing/each_target.h"
#include "backends/cpu/testing/float_step.h"

namespace onnxifi::cpu {
namespace {

using program::Contract;
using program::Expr;

// A tensor [N, C, spatial]: channels innermost with `gap` floats between pixels, or planes.
struct Layout {
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  int64_t size = 0;

  static Layout Of(std::vector<int64_t> extents, bool is_planar, int64_t gap) {
    Layout layout;
    layout.extents = std::move(extents);
    layout.strides.resize(layout.extents.size());
    int64_t next = is_planar ? 1 : layout.extents[1] + gap;
    for (size_t axis = layout.extents.size(); axis-- > 2;) {
      layout.strides[axis] = next;
      next *= layout.extents[axis];
    }
    layout.strides[1] = is_planar ? next : 1;
    layout.strides[0] = is_planar ? next * layout.extents[1] : next;
    layout.size = layout.strides[0] * layout.extents[0];
    return layout;
  }
  int64_t At(const std::vector<int64_t>& coordinates) const {
    int64_t offset = 0;
    for (size_t axis = 0; axis < strides.size(); ++axis)
      offset += coordinates[axis] * strides[axis];
    return offset;
  }
  // Coordinates after these in row-major order; false after the last.
  bool MoveOn(std::vector<int64_t>& coordinates) const {
    for (size_t axis = extents.size(); axis-- > 0;) {
      if (++coordinates[axis] < extents[axis]) return true;
      coordinates[axis] = 0;
    }
    return false;
  }
};

constexpr float kScale = 0.3F;  // of the numbers

class RandomTransposed : private FloatStep {
 public:
  RandomTransposed(uint32_t seed, bool is_few) : FloatStep(seed), is_few_(is_few) {
    const auto axes = static_cast<size_t>(Roll(1, 3));
    const int64_t group = !is_few && Chance(25) ? Roll(2, 3) : 1;
    const int64_t in = group * (Chance(20) ? Roll(60, 90) : Roll(1, 12));
    const bool has_few = is_few || (group > 1 && Chance(50));
    const int64_t out = has_few ? group * Roll(1, 7) : group * Roll(8, 40);
    contract_.form = Contract::Form::kConvTranspose;
    contract_.group = group;
    contract_.inner = {in / group};
    std::vector<int64_t> source = {Roll(1, 2), in}, result = {source[0], out};
    std::vector<int64_t> weights = {in, out / group};
    for (size_t axis = 0; axis < axes; ++axis) {
      // Taps and outputs are at least as many as a vector of AVX2 has lanes.
      const int64_t least = !is_few ? 1 : axes == 1 ? 8 : axes == 2 ? 3 : 2;
      const int64_t kernel = Roll(least, axes == 1 ? 9 : 4);
      const int64_t stride = Roll(1, axes == 1 ? 5 : 3);
      const int64_t pad = Roll(0, kernel - 1);
      const int64_t extent = Roll(1, axes == 1 ? 40 : 6);
      const int64_t whole = (extent - 1) * stride + kernel;
      // At times beyond what the kernel reaches, or less than that.
      const int64_t length = whole - pad - Roll(0, std::min<int64_t>(pad, whole - pad - 1)) +
                             (Chance(30) ? Roll(0, stride - 1) : 0);
      source.push_back(extent);
      result.push_back(length);
      weights.push_back(kernel);
      contract_.inner.emplace_back(kernel);
      contract_.a_spatial.emplace_back(extent);
      contract_.strides.push_back(stride);
      contract_.dilations.push_back(1);
      contract_.pads_begin.emplace_back(pad);
    }
    source_ = Layout::Of(source, Chance(40), Chance(40) ? Roll(1, 5) : 0);
    result_ = Layout::Of(result, Chance(40), Chance(40) ? Roll(1, 5) : 0);
    weights_ = Layout::Of(weights, /*is_planar=*/true, 0);
    AddRead(source_.size, Kind::kTemporary, ToDims(source_.strides), kScale);
    AddRead(weights_.size, Kind::kConstant, ToDims(weights_.strides), kScale);
    Expr sum = program::Accumulator(program_.exprs, kFloat);
    if (Chance(70)) {
      std::vector<int64_t> strides(2 + axes, 0);
      strides[1] = 1;
      bias_ = AddRead(out, Kind::kConstant, ToDims(strides), kScale);
      sum = sum + Load(program_.exprs, kFloat, bias_);
    }
    if (!is_few && Chance(40)) {
      addend_layout_ = Layout::Of(result, /*is_planar=*/false, Roll(0, 3));
      addend_ =
          AddRead(addend_layout_.size, Kind::kTemporary, ToDims(addend_layout_.strides), kScale);
      sum = sum + Load(program_.exprs, kFloat, addend_);
    }
    has_bound_ = Chance(40);
    if (has_bound_) sum = Maximum(sum, Like(sum, 0));
    contract_.a_prologue = Load(program_.exprs, kFloat, 0).id();
    contract_.b_prologue = Load(program_.exprs, kFloat, 1).id();
    contract_.roots = {sum.id()};
    step_.body = contract_;
    for (const int64_t extent : result) step_.domain.emplace_back(extent);
    AddWrite(result_.size, ToDims(result_.strides));
  }

  void Check(Device& device) {
    const auto recipe = is_few_ ? convolution::SelectFewTransposed({program_, step_})
                                : convolution::SelectTransposed({program_, step_});
    ASSERT_TRUE(recipe.ok()) << recipe.status().Text();
    std::string detail;
    ASSERT_NO_FATAL_FAILURE(Run(device, **recipe, detail));
    Compare();
  }

 private:
  // What each element of the input adds to the results, by the definition.
  std::vector<double> Sums() const {
    std::vector<double> sums(static_cast<size_t>(result_.size), 0);
    const int64_t in = source_.extents[1] / contract_.group;
    const int64_t out = result_.extents[1] / contract_.group;
    Layout plane = source_;
    plane.extents[1] = 1;
    std::vector<int64_t> at(weights_.extents.size(), 0);
    do {
      std::vector<int64_t> pixel(source_.extents.size(), 0);
      const int64_t channel = at[0] * source_.strides[1];
      do {
        std::vector<int64_t> target = {pixel[0], at[0] / in * out + at[1]};
        bool is_inside = true;
        for (size_t axis = 2; axis < pixel.size(); ++axis) {
          target.push_back(pixel[axis] * contract_.strides[axis - 2] + at[axis] -
                           contract_.pads_begin[axis - 2].constant());
          is_inside = is_inside && target[axis] >= 0 && target[axis] < result_.extents[axis];
        }
        if (is_inside) {
          sums[static_cast<size_t>(result_.At(target))] +=
              Element(0, channel + plane.At(pixel)) * Element(1, weights_.At(at));
        }
      } while (plane.MoveOn(pixel));
    } while (weights_.MoveOn(at));
    return sums;
  }

  void Compare() const {
    const std::vector<float>& found = data_.back();
    const std::vector<double> sums = Sums();
    std::vector<bool> is_written(found.size());
    std::vector<int64_t> at(result_.extents.size(), 0);
    do {
      const auto position = static_cast<size_t>(result_.At(at));
      is_written[position] = true;
      double expected = sums[position];
      if (bias_ >= 0) expected += Element(bias_, at[1]);
      if (addend_ >= 0) expected += Element(addend_, addend_layout_.At(at));
      if (has_bound_) expected = std::max(expected, 0.0);
      ASSERT_NEAR(found[position], expected, 3e-5) << ::testing::PrintToString(at);
    } while (result_.MoveOn(at));
    for (size_t k = 0; k < found.size(); ++k) {
      if (!is_written[k]) {
        ASSERT_EQ(found[k], kUntouched) << "between pixels";
      }
    }
  }

  const bool is_few_;
  Contract contract_;
  Layout source_, result_, weights_, addend_layout_;
  int bias_ = -1, addend_ = -1;
  bool has_bound_ = false;
};

void Compare(int threads, uint32_t first_seed, uint32_t end_seed, bool is_few = false) {
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(threads),
                               base::Log(base::LogLevel::kWarning));
  ASSERT_TRUE(device.ok()) << device.status().Text();
  for (uint32_t seed = first_seed; seed < end_seed; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTransposed(seed, is_few).Check(**device);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(RandomTransposedTest, AgreesWithFloat64OnAnyThreads) {
  for (const int threads : {1, 2, 3}) {
    Compare(threads, static_cast<uint32_t>(threads) * 100,
            static_cast<uint32_t>(threads) * 100 + 40);
  }
}

TEST(RandomTransposedTest, AgreesToFewOutputs) {
  for (const int threads : {1, 2, 3}) {
    Compare(threads, static_cast<uint32_t>(threads) * 100 + 5000,
            static_cast<uint32_t>(threads) * 100 + 5060, /*is_few=*/true);
  }
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    Compare(/*threads=*/2, 6000, 6015, /*is_few=*/true);
  });
}

TEST(RandomTransposedTest, AgreesOnEveryInstructionSet) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    Compare(/*threads=*/2, 1000, 1015);
  });
}

}  // namespace
}  // namespace onnxifi::cpu
