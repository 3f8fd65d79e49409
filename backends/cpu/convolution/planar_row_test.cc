// SPDX-License-Identifier: Apache-2.0
//
// Rows of convolutions of planes on every instruction set, beside plain loops in float64: every
// number of windows that are computed together, columns that fill no vector, and taps anywhere.

#include "backends/cpu/convolution/planar_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::convolution {
namespace {

constexpr float kUntouched = -777.0F;

struct Shape {
  int64_t width, stride, taps, columns;

  std::string Text() const {
    return std::to_string(width) + " windows, stride " + std::to_string(stride) + ", " +
           std::to_string(taps) + " taps, " + std::to_string(columns) + " columns";
  }
};

// Tensors end where their last element does, so that a sanitizer sees what is read behind them.
void CheckRow(const Shape& shape, int number) {
  SCOPED_TRACE(shape.Text());
  std::mt19937 generator(static_cast<uint32_t>(number));
  std::normal_distribution<float> normal(0, 1);
  const auto draw = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(generator);
    return values;
  };
  std::vector<int64_t> taps;
  std::vector<PlanarTaps> together;
  while (static_cast<int64_t>(taps.size()) < shape.taps) {
    const auto draw_to = [&](int64_t least, int64_t most) {
      return std::uniform_int_distribution<int64_t>(least, most)(generator);
    };
    const int64_t left = shape.taps - static_cast<int64_t>(taps.size());
    together.push_back({draw_to(0, 50), std::min(left, draw_to(1, kMaxPlanarTaps))});
    for (int64_t k = 0; k < together.back().count; ++k) taps.push_back(together.back().first + k);
  }
  const int64_t reach = *std::max_element(taps.begin(), taps.end());
  const std::vector<float> source = draw((shape.width - 1) * shape.stride + reach + 1);
  const std::vector<float> weights = draw(shape.taps * shape.columns);
  const int64_t panels = (shape.columns + gemm::PanelColumns() - 1) / gemm::PanelColumns();
  std::vector<float> packed(static_cast<size_t>(gemm::PackedSize(shape.taps, shape.columns)));
  gemm::PackPanels({weights.data(), shape.columns, 1}, shape.taps, shape.columns, 0, panels,
                   packed.data());
  const std::vector<float> bias = draw(shape.columns);
  const int64_t pixel = shape.columns + number % 3, addend_pixel = shape.columns + number % 2;
  const std::vector<float> addend = draw((shape.width - 1) * addend_pixel + shape.columns);
  std::vector<float> result(static_cast<size_t>((shape.width - 1) * pixel + shape.columns),
                            kUntouched);
  gemm::Epilogue epilogue;
  if (number % 5 != 0) epilogue.bias = bias.data();
  if (number % 4 == 1) {
    epilogue.addend = addend.data();
    epilogue.addend_stride = addend_pixel;
  }
  // One that is done in registers, one that is done behind them, and none.
  const int activation = number % 3;
  epilogue.low = 0.25F;
  epilogue.high = 0.5F;
  if (activation == 1) epilogue.activation = gemm::Activation::kLeaky;
  if (activation == 2) epilogue.activation = gemm::Activation::kHardSwish;
  // As threads divide them, panels come in two parts.
  for (const auto& [first, end] :
       {std::pair(panels / 2, panels), std::pair(int64_t{0}, panels / 2)}) {
    ConvolvePlanarRow({source.data(), together, shape.taps, shape.stride, packed.data(),
                       result.data(), pixel, shape.width, shape.columns},
                      epilogue, first, end);
  }
  for (int64_t x = 0; x < shape.width; ++x) {
    for (int64_t n = 0; n < pixel; ++n) {
      if (n >= shape.columns) {
        if (x + 1 < shape.width) {
          ASSERT_EQ(result[static_cast<size_t>(x * pixel + n)], kUntouched) << x;
        }
        continue;
      }
      double sum = 0;
      for (int64_t tap = 0; tap < shape.taps; ++tap) {
        const int64_t at = x * shape.stride + taps[static_cast<size_t>(tap)];
        sum += static_cast<double>(source[static_cast<size_t>(at)]) *
               static_cast<double>(weights[static_cast<size_t>(tap * shape.columns + n)]);
      }
      if (epilogue.bias != nullptr) sum += static_cast<double>(bias[static_cast<size_t>(n)]);
      if (epilogue.addend != nullptr) {
        sum += static_cast<double>(addend[static_cast<size_t>(x * addend_pixel + n)]);
      }
      if (activation == 1 && sum < 0) sum *= 0.25;
      if (activation == 2) sum *= std::max(0.0, std::min(1.0, 0.25 * sum + 0.5));
      ASSERT_NEAR(static_cast<double>(result[static_cast<size_t>(x * pixel + n)]), sum, 1e-4)
          << x << ", " << n;
    }
  }
}

TEST(PlanarRowTest, AgreesWithFloat64OnEveryInstructionSet) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    int number = 0;
    for (const int64_t stride : {1, 2}) {
      ASSERT_TRUE(HasPlanarRow(stride));
      for (int64_t width = 1; width <= 31; ++width) {
        for (const int64_t columns : {1, 4, 7, 8, 9, 16, 17, 24, 31, 32, 33, 48, 70}) {
          CheckRow({width, stride, 1 + number % 29, columns}, number);
          ++number;
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  });
}

}  // namespace
}  // namespace onnxifi::convolution
