// SPDX-License-Identifier: Apache-2.0
//
// Windows for which oneDNN has another rule than ONNX, kept from it: the smallest of each class is
// left to the loops with its reason, one just outside the class runs on primitives, and both are
// right.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "backends/cpu/onednn/recipe.h"
#include "backends/cpu/onednn/testing/one_step.h"

namespace onnxifi::onednn {
namespace {

using program::Window;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Over X[1, 8, in], one spatial axis.
struct Pooling {
  Window::Kind kind;
  int64_t in, kernel, stride, dilation, pad_begin, pad_end, out;
  bool count_include_pad = false;
};

OneStep MakeStep(const Pooling& pooling) {
  OneStep one;
  one.Read({1, 8, pooling.in});
  Window window;
  window.kind = pooling.kind;
  window.in_spatial = {pooling.in};
  window.kernel = {pooling.kernel};
  window.strides = {pooling.stride};
  window.dilations = {pooling.dilation};
  window.pads_begin = {pooling.pad_begin};
  window.pads_end = {pooling.pad_end};
  window.count_include_pad = pooling.count_include_pad;
  window.roots = {one.Accumulated().id()};
  one.step.body = std::move(window);
  one.Write({1, 8, pooling.out});
  return one;
}

OneStep MakeNormalisation(int64_t channels) {
  OneStep one;
  one.Read({1, 16, 4, 4});
  Window window;
  window.kind = Window::Kind::kLrn;
  window.in_spatial = {4, 4};
  window.kernel = {channels};
  window.alpha = 0.5;
  window.beta = 0.75;
  window.bias = 1;
  window.roots = {one.Accumulated().id()};
  one.step.body = std::move(window);
  one.Write({1, 16, 4, 4});
  return one;
}

void ExpectKept(const OneStep& refused, std::string_view reason, const OneStep& taken,
                OneStep::Select select) {
  const OneStep::Outcome kept = refused.Run(select);
  EXPECT_THAT(kept.detail, StartsWith("loops: ")) << "no longer kept from oneDNN";
  EXPECT_THAT(kept.detail, HasSubstr(std::string(reason)));
  EXPECT_EQ(kept.different, 0);
  const OneStep::Outcome primitives = taken.Run(select);
  EXPECT_THAT(primitives.detail, Not(HasSubstr("loops")));
  EXPECT_EQ(primitives.different, 0) << primitives.detail;
}

TEST(PoolingTest, KeepsWindowsOfPaddingAlone) {
  constexpr std::string_view kReason = "A window along spatial axis 0 sees padding alone.";
  for (const Window::Kind kind : {Window::Kind::kMax, Window::Kind::kAverage}) {
    // The first window begins two before the input; then one.
    ExpectKept(MakeStep({kind, 4, 2, 1, 1, 2, 0, 5}), kReason,
               MakeStep({kind, 4, 2, 1, 1, 1, 0, 4}), SelectPooling);
    // The middle one steps over the only element.
    ExpectKept(MakeStep({kind, 1, 2, 1, 2, 1, 1, 1}), kReason,
               MakeStep({kind, 1, 3, 1, 1, 1, 1, 1}), SelectPooling);
  }
}

TEST(PoolingTest, KeepsWindowsThatReachBeyondPaddingThatCounts) {
  // Two elements and a window of which the last place is neither input nor padding.
  ExpectKept(MakeStep({Window::Kind::kAverage, 3, 2, 2, 1, 0, 0, 2, /*count_include_pad=*/true}),
             "A window that counts padding reaches beyond it along spatial axis 0.",
             MakeStep({Window::Kind::kAverage, 3, 2, 2, 1, 0, 1, 2, /*count_include_pad=*/true}),
             SelectPooling);
}

TEST(PoolingTest, KeepsNormalisationOverAnEvenNumberOfChannels) {
  ExpectKept(MakeNormalisation(4), "The window of 4 channels is even", MakeNormalisation(5),
             SelectLrn);
}

}  // namespace
}  // namespace onnxifi::onednn
