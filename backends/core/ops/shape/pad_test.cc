// SPDX-License-Identifier: Apache-2.0
//
// Pad by reflection, edges and the other side against plain loops, of tensors that are large enough
// for a step per border and of others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <string>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using Ints = std::vector<int64_t>;
using tensor::ElementType;

struct PadCase {
  Ints in, before, after;
};

int64_t Folded(const std::string& mode, int64_t x, int64_t extent) {
  if (mode == "edge") return std::clamp<int64_t>(x, 0, extent - 1);
  while (x < 0 || x >= extent) {
    if (mode == "wrap") {
      x += x < 0 ? extent : -extent;
    } else if (extent == 1) {
      x = 0;
    } else {
      x = x < 0 ? -x : 2 * (extent - 1) - x;
    }
  }
  return x;
}

std::vector<double> Padded(const PadCase& pad, const std::string& mode,
                           const std::vector<double>& x) {
  int64_t count = 1;
  Ints shape;
  for (size_t axis = 0; axis < pad.in.size(); ++axis) {
    shape.push_back(pad.before[axis] + pad.in[axis] + pad.after[axis]);
    count *= shape.back();
  }
  std::vector<double> result;
  for (int64_t number = 0; number < count; ++number) {
    int64_t offset = 0, stride = 1, rest = number;
    for (size_t axis = shape.size(); axis-- > 0;) {
      const int64_t at = rest % shape[axis] - pad.before[axis];
      offset += Folded(mode, at, pad.in[axis]) * stride;
      stride *= pad.in[axis];
      rest /= shape[axis];
    }
    result.push_back(x[static_cast<size_t>(offset)]);
  }
  return result;
}

TEST(PadTest, EqualsLoops) {
  const PadCase cases[] = {
      {{20000}, {70}, {5}},
      {{9}, {3}, {5}},
      {{3, 80, 81}, {0, 3, 2}, {0, 0, 4}},
      {{2, 3, 50, 60}, {0, 0, 5, 0}, {0, 0, 5, 19}},
      {{2, 1, 30, 20, 9}, {1, 2, 3, 1, 8}, {1, 0, 29, 1, 0}},
      // Borders longer than the input.
      {{1, 40, 3}, {0, 1000, 7}, {2, 0, 4}},
      {{50, 1, 8}, {3, 20, 0}, {0, 4, 9}},
  };
  bool has_large = false;  // enough for a step per border
  for (const PadCase& pad : cases) {
    const int64_t count = tensor::ElementCount(pad.in);
    std::vector<double> x;
    for (int64_t k = 0; k < count; ++k) x.push_back(static_cast<double>(k % 1021) + 0.5);
    std::vector<double> pads(pad.before.begin(), pad.before.end());
    pads.insert(pads.end(), pad.after.begin(), pad.after.end());
    const auto rank = static_cast<int64_t>(pad.in.size());
    for (const std::string mode : {"reflect", "edge", "wrap"}) {
      const std::vector<double> expected = Padded(pad, mode, x);
      has_large = has_large || expected.size() >= (1U << 14);
      for (const bool is_symbolic : {false, true}) {
        const NodeInput data = is_symbolic ? Symbolic(pad.in, x) : Given(pad.in, x);
        const auto out = RunOperator(
            {"Pad", 19, {{"mode", mode}}, {data, Constant({2 * rank}, pads, ElementType::kInt64)}});
        ASSERT_TRUE(out.ok()) << out.status().Text();
        EXPECT_EQ(Numbers((*out)[0]), expected) << mode << ", rank " << rank;
      }
    }
  }
  EXPECT_TRUE(has_large);
}

// A fill value that is known when the graph is lowered, and one that is not.
TEST(PadTest, FillsWithComplexNumbers) {
  const auto make = [](Ints extents, const std::vector<std::complex<double>>& values) {
    tensor::Tensor tensor = *tensor::Tensor::Allocate(ElementType::kComplex128, std::move(extents));
    std::memcpy(tensor.mutable_data(), values.data(), values.size() * sizeof(values[0]));
    return tensor;
  };
  const std::complex<double> x(1, -2), fill(0.25, 3);
  for (const NodeInput::Kind kind : {NodeInput::Kind::kConstant, NodeInput::Kind::kGiven}) {
    const auto out = RunOperator(
        {"Pad",
         19,
         {},
         {{make({1}, {x})}, Constant({2}, {1, 2}, ElementType::kInt64), {make({}, {fill}), kind}}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    std::vector<std::complex<double>> padded(4);
    ASSERT_EQ((*out)[0].extents(), (tensor::Extents{4}));
    std::memcpy(padded.data(), (*out)[0].data(), padded.size() * sizeof(padded[0]));
    EXPECT_THAT(padded, ::testing::ElementsAre(fill, x, fill, fill));
  }
}

}  // namespace
}  // namespace onnxifi::ops
