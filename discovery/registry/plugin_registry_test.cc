// SPDX-License-Identifier: Apache-2.0
//
// PluginRegistry where it needs no plugin; with plugins it is tested through libonnxifi.

#include "discovery/registry/plugin_registry.h"

#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

namespace onnxifi::registry {
namespace {

// Tells the registry which file "this library" is.
void OwnFunction() {}

TEST(PluginRegistry, ReportsVariablesThatItMustNotObey) {
  search::Environment environment;
  environment.log_level = base::LogLevel::kSilent;
  environment.backends = "/nonexistent/libonnxifi-x.so";
  environment.ignored = {"ONNXIFI_ADD_BACKENDS"};
  const PluginRegistry registry =
      PluginRegistry::Discover(environment, reinterpret_cast<const void*>(&OwnFunction));
  ASSERT_EQ(registry.records().size(), 2u);
  EXPECT_EQ(registry.records()[0].verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_IGNORED));
  EXPECT_EQ(registry.records()[0].rule, "ONNXIFI_ADD_BACKENDS");
  EXPECT_EQ(registry.records()[1].verdict, static_cast<uint32_t>(ONNXIFI_SDK_VERDICT_NOT_FOUND));
  EXPECT_TRUE(registry.plugins().empty());
}

}  // namespace
}  // namespace onnxifi::registry
