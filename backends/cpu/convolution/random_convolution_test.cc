// SPDX-License-Identifier: Apache-2.0
//
// Random convolutions of planes or channels-last temporaries on the CPU device, compared with sums
// in float64: every stride, group, slice and epilogue that the kernels of this folder take. Counts
// which kernel they got: a device that refused them all would be right too.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/device.h"
#include "backends/cpu/processor/testing/each_target.h"
#include "backends/cpu/testing/float_step.h"

namespace onnxifi::cpu {
namespace {

using program::Contract;
using program::Expr;
using program::ExprOp;

// A tensor [N, C, y, x] with its channels innermost, `gap` floats between pixels; or one plane per
// channel, `gap` floats between rows.
struct Layout {
  int64_t n, c, y, x, gap;
  bool is_planar = false;

  int64_t pixel() const { return c + gap; }
  int64_t row() const { return x + gap; }
  int64_t size() const { return is_planar ? n * c * y * row() : n * y * x * pixel(); }
  int64_t At(int64_t image, int64_t channel, int64_t row_at, int64_t column) const {
    if (is_planar) return ((image * c + channel) * y + row_at) * row() + column;
    return ((image * y + row_at) * x + column) * pixel() + channel;
  }
  program::Dims Strides() const {
    if (is_planar) return {c * y * row(), y * row(), row(), 1};
    return {y * x * pixel(), 1, x * pixel(), pixel()};
  }
};

class RandomConvolution : private FloatStep {
 public:
  explicit RandomConvolution(uint32_t seed) : FloatStep(seed) {
    // Pointwise, 3 x 3, any, any of planes, any with a kernel per channel, any of few channels.
    const int kind = static_cast<int>(Roll(0, 5));
    const bool is_few = kind == 5;
    const bool is_planar = kind == 3 || (is_few && Chance(50));
    const bool is_depthwise = kind == 4;
    is_line_ = (is_depthwise || is_few) && Chance(40);
    const int64_t group = is_depthwise                           ? Roll(8, 70)
                          : is_few || (!is_planar && Chance(40)) ? Roll(1, 4)
                                                                 : 1;
    const int64_t in = is_depthwise ? group : group * Roll(1, is_few ? 8 : is_planar ? 4 : 24);
    // Those of few channels are few in and out.
    const int64_t out = is_depthwise ? group : group * (is_few ? Roll(1, 7) : Roll(8, 48));
    kernel_ = kind == 0                                   ? 1
              : kind == 1 || (is_depthwise && Chance(30)) ? 3
                                                          : Roll(1, is_depthwise ? 8 : 5);
    if (is_line_ && Chance(30)) kernel_ = Roll(9, 17);
    kernel_rows_ = is_line_ ? 1 : kernel_;
    pad_ = kind == 0 ? 0 : Roll(0, kernel_ / 2);
    stride_ = kind != 1 && Chance(50) ? Roll(1, 3) : 1;
    dilation_ = kind >= 2 && Chance(30) ? Roll(1, 2) : 1;
    // As in a pyramid of dilated kernels: of most windows, whole rows of taps are padding.
    const bool is_mostly_padding = kind == 2 && kernel_ > 1 && Chance(30);
    if (is_mostly_padding) {
      dilation_ = Roll(3, 6);
      pad_ = (kernel_ - 1) * dilation_ / 2;
    }
    const int64_t reach = (kernel_ - 1) * dilation_ + 1;
    const int64_t low = kind == 1 ? 14 : is_mostly_padding ? pad_ + 1 : reach;
    source_ = {Roll(1, 3),
               in,
               Roll(low, std::max<int64_t>(low, 18)),
               Roll(low, std::max<int64_t>(low, 18)),
               Chance(50) ? Roll(1, 9) : 0,
               is_planar};
    if (is_line_) {
      source_.y = 1;
      source_.x = Roll(low, 90);
    }
    auto extent = [&](int64_t along) { return (along + 2 * pad_ - reach) / stride_ + 1; };
    result_ = {source_.n,
               out,
               is_line_ ? 1 : extent(source_.y),
               extent(source_.x),
               Chance(50) ? Roll(1, 9) : 0,
               /*is_planar=*/is_few && Chance(50)};
    contract_.form = Contract::Form::kConv;
    contract_.group = group;
    contract_.inner = {in / group, kernel_, kernel_};
    contract_.a_spatial = {source_.y, source_.x};
    contract_.strides = {stride_, stride_};
    contract_.dilations = {dilation_, dilation_};
    contract_.pads_begin = {pad_, pad_};
    AddRead(source_.size(), is_planar ? Kind::kInput : Kind::kTemporary, source_.Strides());
    const int64_t taps = kernel_rows_ * kernel_;
    const int64_t depth = in / group * taps;
    AddRead(out * depth, Kind::kConstant, {depth, taps, kernel_, 1},
            1.0F / std::sqrt(static_cast<float>(depth)));
    Expr sum = program::Accumulator(program_.exprs, kFloat);
    if (Chance(70)) {
      AddRead(out, Kind::kConstant, {0, 1, 0, 0});
      sum = sum + Load(program_.exprs, kFloat, 2);
      has_bias_ = true;
    }
    if (Chance(40)) {
      addend_ = result_;
      addend_.gap = Roll(0, 5);
      const int read = AddRead(addend_.size(), Kind::kTemporary, addend_.Strides());
      sum = sum + Load(program_.exprs, kFloat, read);
      has_addend_ = true;
    }
    activation_ = static_cast<int>(Roll(0, 7));
    if (activation_ == 1) sum = Maximum(sum, Like(sum, 0));
    if (activation_ == 2) sum = Minimum(Maximum(sum, Like(sum, -0.5)), Like(sum, 0.75));
    if (activation_ == 3) sum = Select(sum < Like(sum, 0), sum * Like(sum, 0.25), sum);
    if (activation_ == 4) {
      sum = sum * (Like(sum, 1) / (Like(sum, 1) + Unary(ExprOp::kExp, -sum)));
    }
    if (activation_ == 5) {
      const Expr erf = Unary(ExprOp::kErf, sum * Like(sum, std::sqrt(0.5)));
      sum = Like(sum, 0.5) * sum * (Like(sum, 1) + erf);
    }
    if (activation_ == 6) {
      const Expr gate = Like(sum, 0.25) * sum + Like(sum, 0.5);
      sum = sum * Maximum(Like(sum, 0), Minimum(Like(sum, 1), gate));
    }
    if (activation_ == 7) sum = Unary(ExprOp::kTanh, sum);
    contract_.a_prologue = Load(program_.exprs, kFloat, 0).id();
    contract_.b_prologue = Load(program_.exprs, kFloat, 1).id();
    contract_.roots = {sum.id()};
    step_.body = contract_;
    step_.domain = {result_.n, result_.c, result_.y, result_.x};
    AddWrite(result_.size(), result_.Strides());
    if (is_line_) LeaveOutRows();
  }

