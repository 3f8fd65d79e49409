// SPDX-License-Identifier: Apache-2.0
//
// Random convolutions along one to three axes on the CPU device, compared with sums in float64:
// any strides, dilations, padding, groups and slices, sources as callers give them and with their
// channels innermost, depths of one block and of several, windows that are gathered and slabs; and
// Winograd's algorithm frame by frame, whose errors are held against those of plain sums.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/step_axes.h"
#include "backends/cpu/device.h"
#include "backends/cpu/processor/testing/each_target.h"
#include "backends/cpu/processor/testing/stated_caches.h"
#include "backends/cpu/testing/float_step.h"

namespace onnxifi::cpu {
namespace {

using program::Contract;
using program::Expr;

// A tensor [N, C, spatial]: channels innermost with `gap` floats between pixels, or planes.
struct Layout {
  int64_t n = 1, c = 1;
  std::vector<int64_t> spatial;
  int64_t gap = 0;
  bool is_planar = false;

  std::vector<int64_t> Strides() const {
    std::vector<int64_t> strides(2 + spatial.size());
    int64_t next = is_planar ? 1 : c + gap;
    for (size_t axis = spatial.size(); axis-- > 0;) {
      strides[2 + axis] = next;
      next *= spatial[axis];
    }
    strides[1] = is_planar ? next : 1;
    strides[0] = is_planar ? next * c : next;
    return strides;
  }
  int64_t Pixels() const {
    int64_t count = 1;
    for (const int64_t extent : spatial) count *= extent;
    return count;
  }
  int64_t Size() const { return n * Strides()[0]; }
  // Of the element at a channel and a position, counted in row-major order.
  int64_t At(int64_t image, int64_t channel, int64_t position) const {
    const std::vector<int64_t> strides = Strides();
    int64_t offset = image * strides[0] + channel * strides[1];
    for (size_t axis = spatial.size(); axis-- > 0;) {
      offset += position % spatial[axis] * strides[2 + axis];
      position /= spatial[axis];
    }
    return offset;
  }
};

enum class Form : uint8_t {
  kAny,
  kFrames,  // k x 3 x 3 with strides and dilations along the first axis alone
  kPlanes,  // between planes, with many positions
};

class RandomGathered : private FloatStep {
 public:
  explicit RandomGathered(uint32_t seed, Form form = Form::kAny) : FloatStep(seed) {
    const bool is_any = form != Form::kFrames;
    const bool has_planes = form == Form::kPlanes;
    const auto axes = static_cast<size_t>(is_any ? std::min<int64_t>(Roll(1, 4), 3) : 3);
    const int64_t group = Chance(25) ? Roll(2, 3) : 1;
    // Deep enough for several blocks in a third of the cases.
    const int64_t in = group * (is_any ? (Chance(30) ? Roll(60, 90) : Roll(1, 12)) : Roll(14, 26));
    is_few_ = is_any && !has_planes && Chance(30);
    const int64_t out = group * (is_few_ ? std::max<int64_t>(1, Roll(-4, 7))
                                         : Roll(8, has_planes ? 90 : (is_any ? 50 : 26)));
    // Of planes, one output is computed as few are.
    const bool may_be_planar = is_any && (!is_few_ || out == 1);
    source_ = {Roll(1, 2),
               in,
               {},
               Chance(40) ? Roll(1, 5) : 0,
               may_be_planar && Chance(has_planes ? 100 : 30)};
    if (source_.is_planar) source_.gap = 0;
    result_ = {
        source_.n, out, {}, Chance(40) ? Roll(1, 5) : 0, is_any && Chance(has_planes ? 100 : 30)};
    if (result_.is_planar) result_.gap = 0;
    contract_.form = Contract::Form::kConv;
    contract_.group = group;
    contract_.inner = {in / group};
    const bool has_pads = Chance(60);
    for (size_t axis = 0; axis < axes; ++axis) {
      const bool is_free = is_any || axis == 0;
      kernel_.push_back(is_free ? Roll(1, axes == 1 ? 9 : 3) : 3);
      pads_.push_back(!has_pads && axis > 0 ? 0 : Roll(0, is_free ? kernel_.back() : 2));
      contract_.strides.push_back(is_free ? Roll(1, 2) : 1);
      contract_.dilations.push_back(is_free ? Roll(1, 2) : 1);
      const int64_t reach = (kernel_.back() - 1) * contract_.dilations.back() + 1;
      // At times less than a kernel reaches over.
      const int64_t least = Chance(30) ? std::max<int64_t>(1, reach - 2 * pads_.back()) : reach;
      // Rows of images at times as long as slabs take them.
      const bool is_long = is_any ? axis == 2 && Chance(70) : axis > 0;
      const bool has_many = has_planes && axis + 1 == axes;
      const int64_t many = axes == 1 ? 600 : 60;
      const int64_t extent = has_many ? reach + Roll(many / 2, many)
                                      : Roll(least, reach + (axes == 1 ? 60
                                                             : is_long ? (is_any ? 20 : 10)
                                                                       : 5));
      is_short_ = is_short_ || extent < reach;
      source_.spatial.push_back(extent);
      result_.spatial.push_back((extent + 2 * pads_.back() - reach) / contract_.strides.back() + 1);
      contract_.inner.emplace_back(kernel_.back());
      contract_.a_spatial.emplace_back(extent);
      contract_.pads_begin.emplace_back(pads_.back());
      taps_ *= kernel_.back();
    }
    AddRead(source_.Size(), source_.is_planar ? Kind::kInput : Kind::kTemporary,
            ToDims(source_.Strides()));
    const int64_t depth = in / group * taps_;
    std::vector<int64_t> weight_strides = {depth, taps_};
    int64_t below = taps_;
    for (const int64_t extent : kernel_) weight_strides.push_back(below /= extent);
    AddRead(out * depth, Kind::kConstant, ToDims(weight_strides),
            1.0F / std::sqrt(static_cast<float>(depth)));
    Expr sum = program::Accumulator(program_.exprs, kFloat);
    if (Chance(70)) {
      std::vector<int64_t> strides(2 + axes, 0);
      strides[1] = 1;
      bias_ = AddRead(out, Kind::kConstant, ToDims(strides));
      sum = sum + Load(program_.exprs, kFloat, bias_);
    }
    if (!is_few_ && !has_planes && Chance(40)) {
      addend_layout_ = result_;
      addend_layout_.is_planar = false;
      addend_layout_.gap = Roll(0, 3);
      addend_ = AddRead(addend_layout_.Size(), Kind::kTemporary, ToDims(addend_layout_.Strides()));
      sum = sum + Load(program_.exprs, kFloat, addend_);
    }
    activation_ = static_cast<int>(Roll(0, 2));
    if (activation_ == 1) sum = Maximum(sum, Like(sum, 0));
    if (activation_ == 2) {
      const Expr erf = Unary(program::ExprOp::kErf, sum * Like(sum, std::sqrt(0.5)));
      sum = Like(sum, 0.5) * sum * (Like(sum, 1) + erf);
    }
    contract_.a_prologue = Load(program_.exprs, kFloat, 0).id();
    contract_.b_prologue = Load(program_.exprs, kFloat, 1).id();
    contract_.roots = {sum.id()};
    program_.has_fast_algorithms = !is_any;  // Winograd's errors are larger
    step_.body = contract_;
    step_.domain = {result_.n, result_.c};
    for (const int64_t extent : result_.spatial) step_.domain.emplace_back(extent);
    AddWrite(result_.Size(), ToDims(result_.Strides()));
  }

