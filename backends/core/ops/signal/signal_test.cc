// SPDX-License-Identifier: Apache-2.0
//
// DFT, STFT, mel weights and windows against double precision: both directions, one-sided, padded
// and cropped, any axis; extents, lengths and whether numbers are complex known only when they run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::HasSubstr;
using Spectrum = std::vector<std::complex<double>>;

std::vector<double> Draw(size_t count) {
  std::vector<double> numbers;
  for (size_t k = 0; k < count; ++k) {
    numbers.push_back(float(std::sin(2.3 * double(k * k % 101) + 0.4)));
  }
  return numbers;
}

// Zeros behind the input, or its end cut off.
Spectrum Transform(Spectrum x, size_t length, bool is_inverse) {
  x.resize(length);
  Spectrum y(length);
  for (size_t k = 0; k < length; ++k) {
    for (size_t n = 0; n < length; ++n) {
      const double angle = 2 * std::numbers::pi * double(k) * double(n) / double(length);
      y[k] += x[n] * std::polar(1.0, is_inverse ? angle : -angle);
    }
    if (is_inverse) y[k] /= double(length);
  }
  return y;
}

struct DftCase {
  std::string name;
  bool is_inverse = false;
  bool is_onesided = false;
  int64_t parts = 1;
  int64_t length = 0;  // 0: left out
};

// The spectrum that one line of the input has, as numbers of the output.
std::vector<double> Expected(const DftCase& c, Spectrum x) {
  std::vector<double> numbers;
  if (c.is_inverse && c.is_onesided) {
    const size_t length = size_t(c.length > 0 ? c.length : 2 * (int64_t(x.size()) - 1));
    x.resize(length / 2 + 1);
    x.resize(length);
    x[0] = x[0].real();
    if (length % 2 == 0) x[length / 2] = x[length / 2].real();
    for (size_t k = 1; k < (length + 1) / 2; ++k) x[length - k] = std::conj(x[k]);
    for (const auto& y : Transform(x, length, true)) numbers.push_back(y.real());
    return numbers;
  }
  const size_t length = size_t(c.length > 0 ? c.length : int64_t(x.size()));
  Spectrum y = Transform(std::move(x), length, c.is_inverse);
  if (c.is_onesided) y.resize(length / 2 + 1);
  for (const auto& value : y) {
    numbers.push_back(value.real());
    numbers.push_back(value.imag());
  }
  return numbers;
}

class DftTest : public ::testing::TestWithParam<DftCase> {};