  // The name of the implementation that ran, after a comparison of its result.
  std::string Check(Device& device) {
    auto selection = device.Select({program_, step_});
    if (!selection.ok()) return selection.status().Text();
    std::string detail;
    Run(device, *selection->recipe, detail);
    Compare();
    return std::string(selection->recipe->implementation()) + (is_line_ ? ", one axis" : "");
  }

 private:
  // The same along one axis.
  void LeaveOutRows() {
    auto& contract = std::get<Contract>(step_.body);
    contract.inner.erase(contract.inner.begin() + 1);
    for (auto* numbers : {&contract.a_spatial, &contract.pads_begin})
      numbers->erase(numbers->begin());
    contract.strides.pop_back();
    contract.dilations.pop_back();
    step_.domain.erase(step_.domain.begin() + 2);
    for (auto* views : {&step_.reads, &step_.writes}) {
      for (program::View& view : *views) view.strides.erase(view.strides.begin() + 2);
    }
  }

  double Expected(int64_t n, int64_t m, int64_t y, int64_t x) const {
    const int64_t depth = source_.c / contract_.group;
    const int64_t first = m / (result_.c / contract_.group) * depth;
    double sum = has_bias_ ? Element(2, m) : 0.0;
    const int64_t taps = kernel_rows_ * kernel_;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t in_y = is_line_ ? 0 : y * stride_ + tap / kernel_ * dilation_ - pad_;
      const int64_t in_x = x * stride_ + tap % kernel_ * dilation_ - pad_;
      if (in_y < 0 || in_y >= source_.y || in_x < 0 || in_x >= source_.x) continue;
      for (int64_t c = 0; c < depth; ++c) {
        sum += Element(0, source_.At(n, first + c, in_y, in_x)) *
               Element(1, (m * depth + c) * taps + tap);
      }
    }
    if (has_addend_) sum += Element(has_bias_ ? 3 : 2, addend_.At(n, m, y, x));
    if (activation_ == 1) return std::max(sum, 0.0);
    if (activation_ == 2) return std::min(std::max(sum, -0.5), 0.75);
    if (activation_ == 3) return sum < 0 ? 0.25 * sum : sum;
    if (activation_ == 4) return sum / (1 + std::exp(-sum));
    if (activation_ == 7) return std::tanh(sum);
    if (activation_ == 5) return sum / 2 * (1 + std::erf(sum * std::sqrt(0.5)));
    if (activation_ == 6) return sum * std::max(0.0, std::min(1.0, 0.25 * sum + 0.5));
    return sum;
  }

