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

using codegen::MatrixBlock;
using codegen::MatrixUnits;

// Blocks of kernels are made of products of up to so many rows, columns and places.
constexpr uint32_t kMaxExtent = 64;

bool IsUsable(const VkCooperativeMatrixPropertiesKHR& of, VkComponentTypeKHR type) {
  const auto is_size = [](uint32_t size) {
    return size >= 4 && size <= kMaxExtent && (size & (size - 1)) == 0;
  };
  return of.AType == type && of.BType == type && of.CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
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

// Of elements of `type`; has no rows if there is none.
MatrixBlock FindBlock(std::vector<VkCooperativeMatrixPropertiesKHR> all, VkComponentTypeKHR type) {
  std::erase_if(all, [type](const auto& of) { return !IsUsable(of, type); });
  const auto best = std::ranges::min_element(all, {}, Distance);
  if (best == all.end()) return {};
  return {.rows = static_cast<int>(best->MSize),
          .columns = static_cast<int>(best->NSize),
          .depth = static_cast<int>(best->KSize)};
}

}  // namespace

MatrixUnits FindCooperativeMatrices(PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR find,
                                    VkPhysicalDevice id, const Features& features,
                                    int subgroup_items) {
  if (find == nullptr || !KnowsCooperativeMatrices() || subgroup_items < 1) return {};
  // glslang asks for shaderFloat16 in modules with bfloat16, too.
  if (!features.matrices || !features.float16 || !features.memory_model) return {};
  uint32_t count = 0;
  if (find(id, &count, nullptr) != VK_SUCCESS) return {};
  VkCooperativeMatrixPropertiesKHR empty{};
  empty.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  std::vector<VkCooperativeMatrixPropertiesKHR> all(count, empty);
  // More of them than there were are no fault.
  if (find(id, &count, all.data()) < 0) return {};
  all.resize(count);
  MatrixUnits units{.kind = MatrixUnits::Kind::kCooperative, .subgroup_items = subgroup_items};
  units.float16 = FindBlock(all, VK_COMPONENT_TYPE_FLOAT16_KHR);
  if (features.bfloat16 && features.bfloat16_matrices && KnowsBfloat16()) {
    units.bfloat16 = FindBlock(all, VK_COMPONENT_TYPE_BFLOAT16_KHR);
  }
  if (units.float16.rows == 0 && units.bfloat16.rows == 0) return {};
  return units;
}

std::string ProductLibrary(const MatrixUnits& units) {
  std::string text(codegen::PlainProduct());
  if (units.kind != MatrixUnits::Kind::kCooperative) return text;
  const auto add = [&](const MatrixBlock& of, const std::string& name, const std::string& type) {
    if (of.rows == 0) return;
    const auto define = [&](const char* part, const std::string& elements, int rows, int columns,
                            const char* use) {
      text += std::string("#define MATRIX_") + part + "_" + name + " coopmat<" + elements +
              ", gl_ScopeSubgroup, " + std::to_string(rows) + ", " + std::to_string(columns) +
              ", gl_MatrixUse" + use + ">\n";
    };
    define("ROWS", type, of.rows, of.depth, "A");
    define("COLUMNS", type, of.depth, of.columns, "B");
    define("SUMS", "float", of.rows, of.columns, "Accumulator");
    text += "#define MATRIX_ZERO_" + name + "(sums) sums = MATRIX_SUMS_" + name + "(0.0)\n";
  };
  add(units.float16, "f16", "float16_t");
  add(units.bfloat16, "bf16", "bfloat16_t");
  if (units.bfloat16.rows > 0) text += "#define bf16 bfloat16_t\n";
  text += R"text(#define MATRIX_LOAD_ROWS(to, array, at, pitch) \
  coopMatLoad(to, array, at, pitch, gl_CooperativeMatrixLayoutRowMajor)
#define MATRIX_LOAD_COLUMNS(to, array, at, pitch) \
  coopMatLoad(to, array, at, pitch, gl_CooperativeMatrixLayoutColumnMajor)
#define MATRIX_ADD(sums, rows, columns) sums = coopMatMulAdd(rows, columns, sums)
#define MATRIX_STORE(sums, array, at, pitch) \
  coopMatStore(sums, array, at, pitch, gl_CooperativeMatrixLayoutRowMajor)
#define PUT_f16(array, at, bits) array[at] = uint16BitsToFloat16(bits)
#define PUT_bf16(array, at, bits) array[at] = uintBitsToBFloat16EXT(bits)
#define SUBGROUP int(gl_SubgroupID)
)text";
  return text;
}

std::string TextOf(const MatrixUnits& units) {
  std::string text;
  const auto add = [&](const MatrixBlock& of, const char* type) {
    if (of.rows == 0) return;
    text += (text.empty() ? "" : ", ") + std::to_string(of.rows) + " x " +
            std::to_string(of.columns) + " x " + std::to_string(of.depth) + " " + type;
  };
  add(units.float16, "float16");
  add(units.bfloat16, "bfloat16");
  return text;
}

}  // namespace onnxifi::vulkan
