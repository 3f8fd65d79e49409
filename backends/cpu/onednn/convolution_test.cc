// SPDX-License-Identifier: Apache-2.0
//
// Convolutions that oneDNN computes wrong, kept from it: the smallest of each class is left to the
// loops with its reason, one just outside the class runs on primitives, and both are right.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>

#include "backends/cpu/onednn/recipe.h"
#include "backends/cpu/onednn/testing/one_step.h"

namespace onnxifi::onednn {
namespace {

using program::Contract;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Per spatial axis.
struct Windows {
  Extents in, kernel, strides, dilations, pads_begin, pads_end;
  int64_t result_padding = 0;  // kConvTranspose: behind the result, along every axis
};

// One channel, one output. Forms kConv and kConvTranspose.
OneStep MakeStep(Contract::Form form, const Windows& windows) {
  const bool is_transposed = form == Contract::Form::kConvTranspose;
  Contract contract;
  contract.form = form;
  contract.inner = {1};
  Extents a = {1, 1}, b = {1, 1}, result = {1, 1};
  for (size_t axis = 0; axis < windows.in.size(); ++axis) {
    const int64_t reach = (windows.kernel[axis] - 1) * windows.dilations[axis] + 1;
    const int64_t pads = windows.pads_begin[axis] + windows.pads_end[axis];
    a.push_back(windows.in[axis]);
    b.push_back(windows.kernel[axis]);
    result.push_back(is_transposed ? windows.strides[axis] * (windows.in[axis] - 1) + reach - pads +
                                         windows.result_padding
                                   : (windows.in[axis] + pads - reach) / windows.strides[axis] + 1);
    contract.inner.emplace_back(windows.kernel[axis]);
    contract.a_spatial.emplace_back(windows.in[axis]);
    contract.pads_begin.emplace_back(windows.pads_begin[axis]);
  }
  contract.strides = windows.strides;
  contract.dilations = windows.dilations;
  OneStep one;
  contract.a_prologue = one.LoadOf(one.Read(a)).id();
  contract.b_prologue = one.LoadOf(one.Read(b)).id();
  contract.roots = {one.Accumulated().id()};
  one.Write(result);
  one.step.body = std::move(contract);
  return one;
}

struct Case {
  const char* name;
  Windows refused;
  const char* reason;
  Windows taken;  // just outside the class
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::string NameOf(const testing::TestParamInfo<Case>& info) { return info.param.name; }

class WindowsTest : public testing::TestWithParam<Case> {
 protected:
  static void Check(Contract::Form form, OneStep::Select select) {
    const OneStep::Outcome refused = MakeStep(form, GetParam().refused).Run(select);
    EXPECT_THAT(refused.detail, StartsWith("loops: ")) << "no longer kept from oneDNN";
    EXPECT_THAT(refused.detail, HasSubstr(GetParam().reason));
    EXPECT_EQ(refused.different, 0);
    const OneStep::Outcome taken = MakeStep(form, GetParam().taken).Run(select);
    EXPECT_THAT(taken.detail, Not(HasSubstr("loops")));
    EXPECT_EQ(taken.different, 0) << taken.detail;
  }
};

class ConvolutionClassTest : public WindowsTest {};
TEST_P(ConvolutionClassTest, IsKeptFromOneDnn) { Check(Contract::Form::kConv, SelectConvolution); }

class DeconvolutionClassTest : public WindowsTest {};
TEST_P(DeconvolutionClassTest, IsKeptFromOneDnn) {
  Check(Contract::Form::kConvTranspose, SelectDeconvolution);
}

INSTANTIATE_TEST_SUITE_P(
    All, ConvolutionClassTest,
    testing::Values(Case{"KernelWiderThanTheInput",
                         {{2}, {3}, {1}, {1}, {1}, {1}},
                         "The kernel's reach along spatial axis 0 (3) exceeds the input (2).",
                         {{3}, {3}, {1}, {1}, {1}, {1}}},
                    Case{"OnlyWindowThatLeavesOutAPart",
                         {{5, 4}, {3, 3}, {1, 2}, {1, 1}, {0, 0}, {0, 0}},
                         "The only window along spatial axis 1 leaves out a part of the input.",
                         {{5, 4}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}},
                    Case{"StrideThatSkipsElements",
                         {{8}, {2}, {3}, {1}, {0}, {0}},
                         "The stride along spatial axis 0 (3) exceeds the kernel's reach (2).",
                         {{8}, {2}, {2}, {1}, {0}, {0}}},
                    Case{"WindowMostlyBehindTheInput",
                         {{5}, {4}, {1}, {1}, {0}, {3}},
                         "A window along spatial axis 0 sees 1 of the 4 taps, less than half.",
                         {{5}, {4}, {1}, {1}, {0}, {2}}},
                    Case{"WindowMostlyBeforeTheInput",
                         {{5}, {4}, {1}, {1}, {3}, {0}},
                         "A window along spatial axis 0 sees 1 of the 4 taps, less than half.",
                         {{5}, {4}, {1}, {1}, {2}, {0}}},
                    Case{"WindowOfPaddingAlone",
                         {{4}, {2}, {1}, {1}, {2}, {0}},
                         "A window along spatial axis 0 sees 0 of the 2 taps, less than half.",
                         {{4}, {2}, {1}, {1}, {1}, {0}}}),
    NameOf);

// Windows over the result of a transposed convolution.
INSTANTIATE_TEST_SUITE_P(
    All, DeconvolutionClassTest,
    testing::Values(Case{"KernelWiderThanTheResult",
                         {{1}, {3}, {1}, {1}, {2}, {0}},
                         "The kernel's reach along spatial axis 0 (3) exceeds the input (1).",
                         {{1}, {3}, {1}, {1}, {0}, {0}}},
                    Case{"OnlyWindowThatLeavesOutAPart",
                         {{1}, {3}, {2}, {1}, {0}, {0}, /*result_padding=*/1},
                         "The only window along spatial axis 0 leaves out a part of the input.",
                         {{1}, {3}, {2}, {1}, {0}, {0}, /*result_padding=*/0}},
                    Case{"StrideThatSkipsElements",
                         {{3}, {2}, {3}, {1}, {0}, {0}},
                         "The stride along spatial axis 0 (3) exceeds the kernel's reach (2).",
                         {{3}, {2}, {2}, {1}, {0}, {0}}},
                    Case{"WindowMostlyBehindTheResult",
                         {{5}, {4}, {1}, {1}, {0}, {3}},
                         "A window along spatial axis 0 sees 1 of the 4 taps, less than half.",
                         {{5}, {4}, {1}, {1}, {0}, {2}}}),
    NameOf);

// Steps over nothing, which a single window does anyway; oneDNN must not see the stride.
TEST(ConvolutionTest, TakesTheOnlyWindowOverAllOfTheInput) {
  const OneStep::Outcome outcome =
      MakeStep(Contract::Form::kConv, {{7, 2}, {2, 2}, {1, 3}, {2, 1}, {0, 0}, {0, 0}})
          .Run(SelectConvolution);
  EXPECT_THAT(outcome.detail, Not(HasSubstr("loops")));
  EXPECT_EQ(outcome.different, 0) << outcome.detail;
}

// A kernel of one element may leave out as many as it likes.
TEST(ConvolutionTest, TakesKernelsOfOneWithAnyStride) {
  const OneStep::Outcome outcome =
      MakeStep(Contract::Form::kConv, {{8}, {1}, {3}, {1}, {0}, {0}}).Run(SelectConvolution);
  EXPECT_THAT(outcome.detail, Not(HasSubstr("loops")));
  EXPECT_EQ(outcome.different, 0) << outcome.detail;
}

// Over one axis: input, kernel, stride, dilation, padding before and behind.
bool IsUsual(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t before,
             int64_t behind) {
  return HasUsualWindows(
      MakeStep(Contract::Form::kConv, {{in}, {kernel}, {stride}, {dilation}, {before}, {behind}})
          .step);
}

TEST(UsualWindowsTest, AreThoseThatOneDnnTakes) {
  EXPECT_TRUE(IsUsual(9, 3, 1, 1, 1, 1));
  EXPECT_TRUE(IsUsual(9, 4, 2, 1, 2, 2)) << "half a kernel";
  EXPECT_TRUE(IsUsual(9, 3, 1, 2, 2, 2));
  EXPECT_TRUE(IsUsual(9, 1, 2, 1, 0, 0)) << "a kernel of one may step over elements";
  EXPECT_TRUE(IsUsual(10, 3, 2, 1, 0, 0)) << "the last element is left out";
  EXPECT_FALSE(IsUsual(9, 3, 1, 1, 2, 1)) << "more than half a kernel";
  EXPECT_FALSE(IsUsual(9, 3, 1, 1, 1, 2));
  EXPECT_FALSE(IsUsual(9, 2, 3, 1, 0, 0)) << "a step beyond the kernel";
  EXPECT_FALSE(IsUsual(4, 3, 1, 2, 2, 2)) << "a reach beyond the input";
  EXPECT_FALSE(IsUsual(9, 3, 9, 1, 0, 0)) << "one window, and a rest";
  OneStep open = MakeStep(Contract::Form::kConv, {{9}, {3}, {1}, {1}, {1}, {1}});
  open.step.As<Contract>()->a_spatial = {open.program.dims->NewSymbol("n", /*is_data=*/false)};
  EXPECT_FALSE(HasUsualWindows(open.step)) << "an extent that is not known";
}

}  // namespace
}  // namespace onnxifi::onednn
