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
using testing::HasSubstr;

// Products of 8 x 8 x 8 by subgroups of 8 items. An item holds a row of the rows and of the sums,
// and all columns.
constexpr codegen::MatrixUnits kUnits{.kind = codegen::MatrixUnits::Kind::kCooperative,
                                      .rows = 8,
                                      .columns = 8,
                                      .depth = 8,
                                      .subgroup_items = 8};
constexpr char kProduct[] = R"text(struct MatrixRow { float e[8]; };
struct MatrixColumns { float e[64]; };
#define MATRIX_ROWS MatrixRow
#define MATRIX_COLUMNS MatrixColumns
#define MATRIX_SUMS MatrixRow
#define MATRIX_ZERO(sums) for (int q = 0; q < 8; ++q) sums.e[q] = 0.0
#define MATRIX_LOAD_ROWS(to, array, at, pitch) \
  for (int q = 0; q < 8; ++q) to.e[q] = float(array[(at) + LANE % 8 * (pitch) + q])
#define MATRIX_LOAD_COLUMNS(to, array, at, pitch) \
  for (int q = 0; q < 64; ++q) to.e[q] = float(array[(at) + q / 8 * (pitch) + q % 8])
#define MATRIX_ADD(sums, rows, columns) \
  for (int q = 0; q < 64; ++q) sums.e[q / 8] += rows.e[q % 8] * columns.e[q]
#define MATRIX_STORE(sums, array, at, pitch) \
  for (int q = 0; q < 8; ++q) array[(at) + LANE % 8 * (pitch) + q] = sums.e[q]
#define PUT_f16(array, at, bits) array[at] = uint16BitsToFloat16(bits)
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
    const auto found = FindDevices(*instance_);
    if (!found.ok() || found->fit.empty()) GTEST_SKIP() << "No Vulkan device is fit.";
    DeviceInfo info = found->fit.front();
    info.capabilities.matrix_units = kUnits;
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

TEST_F(CooperativeSumsTest, ProductsOfFloat16AreRight) {
  uint32_t seed = 0;
  for (const int64_t k : {1, 8, 15, 16, 17, 33, 100}) {
    for (const auto& [m, n] :
         {std::pair<int64_t, int64_t>{64, 64}, {65, 67}, {130, 20}, {33, 129}}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
      ExpectMatrixUnits(MakeProduct({.batch = 2,
                                     .m = m,
                                     .n = n,
                                     .k = k,
                                     .b_transposed = k % 2 == 0,
                                     .b_kind = k % 3 == 0 ? codegen::kConstant : codegen::kVariable,
                                     .type = ElementType::kFloat16},
                                    ++seed),
                        "tiled product");
    }
  }
}

TEST_F(CooperativeSumsTest, FloatsThatMayBeRoundedAreRight) {
  RandomStep step = MakeProduct({.batch = 1, .m = 70, .n = 66, .k = 40}, 50);
  step.program.precision = tensor::Precision::kFloat16;
  ExpectMatrixUnits(step, "tiled product");
}

TEST_F(CooperativeSumsTest, ConvolutionsOfFloat16AreRight) {
  const std::vector<codegen::Axis> axes = {{9, 3, 2, 1, 1, 0}, {12, 3, 1, 2, 2, 2}};
  ExpectMatrixUnits(MakeConvolution(2, 2, 5, 40, axes, ElementType::kFloat16, 60),
                    "tiled convolution");
  ExpectMatrixUnits(MakeTransposed(2, 1, 6, 40, axes, ElementType::kFloat16, 61),
                    "tiled transposed convolution");
}

// Nobody asked for less than float32, and no matrix has bytes or bfloat16.
TEST_F(CooperativeSumsTest, OtherTypesAreSummedWithout) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBfloat16}) {
    const RandomStep step = MakeProduct({.batch = 1, .m = 64, .n = 64, .k = 16, .type = type}, 70);
    std::vector<bool> reads;
    EXPECT_THAT(DetailOf(step, reads), testing::Not(HasSubstr("matrix units")));
    ExpectRight(step, "tiled product");
  }
}

}  // namespace
}  // namespace onnxifi::vulkan