  // Errors against float64, root mean square, by Winograd's algorithm and without it; nothing where
  // it is not chosen.
  std::optional<std::array<double, 2>> MeasureErrors(Device& device) {
    std::array<double, 2> errors{};
    for (const bool is_fast : {true, false}) {
      program_.has_fast_algorithms = is_fast;
      data_.back().assign(data_.back().size(), kUntouched);
      tolerance_ = is_fast ? 3e-4 : 3e-5;
      Check(device);
      if (is_fast && implementation_ != "winograd") return std::nullopt;
      errors[is_fast ? 0 : 1] =
          std::sqrt(squares_ / static_cast<double>(result_.n * result_.c * result_.Pixels()));
    }
    return errors;
  }
  const std::string& detail() const { return detail_; }

  void Check(Device& device) {
    auto selection = device.Select({program_, step_});
    ASSERT_TRUE(selection.ok()) << selection.status().Text();
    const std::string_view implementation = selection->recipe->implementation();
    implementation_ = implementation;
    constexpr int64_t kMinDepth = 32;
    const bool has_few_channels = is_few_ && source_.c / contract_.group <= 8;
    const bool is_for_few_channels = has_few_channels && kernel_.size() <= 2;
    if (!is_for_few_channels && is_few_ && contract_.group == 1 && source_.c * taps_ < kMinDepth) {
      return;
    }
    const bool is_for_two_axes = kernel_.size() == 2 || convolution::MergeAxes(step_);
    if (!program_.has_fast_algorithms && !is_for_two_axes && (!is_few_ || contract_.group == 1)) {
      ASSERT_EQ(implementation, is_for_few_channels ? "few channels"
                                : is_few_           ? "few outputs"
                                                    : "gathered");
    }
    ASSERT_NO_FATAL_FAILURE(Run(device, *selection->recipe, detail_));
    if (is_short_ && implementation == "onednn convolution") {
      EXPECT_THAT(detail_, ::testing::StartsWith("gathered: The kernel's reach"));
    }
    Compare();
  }

