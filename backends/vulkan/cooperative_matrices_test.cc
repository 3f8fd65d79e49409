// SPDX-License-Identifier: Apache-2.0
//
// Which cooperative matrices are used of those that a device tells, what the device is opened with
// then, and that the modules that use them are valid; on the fake driver.

#include "backends/vulkan/cooperative_matrices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <spirv-tools/libspirv.hpp>
#include <string>
#include <vector>

#include "backends/core/codegen/testing/tiled_fixture.h"
#include "backends/vulkan/callers_device.h"
#include "backends/vulkan/compiler.h"
#include "backends/vulkan/testing/fake_caller.h"
#include "backends/vulkan/testing/fake_driver.h"
#include "backends/vulkan/testing/story.h"

namespace onnxifi::vulkan {
namespace {

using codegen::MatrixBlock;
using codegen::MatrixUnits;
using testing::IsEmpty;

VkCooperativeMatrixPropertiesKHR Product(uint32_t m, uint32_t n, uint32_t k,
                                         VkComponentTypeKHR type = VK_COMPONENT_TYPE_FLOAT16_KHR) {
  VkCooperativeMatrixPropertiesKHR product{};
  product.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  product.MSize = m;
  product.NSize = n;
  product.KSize = k;
  product.AType = product.BType = type;
  product.CType = product.ResultType = VK_COMPONENT_TYPE_FLOAT32_KHR;
  product.scope = VK_SCOPE_SUBGROUP_KHR;
  return product;
}

constexpr VkComponentTypeKHR kBfloat16 = VK_COMPONENT_TYPE_BFLOAT16_KHR;

FakeDevice DeviceWith(std::vector<VkCooperativeMatrixPropertiesKHR> products) {
  FakeDevice device;
  device.extensions = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
                       VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME};
  device.cooperative_matrices = std::move(products);
  return device;
}

constexpr uint32_t kMatricesCapability = 6022;
constexpr uint32_t kBfloat16MatricesCapability = 5118;

bool Needs(const std::vector<uint32_t>& module, uint32_t capability) {
  constexpr uint32_t kOpCapability = 17;
  for (size_t at = 5; at < module.size(); at += module[at] >> 16) {
    if ((module[at] & 0xffff) == kOpCapability && module[at + 1] == capability) return true;
  }
  return false;
}

// What is wrong with it, or empty.
std::string Validate(const std::vector<uint32_t>& words) {
  std::string text;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  tools.SetMessageConsumer([&](spv_message_level_t /*level*/, const char* /*source*/,
                               const spv_position_t& /*position*/,
                               const char* message) { text += std::string(message) + '\n'; });
  spvtools::ValidatorOptions options;
  options.SetScalarBlockLayout(true);
  if (!tools.Validate(words.data(), words.size(), options) && text.empty()) text = "refused";
  return text;
}

class CooperativeMatricesTest : public FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    if (!KnowsBfloat16()) GTEST_SKIP() << CompilerName() << " does not know all of them.";
  }
  static DeviceInfo InfoOf(const FakeDevice& device) {
    FakeDriver::SetDevices({device});
    const auto instance = Instance::Create(FakeDriver::GetApi(), false);
    EXPECT_TRUE(instance.ok());
    const auto found = FindDevices(**instance);
    EXPECT_TRUE(found.ok() && found->fit.size() == 1);
    return found->fit.at(0);
  }
};

