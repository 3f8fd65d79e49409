// SPDX-License-Identifier: Apache-2.0
//
// Sums of windows, compared with the reference to a few units: as a processor takes them, in
// float64, and as a GPU does, which may be slow in that.

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "backends/core/codegen/testing/tiled_fixture.h"

namespace onnxifi::codegen {
namespace {

using program::Expr;
using program::Shape;
using program::Window;

class WindowTest : public TiledTest {};

INSTANTIATE_TEST_SUITE_P(Tunings, WindowTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Gpu" : "Processor";
                         });

std::span<float> FloatsOf(tensor::Tensor& tensor) {
  return {reinterpret_cast<float*>(tensor.mutable_data()),
          static_cast<size_t>(tensor.element_count())};
}

// Windows of `side` x `side` over three images that are two columns wider. Elements are 0.1 and
// little more, which every addition to a long sum rounds in the same direction.
RandomStep MakeSums(Window::Kind kind, int64_t side) {
  StepMaker make(1);
  static_cast<void>(make.Read(make.Buffer({1, 3, side, side + 2})));
  uint32_t seed = 5;
  for (float& element : FloatsOf(make.made.buffers[0])) {
    seed = seed * 1'664'525 + 1'013'904'223;
    element = 0.1F + static_cast<float>(seed >> 24) * 0x1p-20F;
  }
  make.step.domain = {1, 3, 1, 3};
  Window window{.kind = kind,
                .in_spatial = {side, side + 2},
                .kernel = {side, side},
                .strides = {1, 1},
                .dilations = {1, 1},
                .pads_begin = {0, 0},
                .pads_end = {0, 0}};
  window.roots = {Accumulator(make.pool(), kFloat).id()};
  make.step.body = std::move(window);
  make.step.writes = {make.Buffer({1, 3, 1, 3})};
  make.FinishStep(0);
  return std::move(make.made);
}

// An item of a GPU takes a window of 31 x 31, a group one of 300 x 300. A processor's items take
// all, which has to fit the rounds of loops that Mesa's llvmpipe allows.
int64_t LargeSide(bool is_gpu) { return is_gpu ? 300 : 100; }

TEST_P(WindowTest, SumsOfManyElementsAreOffByAFewUnits) {
  for (const Window::Kind kind : {Window::Kind::kAverage, Window::Kind::kLp}) {
    for (const int64_t side : {int64_t{2}, int64_t{31}, LargeSide(is_gpu())}) {
      SCOPED_TRACE(testing::Message() << side << " x " << side);
      ExpectRight(MakeSums(kind, side), "generated");
    }
  }
}

TEST_P(WindowTest, InfiniteAndUndefinedElementsStayWhatTheyAre) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t side : {int64_t{31}, LargeSide(is_gpu())}) {
    SCOPED_TRACE(testing::Message() << side << " x " << side);
    RandomStep step = MakeSums(Window::Kind::kAverage, side);
    const std::span<float> elements = FloatsOf(step.buffers[0]);
    // The second window of each image has the element, the first one has not.
    const auto last = static_cast<size_t>(side);
    const size_t image = elements.size() / 3;
    elements[last] = kInfinity;
    elements[image + last] = std::numeric_limits<float>::quiet_NaN();
    elements[2 * image + last] = kInfinity;
    elements[2 * image + last + 1] = -kInfinity;
    ExpectRight(step, "generated");
  }
}

}  // namespace
}  // namespace onnxifi::codegen
