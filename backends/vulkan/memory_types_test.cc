// SPDX-License-Identifier: Apache-2.0
//
// The types that drivers list, as their makers' devices have them.

#include "backends/vulkan/memory_types.h"

#include <gtest/gtest.h>

#include <vector>

namespace onnxifi::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kMapped =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr uint64_t kMiB = uint64_t{1} << 20;

VkPhysicalDeviceMemoryProperties Properties(const std::vector<uint64_t>& heap_mib,
                                            const std::vector<VkMemoryType>& types) {
  VkPhysicalDeviceMemoryProperties properties{};
  for (const uint64_t size : heap_mib) {
    properties.memoryHeaps[properties.memoryHeapCount++].size = size * kMiB;
  }
  for (const VkMemoryType& type : types)
    properties.memoryTypes[properties.memoryTypeCount++] = type;
  return properties;
}

TEST(MemoryTypesTest, AGpuOfWhichTheHostSeesAWindow) {
  const auto properties = Properties(
      {8192, 16384, 246},
      {{0, 1}, {kLocal, 0}, {kMapped, 1}, {kMapped | kCached, 1}, {kLocal | kMapped, 2}});
  MemoryTypes types;
  ASSERT_TRUE(ChooseMemoryTypes(properties, types));
  EXPECT_EQ(types.device.index, 1U);
  EXPECT_EQ(types.device.heap, 0U);
  EXPECT_EQ(types.device.heap_bytes, 8192 * kMiB);
  EXPECT_FALSE(types.device.is_mapped);
  EXPECT_EQ(types.numbers.index, 4U);
  EXPECT_TRUE(types.numbers.is_mapped);
  EXPECT_EQ(types.staging.index, 3U);
  EXPECT_TRUE(types.staging.is_mapped);
  EXPECT_TRUE(types.staging.is_cached);
}

TEST(MemoryTypesTest, AGpuThatTheHostSeesWhole) {
  const auto properties = Properties(
      {8192, 16384},
      {{0, 1}, {kLocal, 0}, {kMapped, 1}, {kMapped | kCached, 1}, {kLocal | kMapped, 0}});
  MemoryTypes types;
  ASSERT_TRUE(ChooseMemoryTypes(properties, types));
  EXPECT_EQ(types.device.index, 4U);
  EXPECT_TRUE(types.device.is_mapped);
  EXPECT_FALSE(types.device.is_cached);
  EXPECT_EQ(types.numbers.index, 4U);
  EXPECT_EQ(types.staging.index, 3U);
}

TEST(MemoryTypesTest, AGpuInAProcessorHasOneMemory) {
  const auto properties =
      Properties({12288}, {{kLocal, 0}, {kLocal | kMapped, 0}, {kLocal | kMapped | kCached, 0}});
  MemoryTypes types;
  ASSERT_TRUE(ChooseMemoryTypes(properties, types));
  for (const MemoryType& type : {types.device, types.numbers, types.staging}) {
    EXPECT_EQ(type.index, 2U);
    EXPECT_TRUE(type.is_mapped);
    EXPECT_TRUE(type.is_cached);
  }
}

TEST(MemoryTypesTest, OfEqualTypesTheFirstIsTaken) {
  const auto properties = Properties({1024}, {{kLocal | kMapped, 0}, {kLocal | kMapped, 0}});
  MemoryTypes types;
  ASSERT_TRUE(ChooseMemoryTypes(properties, types));
  EXPECT_EQ(types.device.index, 0U);
}

TEST(MemoryTypesTest, WhatNeedsMoreThanTheDeviceIsOpenedWithIsLeft) {
  const auto properties =
      Properties({8192, 16384}, {{kLocal | VK_MEMORY_PROPERTY_PROTECTED_BIT, 0},
                                 {kLocal | kMapped | VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
                                      VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD,
                                  0},
                                 {kLocal | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, 0},
                                 {kMapped, 1}});
  MemoryTypes types;
  ASSERT_TRUE(ChooseMemoryTypes(properties, types));
  EXPECT_EQ(types.device.index, 3U);
}

TEST(MemoryTypesTest, MemoryThatTheHostWritesIsNeeded) {
  MemoryTypes types;
  EXPECT_FALSE(ChooseMemoryTypes(Properties({8192}, {{kLocal, 0}}), types));
  // A mapping that is to be flushed is none that this backend uses.
  EXPECT_FALSE(ChooseMemoryTypes(
      Properties({8192}, {{kLocal | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, 0}}), types));
  EXPECT_FALSE(ChooseMemoryTypes(Properties({}, {}), types));
}

}  // namespace
}  // namespace onnxifi::vulkan