TEST_F(CooperativeMatricesTest, TheProductNearestTo16By16By16IsUsed) {
  VkCooperativeMatrixPropertiesKHR bytes = Product(16, 16, 16);
  bytes.AType = bytes.BType = VK_COMPONENT_TYPE_SINT8_KHR;
  VkCooperativeMatrixPropertiesKHR narrow = Product(16, 16, 16);
  narrow.CType = narrow.ResultType = VK_COMPONENT_TYPE_FLOAT16_KHR;
  VkCooperativeMatrixPropertiesKHR odd = Product(16, 16, 12);
  VkCooperativeMatrixPropertiesKHR wider = Product(16, 16, 16);
  wider.scope = static_cast<VkScopeKHR>(2);
  const DeviceInfo info =
      InfoOf(DeviceWith({bytes, narrow, odd, wider, Product(8, 8, 32), Product(16, 8, 16)}));
  EXPECT_TRUE(info.has_cooperative_matrices);
  EXPECT_EQ(info.capabilities.matrix_units, (MatrixUnits{.kind = MatrixUnits::Kind::kCooperative,
                                                         .float16 = {16, 8, 16},
                                                         .subgroup_items = 32}));
  EXPECT_EQ(TextOf(info.capabilities.matrix_units), "16 x 8 x 16 float16");
  const auto none = InfoOf(DeviceWith({bytes, narrow, odd, wider}));
  EXPECT_FALSE(none.has_cooperative_matrices);
  EXPECT_THAT(TextOf(none.capabilities.matrix_units), IsEmpty());
}

