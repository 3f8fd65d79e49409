// SPDX-License-Identifier: Apache-2.0
//
// The three forms of a made-up report.

#include "apps/onnxifi_info/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace onnxifi::info {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

LibraryReport MakeReport(bool is_cpu_usable) {
  LibraryReport report;
  report.path = "/lib/libonnxifi.so.1";
  DeviceReport automatic;
  automatic.key = automatic.plugin = "auto";
  automatic.type = "HETEROGENEOUS";
  automatic.is_usable = true;
  DeviceReport cpu;
  cpu.key = "cpu:0";
  cpu.plugin = "cpu";
  cpu.type = "CPU";
  cpu.memory_bytes = uint64_t{3} << 29;
  cpu.opsets = "ai.onnx:28";
  cpu.device = "Some Processor";
  cpu.is_usable = is_cpu_usable;
  if (!is_cpu_usable) cpu.reason = "NO_SYSTEM_RESOURCES: No thread can be started.";
  cpu.texts = {{"vendor", "somebody"}};
  cpu.numbers = {{"capabilities", 7}};
  cpu.limits = {{"subgroup_items", "8"}};
  report.devices = {automatic, cpu};
  DiscoveryRecord broken;
  broken.plugin = "gpu";
  broken.verdict = ONNXIFI_SDK_VERDICT_NOT_LOADABLE;
  broken.sentence = "The library libcuda.so.1 is missing.";
  report.plugins = {broken};
  return report;
}

TEST(ReportTextTest, TableShowsDevicesAndUnusedPlugins) {
  const std::string table = MakeTable(MakeReport(true));
  EXPECT_THAT(table, StartsWith("DEVICE"));
  EXPECT_THAT(table, HasSubstr("cpu:0"));
  EXPECT_THAT(table, HasSubstr("1.5 GiB"));
  EXPECT_THAT(table, HasSubstr("ready"));
  EXPECT_THAT(
      table,
      HasSubstr("Plugin 'gpu' is not used (not loadable): The library libcuda.so.1 is missing."));
}

TEST(ReportTextTest, TheReasonComesFirstWhenNothingIsUsable) {
  const LibraryReport report = MakeReport(false);
  EXPECT_FALSE(report.has_usable_device());
  EXPECT_THAT(MakeTable(report), StartsWith("No usable device. Device cpu:0: NO_SYSTEM_RESOURCES"));
  EXPECT_THAT(MakeListing(report), StartsWith("No usable device."));
}

TEST(ReportTextTest, AutoAloneIsNotUsable) {
  LibraryReport report = MakeReport(true);
  report.devices.pop_back();
  EXPECT_FALSE(report.has_usable_device());
  EXPECT_THAT(report.FirstReason(), HasSubstr("libcuda.so.1 is missing"));
  report.plugins.clear();
  EXPECT_THAT(report.FirstReason(), HasSubstr("There is no plugin"));
}

TEST(ReportTextTest, ListingShowsEveryQuery) {
  const std::string listing = MakeListing(MakeReport(true));
  EXPECT_THAT(listing, HasSubstr("vendor"));
  EXPECT_THAT(listing, HasSubstr("7 (0x7)"));
  EXPECT_THAT(listing, HasSubstr("  subgroup_items              8\n"));
  EXPECT_THAT(listing, Not(HasSubstr("No usable")));
}

TEST(ReportTextTest, LimitsAreNamesAndValues) {
  using Limits = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(SplitLimits(""), Limits());
  EXPECT_EQ(SplitLimits("heap_0=1 bytes, device; groups=2 x 3"),
            (Limits{{"heap_0", "1 bytes, device"}, {"groups", "2 x 3"}}));
  // Of a plugin that keeps to no rule.
  EXPECT_EQ(SplitLimits("many; a=; =b"), (Limits{{"many", ""}, {"a", ""}, {"", "b"}}));
}

TEST(ReportTextTest, JsonHasTheStableMembers) {
  const auto object = nlohmann::json::parse(MakeJson(MakeReport(true)));
  EXPECT_EQ(object["usable"], true);
  EXPECT_EQ(object["devices"][1]["key"], "cpu:0");
  EXPECT_EQ(object["devices"][1]["queries"]["capabilities"], 7);
  EXPECT_EQ(object["devices"][1]["limits"]["subgroup_items"], "8");
  EXPECT_EQ(object["devices"][0]["limits"], nlohmann::json::object());
  EXPECT_EQ(object["plugins"][0]["verdict"], "not loadable");
}

DeviceReport MakeIdentified(const char* key, const char* uuid, uint64_t pci_bus) {
  DeviceReport device;
  device.key = key;
  if (uuid != nullptr) device.texts = {{"device_uuid", uuid}};
  device.numbers = {{"pci_bus_id", pci_bus}, {"pci_device_id", 0}, {"pci_domain_id", 0}};
  return device;
}

TEST(ReportTextTest, OnePhysicalDeviceIsToldOnceWithItsPlugins) {
  LibraryReport report = MakeReport(true);
  report.devices.push_back(MakeIdentified("cuda:0", "07", 1));
  report.devices.push_back(MakeIdentified("vulkan:0", "07", 1));
  report.devices.push_back(MakeIdentified("vulkan:1", "08", 5));
  // Without a UUID the address decides.
  report.devices.push_back(MakeIdentified("opencl:0", nullptr, 1));
  report.devices.push_back(MakeIdentified("opencl:1", nullptr, 2));
  report.devices.push_back(MakeIdentified("opencl:2", "09", 2));
  const std::string table = MakeTable(report);
  EXPECT_THAT(table, HasSubstr("One device: cuda:0, vulkan:0, opencl:0\n"));
  EXPECT_THAT(table, HasSubstr("One device: opencl:1, opencl:2\n"));
  EXPECT_THAT(table, Not(HasSubstr("One device: vulkan:0")));
  EXPECT_THAT(table, Not(HasSubstr("One device: cpu")));
  const auto object = nlohmann::json::parse(MakeJson(report));
  EXPECT_EQ(object["devices"][1]["same_device"], nlohmann::json::array());
  EXPECT_EQ(object["devices"][2]["same_device"], nlohmann::json({"vulkan:0", "opencl:0"}));
}

TEST(ReportTextTest, TheLuidCountsWhereOneTellsNoUuidAndZerosAreNone) {
  LibraryReport report = MakeReport(true);
  report.devices.push_back(MakeIdentified("cuda:0", "07", 1));
  report.devices.push_back(MakeIdentified("vulkan:0", nullptr, 2));
  report.devices.push_back(MakeIdentified("opencl:0", nullptr, 2));
  for (const size_t k : {2, 3}) report.devices[k].texts.emplace_back("device_luid", "a1");
  report.devices[4].texts.emplace_back("device_luid", "a2");
  report.devices.push_back(MakeIdentified("opencl:1", "00", 1));
  report.devices.back().texts.emplace_back("device_luid", "00");
  using Keys = std::vector<std::string>;
  EXPECT_EQ(report.SameDevice(report.devices[2]), (Keys{"vulkan:0", "opencl:1"}));
  EXPECT_EQ(report.SameDevice(report.devices[3]), Keys{"cuda:0"});
  EXPECT_EQ(report.SameDevice(report.devices[4]), Keys());
}

TEST(ReportTextTest, NumbersOfLaterVersionsHaveNames) {
  EXPECT_EQ(DeviceTypeName(0x40), "type 64");
  EXPECT_EQ(VerdictName(99), "verdict 99");
}

}  // namespace
}  // namespace onnxifi::info
