// SPDX-License-Identifier: Apache-2.0

#include "backends/vulkan/cooperative_matrices.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "backends/core/codegen/plain_product.h"
#include "backends/vulkan/compiler.h"

namespace onnxifi::vulkan {
namespace {

using codegen::MatrixUnits;

// Blocks of kernels are made of products of up to so many rows, columns and places.
constexpr uint32_t kMaxExtent = 64;

bool IsUsable(const VkCooperativeMatrixPropertiesKHR& of) {
  const auto is_size = [](uint32_t size) {
    return size >= 4 && size <= kMaxExtent && (size & (size - 1)) == 0;
  };
  return of.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && of.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
         of.CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
         of.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR && of.saturatingAccumulation == VK_FALSE &&
         of.scope == VK_SCOPE_SUBGROUP_KHR && is_size(of.MSize) && is_size(of.NSize) &&
         is_size(of.KSize);
}

// How far a product is from 16 x 16 x 16, in doublings.
double Distance(const VkCooperativeMatrixPropertiesKHR& of) {
  double sum = 0;
  for (const uint32_t size : {of.MSize, of.NSize, of.KSize}) {
    sum += std::abs(std::log2(size / 16.0));
  }
  return sum;
}

}  // namespace

MatrixUnits FindCooperativeMatrices(const InstanceApi& api,
                                    PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR find,
                                    VkPhysicalDevice id, int subgroup_items) {
  if (find == nullptr || !KnowsCooperativeMatrices() || subgroup_items < 1) return {};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{};
  matrices.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
  VkPhysicalDeviceVulkan12Features of_1_2{};
  of_1_2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  of_1_2.pNext = &matrices;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &of_1_2;
  api.GetPhysicalDeviceFeatures2(id, &features);
  if (matrices.cooperativeMatrix == VK_FALSE || of_1_2.shaderFloat16 == VK_FALSE ||
      of_1_2.vulkanMemoryModel == VK_FALSE) {
    return {};
  }
  uint32_t count = 0;
  if (find(id, &count, nullptr) != VK_SUCCESS) return {};
  VkCooperativeMatrixPropertiesKHR empty{};
  empty.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  std::vector<VkCooperativeMatrixPropertiesKHR> all(count, empty);
  // More of them than there were are no fault.
  if (find(id, &count, all.data()) < 0) return {};
  all.resize(count);
  std::erase_if(all, [](const auto& of) { return !IsUsable(of); });
  const auto best = std::ranges::min_element(all, {}, Distance);
  if (best == all.end()) return {};
  return {.kind = MatrixUnits::Kind::kCooperative,
          .rows = static_cast<int>(best->MSize),
          .columns = static_cast<int>(best->NSize),
          .depth = static_cast<int>(best->KSize),
          .subgroup_items = subgroup_items};
}

std::string ProductLibrary(const MatrixUnits& units) {
  std::string text(codegen::PlainProduct());
  if (units.kind != MatrixUnits::Kind::kCooperative) return text;
  const auto block = [&](const char* name, const char* type, int rows, int columns,
                         const char* use) {
    text += std::string("#define ") + name + " coopmat<" + type + ", gl_ScopeSubgroup, " +
            std::to_string(rows) + ", " + std::to_string(columns) + ", gl_MatrixUse" + use + ">\n";
  };
  block("MATRIX_ROWS", "float16_t", units.rows, units.depth, "A");
  block("MATRIX_COLUMNS", "float16_t", units.depth, units.columns, "B");
  block("MATRIX_SUMS", "float", units.rows, units.columns, "Accumulator");
  text += R"text(#define MATRIX_ZERO(sums) sums = MATRIX_SUMS(0.0)
#define MATRIX_LOAD_ROWS(to, array, at, pitch) \
  coopMatLoad(to, array, at, pitch, gl_CooperativeMatrixLayoutRowMajor)
#define MATRIX_LOAD_COLUMNS(to, array, at, pitch) \
  coopMatLoad(to, array, at, pitch, gl_CooperativeMatrixLayoutColumnMajor)
#define MATRIX_ADD(sums, rows, columns) sums = coopMatMulAdd(rows, columns, sums)
#define MATRIX_STORE(sums, array, at, pitch) \
  coopMatStore(sums, array, at, pitch, gl_CooperativeMatrixLayoutRowMajor)
#define PUT_f16(array, at, bits) array[at] = uint16BitsToFloat16(bits)
#define SUBGROUP int(gl_SubgroupID)
)text";
  return text;
}

std::string TextOf(const MatrixUnits& units) {
  if (units.kind != MatrixUnits::Kind::kCooperative) return {};
  return std::to_string(units.rows) + " x " + std::to_string(units.columns) + " x " +
         std::to_string(units.depth) + " float16";
}

}  // namespace onnxifi::vulkan
