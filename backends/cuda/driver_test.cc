// SPDX-License-Identifier: Apache-2.0
//
// Devices as a driver of this test's own tells of them: GPUs and instances of them.

#include "backends/cuda/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "backends/cuda/compile_only.h"

namespace onnxifi::cuda {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// What the driver of a machine shows for CUDA_VISIBLE_DEVICES=GPU-…,MIG-…,MIG-…; the function
// pointers have no state, so that this is global.
struct ShownDevice {
  const char* name;
  unsigned char uuid;
  size_t memory_bytes;
  int major, minor;
  int multiprocessors;
  int bus;
};
constexpr ShownDevice kShown[] = {
    {"NVIDIA A100-SXM4-40GB", 0xa0, size_t{42298834944}, 8, 0, 108, 0x41},
    {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", 0x10, size_t{10200547328}, 9, 0, 16, 0x84},
    {"NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb", 0x34, size_t{42144366592}, 9, 0, 18, 0x84},
    {"NVIDIA A10", 0x86, size_t{23609475072}, 8, 6, 72, 0xa1},
    {"Tesla T4", 0x04, size_t{15828320256}, 7, 5, 40, 0xc1},
};

Api ShowingApi() {
  Api api = CompileOnlyApi(80);
  api.DeviceGetCount = [](int* count) {
    *count = std::size(kShown);
    return CUDA_SUCCESS;
  };
  api.DeviceGet = [](CUdevice* device, int index) {
    *device = 100 + index;
    return CUDA_SUCCESS;
  };
  api.DeviceGetName = [](char* name, int length, CUdevice device) {
    std::strncpy(name, kShown[device - 100].name, static_cast<size_t>(length));
    return CUDA_SUCCESS;
  };
  api.DeviceGetUuid = [](CUuuid* uuid, CUdevice device) {
    std::memset(uuid->bytes, kShown[device - 100].uuid, sizeof(uuid->bytes));
    return CUDA_SUCCESS;
  };
  api.DeviceTotalMem = [](size_t* size_bytes, CUdevice device) {
    *size_bytes = kShown[device - 100].memory_bytes;
    return CUDA_SUCCESS;
  };
  api.DeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice device) {
    const ShownDevice& shown = kShown[device - 100];
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR      ? shown.major
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR    ? shown.minor
             : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT        ? shown.multiprocessors
             : attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID                  ? shown.bus
             : attribute == CU_DEVICE_ATTRIBUTE_CLOCK_RATE                  ? 1'410'000
             : attribute == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE           ? 1'215'000
             : attribute == CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH     ? 5120
             : attribute == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK       ? 1024
             : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK ? 48 << 10
                                                                            : 0;
    return CUDA_SUCCESS;
  };
  return api;
}

TEST(DriverTest, AnInstanceIsADeviceWithItsOwnNameMemoryAndUnits) {
  const auto found = FindDevices(ShowingApi());
  ASSERT_TRUE(found.ok()) << found.status().Text();
  ASSERT_EQ(found->fit.size(), 4U);
  for (size_t k = 0; k < 4; ++k) {
    const DeviceInfo& info = found->fit[k];
    EXPECT_EQ(info.index, static_cast<int>(k));
    EXPECT_EQ(info.id, 100 + info.index);
    EXPECT_EQ(info.name, kShown[k].name);
    EXPECT_EQ(info.memory_bytes, kShown[k].memory_bytes);
    EXPECT_EQ(info.multiprocessors, kShown[k].multiprocessors);
    EXPECT_EQ(info.pci_bus, static_cast<uint32_t>(kShown[k].bus));
    EXPECT_TRUE(
        std::ranges::all_of(info.uuid, [&](uint8_t byte) { return byte == kShown[k].uuid; }));
  }
  // Instances of one GPU are told apart by their UUIDs alone.
  EXPECT_EQ(found->fit[1].pci_bus, found->fit[2].pci_bus);
  EXPECT_NE(found->fit[1].uuid, found->fit[2].uuid);
  EXPECT_TRUE(found->fit[0].capabilities.is_float64_fast);
  EXPECT_TRUE(found->fit[1].capabilities.is_float64_fast);
  EXPECT_FALSE(found->fit[3].capabilities.is_float64_fast);
  EXPECT_EQ(found->fit[0].float32_macs, uint64_t{108} * 64 * 1'410'000'000);
  EXPECT_EQ(found->fit[1].float32_macs, uint64_t{16} * 128 * 1'410'000'000);
  EXPECT_EQ(found->fit[0].float16_macs, uint64_t{108} * 1024 * 1'410'000'000);
  EXPECT_EQ(found->fit[1].float16_macs, uint64_t{16} * 2048 * 1'410'000'000);
  EXPECT_EQ(found->fit[3].float16_macs, uint64_t{72} * 512 * 1'410'000'000);
  EXPECT_EQ(found->fit[0].memory_bandwidth, uint64_t{1'555'200'000'000});
  EXPECT_THAT(found->left_out, ElementsAre(HasSubstr("Tesla T4 has compute capability 7.5")));
}

TEST(DriverTest, RulesForAGpuServeItsInstancesBehindTheirOwn) {
  std::string name = (fs::temp_directory_path() / "cuda_tuning.XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  const fs::path file = folder / kTuningFile;
  std::ofstream(file) << "# measured\n"
                         "NVIDIA H100 80GB HBM3, run, 4, 128\n"
                         "NVIDIA H100 80GB HBM3 MIG 1g.10gb, run, 2, 96\n"
                         "NVIDIA H100, run, 8, 32\n";
  const codegen::DeviceLimits limits{.most_group_items = 1024, .shared_bytes = 48 << 10};
  const auto run_of = [&](const char* device) {
    const codegen::Tuning tuning = FindTuning(limits, device, file);
    return std::pair(tuning.run_length, tuning.run_group_size);
  };
  EXPECT_EQ(run_of("NVIDIA H100 80GB HBM3"), std::pair(4, 128));
  EXPECT_EQ(run_of("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), std::pair(2, 96));
  EXPECT_EQ(run_of("NVIDIA H100 80GB HBM3 MIG 3g.40gb"), std::pair(4, 128));
  const std::pair derived(1, 64);
  EXPECT_EQ(run_of("NVIDIA A100-SXM4-40GB MIG 1g.5gb"), derived);
  fs::remove_all(folder);
  EXPECT_EQ(run_of("NVIDIA H100 80GB HBM3 MIG 3g.40gb"), derived);
}

}  // namespace
}  // namespace onnxifi::cuda
