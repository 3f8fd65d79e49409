// SPDX-License-Identifier: Apache-2.0
//
// Which of oneDNN's implementations are used at all.

#include "backends/cpu/onednn/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "backends/cpu/onednn/sequence.h"

namespace onnxifi::onednn {
namespace {

using testing::StartsWith;

// A 3x3 convolution of [1, 3, 6, 6] to [1, 5, 6, 6], its weights in any layout.
dnnl::convolution_forward::primitive_desc MakeConvolution(const Extents& source_strides,
                                                          const Extents& result_strides) {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return {engine,
          dnnl::prop_kind::forward_inference,
          dnnl::algorithm::convolution_direct,
          *Strided({1, 3, 6, 6}, source_strides),
          Any({5, 3, 3, 3}),
          Desc(),
          *Strided({1, 5, 6, 6}, result_strides),
          {1, 1},
          {0, 0},
          {1, 1},
          {1, 1},
          Attributes(),
          /*allow_empty=*/true};
}

TEST(IsGoodTest, TakesAConvolutionOfChannelsLastTensors) {
  const auto desc = MakeConvolution({108, 1, 18, 3}, {180, 1, 30, 5});
  EXPECT_TRUE(IsGood(desc)) << desc.impl_info_str();
}

TEST(IsGoodTest, RefusesWhatThereIsNot) {
  EXPECT_FALSE(IsGood(dnnl::convolution_forward::primitive_desc()));
}

// The axes of each image backwards: only loops know what to do with that.
TEST(IsGoodTest, RefusesLoopsOfOneDnnsOwn) {
  const auto desc = MakeConvolution({108, 1, 3, 18}, {180, 1, 5, 30});
  ASSERT_TRUE(desc);
  ASSERT_THAT(desc.impl_info_str(), StartsWith("ref"));
  EXPECT_FALSE(IsGood(desc));
}

// Behind a wrapper: a transposed convolution into a part of a wider tensor, with a bias. It writes
// where it should not, too.
TEST(IsGoodTest, RefusesLoopsBehindAWrapper) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto data = [](const Extents& extents, const Extents& strides) {
    return *Strided(extents, strides);
  };
  const dnnl::deconvolution_forward::primitive_desc desc(
      engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
      data({1, 64, 16, 16}, {16384, 1, 1024, 64}), Any({32, 64, 2, 2}), Dense({32}),
      data({1, 32, 32, 32}, {65536, 1, 2048, 64}), {2, 2}, {0, 0}, {0, 0}, {0, 0}, Attributes(),
      /*allow_empty=*/true);
  ASSERT_TRUE(desc);
  if (std::string_view(desc.impl_info_str()).find("ref") == std::string_view::npos) {
    GTEST_SKIP() << "This processor does it with " << desc.impl_info_str() << ".";
  }
  EXPECT_FALSE(IsGood(desc)) << desc.impl_info_str();
}

// It leaves parts of some results unwritten.
TEST(IsGoodTest, RefusesTheWrapperThatTransposesPlainTensors) {
  const auto desc = MakeConvolution({108, 36, 6, 1}, {180, 36, 6, 1});
  ASSERT_TRUE(desc);
  if (!std::string_view(desc.impl_info_str()).starts_with("jit_uni_ncsp")) {
    GTEST_SKIP() << "This processor convolves plain tensors with " << desc.impl_info_str() << ".";
  }
  EXPECT_FALSE(IsGood(desc));
}

}  // namespace
}  // namespace onnxifi::onednn
