// SPDX-License-Identifier: Apache-2.0
//
// What hardware behind a driver tells: names as long as the interface has room for, and why there
// is no device.

#include "backends/core/plugin/driver_hardware.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/tuning.h"

namespace onnxifi::plugin {
namespace {

struct DeviceInfo {
  std::string name;
  codegen::Capabilities capabilities;
  codegen::Tuning tuning;
};

class FakeHardware final : public DriverHardware<DeviceInfo> {
 public:
  explicit FakeHardware(base::Result<Found> found)
      : DriverHardware({.no_device = "There is none.", .none_is_fit = "None is fit"}),
        found_(std::move(found)) {}

  std::string plugin_name() const override { return "fake"; }
  base::Result<std::unique_ptr<device::Device>> Open(
      int index, const abi::BackendProperties& /*properties*/) override {
    return base::Status(base::Code::kBackendUnavailable, info(index).name);
  }

 private:
  base::Result<Found> Find() override { return found_; }
  DeviceDescription Describe(const DeviceInfo& info) const override {
    DeviceDescription description;
    description.name = info.name;
    return description;
  }

  const base::Result<Found> found_;
};
using Found = FakeHardware::Found;

std::string AbsenceOf(base::Result<Found> found) {
  FakeHardware hardware(std::move(found));
  EXPECT_TRUE(hardware.Enumerate().empty());
  return hardware.absence();
}

TEST(DriverHardware, SaysWhyThereIsNoDevice) {
  EXPECT_EQ(AbsenceOf(Found{}), "There is none.");
  EXPECT_EQ(AbsenceOf(Found{{}, {"One lacks a"}}), "None is fit: One lacks a.");
  EXPECT_EQ(AbsenceOf(Found{{}, {"One lacks a", "Two lacks b"}}),
            "None is fit: One lacks a, Two lacks b.");
  EXPECT_EQ(AbsenceOf(base::Status(base::Code::kBackendUnavailable, "The driver is old.")),
            "The driver is old.");
}

TEST(DriverHardware, HasASelectorForEachFitDevice) {
  FakeHardware hardware(Found{{{"One", {}, {}}, {"Two", {}, {}}}, {"Three lacks a"}});
  ASSERT_EQ(hardware.Enumerate().size(), 2U);
  EXPECT_NE(&hardware.selector(0), &hardware.selector(1));
  EXPECT_EQ(hardware.Open(1, {}).status().sentence(), "Two");
}

TEST(DriverHardware, ANameEndsWhereTheInterfaceHasNoRoom) {
  const std::string name(49, 'n');
  const std::unique_ptr<abi::Provider> provider = MakeProvider(
      std::make_unique<FakeHardware>(Found{{{name, {}, {}}, {name + "x", {}, {}}}, {}}));
  const auto ids = provider->EnumerateBackendIds();
  ASSERT_TRUE(ids.ok());
  ASSERT_EQ(ids->size(), 2U);
  for (const abi::BackendId* id : *ids) {
    const auto told = id->Info(ONNXIFI_BACKEND_NAME);
    ASSERT_TRUE(told.ok());
    EXPECT_EQ(std::get<std::string>(*told), name);
  }
}

}  // namespace
}  // namespace onnxifi::plugin