TEST_P(DftTest, EqualsTheSum) {
  const DftCase& c = GetParam();
  constexpr int64_t kOuter = 3, kExtent = 7, kInner = 2;
  const std::vector<double> data = Draw(size_t(kOuter * kExtent * kInner * c.parts));
  for (int version : {17, 20}) {
    for (bool is_symbolic : {false, true}) {
      SCOPED_TRACE(version * 10 + is_symbolic);
      OneNode node{"DFT", version};
      if (c.is_inverse) node.attributes["inverse"] = int64_t{1};
      if (c.is_onesided) node.attributes["onesided"] = int64_t{1};
      const NodeInput x = (is_symbolic ? Symbolic : Given)({kOuter, kExtent, kInner, c.parts}, data,
                                                           ElementType::kFloat32);
      node.inputs = {x, Omitted(), Omitted()};
      if (c.length > 0) {
        node.inputs[1] =
            (is_symbolic ? Given : Constant)({}, {double(c.length)}, ElementType::kInt64);
      }
      if (version == 20) {
        node.inputs[2] = (is_symbolic ? Given : Constant)({}, {-3}, ElementType::kInt64);
      } else {
        node.attributes["axis"] = int64_t{1};
        node.inputs.pop_back();
      }
      const auto out = RunOperator(node);
      ASSERT_TRUE(out.ok()) << out.status().Text();
      const std::vector<double> found = Numbers((*out)[0]);
      const int64_t parts = c.is_inverse && c.is_onesided ? 1 : 2;
      for (int64_t outer = 0; outer < kOuter; ++outer) {
        for (int64_t inner = 0; inner < kInner; ++inner) {
          Spectrum line;
          for (int64_t n = 0; n < kExtent; ++n) {
            const size_t at = size_t(((outer * kExtent + n) * kInner + inner) * c.parts);
            line.emplace_back(data[at], c.parts == 2 ? data[at + 1] : 0);
          }
          const std::vector<double> expected = Expected(c, line);
          const int64_t bins = int64_t(expected.size()) / parts;
          ASSERT_EQ((*out)[0].extents(), (tensor::Extents{kOuter, bins, kInner, parts}));
          for (int64_t k = 0; k < bins; ++k) {
            for (int64_t part = 0; part < parts; ++part) {
              ASSERT_NEAR(found[size_t(((outer * bins + k) * kInner + inner) * parts + part)],
                          expected[size_t(k * parts + part)], 1e-5)
                  << outer << " " << inner << " " << k << " " << part;
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, DftTest,
                         ::testing::Values(DftCase{"Real"}, DftCase{"Complex", false, false, 2},
                                           DftCase{"OneSided", false, true},
                                           DftCase{"Padded", false, true, 1, 10},
                                           DftCase{"Cropped", false, false, 2, 4},
                                           DftCase{"Inverse", true, false, 2},
                                           DftCase{"InverseOfReal", true, false, 1},
                                           DftCase{"InversePadded", true, false, 2, 9},
                                           DftCase{"InverseOneSided", true, true, 2},
                                           DftCase{"InverseOneSidedOdd", true, true, 2, 13},
                                           DftCase{"InverseOneSidedPadded", true, true, 2, 20},
                                           DftCase{"InverseOneSidedCropped", true, true, 2, 6}),
                         [](const auto& info) { return info.param.name; });

struct LongCase {
  std::string name;
  int64_t extent;
  DftCase form;
  ElementType type = ElementType::kFloat32;
};

class LongDftTest : public ::testing::TestWithParam<LongCase> {};

// Two lines of each, by stages: the matrix of a transform is nowhere.
TEST_P(LongDftTest, EqualsTheSum) {
  const auto& [name, extent, c, type] = GetParam();
  constexpr int64_t kRows = 2;
  const std::vector<double> data = Draw(size_t(kRows * extent * c.parts));
  OneNode node{"DFT", 17};
  if (c.is_inverse) node.attributes["inverse"] = int64_t{1};
  if (c.is_onesided) node.attributes["onesided"] = int64_t{1};
  node.inputs = {Given({kRows, extent, c.parts}, data, type)};
  if (c.length > 0) {
    node.inputs.push_back(Constant({}, {double(c.length)}, ElementType::kInt64));
  }
  int64_t largest = 0;
  node.rewrite = [&](program::Program& program) {
    for (const program::Buffer& buffer : program.buffers) {
      largest = std::max(largest, tensor::Product(buffer.shape).constant());
    }
  };
  const auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_LT(largest, 300 * 300 * 4) << "elements";
  const std::vector<double> found = Numbers((*out)[0]);
  for (int64_t row = 0; row < kRows; ++row) {
    Spectrum line;
    for (int64_t n = 0; n < extent; ++n) {
      const size_t at = size_t((row * extent + n) * c.parts);
      line.emplace_back(data[at], c.parts == 2 ? data[at + 1] : 0);
    }
    const std::vector<double> expected = Expected(c, line);
    ASSERT_EQ(found.size(), expected.size() * kRows);
    const double bound = (type == ElementType::kFloat64 ? 1e-10 : 1e-4) * (c.is_inverse ? 0.1 : 1);
    for (size_t k = 0; k < expected.size(); ++k) {
      ASSERT_NEAR(found[size_t(row) * expected.size() + k], expected[k], bound) << row << " " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, LongDftTest,
    ::testing::Values(LongCase{"Real", 640, {"", false, false, 1}},
                      LongCase{"Complex", 1024, {"", false, false, 2}},
                      LongCase{"ThreeStages", 8192, {"", false, true, 1}},
                      LongCase{"OneSidedOdd", 735, {"", false, true, 1}},
                      LongCase{"Padded", 530, {"", false, true, 2, 640}},
                      LongCase{"Cropped", 700, {"", false, false, 1, 600}},
                      LongCase{"Inverse", 720, {"", true, false, 2}},
                      LongCase{"InverseOfReal", 720, {"", true, false, 1}},
                      LongCase{"InverseOneSided", 361, {"", true, true, 2}},
                      LongCase{"InverseOneSidedOdd", 361, {"", true, true, 2, 735}},
                      LongCase{"InverseOneSidedPadded", 300, {"", true, true, 2, 720}},
                      LongCase{"InverseOneSidedOfReal", 361, {"", true, true, 1}},
                      LongCase{"Prime", 521, {"", false, false, 2}},
                      LongCase{"RealPrime", 521, {"", false, true, 1}},
                      LongCase{"InversePrime", 521, {"", true, false, 2}},
                      LongCase{"TwicePrime", 1042, {"", true, true, 2, 1042}},
                      LongCase{"PrimeDouble", 521, {"", true, false, 2}, ElementType::kFloat64},
                      LongCase{"Double", 640, {"", false, false, 1}, ElementType::kFloat64}),
    [](const auto& info) { return info.param.name; });

TEST(DftRefusalTest, TakesNoAxisOfParts) {
  const auto out = RunOperator({"DFT", 17, {{"axis", int64_t{1}}}, {Given({4, 1}, Draw(4))}});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.status().Text(), HasSubstr("real and imaginary parts"));
}

TEST(DftRefusalTest, TakesOnePartOrTwo) {
  for (const auto& form : {Given, Symbolic}) {
    const auto out =
        RunOperator({"DFT", 17, {}, {form({1, 4, 3}, Draw(12), ElementType::kFloat32)}});
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), base::Code::kInvalidModel);
    EXPECT_THAT(out.status().Text(), HasSubstr("instead of 1 (real) or 2 (complex)"));
    EXPECT_THAT(out.status().Text(), HasSubstr("3"));
  }
}

TEST(StftTest, TransformsWindowedFrames) {
  constexpr int64_t kBatch = 2, kLength = 21, kFrame = 6, kStep = 4, kFrames = 4;
  const std::vector<double> window{0.5, 1, -2, 1.5, 0.25, 3};
  for (int64_t parts : {1, 2}) {
    for (bool is_onesided : {false, true}) {
      for (bool is_symbolic : {false, true}) {
        for (bool has_window : {false, true}) {
          SCOPED_TRACE(parts * 8 + is_onesided * 4 + is_symbolic * 2 + has_window);
          const std::vector<double> data = Draw(size_t(kBatch * kLength * parts));
          const auto number = is_symbolic ? Given : Constant;
          const auto out = RunOperator(
              {"STFT",
               17,
               {{"onesided", int64_t{is_onesided}}},
               {(is_symbolic ? Symbolic : Given)({kBatch, kLength, parts}, data,
                                                 ElementType::kFloat32),
                number({}, {kStep}, ElementType::kInt64),
                has_window
                    ? (is_symbolic ? Symbolic : Given)({kFrame}, window, ElementType::kFloat32)
                    : Omitted(),
                has_window && !is_symbolic ? Omitted()
                                           : number({}, {kFrame}, ElementType::kInt64)}});
          ASSERT_TRUE(out.ok()) << out.status().Text();
          const int64_t bins = is_onesided ? kFrame / 2 + 1 : kFrame;
          ASSERT_EQ((*out)[0].extents(), (tensor::Extents{kBatch, kFrames, bins, 2}));
          const std::vector<double> found = Numbers((*out)[0]);
          for (int64_t b = 0; b < kBatch; ++b) {
            for (int64_t f = 0; f < kFrames; ++f) {
              Spectrum frame;
              for (int64_t n = 0; n < kFrame; ++n) {
                const size_t at = size_t((b * kLength + f * kStep + n) * parts);
                const double factor = has_window ? window[size_t(n)] : 1;
                frame.emplace_back(data[at] * factor, parts == 2 ? data[at + 1] * factor : 0);
              }
              const Spectrum y = Transform(frame, kFrame, false);
              for (int64_t k = 0; k < bins; ++k) {
                const size_t at = size_t(((b * kFrames + f) * bins + k) * 2);
                ASSERT_NEAR(found[at], y[size_t(k)].real(), 2e-5) << b << " " << f << " " << k;
                ASSERT_NEAR(found[at + 1], y[size_t(k)].imag(), 2e-5) << b << " " << f << " " << k;
              }
            }
          }
        }
      }
    }
  }
}

TEST(StftTest, TransformsLongFramesInStages) {
  constexpr int64_t kFrame = 640, kStep = 100, kFrames = 3,
                    kLength = kFrame + kStep * (kFrames - 1);
  const std::vector<double> data = Draw(kLength);
  const std::vector<double> window = Draw(kFrame);
  const auto out =
      RunOperator({"STFT",
                   17,
                   {},
                   {Given({1, kLength, 1}, data), Constant({}, {kStep}, ElementType::kInt64),
                    Given({kFrame}, window)}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  const std::vector<double> found = Numbers((*out)[0]);
  ASSERT_EQ((*out)[0].extents(), (tensor::Extents{1, kFrames, kFrame / 2 + 1, 2}));
  for (int64_t f = 0; f < kFrames; ++f) {
    Spectrum frame;
    for (int64_t n = 0; n < kFrame; ++n) {
      frame.emplace_back(data[size_t(f * kStep + n)] * window[size_t(n)]);
    }
    const Spectrum y = Transform(frame, kFrame, false);
    for (int64_t k = 0; k <= kFrame / 2; ++k) {
      const size_t at = size_t((f * (kFrame / 2 + 1) + k) * 2);
      ASSERT_NEAR(found[at], y[size_t(k)].real(), 1e-4) << f << " " << k;
      ASSERT_NEAR(found[at + 1], y[size_t(k)].imag(), 1e-4) << f << " " << k;
    }
  }
}

TEST(MelWeightMatrixTest, HasTrianglesBetweenItsEdges) {
  constexpr int64_t kBands = 9, kLength = 62, kRate = 8000;
  const double low = 120, high = 3700;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<int64_t> corners;
  for (int64_t k = 0; k < kBands + 2; ++k) {
    const double at = mel(low) + double(k) * (mel(high) - mel(low)) / double(kBands + 2);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    corners.push_back(int64_t(std::floor((kLength + 1) * hertz / kRate)));
  }
  const auto out = RunOperator(
      {"MelWeightMatrix",
       17,
       {{"output_datatype", int64_t{11}}},
       {Given({}, {kBands}, ElementType::kInt64), Constant({}, {kLength}, ElementType::kInt32),
        Given({}, {kRate}, ElementType::kInt64), Given({}, {low}), Constant({}, {high})}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  ASSERT_EQ((*out)[0].extents(), (tensor::Extents{kLength / 2 + 1, kBands}));
  const std::vector<double> found = Numbers((*out)[0]);
  for (int64_t band = 0; band < kBands; ++band) {
    const int64_t left = corners[size_t(band)], centre = corners[size_t(band) + 1],
                  right = corners[size_t(band) + 2];
    for (int64_t bin = 0; bin <= kLength / 2; ++bin) {
      double expected = 0;
      if (bin == centre) {
        expected = 1;
      } else if (left < bin && bin < centre) {
        expected = double(bin - left) / double(centre - left);
      } else if (centre < bin && bin < right) {
        expected = double(right - bin) / double(right - centre);
      }
      EXPECT_NEAR(found[size_t(bin * kBands + band)], expected, 1e-12) << bin << " " << band;
    }
  }
}

TEST(WindowFunctionTest, IsRoundedOnceWhereTheModelGivesTheSize) {
  const auto expected = [](std::string_view op_type, double n, double period) {
    const double once = 1 - std::cos(2 * std::numbers::pi * n / period);
    const double twice = 1 - std::cos(4 * std::numbers::pi * n / period);
    if (op_type == "HannWindow") return 0.5 * once;
    if (op_type == "HammingWindow") return (4 + 21 * once) / 46;
    return 0.5 * once - 0.08 * twice;
  };
  // Devices round differently; the reference alone has sines of double precision.
  const auto computes_no_sine = [](const program::Program& program) {
    for (int node = 0; node < program.exprs.size(); ++node) {
      EXPECT_NE(program.exprs[node].op, program::ExprOp::kSin);
    }
  };
  for (const char* const op_type : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    for (const int64_t size : {1, 2, 5, 400, 1031}) {
      for (const bool is_periodic : {false, true}) {
        OneNode node = {op_type,
                        17,
                        {{"periodic", int64_t{is_periodic}}},
                        {Constant({}, {double(size)}, ElementType::kInt64)}};
        node.rewrite = computes_no_sine;
        const auto out = RunOperator(node);
        ASSERT_TRUE(out.ok()) << out.status().Text();
        const double period = std::max(double(is_periodic ? size : size - 1), 1.0);
        const std::vector<double> found = Numbers((*out)[0]);
        ASSERT_EQ(int64_t(found.size()), size);
        for (int64_t n = 0; n < size; ++n) {
          const double exact = expected(op_type, double(n), period);
          // Half a unit in the last place, and what cancels in the expected value.
          EXPECT_NEAR(found[size_t(n)], exact, std::ldexp(std::abs(exact), -24) + 1e-15)
              << op_type << " " << size << " " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::ops