 private:
  double Expected(int64_t n, int64_t m, int64_t position) const {
    const int64_t depth = source_.c / contract_.group;
    const int64_t first = m / (result_.c / contract_.group) * depth;
    double sum = bias_ < 0 ? 0 : Element(bias_, m);
    for (int64_t tap = 0; tap < taps_; ++tap) {
      int64_t place = 0, rest = position, rest_tap = tap, step = 1;
      bool is_inside = true;
      for (size_t axis = kernel_.size(); axis-- > 0;) {
        const int64_t at = rest % result_.spatial[axis] * contract_.strides[axis] +
                           rest_tap % kernel_[axis] * contract_.dilations[axis] - pads_[axis];
        is_inside = is_inside && at >= 0 && at < source_.spatial[axis];
        place += at * step;
        step *= source_.spatial[axis];
        rest /= result_.spatial[axis];
        rest_tap /= kernel_[axis];
      }
      if (!is_inside) continue;
      for (int64_t c = 0; c < depth; ++c) {
        sum +=
            Element(0, source_.At(n, first + c, place)) * Element(1, (m * depth + c) * taps_ + tap);
      }
    }
    if (addend_ >= 0) sum += Element(addend_, addend_layout_.At(n, m, position));
    if (activation_ == 1) return std::max(sum, 0.0);
    if (activation_ == 2) return sum / 2 * (1 + std::erf(sum * std::sqrt(0.5)));
    return sum;
  }

  void Compare() {
    squares_ = 0;
    const std::vector<float>& found = data_.back();
    std::vector<bool> is_written(found.size());
    for (int64_t n = 0; n < result_.n; ++n) {
      for (int64_t m = 0; m < result_.c; ++m) {
        for (int64_t position = 0; position < result_.Pixels(); ++position) {
          const auto at = static_cast<size_t>(result_.At(n, m, position));
          is_written[at] = true;
          const double expected = Expected(n, m, position);
          squares_ += std::pow(static_cast<double>(found[at]) - expected, 2);
          ASSERT_NEAR(found[at], expected, tolerance_)
              << n << ", " << m << ", position " << position;
        }
      }
    }
    for (size_t at = 0; at < found.size(); ++at) {
      if (!is_written[at]) {
        ASSERT_EQ(found[at], kUntouched) << "between pixels";
      }
    }
  }

  double tolerance_ = 3e-5;
  double squares_ = 0;  // of the errors of the last run
  std::string implementation_, detail_;
  bool is_few_ = false;    // outputs are, for a vector
  bool is_short_ = false;  // an image is, for the kernel
  Contract contract_;
  Layout source_, result_, addend_layout_;
  std::vector<int64_t> kernel_, pads_;
  int64_t taps_ = 1;
  int bias_ = -1, addend_ = -1;
  int activation_ = 0;
};

// 64 windows of three pixels with 64 channels, each `stride` pixels behind the one before.
class WindowsApart : private FloatStep {
 public:
  explicit WindowsApart(int64_t stride) : FloatStep(/*seed=*/1) {
    constexpr int64_t kWindows = 64, kIn = 64, kOut = 32, kTaps = 3;
    const int64_t length = (kWindows - 1) * stride + kTaps;
    AddRead(length * kIn, Kind::kTemporary, {length * kIn, 1, kIn});
    AddRead(kOut * kIn * kTaps, Kind::kConstant, {kIn * kTaps, kTaps, 1});
    Contract contract;
    contract.form = Contract::Form::kConv;
    contract.inner = {kIn, kTaps};
    contract.a_spatial = {length};
    contract.pads_begin = {0};
    contract.strides = {stride};
    contract.dilations = {1};
    contract.a_prologue = Load(program_.exprs, kFloat, 0).id();
    contract.b_prologue = Load(program_.exprs, kFloat, 1).id();
    contract.roots = {program::Accumulator(program_.exprs, kFloat).id()};
    step_.body = contract;
    step_.domain = {1, kOut, kWindows};
    AddWrite(kWindows * kOut, {kWindows * kOut, 1, kOut});
  }