  void Compare() const {
    const std::vector<float>& found = data_.back();
    for (int64_t n = 0; n < result_.n; ++n) {
      for (int64_t y = 0; y < result_.y; ++y) {
        for (int64_t x = 0; x < result_.x; ++x) {
          for (int64_t m = 0; m < result_.c; ++m) {
            ASSERT_NEAR(found[static_cast<size_t>(result_.At(n, m, y, x))], Expected(n, m, y, x),
                        3e-5)
                << n << ", " << m << ", " << y << ", " << x;
          }
        }
      }
    }
    const auto untouched = std::ranges::count(found, kUntouched);
    EXPECT_EQ(untouched, result_.size() - result_.n * result_.c * result_.y * result_.x)
        << "between pixels or rows";
  }

  Contract contract_;
  Layout source_, result_, addend_;
  int64_t kernel_ = 1, kernel_rows_ = 1, pad_ = 0, stride_ = 1, dilation_ = 1;
  bool is_line_ = false;  // along one axis
  bool has_bias_ = false, has_addend_ = false;
  int activation_ = 0;
};

// Convolutions of these seeds on a device of so many threads; which kernels they got.
void Compare(int threads, uint32_t first_seed, uint32_t end_seed,
             std::map<std::string, int>& counts) {
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(threads),
                               base::Log(base::LogLevel::kWarning));
  ASSERT_TRUE(device.ok()) << device.status().Text();
  for (uint32_t seed = first_seed; seed < end_seed; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ++counts[RandomConvolution(seed).Check(**device)];
    if (testing::Test::HasFailure()) return;
  }
}

TEST(RandomConvolutionTest, AgreesWithFloat64OnEveryKernel) {
  std::map<std::string, int> counts;
  for (const int threads : {1, 2, 3}) {
    Compare(threads, static_cast<uint32_t>(threads) * 1000,
            static_cast<uint32_t>(threads) * 1000 + 100, counts);
  }
  for (const auto& [name, count] : counts) std::printf("%s: %d\n", name.c_str(), count);
  EXPECT_GE(counts["pointwise"], 30);
  EXPECT_GE(counts["winograd"], 20);
  EXPECT_GE(counts["direct"], 20);
  EXPECT_GE(counts["planar"], 20);
  EXPECT_GE(counts["few channels"], 10);
  EXPECT_GE(counts["few channels, one axis"], 6);
  EXPECT_GE(counts["depthwise"], 15);
  EXPECT_GE(counts["depthwise, one axis"], 10);
}

TEST(RandomConvolutionTest, AgreesOnEveryInstructionSet) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    std::map<std::string, int> counts;
    Compare(/*threads=*/2, 9000, 9100, counts);
    for (const char* kernel :
         {"pointwise", "winograd", "direct", "planar", "depthwise", "few channels"}) {
      EXPECT_GE(counts[kernel], 3) << kernel;
    }
  });
}

}  // namespace
}  // namespace onnxifi::cpu
