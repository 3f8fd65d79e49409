// SPDX-License-Identifier: Apache-2.0
//
// Contract on the reference against loops in float64 written as the operators define them (Conv and
// ConvTranspose by scattering or gathering over all indices), and exact integer sums.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "backends/core/reference/testing/one_step.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::reference {
namespace {

using program::Contract;
using program::Expr;
using tensor::ElementType;

constexpr ElementType kFloat = ElementType::kFloat32;

void SetFloatBody(OneStep& one, Contract contract, bool relu) {
  program::ExprPool& pool = one.pool();
  contract.a_prologue = Load(pool, kFloat, 0).id();
  contract.b_prologue = Load(pool, kFloat, 1).id();
  const Expr sum = Accumulator(pool, kFloat);
  contract.roots = {(relu ? Maximum(sum, Like(sum, 0)) : sum).id()};
  one.step.body = std::move(contract);
}

TEST(ContractTest, MultipliesBatchesOfMatrices) {
  constexpr int kBatch = 3, kM = 7, kK = 33, kN = 70;
  OneStep one;
  const std::vector<float> a = RandomFloats(kBatch * kM * kK, 1);
  const std::vector<float> b = RandomFloats(kK * kN, 2);
  one.Read(kFloat, {kBatch, kM, kK}, a);
  one.Read(kFloat, {kN, kK}, b);
  // The same transposed B for every batch.
  one.step.reads[1].strides = {0, 1, kK};
  one.step.domain = {kBatch, kM, kN};
  one.Write(kFloat, one.step.domain, std::vector<float>(kBatch * kM * kN));
  Contract contract;
  contract.batch_axes = contract.m_axes = contract.n_axes = 1;
  contract.inner = {kK};
  SetFloatBody(one, contract, /*relu=*/true);
  const std::vector<float> out = one.Run<float>();
  for (int batch = 0; batch < kBatch; ++batch) {
    for (int m = 0; m < kM; ++m) {
      for (int n = 0; n < kN; ++n) {
        double sum = 0;
        for (int k = 0; k < kK; ++k) {
          sum += static_cast<double>(a[(batch * kM + m) * kK + k]) * b[n * kK + k];
        }
        ASSERT_NEAR(out[(batch * kM + m) * kN + n], std::max(sum, 0.0), 1e-6);
      }
    }
  }
}

struct Geometry {
  int64_t images, group, channels, outputs;  // channels and outputs per group
  int64_t in[2], kernel[2], stride[2], dilation[2], before[2], after[2];
};

constexpr Geometry kGeometries[] = {
    {1, 1, 3, 5, {8, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 4, 70, {6, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {2, 3, 2, 4, {9, 5}, {3, 2}, {2, 1}, {1, 2}, {2, 0}, {0, 1}},
    {1, 6, 1, 1, {7, 7}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}},
    {1, 2, 3, 2, {1, 1}, {3, 3}, {1, 3}, {2, 1}, {4, 2}, {4, 2}},
};

Contract MakeContract(const Geometry& g, Contract::Form form) {
  Contract contract;
  contract.form = form;
  contract.group = g.group;
  contract.inner = {g.channels, g.kernel[0], g.kernel[1]};
  contract.a_spatial = {g.in[0], g.in[1]};
  contract.strides = {g.stride[0], g.stride[1]};
  contract.dilations = {g.dilation[0], g.dilation[1]};
  contract.pads_begin = {g.before[0], g.before[1]};
  return contract;
}

TEST(ContractTest, Convolves) {
  for (const Geometry& g : kGeometries) {
    int64_t out_extent[2];
    for (int d = 0; d < 2; ++d) {
      out_extent[d] = (g.in[d] + g.before[d] + g.after[d] - g.dilation[d] * (g.kernel[d] - 1) - 1) /
                          g.stride[d] +
                      1;
    }
    const int64_t c_all = g.group * g.channels, m_all = g.group * g.outputs;
    const std::vector<float> a = RandomFloats(g.images * c_all * g.in[0] * g.in[1], 3);
    const std::vector<float> b = RandomFloats(m_all * g.channels * g.kernel[0] * g.kernel[1], 4);
    OneStep one;
    one.Read(kFloat, {g.images, c_all, g.in[0], g.in[1]}, a);
    one.Read(kFloat, {m_all, g.channels, g.kernel[0], g.kernel[1]}, b);
    one.step.domain = {g.images, m_all, out_extent[0], out_extent[1]};
    one.Write(kFloat, one.step.domain,
              std::vector<float>(g.images * m_all * out_extent[0] * out_extent[1]));
    SetFloatBody(one, MakeContract(g, Contract::Form::kConv), /*relu=*/false);
    const std::vector<float> out = one.Run<float>();
    size_t position = 0;
    for (int64_t n = 0; n < g.images; ++n) {
      for (int64_t m = 0; m < m_all; ++m) {
        for (int64_t y = 0; y < out_extent[0]; ++y) {
          for (int64_t x = 0; x < out_extent[1]; ++x) {
            double sum = 0;
            for (int64_t c = 0; c < g.channels; ++c) {
              for (int64_t ky = 0; ky < g.kernel[0]; ++ky) {
                for (int64_t kx = 0; kx < g.kernel[1]; ++kx) {
                  const int64_t iy = y * g.stride[0] - g.before[0] + ky * g.dilation[0];
                  const int64_t ix = x * g.stride[1] - g.before[1] + kx * g.dilation[1];
                  if (iy < 0 || iy >= g.in[0] || ix < 0 || ix >= g.in[1]) continue;
                  const int64_t channel = m / g.outputs * g.channels + c;
                  sum += static_cast<double>(
                             a[((n * c_all + channel) * g.in[0] + iy) * g.in[1] + ix]) *
                         b[((m * g.channels + c) * g.kernel[0] + ky) * g.kernel[1] + kx];
                }
              }
            }
            ASSERT_NEAR(out[position++], sum, 1e-6);
          }
        }
      }
    }
  }
}

TEST(ContractTest, ConvolvesTransposed) {
  for (const Geometry& g : kGeometries) {
    int64_t out_extent[2];
    for (int d = 0; d < 2; ++d) {
      out_extent[d] = g.stride[d] * (g.in[d] - 1) + g.dilation[d] * (g.kernel[d] - 1) + 1 +
                      g.stride[d] - 1 - std::min<int64_t>(g.before[d], 1);
    }
    const int64_t c_all = g.group * g.channels, m_all = g.group * g.outputs;
    Geometry clipped = g;
    for (int d = 0; d < 2; ++d) clipped.before[d] = std::min<int64_t>(g.before[d], 1);
    const std::vector<float> a = RandomFloats(g.images * c_all * g.in[0] * g.in[1], 5);
    const std::vector<float> b = RandomFloats(c_all * g.outputs * g.kernel[0] * g.kernel[1], 6);
    OneStep one;
    one.Read(kFloat, {g.images, c_all, g.in[0], g.in[1]}, a);
    one.Read(kFloat, {c_all, g.outputs, g.kernel[0], g.kernel[1]}, b);
    one.step.domain = {g.images, m_all, out_extent[0], out_extent[1]};
    const int64_t count = g.images * m_all * out_extent[0] * out_extent[1];
    one.Write(kFloat, one.step.domain, std::vector<float>(count));
    SetFloatBody(one, MakeContract(clipped, Contract::Form::kConvTranspose), /*relu=*/false);
    const std::vector<float> out = one.Run<float>();
    // Every input adds its kernel to the outputs it reaches.
    std::vector<double> expected(count);
    for (int64_t n = 0; n < g.images; ++n) {
      for (int64_t c = 0; c < c_all; ++c) {
        for (int64_t iy = 0; iy < g.in[0]; ++iy) {
          for (int64_t ix = 0; ix < g.in[1]; ++ix) {
            for (int64_t m = 0; m < g.outputs; ++m) {
              for (int64_t ky = 0; ky < g.kernel[0]; ++ky) {
                for (int64_t kx = 0; kx < g.kernel[1]; ++kx) {
                  const int64_t y = iy * g.stride[0] + ky * g.dilation[0] - clipped.before[0];
                  const int64_t x = ix * g.stride[1] + kx * g.dilation[1] - clipped.before[1];
                  if (y < 0 || y >= out_extent[0] || x < 0 || x >= out_extent[1]) continue;
                  const int64_t channel = c / g.channels * g.outputs + m;
                  expected[((n * m_all + channel) * out_extent[0] + y) * out_extent[1] + x] +=
                      static_cast<double>(a[((n * c_all + c) * g.in[0] + iy) * g.in[1] + ix]) *
                      b[((c * g.outputs + m) * g.kernel[0] + ky) * g.kernel[1] + kx];
                }
              }
            }
          }
        }
      }
    }
    for (int64_t k = 0; k < count; ++k) ASSERT_NEAR(out[k], expected[k], 1e-6) << k;
  }
}

TEST(ContractTest, IntegersAreExactAndSubtractTheirZeroPoint) {
  OneStep one;
  std::mt19937 random(9);
  std::vector<uint8_t> a(4 * 600);
  std::vector<int8_t> b(600 * 5);
  for (uint8_t& value : a) value = static_cast<uint8_t>(random());
  for (int8_t& value : b) value = static_cast<int8_t>(random());
  const std::vector<uint8_t> zero_points = {0, 7, 255, 128};
  one.Read(ElementType::kUint8, {4, 600}, a);
  one.Read(ElementType::kInt8, {600, 5}, b);
  one.Read(ElementType::kUint8, {4}, zero_points);
  one.step.reads[2].strides = {1, 0};
  one.step.domain = {4, 5};
  one.Write(ElementType::kInt32, one.step.domain, std::vector<int32_t>(20));
  program::ExprPool& pool = one.pool();
  constexpr ElementType kInt32 = ElementType::kInt32;
  Contract contract;
  contract.m_axes = contract.n_axes = 1;
  contract.inner = {600};
  contract.accumulator = kInt32;
  contract.a_prologue = (Cast(Load(pool, ElementType::kUint8, 0), kInt32) -
                         Cast(Load(pool, ElementType::kUint8, 2), kInt32))
                            .id();
  contract.b_prologue = Cast(Load(pool, ElementType::kInt8, 1), kInt32).id();
  contract.roots = {Accumulator(pool, kInt32).id()};
  one.step.body = std::move(contract);
  const std::vector<int32_t> out = one.Run<int32_t>();
  for (int m = 0; m < 4; ++m) {
    for (int n = 0; n < 5; ++n) {
      int32_t sum = 0;
      for (int k = 0; k < 600; ++k) {
        sum += (int32_t{a[m * 600 + k]} - zero_points[m]) * int32_t{b[k * 5 + n]};
      }
      ASSERT_EQ(out[m * 5 + n], sum);
    }
  }
}

// Operands of 16 bits, each widened without loss, in sums of float32 and of float64.
TEST(ContractTest, NarrowFloatsAreWidenedBeforeTheyAreMultiplied) {
  constexpr int kM = 5, kK = 301, kN = 67;
  for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
    for (const ElementType sum_type : {kFloat, ElementType::kFloat64}) {
      std::mt19937 random(11);
      const auto draw = [&](size_t count, std::vector<double>& values) {
        std::vector<uint16_t> codes(count);
        for (uint16_t& code : codes) {
          const auto value = static_cast<float>(random() % 4001) / 1000 - 2;
          code = static_cast<uint16_t>(tensor::EncodeFloat(type, value));
          values.push_back(
              tensor::LoadScalar(type, reinterpret_cast<const std::byte*>(&code), 0).f);
        }
        // The least and the largest that it has, whose product neither overflows nor vanishes.
        codes[0] = 1;
        codes[1] = type == ElementType::kFloat16 ? 0x7bff : 0x4f7f;
        for (size_t k = 0; k < 2; ++k) {
          values[k] = tensor::LoadScalar(type, reinterpret_cast<const std::byte*>(&codes[k]), 0).f;
        }
        return codes;
      };
      std::vector<double> a, b;
      OneStep one;
      one.Read(type, {kM, kK}, draw(kM * kK, a));
      one.Read(type, {kK, kN}, draw(kK * kN, b));
      one.step.domain = {kM, kN};
      program::ExprPool& pool = one.pool();
      Contract contract;
      contract.m_axes = contract.n_axes = 1;
      contract.inner = {kK};
      contract.accumulator = sum_type;
      contract.a_prologue = Cast(Load(pool, type, 0), sum_type).id();
      contract.b_prologue = Cast(Load(pool, type, 1), sum_type).id();
      contract.roots = {Cast(Accumulator(pool, sum_type), ElementType::kFloat64).id()};
      one.Write(ElementType::kFloat64, one.step.domain, std::vector<double>(kM * kN));
      one.step.body = std::move(contract);
      const std::vector<double> out = one.Run<double>();
      const double unit = sum_type == kFloat ? 0x1p-24 : 0x1p-53;
      for (int m = 0; m < kM; ++m) {
        for (int n = 0; n < kN; ++n) {
          double sum = 0, magnitude = 0;
          for (int k = 0; k < kK; ++k) {
            const double product = a[m * kK + k] * b[k * kN + n];
            sum += product;
            magnitude += std::abs(product);
          }
          ASSERT_NEAR(out[m * kN + n], sum, kK * unit * magnitude + 1e-12 * magnitude);
        }
      }
    }
  }
}

TEST(ContractTest, PaddingMeetsNoInfinity) {
  OneStep one;
  one.Read(kFloat, {1, 1, 2}, std::vector<float>{1, 1});
  one.Read(kFloat, {1, 1, 3}, std::vector<float>{std::numeric_limits<float>::infinity(), 1, 1});
  one.step.domain = {1, 1, 1};
  one.Write(kFloat, {1, 1, 1}, std::vector<float>(1));
  Contract contract;
  contract.form = Contract::Form::kConv;
  contract.inner = {1, 3};
  contract.a_spatial = {2};
  contract.strides = contract.dilations = {1};
  contract.pads_begin = {1};
  SetFloatBody(one, contract, /*relu=*/false);
  EXPECT_EQ(one.Run<float>(), std::vector<float>{2});
}

TEST(ContractTest, NothingToSumGivesZero) {
  OneStep one;
  one.Read(kFloat, {2, 0}, std::vector<float>());
  one.Read(kFloat, {0, 3}, std::vector<float>());
  one.step.domain = {2, 3};
  one.Write(kFloat, {2, 3}, std::vector<float>(6, -1));
  Contract contract;
  contract.m_axes = contract.n_axes = 1;
  contract.inner = {0};
  SetFloatBody(one, contract, /*relu=*/false);
  EXPECT_EQ(one.Run<float>(), std::vector<float>(6, 0));
}

}  // namespace
}  // namespace onnxifi::reference