  std::string Detail(Device& device) {
    const auto recipe = convolution::SelectGathered({program_, step_});
    EXPECT_TRUE(recipe.ok()) << recipe.status().Text();
    std::string detail;
    Run(device, **recipe, detail);
    return detail;
  }
};

// How many were bound which way.
struct Counts {
  int slabs = 0, in_place = 0, planes = 0;
};

void Compare(int threads, uint32_t first_seed, uint32_t end_seed, Counts& counts,
             Form form = Form::kAny) {
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(threads),
                               base::Log(base::LogLevel::kWarning));
  ASSERT_TRUE(device.ok()) << device.status().Text();
  for (uint32_t seed = first_seed; seed < end_seed; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomGathered random(seed, form);
    random.Check(**device);
    if (testing::Test::HasFatalFailure()) return;
    counts.slabs += random.detail().starts_with("slabs") ? 1 : 0;
    counts.in_place += random.detail().starts_with("in place") ? 1 : 0;
    counts.planes += random.detail().starts_with("planes") ? 1 : 0;
  }
}

// The interface promises errors of at most 8 times those of the direct sums.
void CompareFrames(int threads, uint32_t first_seed, uint32_t end_seed) {
  constexpr double kMaxError = 8;
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(threads),
                               base::Log(base::LogLevel::kWarning));
  ASSERT_TRUE(device.ok()) << device.status().Text();
  int by_winograd = 0;
  for (uint32_t seed = first_seed; seed < end_seed; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto errors = RandomGathered(seed, Form::kFrames).MeasureErrors(**device);
    if (testing::Test::HasFatalFailure()) return;
    if (!errors) continue;
    ++by_winograd;
    EXPECT_LT((*errors)[0], kMaxError * (*errors)[1]);
  }
  EXPECT_GE(by_winograd, static_cast<int>(end_seed - first_seed) / 3);
}

TEST(RandomGatheredTest, AgreesWithFloat64OnAnyThreads) {
  Counts counts;
  for (const int threads : {1, 2, 3}) {
    Compare(threads, static_cast<uint32_t>(threads) * 100,
            static_cast<uint32_t>(threads) * 100 + 60, counts);
  }
  EXPECT_GE(counts.slabs, 5);
  EXPECT_GE(counts.in_place, 3);
}

TEST(RandomGatheredTest, FramesByWinogradAgreeWithFloat64OnAnyThreads) {
  for (const int threads : {1, 2, 3}) {
    CompareFrames(threads, static_cast<uint32_t>(threads) * 100,
                  static_cast<uint32_t>(threads) * 100 + 8);
  }
}

TEST(RandomGatheredTest, FramesByWinogradAgreeOnEveryInstructionSet) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    CompareFrames(/*threads=*/2, 1000, 1008);
  });
}

TEST(RandomGatheredTest, AgreesOnEveryInstructionSet) {
  Counts counts;
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    Compare(/*threads=*/2, 1000, 1030, counts);
  });
  EXPECT_GE(counts.slabs, 1);
}

TEST(RandomGatheredTest, PlanesAgreeWithFloat64OnAnyThreads) {
  Counts counts;
  for (const int threads : {1, 2, 3}) {
    Compare(threads, static_cast<uint32_t>(threads) * 100, static_cast<uint32_t>(threads) * 100 + 8,
            counts, Form::kPlanes);
  }
  EXPECT_GE(counts.planes, 6);
}

TEST(RandomGatheredTest, PlanesAgreeOnEveryInstructionSet) {
  Counts counts;
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    Compare(/*threads=*/2, 1000, 1005, counts, Form::kPlanes);
  });
  EXPECT_GE(counts.planes, 3);
}

// Windows whole pages apart share one set of the L1 cache, so that copies of them are faster.
TEST(GatheredTest, ReadsNoWindowsInPlaceThatArePagesApart) {
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(1), base::Log());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  EXPECT_THAT(WindowsApart(/*stride=*/15).Detail(**device), ::testing::StartsWith("in place"));
  EXPECT_THAT(WindowsApart(/*stride=*/17).Detail(**device), ::testing::StartsWith("in place"));
  EXPECT_THAT(WindowsApart(/*stride=*/16).Detail(**device), ::testing::StartsWith("chunks of"));
  EXPECT_THAT(WindowsApart(/*stride=*/32).Detail(**device), ::testing::StartsWith("chunks of"));
}

// Depths of several blocks and chunks of several panels of outputs, whatever the processor has.
TEST(RandomGatheredTest, PlanesAgreeWithSmallCaches) {
  const processor::StatedCaches caches({.l1_bytes = 32 << 10, .l2_bytes = 64 << 10});
  Counts counts;
  Compare(/*threads=*/2, 2000, 2012, counts, Form::kPlanes);
  EXPECT_GE(counts.planes, 3);
}

}  // namespace
}  // namespace onnxifi::cpu