TEST_F(CooperativeMatricesTest, ADeviceThatLacksAnythingOfThemDoesWithout) {
  const FakeDevice whole = DeviceWith({Product(16, 16, 16)});
  EXPECT_TRUE(InfoOf(whole).has_cooperative_matrices);
  for (const char* const feature : {"cooperativeMatrix", "shaderFloat16", "vulkanMemoryModel"}) {
    FakeDevice device = whole;
    device.lacks = {feature};
    EXPECT_FALSE(InfoOf(device).has_cooperative_matrices) << feature;
  }
  FakeDevice device = whole;
  device.extensions.clear();
  EXPECT_FALSE(InfoOf(device).has_cooperative_matrices);
  FakeDriver::Hide("GetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  EXPECT_FALSE(InfoOf(whole).has_cooperative_matrices);
  FakeDriver::Recover();
  FakeDriver::Fail("GetPhysicalDeviceCooperativeMatrixPropertiesKHR", VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_FALSE(InfoOf(whole).has_cooperative_matrices);
}

TEST_F(CooperativeMatricesTest, EachTypeHasAProductOfItsOwn) {
  VkCooperativeMatrixPropertiesKHR mixed = Product(16, 16, 16, kBfloat16);
  mixed.BType = VK_COMPONENT_TYPE_FLOAT16_KHR;
  VkCooperativeMatrixPropertiesKHR narrow = Product(16, 16, 16, kBfloat16);
  narrow.CType = narrow.ResultType = kBfloat16;
  const FakeDevice both = DeviceWith({mixed, narrow, Product(8, 8, 16, kBfloat16),
                                      Product(16, 16, 16), Product(16, 8, 16, kBfloat16)});
  const MatrixUnits of_both = InfoOf(both).capabilities.matrix_units;
  EXPECT_EQ(of_both.float16, (MatrixBlock{16, 16, 16}));
  EXPECT_EQ(of_both.bfloat16, (MatrixBlock{16, 8, 16}));
  EXPECT_EQ(TextOf(of_both), "16 x 16 x 16 float16, 16 x 8 x 16 bfloat16");
  for (const char* const feature : {"shaderBFloat16Type", "shaderBFloat16CooperativeMatrix"}) {
    FakeDevice device = both;
    device.lacks = {feature};
    EXPECT_EQ(TextOf(InfoOf(device).capabilities.matrix_units), "16 x 16 x 16 float16") << feature;
  }
  FakeDevice device = both;
  device.extensions.erase(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
  EXPECT_EQ(TextOf(InfoOf(device).capabilities.matrix_units), "16 x 16 x 16 float16");
}

// What a caller made the device without, kernels do without.
TEST_F(CooperativeMatricesTest, ACallersDeviceHasWhatItsFeaturesSay) {
  FakeDriver::SetDevices({DeviceWith({Product(16, 16, 16), Product(16, 8, 16, kBfloat16)})});
  const auto instance = Instance::Create(FakeDriver::GetApi(), false);
  ASSERT_TRUE(instance.ok());
  const auto found = FindDevices(**instance);
  ASSERT_TRUE(found.ok());
  const FakeCaller caller((*instance)->get());
  ASSERT_TRUE(caller.is_open());
  // In front of the features that the caller tells of in any case.
  VkPhysicalDeviceFeatures2 features =
      *static_cast<const VkPhysicalDeviceFeatures2*>(caller.told().features);
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16{};
  bfloat16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
  bfloat16.pNext = features.pNext;
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{};
  matrices.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
  matrices.pNext = &bfloat16;
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model{};
  memory_model.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES;
  memory_model.pNext = &matrices;
  VkPhysicalDeviceShaderFloat16Int8Features float16{};
  float16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
  float16.pNext = &memory_model;
  features.pNext = &float16;
  onnxVulkanDevice told = caller.told();
  told.features = &features;
  const auto text = [&] {
    const auto checked = CheckCallersDevice(FakeDriver::GetApi(),
                                            reinterpret_cast<uintptr_t>(&told), found->fit.at(0));
    EXPECT_TRUE(checked.ok()) << checked.status().Text();
    if (!checked.ok()) return std::string("refused");
    const DeviceInfo& info = checked->info;
    EXPECT_EQ(info.has_cooperative_matrices,
              info.capabilities.matrix_units.kind == MatrixUnits::Kind::kCooperative);
    EXPECT_EQ(info.product_library, ProductLibrary(info.capabilities.matrix_units));
    return TextOf(info.capabilities.matrix_units);
  };
  EXPECT_EQ(text(), "");
  matrices.cooperativeMatrix = memory_model.vulkanMemoryModel = VK_TRUE;
  EXPECT_EQ(text(), "");
  float16.shaderFloat16 = VK_TRUE;
  EXPECT_EQ(text(), "16 x 16 x 16 float16");
  bfloat16.shaderBFloat16Type = VK_TRUE;
  EXPECT_EQ(text(), "16 x 16 x 16 float16");
  bfloat16.shaderBFloat16CooperativeMatrix = VK_TRUE;
  EXPECT_EQ(text(), "16 x 16 x 16 float16, 16 x 8 x 16 bfloat16");
  float16.shaderFloat16 = VK_FALSE;
  EXPECT_EQ(text(), "");
}

// The fake driver notes a module that the device was not made for.
TEST_F(CooperativeMatricesTest, ADeviceIsMadeWithThemAndItsModulesAreValid) {
  for (const auto& product :
       {Product(16, 16, 16), Product(16, 8, 16), Product(8, 8, 16), Product(16, 16, 16, kBfloat16),
        Product(16, 8, 16, kBfloat16), Product(8, 8, 8, kBfloat16)}) {
    const bool is_bfloat16 = product.AType == kBfloat16;
    FakeDriver::Recover();
    FakeDriver::SetDevices({DeviceWith({product})});
    const auto instance = Instance::Create(FakeDriver::GetApi(), false);
    ASSERT_TRUE(instance.ok());
    const auto found = FindDevices(**instance);
    ASSERT_TRUE(found.ok());
    const auto device = Device::Open(**instance, found->fit.at(0), folder_);
    ASSERT_TRUE(device.ok()) << device.status().Text();
    program::ProgramMaker maker;
    maker.program.precision =
        is_bfloat16 ? tensor::Precision::kBfloat16 : tensor::Precision::kFloat16;
    const std::vector<float> weights(size_t{128} * 96, 0.5F);
    const program::Operand b = maker.Constant(
        tensor::Tensor::FromValues<float>(tensor::ElementType::kFloat32, {128, 96}, weights));
    maker.Output(maker.MatMul(maker.Input({80, 128}), b));
    plan::Counters counters;
    const auto plan = plan::Plan::Create(maker.program, **device, counters);
    ASSERT_TRUE(plan.ok()) << plan.status().Text();
    execution::Executor executor(**plan);
    const auto boundary = execution::HostBoundary::Create(executor);
    ASSERT_TRUE(boundary.ok());
    const std::vector<float> values(size_t{80} * 128, 1);
    const std::vector<tensor::Tensor> inputs = {
        tensor::Tensor::FromValues<float>(tensor::ElementType::kFloat32, {80, 128}, values)};
    execution::TensorOutputs places(maker.program);
    const base::Status ran = (*boundary)->Run(execution::AsInputs(inputs), places);
    ASSERT_TRUE(ran.ok()) << ran.Text();
    int using_them = 0;
    for (const std::vector<uint32_t>& module : FakeDriver::Modules()) {
      using_them += Needs(module, kMatricesCapability) ? 1 : 0;
      EXPECT_EQ(Needs(module, kBfloat16MatricesCapability),
                is_bfloat16 && Needs(module, kMatricesCapability));
      EXPECT_EQ(Validate(module), "");
    }
    EXPECT_EQ(using_them, 1);
  }
}

// With batches, epilogues, padding, strides and other ends of blocks.
TEST_F(CooperativeMatricesTest, KernelsOfProductsAndConvolutionsAreValid) {
  FakeDriver::SetDevices({DeviceWith({Product(16, 16, 16), Product(16, 8, 16, kBfloat16)})});
  for (const auto half : {tensor::ElementType::kFloat16, tensor::ElementType::kBfloat16}) {
    const auto instance = Instance::Create(FakeDriver::GetApi(), false);
    ASSERT_TRUE(instance.ok());
    const auto found = FindDevices(**instance);
    ASSERT_TRUE(found.ok());
    const auto device = Device::Open(**instance, found->fit.at(0), folder_);
    ASSERT_TRUE(device.ok()) << device.status().Text();
    const std::vector<codegen::Axis> axes = {{9, 3, 2, 1, 1, 0}, {12, 3, 1, 2, 2, 2}};
    const reference::RandomStep steps[] = {
        codegen::MakeProduct({.batch = 2, .m = 65, .n = 67, .k = 33, .type = half}, 1),
        codegen::MakeProduct({.batch = 1, .m = 64, .n = 300, .k = 2'000, .type = half}, 2),
        codegen::MakeConvolution(2, 2, 5, 40, axes, half, 3),
        codegen::MakeTransposed(2, 1, 6, 40, axes, half, 4)};
    for (const reference::RandomStep& step : steps) {
      FakeDriver::Recover();
      // The driver computes nothing.
      ASSERT_TRUE(RunStep(**device, step).ok());
      int using_them = 0;
      for (const std::vector<uint32_t>& module : FakeDriver::Modules()) {
        using_them += Needs(module, kMatricesCapability) ? 1 : 0;
        EXPECT_EQ(Validate(module), "") << ToString(step.program);
      }
      EXPECT_EQ(using_them, 1) << ToString(step.program);
    }
  }
}

TEST_F(CooperativeMatricesTest, AModuleThatTheDeviceWasNotMadeForIsNoted) {
  FakeDriver::SetDevices({DeviceWith({Product(16, 16, 16)})});
  {
    const auto instance = Instance::Create(FakeDriver::GetApi(), false);
    ASSERT_TRUE(instance.ok());
    const auto found = FindDevices(**instance);
    ASSERT_TRUE(found.ok());
    DeviceInfo info = found->fit.at(0);
    info.has_cooperative_matrices = false;
    const auto device = Device::Open(**instance, info, std::filesystem::path());
    ASSERT_TRUE(device.ok());
    const auto compiled = (*device)->kernel_driver().Compile(
        "#version 460\n#extension GL_KHR_cooperative_matrix : require\n"
        "#extension GL_KHR_memory_scope_semantics : require\n"
        "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
        "layout(local_size_x = 32) in;\nshared float sums[256];\n"
        "#define SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>\n"
        "void main() {\n  SUMS m = SUMS(1.0);\n"
        "  coopMatStore(m, sums, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n}\n");
    EXPECT_TRUE(compiled.ok()) << compiled.status().Text();
  }
  EXPECT_THAT(FakeDriver::Misuses(), testing::ElementsAre(testing::HasSubstr("made without")));
  FakeDriver::Reset();
}

}  // namespace
}  // namespace onnxifi::vulkan
