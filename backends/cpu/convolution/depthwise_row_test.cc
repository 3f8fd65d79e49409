// SPDX-License-Identifier: Apache-2.0
//
// Rows of depthwise convolutions on every instruction set, beside plain loops in float64: every
// number of neighbours that are computed together, windows that reach over either end of the image,
// channels that fill no vector, and every activation.

#include "backends/cpu/convolution/depthwise_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::convolution {
namespace {

using gemm::Activation;

constexpr float kUntouched = -777.0F;
constexpr Activation kActivations[] = {
    Activation::kNone,     Activation::kClip,  Activation::kLeaky, Activation::kHardSwish,
    Activation::kLogistic, Activation::kSwish, Activation::kGelu,  Activation::kTanh};

double Activated(double x, const gemm::Epilogue& epilogue) {
  const auto low = static_cast<double>(epilogue.low), high = static_cast<double>(epilogue.high);
  switch (epilogue.activation) {
    case Activation::kNone:
      return x;
    case Activation::kClip:
      return std::min(std::max(x, low), high);
    case Activation::kLeaky:
      return x < 0 ? low * x : x;
    case Activation::kHardSwish:
      return x * std::max(0.0, std::min(1.0, low * x + high));
    case Activation::kLogistic:
      return 1 / (1 + std::exp(-x));
    case Activation::kSwish:
      return x / (1 + std::exp(-low * x));
    case Activation::kGelu:
      return x / 2 * (1 + std::erf(x * std::sqrt(0.5)));
    case Activation::kTanh:
      return std::tanh(x);
  }
  return 0;
}

struct Shape {
  int64_t taps, stride, dilation;
  int64_t in_width, out_width, pad_left;
  int64_t channels;

  std::string Text() const {
    return std::to_string(taps) + " taps, stride " + std::to_string(stride) + ", dilation " +
           std::to_string(dilation) + ", " + std::to_string(in_width) + " > " +
           std::to_string(out_width) + " pixels, pad " + std::to_string(pad_left) + ", " +
           std::to_string(channels) + " channels";
  }
};

// Tensors end where their last element does, so that a sanitizer sees what is read behind them.
void CheckRow(const Shape& shape, int number) {
  constexpr int64_t kRows = 2;
  SCOPED_TRACE(shape.Text());
  std::mt19937 generator(static_cast<uint32_t>(number));
  std::normal_distribution<float> normal(0, 1);
  const auto draw = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(generator);
    return values;
  };
  const int64_t at_once = ChannelsAtOnce();
  const int64_t tap_stride = (shape.channels + at_once - 1) / at_once * at_once;
  const int64_t pixel = shape.channels + number % 3, result_pixel = shape.channels + number % 2;
  const auto in_row = [&](int64_t pixels, int64_t stride) {
    return (pixels - 1) * stride + shape.channels;
  };
  const std::vector<float> image[kRows] = {draw(in_row(shape.in_width, pixel)),
                                           draw(in_row(shape.in_width, pixel))};
  const std::vector<float> taps = draw(kRows * shape.taps * tap_stride);
  const std::vector<float> bias = draw(shape.channels);
  const std::vector<float> addend = draw(shape.out_width * shape.channels);
  std::vector<float> result(static_cast<size_t>(in_row(shape.out_width, result_pixel)), kUntouched);
  DepthwiseRow::Row rows[kRows];
  for (int64_t row = 0; row < kRows; ++row) {
    rows[row] = {image[row].data(), taps.data() + row * shape.taps * tap_stride};
  }
  gemm::Epilogue epilogue;
  epilogue.activation = kActivations[number % 8];
  epilogue.low = epilogue.activation == Activation::kClip ? -0.5F : 0.25F;
  epilogue.high = 0.5F;
  if (number % 5 != 0) epilogue.bias = bias.data();
  if (number % 4 == 1) {
    epilogue.addend = addend.data();
    epilogue.addend_stride = shape.channels;
  }
  ConvolveRow({rows, tap_stride, pixel, shape.in_width, shape.taps, shape.stride, shape.dilation,
               shape.pad_left, shape.channels, result.data(), result_pixel, shape.out_width},
              epilogue);
  for (int64_t x = 0; x < shape.out_width; ++x) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      double sum = epilogue.bias == nullptr ? 0.0 : static_cast<double>(bias[c]);
      for (int64_t tap = 0; tap < kRows * shape.taps; ++tap) {
        const int64_t k = tap % shape.taps;
        const int64_t in = x * shape.stride - shape.pad_left + k * shape.dilation;
        if (in < 0 || in >= shape.in_width) continue;
        sum += static_cast<double>(image[tap / shape.taps][in * pixel + c]) *
               static_cast<double>(taps[tap * tap_stride + c]);
      }
      if (epilogue.addend != nullptr) {
        sum += static_cast<double>(addend[x * shape.channels + c]);
      }
      ASSERT_NEAR(result[x * result_pixel + c], Activated(sum, epilogue), 2e-5)
          << "pixel " << x << ", channel " << c;
    }
    for (int64_t c = shape.channels; c < result_pixel && x + 1 < shape.out_width; ++c) {
      ASSERT_EQ(result[x * result_pixel + c], kUntouched) << "behind pixel " << x;
    }
  }
}

TEST(DepthwiseRowTest, AgreesWithFloat64OnEveryInstructionSet) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    int number = 0;
    for (const int64_t taps : {3, 5, 7, 4}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (int64_t out_width = 1; out_width <= 19; ++out_width) {
          for (const int64_t pad : {int64_t{0}, taps / 2, taps - 1, taps + 1}) {
            // From images that end before the last windows do to those of which some is not seen.
            const int64_t seen = (out_width - 1) * stride + taps - pad;
            for (const int64_t more : {-taps, -taps / 2, int64_t{0}, int64_t{1}}) {
              const int64_t channels = number % 3 == 0 ? 40 : number % 3 == 1 ? 17 : 16;
              CheckRow({taps, stride, number % 7 == 0 ? 2 : 1, std::max<int64_t>(1, seen + more),
                        out_width, pad, channels},
                       number);
              ++number;
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace onnxifi::convolution
