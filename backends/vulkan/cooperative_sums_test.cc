// SPDX-License-Identifier: Apache-2.0
//
// The text of sums by cooperative matrices (codegen/cooperative_matrix_text.cc), compared with the
// reference on a device that has none: a product library in plain GLSL stands in place of the
// extension's. Skipped where there is no device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/core/codegen/plain_product.h"
#include "backends/core/codegen/testing/tiled_fixture.h"
#include "backends/vulkan/device.h"

namespace onnxifi::vulkan {
namespace {

using codegen::MakeConvolution;
using codegen::MakeProduct;
using codegen::MakeTransposed;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Precision;
using testing::HasSubstr;

// Products of 8 x 8 x 8 by subgroups of 8 items. An item holds a row of the rows and of the sums,
// and all columns.
constexpr codegen::MatrixUnits kUnits{.kind = codegen::MatrixUnits::Kind::kCooperative,
                                      .float16 = {8, 8, 8},
                                      .bfloat16 = {8, 8, 8},
                                      .subgroup_items = 8};
constexpr char kProduct[] = R"text(struct MatrixRow { float e[8]; };
struct MatrixColumns { float e[64]; };
struct bf16 { uint16_t bits; };
float ToFloat(float16_t value) { return float(value); }
float ToFloat(bf16 value) { return uintBitsToFloat(uint(value.bits) << 16); }
#define MATRIX_ROWS_f16 MatrixRow
#define MATRIX_COLUMNS_f16 MatrixColumns
#define MATRIX_SUMS_f16 MatrixRow
#define MATRIX_ROWS_bf16 MatrixRow
#define MATRIX_COLUMNS_bf16 MatrixColumns
#define MATRIX_SUMS_bf16 MatrixRow
#define MATRIX_ZERO_f16(sums) for (int q = 0; q < 8; ++q) sums.e[q] = 0.0
#define MATRIX_ZERO_bf16(sums) for (int q = 0; q < 8; ++q) sums.e[q] = 0.0
#define MATRIX_LOAD_ROWS(to, array, at, pitch) \
  for (int q = 0; q < 8; ++q) to.e[q] = ToFloat(array[(at) + LANE % 8 * (pitch) + q])
#define MATRIX_LOAD_COLUMNS(to, array, at, pitch) \
  for (int q = 0; q < 64; ++q) to.e[q] = ToFloat(array[(at) + q / 8 * (pitch) + q % 8])
#define MATRIX_ADD(sums, rows, columns) \
  for (int q = 0; q < 64; ++q) sums.e[q / 8] += rows.e[q % 8] * columns.e[q]
#define MATRIX_STORE(sums, array, at, pitch) \
  for (int q = 0; q < 8; ++q) array[(at) + LANE % 8 * (pitch) + q] = sums.e[q]
#define PUT_f16(array, at, bits) array[at] = uint16BitsToFloat16(bits)
#define PUT_bf16(array, at, bits) array[at] = bf16(bits)
#define SUBGROUP (LANE / 8)
)text";

class CooperativeSumsTest : public codegen::StepTest {
 protected:
  void SetUp() override {
    const auto api = LoadApi(kLoaderLibrary);
    if (!api.ok()) GTEST_SKIP() << api.status().Text();
    auto instance = Instance::Create(*api);
    if (!instance.ok()) GTEST_SKIP() << instance.status().Text();
    instance_ = *std::move(instance);
    Open(kUnits);
  }

  void Open(const codegen::MatrixUnits& units) {
    const auto found = FindDevices(*instance_);
    if (!found.ok() || found->fit.empty()) GTEST_SKIP() << "No Vulkan device is fit.";
    DeviceInfo info = found->fit.front();
    info.capabilities.matrix_units = units;
    info.has_cooperative_matrices = false;
    info.product_library = std::string(codegen::PlainProduct()) + kProduct;
    auto device = Device::Open(*instance_, info, std::filesystem::path());
    if (!device.ok()) GTEST_SKIP() << device.status().Text();
    opened_ = *std::move(device);
    device_ = opened_.get();
  }

  void ExpectMatrixUnits(const RandomStep& step, const char* implementation) {
    std::vector<bool> reads;
    EXPECT_THAT(DetailOf(step, reads), HasSubstr("matrix units"));
    ExpectRight(step, implementation);
  }

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Device> opened_;
};

TEST_F(CooperativeSumsTest, ProductsAreRight) {
  uint32_t seed = 0;
  for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
    for (const int64_t k : {1, 8, 15, 16, 17, 33, 100}) {
      for (const auto& [m, n] :
           {std::pair<int64_t, int64_t>{64, 64}, {65, 67}, {130, 20}, {33, 129}}) {
        SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
        const auto b_kind = k % 3 == 0 ? codegen::kConstant : codegen::kVariable;
        ExpectMatrixUnits(MakeProduct({.batch = 2,
                                       .m = m,
                                       .n = n,
                                       .k = k,
                                       .b_transposed = k % 2 == 0,
                                       .b_kind = b_kind,
                                       .type = type},
                                      ++seed),
                          "tiled product");
      }
    }
  }
}

TEST_F(CooperativeSumsTest, FloatsThatMayBeRoundedAreRight) {
  for (const Precision precision : {Precision::kFloat16, Precision::kBfloat16}) {
    RandomStep step = MakeProduct({.batch = 1, .m = 70, .n = 66, .k = 40}, 50);
    step.program.precision = precision;
    ExpectMatrixUnits(step, "tiled product");
  }
}

TEST_F(CooperativeSumsTest, ConvolutionsAreRight) {
  const std::vector<codegen::Axis> axes = {{9, 3, 2, 1, 1, 0}, {12, 3, 1, 2, 2, 2}};
  for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
    ExpectMatrixUnits(MakeConvolution(2, 2, 5, 40, axes, type, 60), "tiled convolution");
    ExpectMatrixUnits(MakeTransposed(2, 1, 6, 40, axes, type, 61), "tiled transposed convolution");
  }
}

// Nobody asked for less than float32.
TEST_F(CooperativeSumsTest, Float32IsSummedWithout) {
  const RandomStep step = MakeProduct({.batch = 1, .m = 64, .n = 64, .k = 16}, 70);
  std::vector<bool> reads;
  EXPECT_THAT(DetailOf(step, reads), testing::Not(HasSubstr("matrix units")));
  ExpectRight(step, "tiled product");
}

// Matrices of one type do not stand in for the other's.
TEST_F(CooperativeSumsTest, ATypeWithoutMatricesIsSummedWithout) {
  for (const bool has_float16 : {false, true}) {
    codegen::MatrixUnits units = kUnits;
    (has_float16 ? units.bfloat16 : units.float16) = {};
    Open(units);
    for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
      const RandomStep step =
          MakeProduct({.batch = 1, .m = 64, .n = 64, .k = 16, .type = type}, 71);
      std::vector<bool> reads;
      const bool has_units = DetailOf(step, reads).find("matrix units") != std::string::npos;
      EXPECT_EQ(has_units, (type == ElementType::kFloat16) == has_float16);
      ExpectRight(step, "tiled product");
    }
  }
}

}  // namespace
}  // namespace onnxifi::vulkan
